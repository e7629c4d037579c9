#!/usr/bin/env bash
# Fails if a comment breaks a rule that a program can check: a doc comment begins with a question word (a type gets a noun phrase, a
# function a verb, a bool "True if"), a preposition stands before "which", or "none" is a complement. Also fails if a type has an
# ambiguous name, a constructor is called `of`, or a local has a meaningless name (outside of tests/).
set -euo pipefail
cd "$(dirname "$0")/.."
covered=(benches crates/{cli,keys,redis,tables,text} crates/datafusion/{examples,src,tests} fuzz/fuzz_targets python/src src tests)
[[ $# == 0 ]] || covered=("$@")
find "${covered[@]}" -name '*.rs' -print0 | xargs -0 awk '
    function report() { print FILENAME ":" FNR ": " $0; found = 1 }
    /\/\/.* (is none|are none)( |\.|,|:|$)/ { report() }
    /\/\/.* of which / && !/ (all|each|either|first|last|many|most|none|one|some) of which / { report() }
    /^[ \t]*(pub(\([a-z]+\))? )?(struct|enum|trait|type) (Act|Again|Aside|Asked|Before|Beside|Choice|Cut|Found|From|Keep|Kept|Lane|Look|Met|Mark|New|Of|Own|Place|Places|Reader|Room|Stretch|Suspects|Turn|Turns|Verdict|Wake|Wanted|What|Which|Wish)[^A-Za-z]/ { report() }
    /^[ \t]*(pub(\([a-z]+\))? )?(const )?fn of\(/ { report() }
    /^[ \t]*let (mut )?(had|least|met|most|tell|told) =/ && FILENAME !~ /tests\// { report() }
    /^[ \t]*\/\/[\/!]/ {
        if (!inside && $2 ~ /^(What|Whether|Whose|Why|How|Where)$/) report()
        inside = 1
        next
    }
    { inside = 0 }
    END { exit found }'
