#!/usr/bin/env bash
# Times `bloomline dedup` beside other tools that count repeated lines, and on eight compressed shards; and `bloomline not-in` beside
# others that tell what one file has and another has not (`dedup_chart.py` has those that print each line once). Whole commands read
# from the page cache and write to memory. They take turns, so that a noisy machine is noisy for all; medians are printed.
#
#   tests/data/make-large.sh /tmp/large
#   apt-get install time gawk                   # GNU time measures; Debian's own awk is another one
#   cargo install huniq                         # if it is there, it takes part; rling and DuckDB's program, too
#   benches/dedup.sh /tmp/large/paths.txt
set -euo pipefail

input=$(realpath "${1:?usage: benches/dedup.sh FILE [ROUNDS]}")
rounds=${2:-5}
cd "$(dirname "$0")/.."
cargo build --quiet --release -p bloomline-cli --bins --examples
target=$(realpath "${CARGO_TARGET_DIR:-target}")/release
work=$(mktemp -d /dev/shm/dedup.XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work"
export LC_ALL=C PATH=$target:$target/examples:$PATH

# Runs the commands in turns. Each writes to `out`, a file or a folder, of which $1 tells a figure.
turns() {
    local figure=$1 round i tool
    shift
    rm -f times.*
    for ((round = 0; round <= rounds; round++)); do
        for ((i = 1; i <= $#; i++)); do
            tool=${!i%% *}
            command -v "$tool" >"/dev/null" || continue
            # These take half a minute: once is enough.
            if [[ ${!i} =~ awk|^grep && $round -gt 1 ]]; then continue; fi
            rm -rf out
            if [[ ${!i} == *out/* ]]; then mkdir out; fi
            bash -c "exec /usr/bin/time -f '%e %U %S %M' -o time ${!i}" <"$input" >output
            if [[ ! -e out ]]; then mv output out; fi
            # The first round warms up.
            if ((round > 0)); then echo "$(cat time) $($figure)" >>"times.$i"; fi
        done
    done
    printf '%-66s %8s %8s %8s %11s\n' command seconds CPU "peak MB" "$figure"
    for ((i = 1; i <= $#; i++)); do
        [[ -f times.$i ]] || continue
        median() { awk "{ print $1 }" "times.$i" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
        printf '%-66s %8s %8s %8.0f %11s\n' "${!i}" "$(median '$1')" "$(median '$2 + $3')" "$(median '$4 * 1024 / 1e6')" \
            "$(median '$5')"
    done
}
lines() { wc -l <out; }
bytes() { du -sb --apparent-size out | cut -f1; }

cat "$input" >"/dev/null"
turns lines "bloomline dedup -c" "huniq -c" "sh -c 'sort --parallel=2 | uniq -c'" "awk '{ n[\$0]++ } END { for (l in n) print n[l], l }'" \
    "bloomline dedup --repeated" "sh -c 'sort --parallel=2 | uniq -d'" \
    "bloomline dedup --unique" "sh -c 'sort --parallel=2 | uniq -u'" \
    "bloomline dedup --keep last" "sh -c 'tac | awk '\''!seen[\$0]++'\'' | tac'"

split -n l/8 "$input" shard.
gzip -6 --keep shard.*
rm -f output out
echo
turns bytes "recode gz out/ shard.*.gz" "recode zst out/ shard.*.gz" \
    "bloomline dedup -p 0.01 -j 1 --output-dir out shard.*.gz" "bloomline dedup -p 0.01 -j 2 --output-dir out shard.*.gz" \
    "bloomline dedup -p 0.01 -j 1 --compress zstd --output-dir out shard.*.gz" \
    "bloomline dedup -p 0.01 -j 2 --compress zstd --output-dir out shard.*.gz" \
    "bloomline dedup -p 0.01 -j 1 --compress gzip -o out shard.*.gz" \
    "bloomline dedup -p 0.01 -j 2 --compress gzip -o out shard.*.gz" \
    "bloomline dedup -p 0.01 -j 1 --compress zstd -o out shard.*.gz" \
    "bloomline dedup -p 0.01 -j 2 --compress zstd -o out shard.*.gz" \
    "bloomline dedup -p 0.01 --in-order --output-dir out shard.*.gz" \
    "bloomline dedup -p 0.01 -o out shard.??" "bloomline dedup -p 0.01 --output-dir out shard.??"

# Each has six tenths of the lines, and both have a fifth of them.
rm -rf output out shard.*
awk 'NR % 10 < 6' "$input" >old
awk 'NR % 10 >= 4' "$input" >new
cat >anti-join.sql <<'SQL'
set threads = 2;
set preserve_insertion_order = false;
create macro lines(name) as table select line from read_csv(name, columns = {'line': 'VARCHAR'}, delim = '\x01', quote = '',
    escape = '', header = false, auto_detect = false);
copy (from lines('new') anti join lines('old') using (line)) to 'out' (header false, quote '', delimiter '\x01');
SQL
echo
turns lines "bloomline not-in old -- new" "bloomline not-in -j 1 old -- new" "bloomline not-in --exact old -- new" \
    "rling -n -t 2 new out old" "duckdb -f anti-join.sql" \
    "sh -c 'sort --parallel=2 old >a && sort --parallel=2 new >b && comm -13 a b'" "grep -vFxf old new"
