#!/usr/bin/env bash
# Continues the state of one program with another, for each order, and compares their outputs: tests/both_systems.sh PROGRAM PROGRAM
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
seq -f 'https://example.org/%.0f' 1 20000 >a
seq -f 'https://example.org/%.0f' 10000 30000 >b
# The bytes of these paths have the same order only if all separators are slashes.
mkdir -p in/c in/c1
echo '{"id":1,"text":"the same words in both"}' >in/c/x
echo '{"id":2,"text":"the same words in both"}' >in/c1/y
for order in "$1:$1" "$1:$2" "$2:$1" "$2:$2"; do
    read -ra first <<<"${order%%:*}"
    read -ra second <<<"${order#*:}"
    "${first[@]}" dedup -n 50000 --seed 7 --state state -o first a
    "${second[@]}" dedup --state state b >second
    "${second[@]}" corpus --quiet in >third
    sha256sum first second third state
    rm first second third state
done | sort | uniq -c | tee sums
# Each file has one sum, and four runs made it.
[[ $(awk '$1 == 4' sums | wc -l) -eq 4 ]] || { echo "the programs differ" >&2 && exit 1; }
