"""Dask: rows of equal keys meet in a partition, and each partition has a filter of its own."""

import pathlib
import tempfile

import dask
import dask.dataframe as dd
import pandas as pd

import bloomline
from bloomline import BloomFilter


def unseen(visits: pd.DataFrame, seen: BloomFilter) -> pd.DataFrame:
    return visits[~seen.contains_rows(visits[["url"]])]


def main() -> None:
    dask.config.set(scheduler="processes", num_workers=2)
    frame = pd.DataFrame({"url": [f"u{i % 700}" for i in range(2000)], "day": range(2000)})
    visits = dd.from_pandas(frame, npartitions=4)

    # A task that runs again begins with an empty filter, so it gives the same rows.
    unique = visits.shuffle("url").map_partitions(bloomline.dedup, on="url", meta=visits)
    assert sorted(unique["url"].compute()) == sorted(frame["url"].unique())

    # A mapped filter goes to the workers as its path. No shuffle is needed.
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "january.bloom"
        january = BloomFilter(1000, 1e-6)
        january.add_rows(frame[["url"]][:100])
        january.save(path)
        new = visits.map_partitions(unseen, BloomFilter.map(path), meta=visits)
        assert set(new["url"].compute()) == {f"u{i}" for i in range(100, 700)}


if __name__ == "__main__":
    main()
