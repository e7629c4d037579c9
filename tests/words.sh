#!/usr/bin/env bash
# Fails if a doc comment begins with a question word: a type gets a noun phrase, a function a verb, a bool "True if".
set -euo pipefail
cd "$(dirname "$0")/.."
covered=(benches cli/src/*.rs cli/src/{against,commands,documents,engine,groups,input,key,output,seen} cli/tests fuzz/fuzz_targets python/src redis src tables tests text)
[[ $# == 0 ]] || covered=("$@")
find "${covered[@]}" -name '*.rs' -print0 | xargs -0 awk '
    /^[ \t]*\/\/[\/!]/ {
        if (!inside && $2 ~ /^(What|Whether|Whose|How|Where)$/) { print FILENAME ":" FNR ": " $0; found = 1 }
        inside = 1
        next
    }
    { inside = 0 }
    END { exit found }'
