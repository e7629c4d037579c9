#!/usr/bin/env bash
# Times `bloomline dedup` beside other tools that remove repeated lines: whole commands, reading from the page cache and
# writing to a file in memory. The tools take turns, so that a noisy machine is noisy for all; medians are printed.
#
#   tests/data/make-large.sh /tmp/large
#   apt-get install time gawk                   # GNU time measures; Debian's own awk is another one
#   cargo install xuniq huniq ripuniq runiq     # those of them that are there take part
#   benches/dedup.sh /tmp/large/paths.txt
set -euo pipefail

input=${1:?usage: benches/dedup.sh FILE [ROUNDS]}
rounds=${2:-5}
cd "$(dirname "$0")/.."
cargo build --quiet --release -p bloomline-cli
bloomline=${CARGO_TARGET_DIR:-target}/release/bloomline
work=$(mktemp -d /dev/shm/dedup.XXXXXX)
trap 'rm -rf "$work"' EXIT

commands=("$bloomline dedup -p 0.01" "$bloomline dedup -p 1e-6" "$bloomline dedup -p 0.01 -j 1"
    xuniq huniq ripuniq runiq "runiq -f compact" "sort -u --parallel=2" "awk '!seen[\$0]++'")
export LC_ALL=C

cat "$input" >"/dev/null"
for ((round = 0; round <= rounds; round++)); do
    for i in "${!commands[@]}"; do
        tool=${commands[i]%% *}
        command -v "$tool" >"/dev/null" || continue
        # awk takes half a minute: once is enough.
        if [[ $tool == awk && $round -gt 1 ]]; then continue; fi
        bash -c "exec /usr/bin/time -f '%e %M' -o '$work/time' ${commands[i]} <'$input' >'$work/out'"
        # The first round warms up.
        if ((round > 0)); then echo "$(cat "$work/time") $(wc -l <"$work/out")" >>"$work/$i"; fi
        rm "$work/out"
    done
done

printf '%-28s %9s %9s %12s\n' command seconds 'peak MB' lines
for i in "${!commands[@]}"; do
    [[ -f $work/$i ]] || continue
    column() { cut -d' ' -f"$1" "$work/$i" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
    printf '%-28s %9s %9d %12s\n' "${commands[i]/#$bloomline/bloomline}" "$(column 1)" "$(($(column 2) * 1024 / 1000000))" "$(column 3)"
done
