#!/usr/bin/env bash
# Times `bloomline corpus`, beside dclm's and dolma's dedupers if they are there. Whole commands read from the page cache and write
# to memory. They take turns, so that a noisy machine is noisy for all; medians are printed. `removed` is the share of the text
# that is gone, counted in what each command wrote.
#
#   benches/corpus.py /tmp/large
#   apt-get install time
#   DCLM=dclm/dedup/bff/target/release/bff DOLMA=venv/bin/dolma benches/corpus.sh /tmp/large/corpus.jsonl
set -euo pipefail

input=$(realpath "${1:?usage: benches/corpus.sh FILE [ROUNDS]}")
rounds=${2:-3}
dclm=${DCLM:+$(realpath -s "$DCLM")}
dolma=${DOLMA:+$(realpath -s "$DOLMA")}
cd "$(dirname "$0")/.."
bloomline=${BLOOMLINE:-}
if [[ -z $bloomline ]]; then
    cargo build --quiet --release -p bloomline-cli
    bloomline=$(realpath "${CARGO_TARGET_DIR:-target}")/release/bloomline
fi
work=$(mktemp -d /dev/shm/corpus.XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work"
export LC_ALL=C

# One file for one thread, and eight for two: both peers work on a file by one thread.
mkdir -p one/documents eight/documents
ln -s "$input" one/documents/corpus.jsonl
split -n l/8 --additional-suffix=.jsonl "$input" eight/documents/shard.

# In English there is a token for every five bytes, and a gram; half of them lie within paragraphs of thirteen tokens and more.
bytes=$(stat -Lc %s "$input")
grams=$((bytes / 10)) all=$((bytes / 5)) units=$((bytes / 100)) texts=$((bytes / 5000))

# Bytes of text that are not in the output, in percent.
removed() {
    python3 - "$1" <<'PY'
import json, os, sys
def lines(folder):
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8", newline="\n") as file:
            yield from map(json.loads, file)
documents = f"{sys.argv[1]}/documents"
total = kept = 0
if os.path.exists("attributes"):
    # dolma writes bounds, in characters; of a document in bytes.
    for d, a in zip(lines(documents), lines("attributes/x")):
        size = len(d["text"].encode())
        spans = a["attributes"].get("x", [])
        whole = len(spans) == 1 and spans[0][:2] == [0, size]
        total += size
        kept += size - (size if whole else sum(len(d["text"][s:e].encode()) for s, e, _ in spans))
else:
    total = sum(len(d["text"].encode()) for d in lines(documents))
    kept = sum(len(d["text"].encode()) for d in lines("out"))
print(f"{100 - 100 * kept / total:.2f}")
PY
}

# Runs the commands in turns. $1 holds the documents, and the rest is pairs: a name and its command.
turns() {
    local from=$1 round i
    shift
    rm -f times.*
    for ((round = 1; round <= rounds; round++)); do
        for ((i = 1; i <= $#; i += 2)); do
            local command=$((i + 1))
            rm -rf out attributes filter "$from/attributes"
            mkdir out
            bash -c "exec /usr/bin/time -f '%e %U %S %M' -o time ${!command}" >log 2>&1 || { tail -5 log >&2; exit 1; }
            if [[ -e $from/attributes ]]; then mv "$from/attributes" attributes; fi
            if ((round == 1)); then removed "$from" >"removed.$i"; fi
            cat time >>"times.$i"
        done
    done
    printf '%-30s %8s %8s %8s %9s\n' "$from" seconds CPU "peak MB" removed
    for ((i = 1; i <= $#; i += 2)); do
        median() { awk "{ print $1 }" "times.$i" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
        printf '%-30s %8s %8s %8.0f %8s%%\n' "${!i}" "$(median '$1')" "$(median '$2 + $3')" "$(median '$4 * 1024 / 1e6')" \
            "$(cat "removed.$i")"
    done
    echo
}

# The commands that work on the documents in $1 with $2 threads.
commands() {
    local from=$1 j=$2
    ours() {
        local to='-o out/a.jsonl'
        list+=("bloomline $1" "$bloomline corpus -q -j $j ${*:2} $to $from/documents/*.jsonl")
    }
    ours "paragraph, 13" --by paragraph --ngram 13 -n "$grams" -p 0.01
    ours "document, 13" --by document --ngram 13 -n "$all" -p 0.01
    ours "paragraph, exact" --by paragraph --ngram 0 -n "$units" -p 1e-6
    local whole="--by document --ngram 0 -n $units -p 1e-6"
    ours "document, exact" "$whole"
    # What is asked for of groups: which document stays, which one a duplicate repeats, how often it came.
    ours "document, --exact" "$whole --exact"
    ours "document, --pairs" "$whole --pairs pairs"
    ours "document, --count" "$whole --count"
    ours "document, --keep max" "$whole --keep max:/score"
    ours "near 0.8" --near 0.8 -n "$texts"
    ours "near 0.8, --exact" --near 0.8 -n "$texts" --exact
    ours "near 0.8, --pairs" --near 0.8 -n "$texts" --pairs pairs
    theirs_dclm() {
        list+=("dclm $1" "$dclm bff --inputs $from/documents --output-directory out --no-progress-bar -t $j ${*:2}")
    }
    if [[ -n $dclm ]]; then
        local thirteen="--min-ngram-size 13 --max-ngram-size 13"
        theirs_dclm "paragraph, 13" --remove-type paragraph "$thirteen" --expected-ngram-count "$grams" --fp-rate 0.01
        theirs_dclm "document, 13" --remove-type document "$thirteen" --expected-ngram-count "$all" --fp-rate 0.01
        theirs_dclm "document, exact" --remove-type exact --expected-ngram-count "$units" --fp-rate 1e-6
    fi
    theirs_dolma() {
        local size
        size=$(awk "BEGIN { print int($2 * log(1 / $3) / log(2) ^ 2 / 8) }")
        list+=("dolma $1" "$dolma dedupe --documents '$from/documents/*.jsonl' --dedupe.name x --processes $j --no-bloom_filter.read_only \
            --bloom_filter.file filter --bloom_filter.size_in_bytes $size --bloom_filter.estimated_doc_count $2 ${*:4}")
    }
    if [[ -n $dolma ]]; then
        local paragraphs="--dedupe.paragraphs.attribute_name x"
        theirs_dolma "paragraph, 13" "$grams" 0.01 "$paragraphs --dedupe.paragraphs.by_ngram.ngram_length 13 \
            --dedupe.paragraphs.by_ngram.stride 1 --dedupe.paragraphs.by_ngram.overlap_threshold 0.8"
        theirs_dolma "paragraph, exact" "$units" 1e-6 "$paragraphs"
        theirs_dolma "document, exact" "$units" 1e-6 "--dedupe.documents.attribute_name x --dedupe.documents.key '\$.text'"
    fi
}

cat "$input" >"/dev/null"
list=()
commands one 1
turns one "${list[@]}"
list=()
commands eight 2
turns eight "${list[@]}"
