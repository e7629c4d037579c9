#!/usr/bin/env bash
# Times `bloomline dedup --column` beside a plain copy by the same crates, pyarrow, which copies only, DuckDB and Polars. Whole
# commands read from the page cache and write to memory. They take turns, so that a noisy machine is noisy for all; medians are
# printed. `ratio` is CPU seconds over those of the plain copy. All compress with zstd's level 3, but for those that say another.
#
#   python3 -m venv venv && venv/bin/pip install duckdb numpy polars pyarrow
#   apt-get install time
#   PYTHON=venv/bin/python benches/parquet.sh /tmp/parquet    # 1.6 GB, which benches/parquet.py makes where they are not there yet
set -euo pipefail

data=$(realpath -m "${1:?usage: benches/parquet.sh FOLDER [ROUNDS]}")
rounds=${2:-3}
python=$(realpath -s "${PYTHON:-$(command -v python3)}")
cd "$(dirname "$0")/.."
cargo build --quiet --release -p bloomline-cli --features parquet --bins --examples
target=$(realpath "${CARGO_TARGET_DIR:-target}")/release
peers="$python $(realpath benches/parquet.py)"
work=$(mktemp -d /dev/shm/parquet.XXXXXX)
trap 'rm -rf "$work"' EXIT
$peers data "$data"
cd "$work"
export LC_ALL=C PATH=$target:$target/examples:$PATH

# Runs the commands in turns: pairs, a name and its command, each of which writes `out`, a folder if $1 is one.
turns() {
    local from=$1 round i
    shift
    cat $(find "$from" -type f) >"/dev/null"
    rm -f times.*
    for ((round = 1; round <= rounds; round++)); do
        for ((i = 1; i <= $#; i += 2)); do
            local command=$((i + 1))
            rm -rf out
            if [[ -d $from ]]; then mkdir out; fi
            bash -c "exec /usr/bin/time -f '%e %U %S %M' -o time ${!command}" >log 2>&1 || { tail -5 log >&2; exit 1; }
            echo "$(cat time) $(du -sb --apparent-size out | cut -f1) $($peers rows out)" >>"times.$i"
        done
    done
    median() { awk "{ print $1 }" "times.$2" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
    printf '%-28s %8s %8s %8s %8s %11s %9s\n' "$(basename "$from")" seconds CPU ratio "peak MB" bytes rows
    for ((i = 1; i <= $#; i += 2)); do
        printf '%-28s %8s %8.2f %8.2f %8.0f %11s %9s\n' "${!i}" "$(median '$1' "$i")" "$(median '$2 + $3' "$i")" \
            "$(awk "BEGIN { print $(median '$2 + $3' "$i") / $(median '$2 + $3' 1) }")" "$(median '$4 * 1024 / 1e6' "$i")" \
            "$(median '$5' "$i")" "$(median '$6' "$i")"
    done
    echo
}

dedup="bloomline dedup -q --column url"
for from in "$data"/{few,many,groups,wide}.parquet; do
    turns "$from" "plain copy" "parquet_copy out $from" \
        "bloomline, 1 thread" "$dedup -j 1 -o out $from" "bloomline, 2 threads" "$dedup -j 2 -o out $from" \
        "bloomline, 1 thread, level 1" "$dedup -j 1 --compress zstd:1 -o out $from" \
        "pyarrow, copy, level 1" "$peers pyarrow 1 out $from" "pyarrow, copy" "$peers pyarrow 3 out $from" \
        "duckdb, 1 thread" "$peers duckdb 1 out $from" "duckdb, 2 threads" "$peers duckdb 2 out $from" \
        "polars" "$peers polars out $from"
done
from=$data/shards
turns "$from" "plain copy" "parquet_copy out $from/*" "plain copy, 2 processes" "sh -c 'ls $from/* | xargs -n 1 -P 2 parquet_copy out'" \
    "bloomline, 1 thread" "$dedup -j 1 --output-dir out $from/*" "bloomline, 2 threads" "$dedup -j 2 --output-dir out $from/*" \
    "bloomline, 2 threads, 1 file" "$dedup -j 2 -o out/a.parquet $from/*" \
    "pyarrow, copy, level 1" "$peers pyarrow 1 out $from/*" "pyarrow, copy" "$peers pyarrow 3 out $from/*" \
    "duckdb, 1 thread" "$peers duckdb 1 out/a.parquet $from/*" "duckdb, 2 threads" "$peers duckdb 2 out/a.parquet $from/*" \
    "polars" "$peers polars out/a.parquet $from/*"
