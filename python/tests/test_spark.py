"""`bloomline.spark` beside Spark's own results, while tasks, executors and drivers fail."""

import collections
import datetime
import decimal
import doctest
import functools
import json
import math
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import spark_session
import bloomline
from bloomline import (
    AtomicBloomFilter,
    AtomicScalableBloomFilter,
    BloomFilter,
    RedisBloomFilter,
    RotatingBloomFilter,
    ScalableBloomFilter,
)
from conftest import IS_LONG, Server, examples, long

if reason := spark_session.missing():
    assert os.environ.get("BLOOMLINE_REQUIRE_SPARK") != "1", reason
    pytest.skip(reason, allow_module_level=True)

bs: Any = pytest.importorskip("bloomline.spark")
F: Any = pytest.importorskip("pyspark.sql.functions")
pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")
# What an action raises if a task fails.
PySparkException: Any = pytest.importorskip("pyspark.errors").PySparkException

FOLDER = pathlib.Path(__file__).parent
HAS_ARROW_UDF = hasattr(F, "arrow_udf")
# Tests that do not depend on the way in which rows reach Python, which differs between versions of Spark.
either_way = pytest.mark.either_way
large = pytest.mark.skipif(os.environ.get("BLOOMLINE_LARGE_TESTS") != "1", reason="takes 8 GB: set BLOOMLINE_LARGE_TESTS=1")

FEW = st.integers(-2, 2)
DAY = datetime.datetime(2026, 11, 23, 7, 5)
TEXT = st.sampled_from(["", "a", "A", "null", "ä", '"', "1"])
DOUBLE = st.sampled_from([0.0, -0.0, 0.1, 1.0, math.nan, -math.inf])
MOMENT = FEW.map(lambda n: DAY + datetime.timedelta(milliseconds=n))
# Values of each type, with many repeats.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "binary": st.sampled_from([b"", b"a", b"\xff1"]),
    "boolean": st.booleans(),
    "tinyint": FEW,
    "smallint": FEW,
    "int": FEW,
    "bigint": st.sampled_from([0, 1, -(2**63), 2**63 - 1]),
    "float": st.sampled_from([0.0, -0.0, 0.5, math.nan]),
    "double": DOUBLE,
    "decimal(10,2)": FEW.map(lambda n: decimal.Decimal(n).scaleb(-2)),
    "decimal(38,0)": st.sampled_from([0, 1, 10**37]).map(decimal.Decimal),
    "date": FEW.map(lambda n: (DAY + datetime.timedelta(n)).date()) | st.just(datetime.date(1, 1, 1)),
    "timestamp": MOMENT,
    "timestamp_ntz": MOMENT,
    "interval day to second": FEW.map(lambda n: datetime.timedelta(n, microseconds=n)),
    "interval hour": FEW.map(lambda n: datetime.timedelta(hours=n)),
    "void": st.none(),
    "array<int>": st.lists(st.none() | st.sampled_from([0, 1]), max_size=2),
    "array<double>": st.lists(st.none() | DOUBLE, max_size=1),
    "array<array<string>>": st.lists(st.none() | st.lists(TEXT, max_size=1), max_size=2),
    "struct<b:int,a:string>": st.tuples(st.none() | FEW, st.none() | st.sampled_from(["", "x"])),
    "struct<a:struct<a:double,`b.c`:date>,l:array<timestamp>>": st.tuples(
        st.none() | st.tuples(DOUBLE, st.none() | st.just(DAY.date())), st.none() | st.lists(MOMENT, max_size=1)
    ),
    "array<struct<a:binary,b:decimal(5,1)>>": st.lists(
        st.none() | st.tuples(st.sampled_from([b"", b"\xff"]), st.none() | FEW.map(decimal.Decimal)), max_size=2
    ),
    "struct<>": st.just(()),
}
if HAS_ARROW_UDF:
    VALUES["time(6)"] = FEW.map(lambda n: datetime.time(7, microsecond=abs(n)))
# Names that have to be quoted, or are much alike.
NAMES = ["a", "b c", "x.y", "tick`", "ä", "a.b.c", "1", "*", "select", "__key", "-", "a`.`b"]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    # A task has three attempts.
    session = spark_session.start("local[2,3]")
    yield session
    session.stop()


@st.composite
def frames(draw: st.DrawFn) -> tuple[str, list[tuple[Any, ...]], list[list[str]]]:
    """The schema of a frame, its rows, and some lists of columns."""
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=6, max_size=len(NAMES)))
    names = NAMES[: len(kinds)]
    values = [st.none() | VALUES[kind] for kind in kinds]
    rows = draw(st.lists(st.tuples(*values), max_size=40))
    schema = ", ".join(f"{quoted(name)} {kind}" for name, kind in zip(names, kinds, strict=True)) + ", row int"
    on = draw(st.lists(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True), min_size=6, max_size=6))
    return schema, [(*row, i) for i, row in enumerate(rows)], on


def all_of(parts: list[Any]) -> list[tuple[Any, ...]]:
    """The rows of several frames in one job, each with the number of its frame."""
    numbered = [part.withColumn("part", F.lit(i)) for i, part in enumerate(parts)]
    return [tuple(row) for row in functools.reduce(lambda a, b: a.union(b), numbered).collect()]


def groups(df: Any, on: list[str]) -> Any:
    """The rows of each key, as Spark compares keys."""
    return df.groupBy(*map(quoted, on)).agg(F.collect_list("row").alias("rows")).select("rows")


def arrow(df: Any) -> Any:
    """The frame as a table. Without rows its columns are texts."""
    batches = df._collect_as_arrow()
    if not batches:
        return pa.table({name: pa.array([], pa.string()) for name in df.columns})
    # PySpark's arrays may lack the offset of no values, which Arrow's specification asks for.
    table = pa.Table.from_batches(batches)
    return table.take(pa.array(range(table.num_rows)))


def without_nulls(df: Any, on: list[str]) -> Any:
    return df.filter(functools.reduce(lambda a, b: a & b, (F.col(quoted(name)).isNotNull() for name in on)))


def test_page_and_docstrings(spark: Any, tmp_path: pathlib.Path) -> None:
    page = pathlib.Path(__file__).parents[2] / "docs/SPARK.md"
    found = [doctest.DocTestParser().get_doctest(page.read_text(), {"folder": tmp_path, "BloomFilter": BloomFilter, "F": F}, "page", None, 0)]
    found += doctest.DocTestFinder().find(bs, globs=vars(bs))
    runner = doctest.DocTestRunner()
    for test in found:
        test.globs["session"] = spark
        runner.run(test)
    results = runner.summarize()
    assert results.failed == 0 and results.attempted > 30


@settings(max_examples=examples(3), phases=[Phase.explicit, Phase.generate])
@given(frames(), st.data())
def test_kept_rows_match_those_of_spark(spark: Any, frame: Any, data: st.DataObject) -> None:
    schema, rows, on = frame
    df = spark.createDataFrame(rows, schema).coalesce(data.draw(st.integers(1, 2))).persist()
    ours, theirs, counted = [], [], []
    for keys in on:
        nulls = data.draw(st.sampled_from(["equal", "equal", "keep", "skip"]))
        options = data.draw(st.sampled_from([{}, {"n": 100}, {"partitions": 1}, {"n": 9}]))
        kept = bs.drop_duplicates(df, [quoted(name) for name in keys], p=1e-9, nulls=nulls, **options)
        assert kept.schema == df.schema
        ours.append(kept.select("row"))
        whole = df if nulls == "equal" else without_nulls(df, keys)
        expected = groups(whole, keys)
        if nulls == "keep":
            expected = expected.union(df.join(whole.select("row"), "row", "left_anti").select(F.array("row")))
        theirs.append(expected)
        if nulls == "equal":
            counted.append((len(ours) - 1, df.dropDuplicates(keys).select("row")))
    found, groups_of = collections.defaultdict(list), collections.defaultdict(list)
    for row, part in all_of(ours):
        found[part].append(row)
    for members, part in all_of(theirs):
        groups_of[part].append(set(members))
    for part, keys in enumerate(on):
        assert len(found[part]) == len(groups_of[part]), keys
        assert all(len(members.intersection(found[part])) == 1 for members in groups_of[part]), keys
    if counted:
        theirs_own = collections.Counter(part for _, part in all_of([df for _, df in counted]))
        assert [theirs_own[i] for i in range(len(counted))] == [len(found[part]) for part, _ in counted]
    df.unpersist()


@settings(max_examples=examples(2), phases=[Phase.explicit, Phase.generate])
@given(frames(), st.integers(1, 5))
def test_filters_equal_those_of_one_machine(spark: Any, tmp_path_factory: Any, frame: Any, partitions: int) -> None:
    schema, rows, on = frame
    folder = tmp_path_factory.mktemp("build")
    df = spark.createDataFrame(rows, schema).repartition(partitions).persist()
    old, new = df.filter("row % 2 = 0"), df.filter("row % 2 = 1")
    table = arrow(df)
    ours, theirs, asked = [], [], []
    for number, keys in enumerate(on[:4]):
        names = [quoted(name) for name in keys]
        seen = bs.build(df, names, n=100, p=1e-3, seed=number)
        expected = BloomFilter(100, 1e-3, seed=number, key_name=seen.key_name)
        expected.add_rows(table.select(keys))
        assert seen == expected and bytes(seen) == bytes(expected), keys
        seen = bs.build(old, names, n=100, p=1e-9, path=folder / f"{number}.bloom")
        ours.append(bs.drop_seen(new, seen, names).select("row"))
        if HAS_ARROW_UDF:
            asked.append(new.filter(~bs.contains(seen, *names)).select("row"))
        # In a join of Spark, unlike in its groups, two nulls of the type void are not equal.
        values = [F.col(name).cast("int") if kind == "void" else F.col(name) for name, (_, kind) in zip(names, df.select(*names).dtypes)]
        left = new.select("row", *(value.alias(f"l{i}") for i, value in enumerate(values)))
        right = old.select(*(value.alias(f"r{i}") for i, value in enumerate(values)))
        same = functools.reduce(lambda a, b: a & b, (F.col(f"l{i}").eqNullSafe(F.col(f"r{i}")) for i in range(len(names))))
        theirs.append(left.join(right, same, "left_anti").select("row"))
    expected_rows = sorted(all_of(theirs))
    assert sorted(all_of(ours)) == expected_rows
    if HAS_ARROW_UDF:
        assert sorted(all_of(asked)) == expected_rows
    df.unpersist()


def pages(spark: Any, rows: int, keys: int, partitions: int = 4) -> Any:
    """A key, and the number of a row. The first row of each key has the least number."""
    return spark.range(rows, numPartitions=partitions).select(F.concat(F.lit("k"), F.col("id") % keys).alias("key"), "id")


SHAPES: dict[str, Callable[[Any], Any]] = {
    "many": lambda spark: pages(spark, 3000, 1000),
    "one key": lambda spark: pages(spark, 1000, 1),
    "skew": lambda spark: pages(spark, 3000, 300).withColumn("key", F.expr("if(id % 10 = 0, key, 'same')")),
    "no rows": lambda spark: pages(spark, 10, 10).filter("id < 0"),
    "no partitions": lambda spark: spark.createDataFrame(spark.sparkContext.emptyRDD(), "key string, id long"),
    "empty partitions": lambda spark: pages(spark, 40, 30, 8).filter("id between 12 and 18 or id > 38"),
    "after a shuffle": lambda spark: pages(spark, 500, 100).join(pages(spark, 50, 200).select("key"), "key").persist(),
    "more keys than planned": lambda spark: pages(spark, 20_000, 15_000),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_action_keeps_each_key_once(spark: Any, shape: str) -> None:
    df = SHAPES[shape](spark)
    rows = df.count()
    keys = {row.key for row in df.select("key").distinct().collect()}
    every: list[dict[str, Any]] = [{"n": 3000, "partitions": 5}]
    # The defaults too, for the frames that cost little.
    for options in every + [{}] * (rows < 50):
        figures = bs.Figures(spark)
        kept = bs.drop_duplicates(df, "key", p=1e-9, figures=figures, **options)
        for action in range(3):
            # The last one reads a cache. A frame that an action has run on is planned without it.
            rows_of = kept.persist().select("*") if action == 2 else kept
            found = [row.key for row in rows_of.collect()]
            assert len(found) == len(keys) and set(found) == keys, options
            assert (figures.rows, figures.kept) == (rows, len(keys)), options
            assert 0 <= figures.expected_lost < 1e-4
        kept.unpersist()
    built = bs.build(df, "key", n=20_000, p=1e-9)
    assert all(built.contains_rows(pa.table({"key": pa.array(sorted(keys), pa.string())})))
    assert abs(built.estimated_keys() - len(keys)) <= max(1, 0.01 * len(keys))
    df.unpersist()


def test_later_operations_do_not_change_which_rows_are_kept(spark: Any) -> None:
    """In one partition the first row of each key is kept. A filter or a limit before the removal would keep other rows."""
    df = pages(spark, 400, 100, 1)
    for options in [{"partitions": 1}, {"partitions": 3, "n": 100}]:
        kept = bs.drop_duplicates(df, "key", **options)
        assert sorted(row.id for row in kept.collect()) == list(range(100))
        asks = [
            kept.filter("id >= 100"),
            kept.filter("id < 100"),
            kept.filter("key = 'k7'"),
            kept.select("id"),
            kept.select(F.lit(1)),
            kept.join(df.filter("id >= 300").select("key", F.col("id").alias("other")), "key"),
            kept.join(df.filter("id >= 390").select("id"), "id"),
            kept.join(df.filter("id >= 390").select("key"), "key", "left_semi"),
            kept.union(kept),
            kept.join(kept.withColumnRenamed("id", "same"), "key").filter("id = same"),
            kept.withColumn("late", F.col("id") > 50).filter("late"),
            kept.repartition(7),
            kept.groupBy("key").count().filter("count > 1"),
            kept.orderBy("id").limit(20),
        ]
        counts = {part: count for count, part in all_of([ask.agg(F.count(F.lit(1))) for ask in asks])}
        assert [counts[i] for i in range(len(asks))] == [0, 100, 1, 100, 100, 100, 0, 10, 200, 100, 49, 100, 0, 20]
    same_first = df.filter("key = 'k1'").union(df)
    assert len({row.key for row in bs.drop_duplicates(same_first, "key", partitions=1).limit(30).collect()}) == 30


def test_figures_count_each_partition_of_a_coalesced_frame(spark: Any) -> None:
    figures = bs.Figures(spark)
    assert bs.drop_duplicates(pages(spark, 3000, 1000), "key", figures=figures).coalesce(1).count() == 1000
    assert (figures.rows, figures.kept) == (3000, 1000)


def test_failed_attempts_change_no_result(spark: Any, tmp_path: pathlib.Path) -> None:
    df = pages(spark, 6000, 2000)
    figures, seen = bs.Figures(spark), tmp_path / "after"
    before = spark_session.at_first(df, tmp_path / "before", "raise")
    kept = spark_session.at_first(bs.drop_duplicates(before, "key", figures=figures), seen, "raise")
    assert {row.key for row in kept.collect()} == {f"k{i}" for i in range(2000)}
    assert kept.count() == 2000
    assert (figures.rows, figures.kept) == (6000, 2000)
    assert len(list(seen.glob("first-*"))) >= 3, "no task failed"
    built = bs.build(spark_session.at_first(df, tmp_path / "build", "raise"), "key", n=2000)
    assert built == bs.build(df.repartition(7), "key", n=2000)


@either_way
def test_lost_rows_are_as_expected(spark: Any) -> None:
    keys, p = 100_000, 0.01
    df = pages(spark, 125_000, keys, 2)
    figures = bs.Figures(spark)
    kept = bs.drop_duplicates(df, "key", n=keys, p=p, partitions=2, figures=figures)
    lost = keys - kept.count()
    assert lost <= 2 * p * 125_000 and figures.kept == keys - lost and figures.rows == 125_000
    # Each key is lost at its own rate: the variance is at most the expected number.
    assert lost <= figures.expected_lost + 5 * math.sqrt(figures.expected_lost), (lost, figures.expected_lost)
    # The rate is that after a batch of 10,000 rows, which is up to twice the rate within it.
    assert lost >= figures.expected_lost / 2 - 5 * math.sqrt(figures.expected_lost), (lost, figures.expected_lost)


@either_way
def test_more_keys_than_planned_are_refused_before_rows_are_lost(spark: Any, tmp_path: pathlib.Path) -> None:
    df = pages(spark, 4000, 3000)
    assert bs.drop_duplicates(df, "key", n=1).count() == 3000
    with pytest.warns(UserWarning, match="made for 2500 keys"):
        bs.build(df, "key", n=2500, p=0.001)
    dedup = bs.StreamingDedup(tmp_path / "states", "key", n=30)
    with pytest.warns(UserWarning, match="made for 30 keys"):
        assert dedup.batch(df, 0).count() == 3000
    with pytest.raises(ValueError, match="n is 30, and the stream, .* rate of 1: give a larger n"):
        dedup.batch(df, 1)


def test_a_path_is_the_file_at_the_time_of_the_call(spark: Any, tmp_path: pathlib.Path) -> None:
    df = spark.createDataFrame([("a",), ("b",)], "key string")
    seen = BloomFilter(1000, 1e-6)
    seen.add("a")
    seen.save(tmp_path / "seen.bloom")
    new, known = bs.drop_seen(df, tmp_path / "seen.bloom", "key"), df.filter(bs.contains(tmp_path / "seen.bloom", "key"))
    seen.add("b")
    seen.save(tmp_path / "seen.bloom")
    assert [tuple(row) for row in new.collect() + known.collect()] == [("b",), ("a",)]


def test_invalid_arguments_are_refused_at_the_call(spark: Any, tmp_path: pathlib.Path) -> None:
    df = spark.createDataFrame([("a", 1)], "key string, row int")
    refused: list[tuple[str, dict[str, Any]]] = [
        ("n is '10': give an int", {"n": "10"}),
        ("partitions is 2.5: give an int", {"partitions": 2.5}),
        ("on has 1: give the names of columns", {"on": ["key", 1]}),
        ("on has 5: give the names of columns", {"on": 5}),
        ("n is 0: give at least 1", {"n": 0}),
        ("partitions is 0: give at least 1", {"partitions": 0}),
        ("rate", {"p": 0}),
        ("rate", {"p": 1.5}),
        ("leave it out for all columns", {"on": "*"}),
    ]
    for said, options in refused:
        given = {"on": "key", "n": 10} | options
        for ask in (
            lambda given: bs.drop_duplicates(df, **given),
            lambda given: bs.build(df, **given),
            lambda given: bs.StreamingDedup(tmp_path, **given).batch(df, 0),
        ):
            with pytest.raises((TypeError, ValueError), match=said):
                ask(given)
    pandas: Any = df.toPandas()
    for call in (lambda: bs.drop_duplicates(pandas, "key"), lambda: bs.build(pandas, "key", 10), lambda: bs.drop_seen(pandas, BloomFilter(10, 0.01))):
        with pytest.raises(TypeError, match="df is a DataFrame of pandas.*, not of Spark"):
            call()
    with pytest.raises(TypeError, match="bloomline.spark.drop_duplicates"):
        bloomline.dedup(df, "key")
    seen: Any = BloomFilter(10, 0.01)
    with pytest.raises(TypeError, match="contains needs the columns"):
        bs.contains(seen)
    with pytest.raises(TypeError, match="5 is not a column"):
        bs.contains(seen, "key", 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="figures is 5"):
        bs.drop_duplicates(df, "key", figures=5)  # type: ignore[arg-type]
    # A filter of texts has no numbers, neither itself nor as a file.
    seen.add_rows(pa.table({"row": ["1"]}))
    seen.save(tmp_path / "texts.bloom")
    for texts in seen, tmp_path / "texts.bloom":
        with pytest.raises(TypeError, match='column "row" has numbers, and the keys of the filter are texts'):
            bs.drop_seen(df, texts, "row")
    # Columns that are not simple have kinds, too.
    ids = spark.sql("SELECT DATE'2026-01-01' day, X'FF' id, array('a') tags")
    assert bs.drop_seen(ids, bs.build(ids, None, n=10)).count() == 0


def test_paths_mean_what_they_say(spark: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths of other file systems are not taken for folders of this machine."""
    monkeypatch.chdir(tmp_path)
    df = spark.createDataFrame([("a", 1)], "key string, row int")
    for path in ["s3://bucket/a", "hdfs:///a", "dbfs:/a", "S3A://bucket/a", "file://host/a", "abfss://c@account.net/a"]:
        asks: list[Callable[[], Any]] = [
            lambda path=path: bs.build(df, "key", n=10, path=path),
            lambda path=path: bs.drop_seen(df, path, "key"),
            lambda path=path: bs.contains(path, "key"),
            lambda path=path: bs.StreamingDedup(path, "key", n=10),
        ]
        for ask in asks:
            with pytest.raises(ValueError, match=f"{re.escape(repr(path))} is on another file system"):
                ask()
    assert not list(tmp_path.iterdir())
    for number, path in enumerate([f"file://{tmp_path}/a%20b", f"file:{tmp_path}/c", f"local:{tmp_path}/d", "./e:f"]):
        bs.build(df, "key", n=10, path=path)
        assert bs.drop_seen(df, path, "key").count() == 0, number
        states = bs.StreamingDedup(f"{path}-states", "key", n=10)
        assert [states.batch(df, batch).count() for batch in (0, 1)] == [1, 0]
    made = {"a b", "c", "d", "e:f"}
    assert {file.name for file in tmp_path.iterdir()} == made | {f"{name}-states" for name in made}


CLASSES: list[Callable[[], Any]] = [
    lambda: BloomFilter(1000, 1e-6),
    lambda: AtomicBloomFilter(1000, 1e-6),
    lambda: ScalableBloomFilter(1, 1e-6),
    lambda: AtomicScalableBloomFilter(10, 1e-6),
    lambda: RotatingBloomFilter(1000, 1e-6),
]


def test_contains_works_in_filters_joins_and_columns(spark: Any, tmp_path: pathlib.Path) -> None:
    df = spark.createDataFrame([("a", 1), ("b", 2), ("c", 3), (None, 4)], "url string, row long").repartition(2)
    other = df.filter("url is not null").select(F.col("url").alias("link"))
    for number, make in enumerate(CLASSES):
        seen = make()
        seen.add_rows(pa.table({"url": ["a", "c"]}))
        path = tmp_path / f"{number}.bloom"
        seen.save(path)
        sources = [seen, str(path), f"local:{path}"] if number % 2 else [seen, path]
        if not IS_LONG:
            sources = sources[number % len(sources) :][:1]
        if isinstance(seen, RotatingBloomFilter):
            sources = [seen]
        for source in sources:
            known = bs.contains(source, "url")
            both = df.withColumn("known", known).withColumn("never", bs.contains(source, F.upper("url")))
            found = all_of(
                [
                    both.filter("known and not never").select("row"),
                    df.filter(known & ~bs.contains(source, F.lit("b"))).select("row"),
                    df.join(other, (F.col("url") == F.col("link")) & bs.contains(source, "link")).select("row"),
                    bs.drop_seen(df, source, "url").select("row"),
                ]
            )
            assert sorted(found) == [(1, 0), (1, 1), (1, 2), (2, 3), (3, 0), (3, 1), (3, 2), (4, 3)], source
    seen = BloomFilter.load(tmp_path / "0.bloom")
    assert bs.drop_seen(df, BloomFilter.map(tmp_path / "0.bloom"), "url").count() == 2
    seen.clear()
    known = bs.contains(seen, "url")
    seen.add_rows(df.toPandas()[["url"]])
    # The column uses the filter as it was at the call.
    assert df.filter(known).count() == 0
    nulls = {"equal": [False], "keep": [True], "skip": [False]}
    empty = BloomFilter(1000, 1e-6)
    for option, expected in nulls.items():
        assert [row[0] for row in df.filter("row = 4").select(bs.contains(empty, "url", nulls=option)).collect()] == expected
        assert bs.drop_seen(df, empty, "url", nulls=option).count() == (3 if option == "skip" else 4)
    for fail in (df.select(bs.contains(empty, "url", nulls="fail")), bs.drop_seen(df, empty, "url", nulls="fail")):
        with pytest.raises(Exception, match="null"):
            fail.collect()


@pytest.mark.skipif(HAS_ARROW_UDF, reason="Arrow's arrays hand over all types")
@pytest.mark.parametrize("kind", [kind for kind in VALUES if kind != "struct<>"])
@settings(max_examples=1, phases=[Phase.generate])
@given(data=st.data())
def test_columns_through_pandas_are_answered_correctly_or_refused(spark: Any, kind: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | VALUES[kind], min_size=20, max_size=20))
    # The first example has only the simplest values.
    assume(kind == "void" or len({repr(value) for value in values}) > 2)
    df = spark.createDataFrame([(value, row) for row, value in enumerate(values)], f"key {kind}, row int").coalesce(1)
    table = arrow(df).select(["key"])
    seen = BloomFilter(100, 1e-9)
    seen.add_rows(table[:10])
    try:
        answers = df.select(bs.contains(seen, "key")).collect()
    except PySparkException as error:
        assert "TypeError: pandas changes" in str(error), str(error)[-500:]
        return
    assert [answer for (answer,) in answers] == seen.contains_rows(table).tolist()


@either_way
def test_a_filter_that_is_too_large_to_broadcast_is_sent_as_a_file(spark: Any, tmp_path: pathlib.Path) -> None:
    seen = BloomFilter(memory=120_000_000, probes=16)
    seen.add_many([f"k{i}" for i in range(1000)])
    df = pages(spark, 4000, 2000)
    assert bs.drop_seen(df, seen, "key").count() == 2000


@large
def test_a_filter_may_have_more_than_2_gb(spark: Any, tmp_path: pathlib.Path) -> None:
    df = pages(spark, 400_000, 200_000)
    seen = bs.build(df.filter("id < 100000"), "key", n=500_000_000, p=1e-8, path=tmp_path / "large.bloom")
    assert seen.memory_bytes > 2**31
    expected = BloomFilter(500_000_000, 1e-8)
    expected.add_many([f"k{i}" for i in range(100_000)])
    assert seen == expected
    del expected
    assert bs.drop_seen(df, seen, "key").count() == 200_000
    assert df.filter(bs.contains(tmp_path / "large.bloom", "key")).count() == 200_000
    held = BloomFilter.load(tmp_path / "large.bloom")
    assert df.filter(bs.contains(held, "key")).count() == 200_000


def command(*arguments: Any) -> str:
    told = subprocess.run([sys.executable, "-m", "bloomline", *map(str, arguments)], capture_output=True, text=True)
    assert told.stderr == "" and told.returncode <= 1, told.stderr
    return told.stdout


@either_way
def test_the_command_finds_the_keys(spark: Any, tmp_path: pathlib.Path) -> None:
    rows = [(f"u{i}" if i % 7 else None, (i % 5 - 2.5, DAY + datetime.timedelta(hours=i % 3)), [None, i % 3], i) for i in range(100)]
    df = spark.createDataFrame(rows, "url string, page struct<rate:double,at:timestamp>, tags array<int>, row int").repartition(3)
    df.coalesce(1).write.parquet(str(tmp_path / "parquet"))
    (parquet,) = (tmp_path / "parquet").glob("*.parquet")
    for number, (on, pointers) in enumerate(
        [(["url", "page.rate", "page.at", "tags"], None), (["url"], ["/url"]), (["url", "tags"], ["/url", "/tags"]), (["row"], ["/row"])]
    ):
        state = tmp_path / f"{number}.bloom"
        bs.build(df.filter("row < 20"), on, n=1000, p=1e-9, path=state)
        old = {tuple(map(str, row)) for row in df.filter("row < 20").select(*on).collect()}
        expected = sum(tuple(map(str, row)) not in old for row in df.select(*on).collect())
        assert 0 < expected < 100
        assert int(command("check", "-v", "--total", "-s", state, "--column", ",".join(on), parquet)) == expected
        if pointers:
            lines = tmp_path / f"{number}.jsonl"
            lines.write_text("".join(json.dumps({"url": url, "tags": tags, "row": row}) + "\n" for url, _, tags, row in rows))
            pointed = [argument for pointer in pointers for argument in ("--json-pointer", pointer)]
            assert int(command("check", "-v", "--total", "-s", state, *pointed, lines)) == expected
            made = tmp_path / f"{number}-command.bloom"
            command("build", "-n", 1000, "-p", 1e-9, *pointed, "-o", made, lines)
            assert bs.drop_seen(df, made, on).count() == 0


def test_columns_are_found_by_their_names(spark: Any) -> None:
    twice = spark.createDataFrame([(1, 1), (1, 1), (1, 2)], ["a", "a"])
    assert sorted(map(tuple, bs.drop_duplicates(twice).collect())) == [(1, 1), (1, 2)]
    assert bs.drop_duplicates(twice).columns == ["a", "a"]
    seen = bs.build(twice.limit(2), None, n=10, p=1e-9)
    assert list(map(tuple, bs.drop_seen(twice, seen).collect())) == [(1, 2)]
    others_twice = spark.createDataFrame([(1, 1, 2), (1, 3, 4)], ["key", "a", "a"])
    assert [tuple(row) for row in bs.drop_duplicates(others_twice.coalesce(1), "key", partitions=1).collect()] == [(1, 1, 2)]
    deep = spark.createDataFrame([((1, (2, 3)),), ((1, (2, 4)),), ((2, None),), (None,)], "a struct<`b.c`:int,d:struct<e:int,f:int>>")
    for on, expected in [("a.`b.c`", 3), ("a.d.e", 2), (["a.d", "a.`b.c`"], 4), ("A.D.F", 3), (["a"], 4), (("a.d.e", "a.d.e"), 2)]:
        assert bs.drop_duplicates(deep, on).count() == expected, on
    with pytest.raises(Exception, match="none|UNRESOLVED"):
        bs.drop_duplicates(deep, "none")
    with pytest.raises(ValueError, match="on"):
        bs.drop_duplicates(deep, [])


@either_way
def test_filters_refuse_columns_of_another_name_or_kind(spark: Any, tmp_path: pathlib.Path) -> None:
    df = spark.createDataFrame([("a", 1)], "Url string, day int")
    both = BloomFilter(100, 1e-9, key_name="Url,day")
    seen = bs.build(df, "url", n=100)
    assert seen.key_name == "Url"
    seen.save(tmp_path / "seen.bloom")
    both.add_rows(pa.table({"day": [1], "Url": ["a"]}))
    # Spark ignores the case of names, and keys have that of the schema.
    for filter, on in [(seen, "url"), (both, None), (both, ["day", "`Url`"]), (str(tmp_path / "seen.bloom"), ["URL"])]:
        assert bs.drop_seen(df, filter, on).count() == 0
    assert df.filter(bs.contains(both, F.col("day"), "Url")).count() == 1
    assert df.select(F.col("Url").alias("link")).filter(bs.contains(seen, F.col("link").alias("Url"))).count() == 1
    for refuse in [
        lambda: bs.drop_seen(df, seen, "day"),
        lambda: bs.drop_seen(df, seen),
        lambda: bs.contains(both, "Url"),
        lambda: bs.contains(tmp_path / "seen.bloom", F.col("day")),
    ]:
        with pytest.raises(ValueError, match="have the name"):
            refuse()
    numbers = bs.build(df, "day", n=100)
    # The call does not know the type of a column that has no frame yet.
    links = df.filter(bs.contains(numbers, F.col("Url").alias("day")))
    with pytest.raises(PySparkException, match="texts, and the keys of the filter are numbers"):
        links.count()
    with pytest.raises(TypeError, match="the keys are texts"):
        numbers.add("1")
    # The only column of a whole row is a row.
    urls = df.select("Url")
    assert bs.drop_seen(urls, bs.build(urls, None, n=100)).count() == 0
    with pytest.raises(ValueError, match='have the name "row of Url"'):
        bs.build(urls, None, n=100).contains_rows(pa.table({"Url": ["a"]}))


def test_texts_that_are_not_utf8_are_compared_or_refused(spark: Any) -> None:
    df = spark.sql("SELECT CAST(x AS string) key FROM VALUES (X'FF'), (X'FE'), (X'FF'), (X'61') AS t(x)")
    try:
        found = bs.drop_duplicates(df, "key").count()
    except Exception as error:
        assert "UTF-8" in str(error) or "utf-8" in str(error), str(error)[-500:]
    else:
        assert found == df.dropDuplicates().count()


def test_dates_that_python_does_not_have_are_keys(spark: Any) -> None:
    df = spark.sql(
        "SELECT date_from_unix_date(d) d, timestamp_micros(d * 1000000000L * s) t"
        " FROM VALUES (-2000000), (-719529), (0), (2932897), (9000000) AS a(d) CROSS JOIN VALUES (1), (2) AS b(s)"
    )
    for on in ("d", "t"):
        assert bs.drop_duplicates(df, on, p=1e-9).count() == df.dropDuplicates([on]).count()


REFUSED = {
    "map<string,int>": "SELECT map('a', 1) key",
    "map within": "SELECT struct(array(map('a', 1)) AS a) key",
    "interval of months": "SELECT interval '1' month key",
}
# PySpark 3.5 does not know these types.
if HAS_ARROW_UDF:
    REFUSED |= {
        "calendar interval": "SELECT make_interval(1, 2, 3) key",
        "variant": "SELECT parse_json('1') key",
        "collation": "SELECT 'a' COLLATE UTF8_LCASE key",
        "collation within": "SELECT array(struct('a' COLLATE UNICODE_CI AS a)) key",
    }


@pytest.mark.parametrize("what", REFUSED)
def test_types_that_cannot_be_keys_are_refused(spark: Any, tmp_path: pathlib.Path, what: str) -> None:
    df = spark.sql(REFUSED[what])
    seen = BloomFilter(10, 0.01)
    asks: list[Callable[[], Any]] = [
        lambda: bs.drop_duplicates(df),
        lambda: bs.build(df, "key", n=10),
        lambda: bs.drop_seen(df, seen, "key"),
        lambda: bs.StreamingDedup(tmp_path, "key", n=10).batch(df, 0),
    ]
    for ask in asks:
        with pytest.raises(TypeError, match="cannot be keys"):
            ask()
    # The types do not matter for other columns.
    if "interval" not in what:
        assert bs.drop_duplicates(df.withColumn("id", F.lit(1)), "id").count() == 1


@either_way
def test_a_stream_is_refused(spark: Any) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(TypeError, match="StreamingDedup"):
        bs.drop_duplicates(stream, "value")
    # Each row can be answered by itself.
    assert bs.drop_seen(stream, BloomFilter(10, 0.01), "value").isStreaming


@either_way
def test_a_filter_on_a_server_is_refused(spark: Any, redis: Server) -> None:
    seen: Any = RedisBloomFilter(redis.url, "seen", 100, 0.01)
    df = pages(spark, 10, 10)
    asks: list[Callable[[], Any]] = [lambda: bs.contains(seen, "key"), lambda: bs.drop_seen(df, seen, "key")]
    for ask in asks:
        with pytest.raises(TypeError, match="RedisBloomFilter"):
            ask()
    assert seen.stats().fill_ratio == 0


@pytest.mark.parametrize("ask", ["drop_duplicates", "drop_seen", "batch"])
def test_nulls_fail_on_request(spark: Any, tmp_path: pathlib.Path, ask: str) -> None:
    df = spark.createDataFrame([("a",), (None,)], "key string")
    with pytest.raises(Exception, match="null"):
        if ask == "batch":
            bs.StreamingDedup(tmp_path, "key", n=10, nulls="fail").batch(df, 0).count()
        elif ask == "drop_seen":
            bs.drop_seen(df, BloomFilter(10, 0.01), "key", nulls="fail").count()
        else:
            bs.drop_duplicates(df, "key", nulls="fail").count()
    assert not list(tmp_path.glob("*.bloom"))
    with pytest.raises(ValueError, match="keep"):
        bs.build(df, "key", n=10, nulls="keep")
    seen = BloomFilter(10, 0.01)
    asks: list[Callable[[], Any]] = [
        lambda: bs.drop_duplicates(df, "key", nulls="drop"),
        lambda: bs.build(df, "key", n=10, nulls="drop"),
        lambda: bs.contains(seen, "key", nulls="drop"),
        lambda: bs.drop_seen(df, seen, "key", nulls="drop"),
        lambda: bs.StreamingDedup(tmp_path, "key", n=10, nulls="drop"),
    ]
    for misnamed in asks:
        with pytest.raises(ValueError, match="nulls is 'drop'"):
            misnamed()
    assert bs.build(df, "key", n=10, nulls="skip") == bs.build(df.dropna(), "key", n=10)


class Crash(Exception):
    """Ends a batch at a point where a driver may fail."""


# Each batch of the stream fails once at each of these points.
POINTS = ["before", "unsaved", "saved", "written"]


def write_batches(folder: pathlib.Path, batches: int) -> set[str]:
    """Writes a file for each batch: 30 keys of its own, and 30 of each of the two before, each twice."""
    folder.mkdir()
    keys: set[str] = set()
    for batch in range(batches):
        found = [f"k{i}" for i in range(30 * batch, 30 * batch + 90)] * 2
        pq.write_table(pa.table({"key": found, "batch": [batch] * len(found)}), folder / f"{batch}.parquet")
        os.utime(folder / f"{batch}.parquet", (1_000_000 + batch, 1_000_000 + batch))
        keys.update(found)
    return keys


@either_way
def test_a_stream_that_fails_at_any_point_emits_each_key_once(spark: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time the stream starts anew from its checkpoint, with a filter of its own."""
    batches = 3 if IS_LONG else 2
    keys = write_batches(tmp_path / "in", batches)
    crashed: set[tuple[int, str]] = set()

    def run() -> None:
        dedup = bs.StreamingDedup(tmp_path / "states", "key", n=1000, p=1e-9)

        def each(df: Any, batch: int) -> None:
            def crash(point: str) -> None:
                if (batch, point) not in crashed:
                    crashed.add((batch, point))
                    raise Crash(point)

            def no_filter(*_: Any, **__: Any) -> None:
                raise Crash("unsaved")

            crash("before")
            with monkeypatch.context() as patched:
                if (batch, "unsaved") not in crashed:
                    crashed.add((batch, "unsaved"))
                    # It is called before the filter with the keys of the batch is saved.
                    patched.setattr(bs, "warn_if_full", no_filter)
                new = dedup.batch(df, batch)
            assert len(list((tmp_path / "states").iterdir())) == min(batch + 1, 2)
            crash("saved")
            new.write.mode("overwrite").parquet(str(tmp_path / f"out/batch={batch}"))
            crash("written")

        stream = spark.readStream.schema("key string, batch long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        query = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    while len(crashed) < batches * len(POINTS):
        before = len(crashed)
        with pytest.raises(Exception, match="Crash"):
            run()
        assert len(crashed) == before + 1
    run()
    run()
    found = [row.key for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    assert len(found) == len(set(found)) and set(found) == keys
    assert sorted(file.name for file in (tmp_path / "states").iterdir()) == [f"{batch}.bloom" for batch in (batches - 2, batches - 1)]


@either_way
def test_replayed_batches_have_the_same_rows(spark: Any, tmp_path: pathlib.Path) -> None:
    """Also with nulls, and with empty batches. A stream that has lost its keys is refused."""
    rows = [("a", 1), ("a", 2), (None, 3), (None, 4)]
    for nulls, first, second in [("equal", 2, 0), ("keep", 3, 2), ("skip", 1, 0)]:
        df = spark.createDataFrame(rows, "key string, row int")
        folder = tmp_path / nulls
        make = functools.partial(bs.StreamingDedup, folder, "key", n=100, p=1e-9, nulls=nulls)
        steps = [(0, df, first), (0, df, first), (1, df.filter("row < 0"), 0), (2, df, second), (2, df, second)]
        for batch, rows_of, count in steps:
            assert make().batch(rows_of, batch).count() == count, (nulls, batch)
    with pytest.raises(ValueError, match="batch 0 is older"):
        make().batch(df, 0)
    with pytest.raises(ValueError, match="no keys of earlier batches in .*elsewhere, and this is batch 3"):
        bs.StreamingDedup(tmp_path / "elsewhere", "key", n=100).batch(df, 3)


@either_way
def test_a_folder_of_states_belongs_to_one_stream(spark: Any, tmp_path: pathlib.Path) -> None:
    """Other files are left alone. Other parameters of keys and another process are refused."""
    df = pages(spark, 10, 10)
    make = functools.partial(bs.StreamingDedup, tmp_path)
    (tmp_path / "mine.bloom").write_text("of somebody else")
    for batch in range(3):
        assert make("key", n=100).batch(df, batch).count() == (0 if batch else 10)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["1.bloom", "2.bloom", "mine.bloom"]
    for other, told in [
        (make("key", n=101), "n = 100, and this is 101"),
        (make("key", n=100, p=1e-3), "p = 1e-06, and this is 0.001"),
        (make(["key", "id"], n=100), "on = 'key', and this is 'id,key'"),
        (make(n=100), "on = 'key', and this is 'id,key'"),
    ]:
        with pytest.raises(ValueError, match=told):
            other.batch(df, 3)
    program = f"from bloomline import spark; spark._hold(__import__('pathlib').Path({str(tmp_path)!r}))"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert told.returncode == 1 and "another process has the stream" in told.stderr, told.stderr


def run_program(mode: str, folder: pathlib.Path, *arguments: Any, code: int = 0, within: Sequence[str] = ()) -> Any:
    program = [*within, sys.executable, str(FOLDER / "spark_programs.py"), mode, str(folder), *map(str, arguments)]
    told = subprocess.run(program, capture_output=True, text=True, timeout=400)
    assert told.returncode == code, (told.returncode, told.stdout[-2000:], told.stderr[-4000:])
    return told


@long
def test_a_killed_driver_loses_no_key(spark: Any, tmp_path: pathlib.Path) -> None:
    keys = write_batches(tmp_path / "in", 4)
    for batch, point in [(0, "saved"), (1, "before"), (1, "unsaved"), (2, "written"), (3, "writing"), (3, "saved")]:
        run_program("stream", tmp_path, batch, point, code=-9)
    run_program("stream", tmp_path, -1, "none")
    found = [row.key for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    assert len(found) == len(set(found)) and set(found) == keys
    assert sorted(file.name for file in (tmp_path / "states").iterdir()) == ["2.bloom", "3.bloom"]


@long
def test_killed_executors_change_no_result(tmp_path: pathlib.Path) -> None:
    run_program("cluster", tmp_path)


@long
def test_copies_of_slow_tasks_change_no_result(tmp_path: pathlib.Path) -> None:
    try:
        subprocess.run([*spark_session.ALONE, "ip", "link"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no networks of its own: {error}")
    run_program("hosts", tmp_path, within=spark_session.ALONE)
