#!/bin/sh
# Drive the server on the embedded model with the real OpenAI SDK, from npm.
#
#   tests/clients/peer_openai.sh [BUILD-FOLDER]     default build/release
#
# Exit 0: all well; 77: skipped, because npm is missing or out of reach; else something failed. Last line: N passed, N failed.
cd "$(dirname "$0")/../.." || exit 1
build=${1:-build/release}
folder=$build/peer-openai
skip() {
    echo "skipped: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
}

command -v npm >/dev/null 2>&1 && command -v node >/dev/null 2>&1 || skip "node and npm are not installed"
mkdir -p "$folder" || exit 1
packages='openai@6.49.0'
if [ "$(cat "$folder/installed" 2>/dev/null)" != "$packages" ]; then
    echo '{"private":true}' >"$folder/package.json"
    # shellcheck disable=SC2086
    npm install --prefix "$folder" --no-audit --no-fund --ignore-scripts --save-exact $packages >"$folder/npm.log" 2>&1 ||
        skip "npm could not fetch $packages"
    echo "$packages" >"$folder/installed"
fi
exec node tests/clients/openai.mjs "$build/paceline" "$folder"
