"""Programs of Spark with processes of their own, some of which are killed.

    spark_programs.py cluster FOLDER
    spark_programs.py hosts FOLDER
    spark_programs.py stream FOLDER BATCH POINT
"""

import os
import pathlib
import signal
import sys
from typing import Any

import spark_session
from bloomline import BloomFilter
from bloomline import spark as bs

KEYS = 20_000


def frame(session: Any) -> Any:
    return session.range(60_000, numPartitions=4).selectExpr(f"concat('k', id % {KEYS}) AS key", "id")


def assert_each_key_once(df: Any) -> None:
    found = [row.key for row in df.select("key").collect()]
    assert len(found) == KEYS and set(found) == {f"k{i}" for i in range(KEYS)}, (len(found), len(set(found)))


def cluster(folder: pathlib.Path) -> None:
    """One executor is killed while rows are read, and one while they are emitted."""
    session = spark_session.start_cluster(folder / "home")
    df = frame(session)
    figures = bs.Figures(session)
    read = spark_session.at_first(df, folder / "read", "kill", once=True)
    kept = bs.drop_duplicates(read, "key", p=1e-9, figures=figures)
    assert_each_key_once(spark_session.at_first(kept, folder / "kept", "kill", once=True))
    assert_each_key_once(kept)
    assert (figures.rows, figures.kept) == (60_000, KEYS), (figures.rows, figures.kept)
    built = bs.build(spark_session.at_first(df, folder / "built", "kill", once=True), "key", n=KEYS)
    expected = BloomFilter(KEYS, 1e-3)
    expected.add_many([f"k{i}" for i in range(KEYS)])
    assert built == expected
    for name in ("read", "kept", "built"):
        assert (folder / name / "first").exists(), f"no executor was killed: {name}"

    half = BloomFilter(KEYS, 1e-9)
    half.add_many([f"k{i}" for i in range(KEYS // 2)])
    half.save(folder / "half.bloom")
    for seen in (half, folder / "half.bloom", BloomFilter.map(folder / "half.bloom"), f"local:{folder}/half.bloom"):
        assert bs.drop_seen(df, seen, "key").count() == 30_000, seen
    # A file of the same name with other keys.
    half.update([f"k{i}" for i in range(KEYS // 2, KEYS)])
    half.save(folder / "half.bloom")
    assert bs.drop_seen(df, folder / "half.bloom", "key").count() == 0
    large = BloomFilter(memory=120_000_000, probes=16)
    large.add_many([f"k{i}" for i in range(KEYS // 2)])
    assert bs.drop_seen(df, large, "key").count() == 30_000
    new = bs.StreamingDedup(folder / "states", "key", n=KEYS, p=1e-9)
    assert new.batch(df.filter("id < 15000"), 0).count() == 15_000
    assert_each_key_once(spark_session.at_first(new.batch(df, 1), folder / "stream", "wait").union(df.filter("id < 15000")))


def hosts(folder: pathlib.Path) -> None:
    """Spark runs copies of slow tasks on another host. Both attempts end, or the first is killed."""
    session = spark_session.start_hosts(folder)
    df = frame(session)
    marks: list[pathlib.Path] = []

    def copied(rows: Any, what: str) -> Any:
        marks.append(folder / f"{len(marks)}-{what}")
        return spark_session.at_first(rows, marks[-1], what, once=True)

    expected = BloomFilter(KEYS, 1e-3)
    expected.add_many([f"k{i}" for i in range(KEYS)])
    half = BloomFilter(KEYS, 1e-9)
    half.add_many([f"k{i}" for i in range(KEYS // 2)])
    half.save(folder / "half.bloom")
    for what in ("twice", "late"):
        figures = bs.Figures(session)
        kept = bs.drop_duplicates(copied(df, what), "key", p=1e-9, figures=figures)
        assert_each_key_once(copied(kept, what))
        assert (figures.rows, figures.kept) == (60_000, KEYS), (what, figures.rows, figures.kept)
        assert bs.build(copied(df, what), "key", n=KEYS) == expected, what
        found = copied(bs.drop_seen(df, folder / "half.bloom", "key"), what).collect()
        assert sorted(row.id for row in found) == [i for i in range(60_000) if i % KEYS >= KEYS // 2], what
    for mark in marks:
        assert (mark / "copied").exists() and not (mark / "alive").exists(), mark
    for ip in ("10.0.0.1", "10.0.0.2"):
        assert len(list((folder / ip).glob("app-*/*/*.bloom"))) == 2, f"{ip} did not get the files"


def stream(folder: pathlib.Path, at: int, point: str) -> None:
    """A stream whose driver and JVM are killed at a point of a batch."""
    # The JVM belongs to the group of this process, and is killed with it, as when a machine stops.
    os.setpgrp()
    session = spark_session.start("local[2]")
    dedup = bs.StreamingDedup(folder / "states", "key", n=1000, p=1e-9)

    def kill() -> None:
        os.killpg(0, signal.SIGKILL)

    def each(df: Any, batch: int) -> None:
        def reach(here: str) -> None:
            if (batch, point) == (at, here):
                kill()

        reach("before")
        if (batch, point) == (at, "unsaved"):
            # It is called before the filter with the keys of the batch is saved.
            setattr(bs, "warn_if_full", lambda *_: kill())
        new = dedup.batch(df, batch)
        reach("saved")
        out = str(folder / f"out/batch={batch}")
        new.limit(10).write.mode("overwrite").parquet(out)
        reach("writing")
        new.write.mode("overwrite").parquet(out)
        reach("written")

    source = session.readStream.schema("key string, batch long").option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    query = source.writeStream.foreachBatch(each).option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    mode, folder, *rest = sys.argv[1:]
    if mode == "stream":
        stream(pathlib.Path(folder), int(rest[0]), rest[1])
    else:
        {"cluster": cluster, "hosts": hosts}[mode](pathlib.Path(folder))
