#!/bin/sh
# Compare the forward pass and the drafter with the second implementation in peer/, on random shapes and weights.
#
#   tests/model/peer_reference.sh [BUILD-FOLDER]     default build/release
#
# Exit 0: equal but for the order of summation; 77: skipped, because node is missing; else a difference.
# PEER_SEED picks the checkpoints (default 1, so that every run checks the same), PEER_COUNT how many,
# PEER_LONGEST the longest prompt.
cd "$(dirname "$0")/../.." || exit 1
build=${1:-build/release}
if ! command -v node >/dev/null 2>&1; then
    echo "skipped: node is not installed"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
fi
[ -x "$build/paceline" ] || { echo "$build/paceline is not built"; exit 1; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
node tests/model/peer/compare.mjs "$build/paceline" "$work" "${PEER_SEED-1}" "${PEER_COUNT-32}" "${PEER_LONGEST-64}"
