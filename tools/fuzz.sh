#!/bin/sh
# Run the fuzz targets and end with a table.
#
#   tools/fuzz.sh [-t SECONDS] [-j JOBS] [-k FOLDER] [TARGET...]
#
# Each TARGET (all of fuzz/fuzz_*.c without any) runs SECONDS (default 600) under ASan and UBSan, JOBS at a time
# (default 1), from its corpus in fuzz/corpus/NAME. New inputs go to FOLDER/NAME (default build/fuzz/found), never into
# the repository; crashing ones to FOLDER/NAME/crashes. Exit code 1 when a target crashed, hung or ran out of memory.
set -eu
cd "$(dirname "$0")/.."

seconds=600 jobs=1 found=build/fuzz/found
while getopts t:j:k: option; do
    case $option in
    t) seconds=$OPTARG ;;
    j) jobs=$OPTARG ;;
    k) found=$OPTARG ;;
    *) sed -n '4,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
case $seconds$jobs in *[!0-9]*) echo "tools/fuzz.sh: -t and -j take whole numbers" >&2; exit 2 ;; esac

if [ ! -f build/fuzz/build.ninja ]; then
    cmake --preset fuzz >/dev/null
fi
cmake --build --preset fuzz >build/fuzz/build.log 2>&1 || { tail -n 40 build/fuzz/build.log >&2; exit 1; }

if [ $# -eq 0 ]; then
    for source in fuzz/fuzz_*.c; do
        name=${source#fuzz/fuzz_}
        set -- "$@" "${name%.c}"
    done
fi

one() { # TARGET
    mkdir -p "$found/$1/crashes" "fuzz/corpus/$1"
    # The inputs are small parsers' inputs: one second and 1 GB are far more than any needs.
    rc=0
    "build/fuzz/fuzz/fuzz_$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="$found/$1/crashes/" "$found/$1" "fuzz/corpus/$1" >"$found/$1.log" 2>&1 || rc=$?
    echo "$rc" >"$found/$1.rc"
}

mkdir -p "$found"
running=0
for target in "$@"; do
    [ -x "build/fuzz/fuzz/fuzz_$target" ] || { echo "tools/fuzz.sh: no target $target" >&2; exit 2; }
    one "$target" &
    running=$((running + 1))
    if [ "$running" -ge "$jobs" ]; then
        wait
        running=0
    fi
done
wait

failed=0
printf '| %-16s | %9s | %12s | %8s | %8s | %s\n' target seconds executions coverage corpus 'result |'
printf '|---|---|---|---|---|---|\n'
for target in "$@"; do
    log=$found/$target.log
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    kept=$(sed -n 's/.* corp: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
    result=ok
    if [ "$(cat "$found/$target.rc")" -ne 0 ]; then
        result="FAILED: $(grep -m 1 -E 'ERROR: |runtime error: |SUMMARY: ' "$log" | cut -c 1-100)"
        failed=1
    fi
    printf '| %-16s | %9s | %12s | %8s | %8s | %s |\n' "$target" "$seconds" "${executions:--}" "${coverage:--}" "${kept:--}" "$result"
done
exit $failed
