"""Rows of a frame that earlier frames did not have: month by month, with the filter of the last run."""

import tempfile
from pathlib import Path

import polars as pl

from bloomline import BloomFilter


def new_rows(frame: pl.DataFrame, seen: BloomFilter) -> pl.DataFrame:
    """The rows whose url and day come for the first time."""
    new = seen.add_many(frame.select("url", "day"))
    return frame.filter(pl.Series(new))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seen.bloom"
        BloomFilter(1_000_000, 0.001, key_name="url, day").save(path)

        march = pl.DataFrame({"url": ["/a", "/b", "/a"], "day": [1, 1, 1]})
        april = pl.DataFrame({"url": ["/a", "/c"], "day": [1, 1]})
        for frame, rows in (march, 2), (april, 1):
            seen = BloomFilter.load(path)
            fresh = new_rows(frame, seen)
            seen.save(path)
            assert len(fresh) == rows
            print(fresh)


if __name__ == "__main__":
    main()
