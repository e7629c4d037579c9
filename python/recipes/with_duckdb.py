"""DuckDB: a filter as a function of its queries, over a table that is larger than memory."""

import pathlib
import tempfile
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.sqltypes import BOOLEAN, VARCHAR

from bloomline import BloomFilter, Filter


def register(connection: duckdb.DuckDBPyConnection, name: str, seen: Filter) -> None:
    """Makes a function of a text that is true for keys of the filter. A null is no key that it has."""

    def known(keys: Any) -> Any:
        return pa.array(seen.contains_rows(pa.table({"key": keys})))

    connection.create_function(name, known, [VARCHAR], BOOLEAN, type="arrow", null_handling="special")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table, path = pathlib.Path(folder) / "visits.parquet", pathlib.Path(folder) / "january.bloom"
        connection = duckdb.connect()
        connection.execute(f"COPY (SELECT 'u' || i % 700 AS url, i AS day FROM range(2000) t(i)) TO '{table}'")

        # Last month's filter, here of 100 keys. All processes that map it share its memory.
        january = BloomFilter(1000, 1e-6)
        january.add_rows(connection.sql("SELECT 'u' || i AS url FROM range(100) t(i)").to_arrow_table())
        january.save(path)
        register(connection, "in_january", BloomFilter.map(path))

        # Batch by batch, as DuckDB reads the table. An anti-join has all keys of January in memory, or spills them.
        new = f"SELECT DISTINCT url FROM '{table}' WHERE NOT in_january(url)"
        assert connection.sql(new).to_arrow_table().num_rows == 600


if __name__ == "__main__":
    main()
