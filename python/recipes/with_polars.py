"""Polars: a filter as an expression, over a table that is larger than memory."""

import pathlib
import tempfile

import polars as pl

from bloomline import BloomFilter, Filter


def is_in(seen: Filter, *on: str) -> pl.Expr:
    """True for rows whose key the filter has. The answer for a row depends on no other, so the engine may cut the frame as it likes."""

    def known(rows: pl.Series) -> pl.Series:
        return pl.Series(seen.contains_rows(rows.struct.unnest()))

    return pl.struct(on).map_batches(known, return_dtype=pl.Boolean, is_elementwise=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table, path = pathlib.Path(folder) / "visits.parquet", pathlib.Path(folder) / "january.bloom"
        pl.DataFrame({"url": [f"u{i % 700}" for i in range(2000)], "day": range(2000)}).write_parquet(table)

        # Last month's filter, here of 100 keys. All processes that map it share its memory.
        january = BloomFilter(1000, 1e-6)
        january.add_rows(pl.DataFrame({"url": [f"u{i}" for i in range(100)]}))
        january.save(path)

        new = pl.scan_parquet(table).filter(~is_in(BloomFilter.map(path), "url"))
        assert set(new.collect(engine="streaming")["url"]) == {f"u{i}" for i in range(100, 700)}
        assert new.filter(pl.col("day") < 150).collect()["day"].to_list() == list(range(100, 150))
        # Batch by batch into another file.
        new.sink_parquet(pathlib.Path(folder) / "new.parquet")


if __name__ == "__main__":
    main()
