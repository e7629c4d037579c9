"""Ray Data on one machine: an actor has the filter of all rows, which is enough for millions of rows in a second.

Not on several machines. When one of them dies, Ray computes its blocks again, and the actor would take their rows for repeats.
"""

import pathlib
import tempfile
from typing import Any

import pyarrow as pa
import ray

import bloomline
from bloomline import BloomFilter, ScalableBloomFilter


class Unique:
    """Rows whose key is new."""

    def __init__(self) -> None:
        self.seen = ScalableBloomFilter(1_000_000, 1e-6)

    def __call__(self, visits: pa.Table) -> Any:
        return bloomline.dedup(visits, on="url", seen=self.seen)


class Unseen:
    """Rows that a filter has not seen, by any number of actors on any number of machines: they map the same file."""

    def __init__(self, path: str) -> None:
        self.seen = BloomFilter.map(path)

    def __call__(self, visits: pa.Table) -> Any:
        return visits.filter(pa.array(~self.seen.contains_rows(visits.select(["url"]))))


def main() -> None:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    table = pa.table({"url": [f"u{i % 700}" for i in range(2000)], "day": range(2000)})
    visits = ray.data.from_arrow(table).repartition(4)

    unique = visits.map_batches(Unique, batch_format="pyarrow", compute=ray.data.ActorPoolStrategy(size=1))
    assert sorted(row["url"] for row in unique.take_all()) == sorted(set(table["url"].to_pylist()))

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "january.bloom"
        january = BloomFilter(1000, 1e-6)
        january.add_rows(table.select(["url"])[:100])
        january.save(path)
        pool = ray.data.ActorPoolStrategy(size=1)
        new = visits.map_batches(Unseen, fn_constructor_args=[str(path)], batch_format="pyarrow", compute=pool)
        assert {row["url"] for row in new.take_all()} == {f"u{i}" for i in range(100, 700)}


if __name__ == "__main__":
    main()
