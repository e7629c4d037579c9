#!/usr/bin/env python3
"""The data of parquet.sh, and the peers beside which it times the command.

    pip install duckdb numpy polars pyarrow
    benches/parquet.py data FOLDER                      # makes what is not there yet
    benches/parquet.py pyarrow LEVEL OUTPUT INPUT...    # copies only
    benches/parquet.py duckdb THREADS OUTPUT INPUT...
    benches/parquet.py polars OUTPUT INPUT...
    benches/parquet.py rows FILE|FOLDER

A row follows from the number of its page alone, so each run makes the same files. A text is of words that Zipf's law draws, and
zstd makes two fifths of it, as of English.
"""

import sys
from pathlib import Path

KEY = "url"
WORDS, HOSTS = 40_000, 3_000
LANGUAGES = ["en", "de", "fr", "es", "ja", "ru", "pt", "it", "zh", "nl", "pl", "sv"]


def make_data(folder):
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def mixed(values):
        """Random numbers that follow from `values`, by the steps of splitmix64."""
        values = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))

    def below(bound, seeds):
        return (seeds >> np.uint64(11)).astype(np.int64) % bound

    def of_syllables(random, rank):
        """Frequent words are short."""
        starts = ["", *"bcdfghlmnprstvw", "st", "tr", "ch", "th", "pl", "qu"]
        ends = ["", "", "n", "s", "r", "t", "l", "ng", "d"]
        word = ""
        for _ in range(1 + (rank > 60) * (random >> 60) % 2 + (rank > 2000) * (1 + (random >> 58) % 2)):
            word += starts[random % len(starts)] + ["a", "e", "i", "o", "u", "ea", "y"][random // 32 % 7]
            random >>= 9
        return word + ends[random % len(ends)]

    vocabulary = {}
    for random in mixed(np.arange(1, WORDS * 3)).tolist():
        vocabulary.setdefault(of_syllables(random, len(vocabulary)))
    words = pa.array(list(vocabulary)[:WORDS])
    weights = 1 / (np.arange(WORDS) + 2.7)
    # Of these slots, a word has as many as it is frequent.
    slots = np.repeat(np.arange(WORDS), np.diff(np.round(np.cumsum([0, *weights]) / weights.sum() * (1 << 20)).astype(np.int64)))
    hosts = pc.binary_join_element_wise("www.", words.slice(0, HOSTS), ".example", "")

    def seeds(pages, salt):
        return mixed(pages * 64 + salt)

    def drawn(counts, seeds, words, own=False):
        """Lists of `counts` words. Those of a text of its own are a third such as it has used a moment before."""
        offsets = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        random = mixed(np.repeat(seeds, counts) + within.astype(np.uint64))
        chosen = slots[below(len(slots), random)] % len(words)
        if own:
            again = np.flatnonzero(((random & np.uint64(15)) < 5) & (within > 40))
            chosen[again] = chosen[again - 8 - (random[again] >> np.uint64(4)).astype(np.int64) % 32]
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), words.take(pa.array(chosen)))

    def hosts_of(pages):
        return hosts.take(pa.array(slots[below(len(slots), seeds(pages, 1))] % HOSTS))

    def urls_of(pages):
        slugs = pc.binary_join(drawn(2 + below(4, seeds(pages, 2)), seeds(pages, 3), words), "-")
        return pc.binary_join_element_wise("https:/", hosts_of(pages), slugs, pa.array(pages).cast(pa.string()), "/")

    def documents(ids, pages):
        texts = pc.binary_join(drawn(40 + below(290, seeds(pages, 4)), seeds(pages, 5), words, own=True), " ")
        return {"id": pa.array(ids), KEY: urls_of(pages), "text": texts}

    def wide(ids, pages):
        number = lambda salt, bound: below(bound, seeds(pages, salt))
        created = 1_700_000_000_000_000 + pages * 1_000_000 + number(6, 1_000_000)
        return {
            "id": pa.array(ids),
            KEY: urls_of(pages),
            "host": hosts_of(pages),
            "language": pa.array(LANGUAGES).take(pa.array(number(7, 12) * number(8, 12) // 12)),
            "title": pc.binary_join(drawn(3 + number(9, 9), seeds(pages, 10), words), " "),
            "author": pc.binary_join_element_wise("user", number(11, 50_000).astype(str), ""),
            "tags": drawn(number(12, 6), seeds(pages, 13), words.slice(200, 500)),
            "score": pa.array(number(14, 1 << 53) / (1 << 53)),
            "price": pa.array(number(15, 10_000) / 100),
            "views": pa.array((1e6 / (1 + number(16, 100_000))).astype(np.int32)),
            "created": pa.array(created).cast(pa.timestamp("us")),
            "updated": pa.array(created // 1000 + number(17, 30 * 86_400_000)).cast(pa.timestamp("ms", "UTC")),
        }

    def write(name, make, groups):
        """A group is the numbers of its rows, and those of their pages."""
        path = folder / name
        partial = path.with_suffix(".partial")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            return
        writer = None
        for rows, pages in groups:
            table = pa.table(make(rows, pages))
            writer = writer or pq.ParquetWriter(partial, table.schema, compression="zstd", compression_level=3)
            writer.write_table(table)
        writer.close()
        partial.rename(path)
        print(f"{path}: {path.stat().st_size / 1e6:.0f} MB")

    def some_repeat(rows, repeats, group):
        """The share `repeats` of the rows has the page of a row before."""
        random = mixed(np.arange(rows) + (1 << 40))
        new = (random >> np.uint64(32)) >= np.uint64(repeats * (1 << 32))
        new[0] = True
        count = np.cumsum(new)
        pages = np.where(new, count - 1, (random & np.uint64(0xFFFFFFFF)).astype(np.int64) % count)
        return [(np.arange(start, start + group), pages[start : start + group]) for start in range(0, rows, group)]

    def groups_repeat(rows, group):
        """Each group twice, the second time after all others."""
        return [(np.arange(start, start + group),) * 2 for start in range(0, rows // 2, group)] * 2

    write("few.parquet", documents, some_repeat(300_000, 0.11, 20_000))
    write("many.parquet", documents, some_repeat(240_000, 0.80, 20_000))
    write("groups.parquet", documents, groups_repeat(160_000, 20_000))
    write("wide.parquet", wide, some_repeat(1_300_000, 0.11, 100_000))
    # As Hugging Face's hub has them: rows by the thousand in a group.
    shards = [250, 300, 350, 400, 300, 450, 400]
    groups = some_repeat(sum(shards) * 1000, 0.11, 1000)
    for i, count in enumerate(shards):
        write(f"shards/train-{i:05}-of-{len(shards):05}.parquet", documents, groups[:count])
        del groups[:count]


def in_duckdb(threads, output, inputs):
    import duckdb

    duckdb.execute(f"SET threads = {threads}")
    duckdb.execute(
        f"COPY (SELECT DISTINCT ON ({KEY}) * FROM read_parquet($inputs)) TO '{output}' (FORMAT parquet, COMPRESSION zstd)",
        {"inputs": inputs},
    )


def in_polars(output, inputs):
    import polars

    rows = polars.scan_parquet(inputs).unique(subset=KEY, keep="first", maintain_order=True)
    rows.sink_parquet(output, compression="zstd", compression_level=3)


def copied_by_pyarrow(level, output, inputs):
    import pyarrow.parquet as pq

    for path in inputs:
        to = Path(output) / Path(path).name if Path(output).is_dir() else output
        with pq.ParquetFile(path) as file:
            with pq.ParquetWriter(to, file.schema_arrow, compression="zstd", compression_level=level) as writer:
                for group in range(file.num_row_groups):
                    writer.write_table(file.read_row_group(group))


def rows_of(path):
    import pyarrow.parquet as pq

    files = Path(path).iterdir() if Path(path).is_dir() else [path]
    return sum(pq.read_metadata(file).num_rows for file in files)


def main(command, *arguments):
    match command, *arguments:
        case "data", folder:
            make_data(Path(folder))
        case "duckdb", threads, output, *inputs:
            in_duckdb(int(threads), output, inputs)
        case "polars", output, *inputs:
            in_polars(output, inputs)
        case "pyarrow", level, output, *inputs:
            copied_by_pyarrow(int(level), output, inputs)
        case "rows", path:
            print(rows_of(path))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(*(sys.argv[1:] or [""]))
