#!/bin/sh
# Hold the engine against a second implementation, written from the specification alone in JavaScript, on random shapes.
#
#   tests/model/peer_reference.sh [BUILD-FOLDER]     default build/release
#
# Exit 0: inside the noise of rounding everywhere; 77: skipped, because node is missing; else a difference.
# PEER_SEED picks the first of PEER_CONFIGS shapes.
cd "$(dirname "$0")/../.." || exit 1
build=${1:-build/release}
if ! command -v node >/dev/null 2>&1; then
    echo "skipped: node is not installed"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
fi
exec node tests/model/peer/compare.mjs "$build/paceline" "$build" "${PEER_SEED:-1}" "${PEER_CONFIGS:-4}"
