"""Frames whose rows are keys: pandas, Polars, pyarrow."""

import datetime
import decimal
import json
import math
import pathlib
import subprocess
import sys
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bloomline
from bloomline import BloomFilter, ScalableBloomFilter, _frames
from bloomline._bloomline import _distinct_rows
from conftest import examples
from tables import KINDS, Kind, stay
from test_keys import CLASSES

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")

EPOCH = datetime.datetime(2026, 11, 23)
FEW = st.integers(-3, 3)
# Values of each type, with many repeats.
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    pa.string(): st.sampled_from(["", "a", "1", "null", "ä"]),
    pa.large_string(): st.sampled_from(["", "a\n", '"']),
    pa.string_view(): st.sampled_from(["", "a", "a string that is longer than a view"]),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["a", "b"]),
    pa.binary(): st.sampled_from([b"", b"a", b"\xff1"]),
    pa.bool_(): st.booleans(),
    pa.int8(): FEW,
    pa.int64(): st.sampled_from([0, 1, -(2**63), 2**63 - 1]),
    pa.uint64(): st.sampled_from([0, 1, 2**64 - 1]),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.0, 0.1, float("nan"), float("inf")]),
    pa.float32(): st.sampled_from([0.0, -0.0, 0.5, float("nan")]),
    pa.date32(): FEW.map(lambda days: (EPOCH + datetime.timedelta(days)).date()),
    pa.timestamp("us"): FEW.map(lambda hours: EPOCH + datetime.timedelta(hours=hours)),
    pa.timestamp("ms", "UTC"): FEW.map(lambda n: (EPOCH + datetime.timedelta(milliseconds=n)).replace(tzinfo=datetime.UTC)),
    pa.duration("us"): FEW.map(lambda seconds: datetime.timedelta(seconds=seconds)),
    pa.time64("us"): FEW.map(lambda n: datetime.time(abs(n), microsecond=abs(n))),
    pa.decimal128(10, 2): FEW.map(lambda n: decimal.Decimal(n).scaleb(-2)),
    pa.list_(pa.int32()): st.lists(st.sampled_from([None, 0, 1]), max_size=2),
    pa.struct([("a", pa.int32()), ("b", pa.string())]): st.fixed_dictionaries({"a": FEW, "b": st.sampled_from(["x", None])}),
}


@st.composite
def tables(draw: st.DrawFn) -> Any:
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    rows = draw(st.integers(0, 30))
    columns = [draw(st.lists(st.none() | VALUES[kind], min_size=rows, max_size=rows)) for kind in kinds]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.table([*arrays, pa.array(range(rows))], names=[*(f"c{i}" for i in range(len(kinds))), "row"])


@settings(max_examples=examples(80))
@given(tables(), st.sampled_from(["equal", "keep", "skip"]))
def test_kept_rows_match_a_set(table: Any, nulls: Any) -> None:
    on = table.column_names[:-1]
    expected = stay(zip(*(table[name].to_pylist() for name in on)), nulls=nulls)
    new = BloomFilter(1000, 1e-6).add_rows(table.select(on), nulls=nulls)
    assert [row for row, is_new in enumerate(new) if is_new] == expected
    # pyarrow and Polars do not filter or read all columns of views.
    if pa.string_view() not in table.schema.types:
        kept = bloomline.dedup(table, on, nulls=nulls, n=1000)
        assert kept.schema == table.schema and kept["row"].to_pylist() == expected
        frame = pl.from_arrow(table)
        assert bloomline.dedup(frame, on, nulls=nulls, n=1000)["row"].to_list() == expected
        assert bloomline.dedup(frame.lazy(), on, nulls=nulls, n=1000).collect()["row"].to_list() == expected
        pandas = table.to_pandas(types_mapper=pd.ArrowDtype)
        assert bloomline.dedup(pandas, on, nulls=nulls, n=1000)["row"].tolist() == expected


NUMBERS = [[1, 2], [3], [], [1, None], [3, 1]]
# Types that files of Parquet do not have.
OTHERS = [
    Kind(pa.large_list_view(pa.int32()), NUMBERS),
    Kind(pa.list_view(pa.list_view(pa.int8())), [[NUMBERS[0]], [NUMBERS[1], []], [[]], []]),
    Kind(pa.list_view(pa.struct([("a", pa.large_list_view(pa.string()))])), [[{"a": ["x"]}], [{"a": ["y"]}], [{"a": []}], []]),
    Kind(pa.month_day_nano_interval(), [(1, 0, 0), (0, 30, 0)]),
    Kind(pa.run_end_encoded(pa.int32(), pa.string()), ["a", "b"]),
]
REFUSED = ["SPARSE_UNION", "DENSE_UNION", "INTERVAL_MONTH_DAY_NANO", "INTERVAL_MONTHS", "INTERVAL_DAY_TIME"]
KNOWN_EXTENSIONS = ["arrow.bool8", "arrow.json", "arrow.uuid"]
UNIONS = [
    pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 1]), pa.array(["a", "b", "c"])]),
    pa.UnionArray.from_dense(pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()), [pa.array([1, 1]), pa.array(["a"])]),
]


def of_type(name: str) -> list[Kind]:
    kinds = [Kind(array.type, array.to_pylist()) for array in UNIONS] + [*KINDS.values(), *OTHERS]
    found = [kind for kind in kinds if (getattr(kind.type, "storage_type", kind.type)).id == getattr(pa.lib, f"Type_{name}")]
    # pyarrow has no arrays of these.
    assert found or name in ("INTERVAL_MONTHS", "INTERVAL_DAY_TIME"), f"no values of the type {name} are tried"
    return found


@pytest.mark.parametrize("name", [name.removeprefix("Type_") for name in dir(pa.lib) if name.startswith("Type_")])
def test_each_type_of_arrow_is_a_key_or_is_refused(name: str) -> None:
    for kind in of_type(name):
        values = [*kind.values, *kind.values[1:], None, kind.values[0], None]
        array = UNIONS[name == "DENSE_UNION"] if name.endswith("_UNION") else kind.array(values)
        rows = pa.array(range(len(array)))
        offsets = pa.array(range(len(array) + 1), pa.int32())
        within = pa.ListArray.from_arrays(offsets, array), pa.StructArray.from_arrays([array], ["a"])
        for column in array, array.slice(1), *within:
            table = pa.table({"a": column, "b": rows[: len(column)]})
            seen = BloomFilter(1000, 1e-9)
            if name in REFUSED or getattr(kind.type, "extension_name", "arrow.uuid") not in KNOWN_EXTENSIONS:
                for ask in seen.add_rows, lambda rows: _distinct_rows(rows, "equal", False, False):
                    with pytest.raises(TypeError, match="cannot be keys"):
                        ask(table.select(["a"]))
                assert not seen
                continue
            parts = [(value,) for value in values[-len(column) :]]
            for which in "first", "last":
                new = _distinct_rows(table.select(["a"]), "equal", False, which == "last")
                assert [row for row, is_new in enumerate(new) if is_new] == stay(parts, which), kind.type
            expected = stay(parts)
            assert [row for row, new in enumerate(seen.add_rows(table.select(["a"]))) if new] == expected, kind.type
            assert BloomFilter(1000, 1e-9).add_rows(table).all()


ONE_DAY, ONE = pd.Timedelta(days=1).as_unit("ns"), pd.Timedelta(1, "ns")
BERLIN = datetime.timezone(datetime.timedelta(hours=1))
# Objects of each type of time. Some are equal for pandas, or become equal when their precision is reduced.
TIMES: list[Any] = [
    EPOCH.date(),
    EPOCH,
    EPOCH.replace(microsecond=1),
    EPOCH.replace(tzinfo=datetime.UTC),
    EPOCH.replace(tzinfo=datetime.UTC).astimezone(BERLIN),
    datetime.datetime(1, 1, 1),
    pd.Timestamp(EPOCH),
    pd.Timestamp(EPOCH).as_unit("ns") + ONE,
    pd.Timestamp(EPOCH, tz="UTC"),
    pd.Timestamp(EPOCH, tz="UTC").as_unit("ns") + ONE,
    pd.Timestamp(EPOCH, tz="UTC").tz_convert(BERLIN).as_unit("ns") + ONE,
    datetime.timedelta(1),
    datetime.timedelta(10**6),
    ONE_DAY,
    ONE_DAY + ONE,
    datetime.time(),
    datetime.time(microsecond=1),
    datetime.time(tzinfo=datetime.UTC),
    datetime.time(1, tzinfo=BERLIN),
    np.datetime64("2026-11-23"),
    np.datetime64("2026-11-23T00:00:00.000000001"),
    np.timedelta64(1, "D"),
    pd.Period("2026-11", "M"),
    "2026-11-23",
    1,
]


@pytest.mark.parametrize("time", TIMES, ids=repr)
def test_times_as_objects_equal_those_of_pandas_or_are_refused(time: Any) -> None:
    for other in TIMES:
        objects = pd.Series([time, other, None, other, time], dtype=object)
        forms = [objects, [{"b": [value]} for value in objects]]
        kept = pd.Index(objects.dropna().drop_duplicates(), dtype=object)
        if kept.is_unique:
            forms.append(pd.Categorical.from_codes([0, len(kept) - 1, -1, len(kept) - 1, 0], kept))
        for form in forms:
            try:
                new = BloomFilter(1000, 1e-9).add_rows(pd.DataFrame({"a": form}))
            except TypeError:
                continue
            assert new.tolist() == (~objects.duplicated()).tolist(), form


def test_times_as_objects_of_one_type_are_accepted() -> None:
    day, stamp = EPOCH.date(), pd.Timestamp(EPOCH)
    for values in [
        [day, None, day],
        [EPOCH, stamp, pd.NaT, stamp + ONE],
        [stamp.as_unit("ns") + ONE, stamp],
        [datetime.timedelta(1), ONE_DAY, ONE_DAY + ONE],
        [EPOCH.replace(tzinfo=datetime.UTC), stamp.tz_localize("UTC"), stamp.tz_localize("UTC").tz_convert(BERLIN)],
        [datetime.time(1), pd.NA, datetime.time(1)],
    ]:
        frame = pd.DataFrame({"a": pd.Series(values, dtype=object), "b": [[value] for value in values]})
        assert bloomline.dedup(frame, on="a").index.tolist() == frame.drop_duplicates("a").index.tolist()
    with pytest.raises(TypeError, match="column 'day' has objects of several types of time"):
        bloomline.dedup(pd.DataFrame({"day": [day, EPOCH]}))


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b", "c"],
        [None, None, None, "a"],
        [math.nan, math.nan, "a", None],
        [1, 2, 3.5],
        [EPOCH.date(), EPOCH.date(), None, EPOCH],
        [b"a", b"b", "c"],
        [{"a": 1}, {"a": 2}, {"b": 3}],
        [[1], [2], [2.5]],
        [decimal.Decimal("1.5"), None, decimal.Decimal("1.255")],
        [],
    ],
    ids=repr,
)
def test_columns_of_objects_convert_in_parts_as_they_do_as_a_whole(values: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_frames, "_SLICE", 2)
    column = pd.Series(values, dtype=object)
    found, whole = _frames.array_of_pandas(column), pa.Array.from_pandas(column)
    assert found.type == whole.type and found.to_pylist() == whole.to_pylist()
    if all(value is None or isinstance(value, str) for value in values) and values:
        # Python handles signals between chunks.
        assert [len(chunk) for chunk in found.chunks] == [2, len(values) - 2]


def test_dedup_returns_a_frame_of_the_same_package() -> None:
    frame = pd.DataFrame({"url": ["a", "b", "a"], "day": [1, 2, 3]}, index=[7, 8, 9])
    pd.testing.assert_frame_equal(bloomline.dedup(frame, on="url"), frame.drop_duplicates("url"))
    table = pl.DataFrame({"url": ["a", "b", "a"], "day": [1, 2, 3]})
    assert bloomline.dedup(table, on=["url"]).equals(table[:2])
    assert bloomline.dedup(table).equals(table)
    assert bloomline.dedup(table[:0]).equals(table[:0])
    batch = pa.record_batch({"url": ["a", "a"]})
    assert bloomline.dedup(batch) == batch[:1]


def test_chunks_of_polars_may_end_at_different_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_frames, "_LEAST_PART", 1)
    parts = [pl.Series("a", [1, 2, 1]), pl.Series("a", [3, 2])]
    frame = pl.DataFrame([pl.concat(parts, rechunk=False), pl.concat(parts[::-1], rechunk=False).alias("b"), pl.Series("c", range(5))])
    assert frame.n_chunks("all") == [2, 2, 1] and len(_frames.polars_for_arrow(frame)) == 3
    for keep, rows in {"first": [0, 1, 3], "last": [2, 3, 4]}.items():
        assert bloomline.dedup(frame, on="a", keep=keep)["c"].to_list() == rows  # type: ignore[call-overload]
    # The column b is 3, 2, 1, 2, 1.
    assert bloomline.dedup(frame, on=["a", "b"])["c"].to_list() == [0, 1, 2, 3, 4]
    assert bloomline.dedup(frame, on="b")["c"].to_list() == [0, 1, 2]


def test_dedup_returns_a_frame_of_the_same_subclass() -> None:
    class Sub(pd.DataFrame):  # type: ignore[misc]
        @property
        def _constructor(self) -> Any:
            return Sub

    kept = bloomline.dedup(Sub({"a": [1, 1, 2]}))
    assert type(kept) is Sub and kept["a"].tolist() == [1, 2]


def test_names_of_columns_may_be_other_objects_than_texts() -> None:
    frame = pd.DataFrame([["a", 1], ["a", 2], ["b", 3]])
    for on in (0, [0]):
        assert bloomline.dedup(frame, on=on).index.tolist() == [0, 2]
    pair: Any = ("x", 1)
    levels = pd.DataFrame([["a", 1], ["a", 2], ["b", 3]], columns=pd.MultiIndex.from_tuples([pair, ("x", 2)]))
    assert bloomline.dedup(levels, on=pair).index.tolist() == [0, 2]
    assert bloomline.dedup(frame.rename(columns=str), on=("0", "1")).index.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="on names no column"):
        bloomline.dedup(frame, on=[])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table, pa.record_batch])
def test_keep_chooses_the_first_or_the_last_of_equal_rows(make: Any) -> None:
    rows = {"a": [1, 2, 1, None, 3, None], "row": range(6)}
    for nulls, first, last in [("equal", [0, 1, 3, 4], [1, 2, 4, 5]), ("keep", [0, 1, 3, 4, 5], [1, 2, 3, 4, 5])]:
        for keep, expected in {"first": first, "last": last}.items():
            kept = bloomline.dedup(make(rows), "a", keep=keep, nulls=nulls)  # type: ignore[call-overload]
            kept = kept.collect() if make is pl.LazyFrame else kept
            assert list(map(int, kept["row"].tolist() if make is pd.DataFrame else kept["row"].to_numpy())) == expected
    with pytest.raises(ValueError, match="keep is 'any'"):
        bloomline.dedup(make(rows), keep="any")  # type: ignore[call-overload]


def test_readers_and_data_sets_are_read_as_streams(tmp_path: pathlib.Path) -> None:
    tables = [pa.table({"a": [part, 1, 1], "row": [3 * part, 3 * part + 1, 3 * part + 2]}) for part in range(4)]
    expected = [0, 1, 6, 9]
    read = 0

    def batches() -> Any:
        nonlocal read
        for table in tables:
            read += 1
            yield from table.to_batches()

    new: Any = bloomline.dedup(pa.RecordBatchReader.from_batches(tables[0].schema, batches()), on="a")
    assert new.schema == tables[0].schema and read == 0
    assert new.read_next_batch()["row"].to_pylist() == [0, 1] and read == 1
    assert new.read_all()["row"].to_pylist() == expected[2:]
    for number, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{number}.parquet")
    data = ds.dataset(tmp_path)
    seen = BloomFilter(1000, 1e-9)
    assert bloomline.dedup(data, on="a", seen=seen).read_all()["row"].to_pylist() == expected
    assert bloomline.dedup(data, on="a", seen=seen).read_all().num_rows == 0
    with pytest.raises(KeyError, match="none"):
        bloomline.dedup(data, on="none")
    # pyarrow's Schema.empty_table makes no columns of these types.
    times = pa.array([0, 0], pa.timestamp("s")).dictionary_encode()
    uuids = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array([uuid.UUID(int=1)] * 2))
    odd = pa.table({"times": times, "uuids": uuids})
    assert bloomline.dedup(odd.to_reader(), on=["times"]).read_all().num_rows == 1
    with pytest.raises(ValueError, match="needs all rows"):
        bloomline.dedup(data, on="a", keep="last")


def test_types_of_polars_unknown_to_arrow_are_converted_or_refused() -> None:
    wide = pl.DataFrame({"a": pl.Series([7, -(2**100), 7, None, None], dtype=pl.Int128)})
    assert bloomline.dedup(wide)["a"].to_list() == [7, -(2**100), None]
    seen = BloomFilter(1000, 1e-9)
    seen.add_rows(wide)
    assert seen.contains_rows(pa.table({"a": [7, None, 8]})).tolist() == [True, True, False]
    nulls = pl.DataFrame({"a": [None, None, None], "b": [1, 1, 2], "c": [[None], [None], []], "d": [{"e": None}] * 3})
    assert BloomFilter(1000, 1e-9).add_rows(nulls).tolist() == [True, False, True]
    assert bloomline.dedup(nulls, nulls="skip").is_empty()
    for kind, value in (pl.Int128, 2**100), (pl.Null, None):
        assert len(bloomline.dedup(pl.DataFrame({"a": pl.Series([[value]] * 2, dtype=pl.Array(kind, 1))}))) == 1
    with pytest.raises(TypeError, match="more than 38 digits"):
        seen.add_rows(pl.DataFrame({"a": pl.Series([2**127 - 1], dtype=pl.Int128)}))
    objects = pl.DataFrame({"a": pl.Series([object(), object()], dtype=pl.Object)})
    for ask in seen.add_rows, seen.contains_rows, bloomline.dedup:
        with pytest.raises(TypeError, match="column \"a\" has Polars' type Object"):
            ask(objects)  # type: ignore[operator]
    with pytest.raises(TypeError, match="column \"a\" has Polars' type Object"):
        seen.add_many(objects["a"])


def test_each_collection_of_a_lazy_frame_yields_the_same_rows() -> None:
    lazy = bloomline.dedup(pl.LazyFrame({"url": ["a", "b", "a"]}), on="url")
    assert lazy.collect().equals(lazy.collect()) and len(lazy.collect()) == 2


def test_later_operations_on_a_lazy_frame_do_not_change_which_rows_are_kept() -> None:
    frame = pl.DataFrame({"url": ["a", "a", "b"], "day": [1, 2, 3]})
    first, lazy = frame[[0, 2]], bloomline.dedup(frame.lazy(), on="url")
    assert lazy.filter(pl.col("day") > 1).collect().equals(first.filter(pl.col("day") > 1))
    assert lazy.head(2).collect().equals(first)
    assert lazy.select("day").collect().equals(first.select("day"))


def test_a_filter_keeps_keys_from_call_to_call() -> None:
    seen = BloomFilter(1000, 1e-6)
    months = [pd.DataFrame({"url": urls}) for urls in (["a", "b"], ["b", "c", "c"])]
    assert [bloomline.dedup(month, on="url", seen=seen)["url"].tolist() for month in months] == [["a", "b"], ["c"]]
    assert seen.contains_rows(pl.DataFrame({"x": ["c", "d", None]}), nulls="keep").tolist() == [True, False, True]


def test_more_keys_than_planned_lose_no_rows() -> None:
    table = pa.table({"a": [number % 5000 for number in range(7000)]})
    for n in (1, 100, 4999):
        assert bloomline.dedup(table.to_reader(), on="a", n=n).read_all().num_rows == 5000


def test_a_filter_with_too_many_keys_warns_and_is_then_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pa.table({"a": range(4000)})
    seen = BloomFilter(1000, 0.01)
    bloomline.dedup(frame[:1000], seen=seen)
    with pytest.warns(UserWarning, match=r"made for 1000 keys and has about 1\.[45]\d?e\+03: its false-positive rate is 0\.0\d+$") as warned:
        bloomline.dedup(frame[:1500], seen=seen)
    assert warned[0].filename == __file__
    refused = r"made for 1000 keys, .* lost at a rate of 0\.[5-9]\d?: give a larger one, or a Scalable"
    with pytest.warns(UserWarning), pytest.raises(ValueError, match=refused) as raised:
        bloomline.dedup(frame, seen=seen)
    # The exception reports the rows whose keys were added.
    assert 500 < raised.value.new.sum() < 2500  # type: ignore[attr-defined]
    # A filter that is large beside its batches is checked at the end.
    monkeypatch.setattr(_frames, "_FEW", 0)
    batches = pa.table({"a": range(5)}).to_reader(max_chunksize=1)
    with pytest.warns(UserWarning), pytest.raises(ValueError, match=refused):
        bloomline.dedup(batches, seen=seen).read_all()
    grows = ScalableBloomFilter(1000, 0.01)
    assert bloomline.dedup(frame, seen=grows).num_rows > 3900


def test_a_failed_call_adds_no_keys_or_reports_which() -> None:
    seen = BloomFilter(1000, 1e-6)
    views = pa.table({"a": pa.array(["a", "b"], pa.string_view()), "b": [1, 2]})
    for frame in views, views.to_pandas(types_mapper=pd.ArrowDtype):
        with pytest.raises(TypeError, match="does not choose rows.*string_view.*cast the column 'a'"):
            bloomline.dedup(frame, on="b", seen=seen)
    assert not seen

    class Full(pd.DataFrame):  # type: ignore[misc]
        """A frame that has no memory to select rows."""

        def __getitem__(self, key: Any) -> Any:
            if not isinstance(key, slice) and len(key) == 3:
                raise MemoryError
            return super().__getitem__(key)

    for make in CLASSES:
        for keep in "first", "last":
            seen = make(1000, 1e-6)
            with pytest.raises(MemoryError) as raised:
                bloomline.dedup(Full({"a": [1, 2, 1]}), seen=seen, keep=keep)
            assert not seen and not raised.value.new.any()  # type: ignore[attr-defined]


def test_rows_are_those_whose_keys_entered_the_filter() -> None:
    """Another thread adds a key between the selection of rows and their keys."""
    seen = bloomline.AtomicBloomFilter(1000, 1e-6)

    class Slow(pd.DataFrame):  # type: ignore[misc]
        def __getitem__(self, key: Any) -> Any:
            if isinstance(key, np.ndarray) and len(key) == 3:
                seen.add_rows(pd.DataFrame({"a": [2]}))
            return super().__getitem__(key)

    assert bloomline.dedup(Slow({"a": [1, 2, 1]}), on="a", seen=seen)["a"].tolist() == [1]


FRAMES: list[Any] = [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table, pa.record_batch, lambda rows: pa.table(rows).to_reader()]


@pytest.mark.parametrize("make", FRAMES)
def test_wrong_arguments_fail_at_the_call_by_their_names(make: Any, tmp_path: pathlib.Path) -> None:
    BloomFilter(10, 0.1).save(tmp_path / "seen.bloom")
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"seen": {"a"}}, TypeError, "seen is of type set: give a filter"),
        ({"seen": "seen.bloom"}, TypeError, r"seen is the path 'seen.bloom': .*\.load\('seen.bloom'\)"),
        ({"seen": tmp_path / "seen.bloom"}, TypeError, "seen is the path"),
        ({"seen": BloomFilter.map(tmp_path / "seen.bloom")}, TypeError, "seen is a MappedBloomFilter"),
        ({"n": -1}, ValueError, "n is -1"),
        ({"n": 0}, ValueError, "n is 0"),
        ({"n": 1.5}, TypeError, "n is 1.5"),
        ({"n": "10M"}, TypeError, "n is '10M'"),
        ({"p": 0}, ValueError, "p is 0"),
        ({"p": "0.1"}, TypeError, "p is '0.1'"),
        ({"nulls": "none"}, ValueError, "nulls is 'none'"),
        ({"keep": False}, ValueError, "keep is False"),
        ({"on": 1.5}, TypeError, "on is 1.5"),
        ({"on": b"url"}, TypeError, "on is b'url'"),
        ({"on": [True]}, TypeError, "on has True"),
        ({"options": "--exact"}, ValueError, "options is for files"),
        ({"state": tmp_path / "seen.bloom"}, ValueError, "state is for files.* seen, which is a filter"),
    ]
    if make not in (pl.DataFrame, pl.LazyFrame):
        wrong += [({"on": ["url", "none"]}, KeyError, "on has 'none', .*'url'"), ({"on": 5}, KeyError, "on has 5")]
    for arguments, error, message in wrong:
        with pytest.raises(error, match=message):
            bloomline.dedup(make({"url": ["a"]}), **arguments)


def test_views_without_rows_have_a_last_one() -> None:
    empty = pa.table({"a": pa.array([], pa.string_view())})
    assert bloomline.dedup(empty, keep="first").equals(empty) and bloomline.dedup(empty, keep="last").equals(empty)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("mine"), MemoryError()], ids=repr)
def test_an_exception_of_a_producer_is_raised(error: BaseException) -> None:
    table = pa.table({"a": ["x"]})

    def batches() -> Any:
        yield from table.to_batches()
        raise error

    seen = BloomFilter(1000, 1e-6)
    asks = seen.add_rows, seen.contains_rows, seen.add_many, seen.contains_many, lambda rows: bloomline.dedup(rows).read_all()
    for ask in asks:
        with pytest.raises(type(error)) as raised:
            ask(pa.RecordBatchReader.from_batches(table.schema, batches()))
        assert str(raised.value) == str(error)
        assert not seen or ask == seen.contains_many
        if ask == seen.add_many:
            seen.clear()


def test_the_command_finds_the_rows(tmp_path: pathlib.Path) -> None:
    rows: list[dict[str, Any]] = [
        {"url": "a", "day": "2026-11-23", "n": 1.5},
        {"url": "b", "day": None, "n": -0.0},
    ]
    seen = BloomFilter(1000, 1e-6)
    seen.add_rows(pl.DataFrame(rows))
    seen.save(tmp_path / "seen.bloom")
    more = [*rows, {"url": "c", "day": None, "n": 0.0}]
    lines = [json.dumps(row | {"n": row["n"] + 0.0}) for row in more]
    told = subprocess.run(
        [sys.executable, "-m", "bloomline", "check", "-v", "-s", tmp_path / "seen.bloom", "--column", "url,day,n"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
    )
    assert (told.stdout, told.stderr) == (lines[2] + "\n", "")


def test_wrong_arguments_are_refused() -> None:
    frame = pl.DataFrame({"url": ["a", None]})
    seen = BloomFilter(1000, 1e-6)
    with pytest.raises(ValueError, match="row 1: .*null"):
        seen.add_rows(frame, nulls="fail")
    assert not seen
    with pytest.raises(ValueError, match="'equal'"):
        seen.add_rows(frame, nulls="none")  # type: ignore[arg-type]
    for ask in seen.add_rows, seen.contains_rows, seen.add_many, seen.update:
        with pytest.raises(TypeError, match=r"give frame\.collect\(\)"):
            ask(frame.lazy())
    with pytest.raises(TypeError, match="frame or a table"):
        seen.add_rows([1, 2])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r'one array of Int64; select it as a frame, such as frame\[\["url"\]\]'):
        seen.add_rows(pl.Series([1, 2]))
    with pytest.raises(ValueError, match="returned"):
        bloomline.dedup(frame, output="x")
    with pytest.raises(ValueError, match="a text is not UTF-8: cast the column to binary"):
        seen.add_rows(pa.table({"a": pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())}))
    # Texts are checked in parts, but errors name their number in the whole column.
    array = pa.array([b"a"] * 70_000 + [b"\xff"])
    texts = pa.Array.from_buffers(pa.string(), len(array), array.buffers())
    for column in texts, pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), texts):
        with pytest.raises(ValueError, match='column "a": a text is not UTF-8: cast the column to binary .*index 70000'):
            seen.add_rows(pa.table({"a": column}))
    assert not seen
    series: list[Any] = [pd.Index([1]), pd.Series([1]), pl.Series([1])]
    for data in series:
        with pytest.raises(TypeError, match=r"inputs is of type (Index|Series) of .* not a frame: give inputs\.to_frame\(\)"):
            bloomline.dedup(data)
    arrays: list[Any] = [pa.array([1]), pa.chunked_array([[1]]), np.array([1])]
    for data in arrays:
        with pytest.raises(TypeError, match="inputs is of type .* not a frame: give a DataFrame"):
            bloomline.dedup(data)
    with pytest.raises(TypeError, match=r"inputs\[0\] is of type dict, not a path: .*DataFrame"):
        bloomline.dedup([{"a": 1}])  # type: ignore[call-overload]
    for data in (5, {"a": [1]}, b"a.csv"):
        with pytest.raises(TypeError, match="neither a frame nor files"):
            bloomline.dedup(data)
