"""The names that libpaceline.so shows are the functions of include/paceline.h."""
import pathlib
import re
import subprocess
import sys

library, nm = sys.argv[1:]
header = re.sub(r"/\*.*?\*/", "", pathlib.Path("include/paceline.h").read_text(encoding="utf-8"), flags=re.S)
declared = set(re.findall(r"\b(pl_\w+)\(", header))
printed = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, encoding="ascii").stdout
# Sanitizers bring names of their own.
shown = {line.split()[2] for line in printed.splitlines()} - {"_init", "_fini"}
shown = {name for name in shown if not name.startswith(("__", "_edata", "_end"))}
if declared != shown:
    sys.exit(f"declared only: {sorted(declared - shown)}; shown only: {sorted(shown - declared)}")
