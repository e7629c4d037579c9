"""DataFusion: a filter as a function of its queries, over a table that is larger than memory."""

import pathlib
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import SessionContext, udf

from bloomline import BloomFilter, Filter


def register(context: SessionContext, name: str, seen: Filter) -> None:
    """Makes a function of a text that is true for keys of the filter. A null is no key that it has."""

    def known(keys: pa.Array) -> pa.Array:
        return pa.array(seen.contains_rows(pa.table({"key": keys})))

    context.register_udf(udf(known, [pa.string()], pa.bool_(), "stable", name=name))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table, path = pathlib.Path(folder) / "visits.parquet", pathlib.Path(folder) / "january.bloom"
        pq.write_table(pa.table({"url": [f"u{i % 700}" for i in range(2000)], "day": range(2000)}), table)

        # Last month's filter, here of 100 keys. All processes that map it share its memory.
        january = BloomFilter(1000, 1e-6)
        january.add_rows(pa.table({"url": [f"u{i}" for i in range(100)]}))
        january.save(path)

        context = SessionContext()
        context.register_parquet("visits", str(table))
        register(context, "in_january", BloomFilter.map(path))
        new = context.sql("SELECT DISTINCT url FROM visits WHERE NOT in_january(url)")
        assert new.to_arrow_table().num_rows == 600


if __name__ == "__main__":
    main()
