"""Rows as keys: values that are equal in all frames, and rows that are refused."""

import datetime as dt
import decimal
import pathlib
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bloomline
from bloomline import (
    AtomicBloomFilter,
    AtomicScalableBloomFilter,
    BloomFilter,
    MappedBloomFilter,
    RotatingBloomFilter,
    ScalableBloomFilter,
)
from conftest import examples
from spec import bits_of, expected_bits, sized, struct_of, value_of
from test_frames import tables

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pq = pytest.importorskip("pyarrow.parquet")


def seen_with(key_name: str | None = None) -> BloomFilter:
    return BloomFilter(1000, 1e-9, key_name=key_name)


def has_keys(seen: BloomFilter, keys: list[bytes]) -> bool:
    data = bytes(seen)
    return bits_of(data) == expected_bits(data, keys)


@settings(max_examples=examples(60))
@given(tables(), st.randoms())
def test_keys_match_the_specification(table: Any, random: Any) -> None:
    on = table.column_names[:-1]
    rows = table.select(on).to_pylist()
    seen, whole = seen_with(), seen_with()
    seen.add_rows(table.select(random.sample(on, len(on))))
    assert has_keys(seen, [value_of(row[on[0]]) if len(on) == 1 else struct_of(row) for row in rows])
    # pyarrow does not choose rows of views.
    if pa.string_view() not in table.schema.types:
        bloomline.dedup(table.select(random.sample(on, len(on))), seen=whole)
        assert has_keys(whole, [struct_of(row) for row in rows])


UUID = "12345678-9abc-def0-0123-456789abcdef"
UUIDS = pa.array([uuid.UUID(UUID)])
SECOND = [(5, "s"), (5_000, "ms"), (5_000_000, "us"), (5_000_000_000, "ns")]


@pytest.mark.parametrize(
    ("key", "arrays"),
    [
        (b"\xffn12e2", [pa.array([1200], kind) for kind in (pa.int16(), pa.uint64(), pa.float16(), pa.float32(), pa.float64())]),
        (b"\xffn12e2", [pa.array([decimal.Decimal("1200.00")], kind(9, 2)) for kind in (pa.decimal32, pa.decimal128, pa.decimal256)]),
        (b"\xffn1e-1", [pa.array([0.1], pa.float32()), pa.array([0.1]), pa.array([decimal.Decimal("0.10")])]),
        (b"\xffn0", [pa.array([-0.0]), pa.array([0]), pa.array([decimal.Decimal("0.00")])]),
        (b"\xffn-1", [pa.array([-1]), pa.array([-1.0])]),
        (b"\xffn18446744073709551615", [pa.array([2**64 - 1], pa.uint64()), pa.array([decimal.Decimal(2**64 - 1)])]),
        (b"\xffnnan", [pa.array([float("nan")], kind) for kind in (pa.float32(), pa.float64())]),
        (b"\xffn-inf", [pa.array([-float("inf")])]),
        (b"a", [pa.array(["a"], kind) for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()))]),
        (b"\xffba", [pa.array([b"a"], kind) for kind in (pa.binary(), pa.binary(1), pa.binary_view(), pa.large_binary())]),
        (b"\xfft", [pa.array([True]), pa.ExtensionArray.from_storage(pa.bool8(), pa.array([2], pa.int8()))]),
        (b"\xffd-1", [pa.array([-1], pa.date32()), pa.array([-86_400_000], pa.date64())]),
        (b"\xffu5", [pa.array([count], pa.duration(unit)) for count, unit in SECOND]),
        (b"\xffs5", [pa.array([count], pa.timestamp(unit)) for count, unit in SECOND]),
        (b"\xffi5", [pa.array([count], pa.timestamp(unit, zone)) for count, unit in SECOND for zone in ("UTC", "Europe/Berlin")]),
        (b"\xffc5", [pa.array([count], (pa.time32 if unit in ("s", "ms") else pa.time64)(unit)) for count, unit in SECOND]),
        (b"\xffs1e-9", [pa.array([1], pa.timestamp("ns"))]),
        (UUID.encode(), [UUIDS, pa.array([UUID]), pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), UUIDS)]),
        (b"\xff[" + sized(b"\xffn1") + sized(b"\xff0"), [pa.array([[1, None]], pa.list_(kind)) for kind in (pa.int8(), pa.float64())]),
        (
            b"\xff{" + sized(b"a") + sized(b"\xffn1") + sized(b"b") + sized(b"x"),
            [pa.array([{"a": 1, "b": "x"}]), pa.array([{"b": "x", "a": 1}], pa.struct([("b", pa.string()), ("a", pa.float32())]))],
        ),
        (
            b"\xffm" + sized(b"a") + sized(b"\xffn1") + sized(b"b") + sized(b"\xff0"),
            [pa.array([entries], pa.map_(pa.string(), pa.int32())) for entries in ([("a", 1), ("b", None)], [("b", None), ("a", 1)])],
        ),
        (b"\xff0", [pa.array([None]), pa.array([None], pa.int8()), pa.array([None], pa.dictionary(pa.int8(), pa.string()))]),
    ],
    ids=lambda value: repr(value) if isinstance(value, bytes) else "",
)
def test_a_value_has_one_key_in_every_type(key: bytes, arrays: list[Any]) -> None:
    for array in arrays:
        seen = seen_with()
        seen.add_rows(pa.table({"a": array}))
        assert has_keys(seen, [key]), array.type


def test_different_values_have_different_keys() -> None:
    for values in [
        [b"\xffnull", None, b"\xff0", b"\xff1", b"\xffn1", b"1", b"", b"\xff", b"\xff\xff"],
        pa.array([2**64 - 1, 2**63, 0, None], pa.uint64()),
        [dt.timedelta(1), dt.timedelta(milliseconds=1), dt.timedelta(microseconds=1000 + 1)],
    ]:
        assert len(bloomline.dedup(pa.table({"a": values}))) == len(values)
    signed = seen_with()
    signed.add_rows(pa.table({"a": pa.array([-1], pa.int64())}))
    assert not signed.contains_rows(pa.table({"a": pa.array([2**64 - 1], pa.uint64())})).any()
    # 5 ms and 5 us.
    short = seen_with()
    short.add_rows(pa.table({"a": pa.array([5], pa.duration("ms"))}))
    assert not short.contains_rows(pa.table({"a": pa.array([5], pa.duration("us"))})).any()
    assert short.contains_rows(pa.table({"a": pa.array([5000], pa.duration("us"))})).all()


def test_integers_and_floats_are_one_kind_in_all_frames() -> None:
    seen = seen_with()
    bloomline.dedup(pd.DataFrame({"id": [1, 2, 3]}), on="id", seen=seen)
    # A null makes pandas convert integers to floats.
    floats = pd.DataFrame({"id": [1, 2, 3, None, 4]})
    assert floats["id"].dtype == float
    assert bloomline.dedup(floats, on="id", nulls="skip", seen=seen)["id"].tolist() == [4]
    for more in pl.DataFrame({"id": [4, 5]}), pa.table({"id": pa.array([4, 5], pa.float32())}):
        assert seen.contains_rows(more).tolist() == [True, False]


# Which columns are the key


def test_rows_are_their_named_values() -> None:
    seen = seen_with()
    seen.add_rows(pl.DataFrame({"id": ["x"], "name": ["y"]}))
    assert seen.contains_rows(pa.table({"name": ["y"], "id": ["x"]})).all()
    assert not seen.contains_rows(pa.table({"name": ["x"], "id": ["y"]})).any()
    assert not seen.contains_rows(pa.table({"id": ["x"], "title": ["y"]})).any()


def test_an_index_that_pandas_recorded_is_not_data(tmp_path: pathlib.Path) -> None:
    frame = pd.DataFrame({"a": [1, 1, 2], "b": ["x", "x", "y"]}, index=[7, 8, 9])
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "in.parquet")
    table = pq.read_table(tmp_path / "in.parquet")
    assert table.column_names[2] == "__index_level_0__"
    for data in frame, table, pa.dataset.dataset(tmp_path), table.to_reader():
        kept: Any = bloomline.dedup(data)
        assert len(kept.read_all() if isinstance(kept, pa.RecordBatchReader) else kept) == 2
    seen = seen_with("a,b")
    assert seen.add_rows(table).tolist() == [True, False, True]
    assert seen.contains_rows(frame).all()
    # A column that is named is the key.
    assert len(bloomline.dedup(table, on=["__index_level_0__", "a"])) == 3
    assert seen_with("a").add_rows(table.select(["a", "__index_level_0__"])).tolist() == [True, False, True]
    assert seen_with("__index_level_0__").add_rows(table.select(["__index_level_0__"])).all()


def test_a_whole_row_of_one_column_is_not_its_value() -> None:
    frame, whole, single = pa.table({"a": ["x", "y"]}), seen_with(), seen_with()
    assert len(bloomline.dedup(frame, seen=whole)) == len(bloomline.dedup(frame, on="a", seen=single)) == 2
    for seen, on in [(whole, "a"), (single, None)]:
        with pytest.raises(TypeError, match="single values.*rows of 1 named column|rows of 1 named column.*single values"):
            bloomline.dedup(frame, on=on, seen=seen)
        assert len(bloomline.dedup(frame, on=None if on else "a", seen=seen)) == 0


def test_rows_without_columns_are_refused() -> None:
    for frame in pd.DataFrame(index=[1, 2]), pa.table({}):
        with pytest.raises(ValueError, match="no column"):
            seen_with().add_rows(frame)


@pytest.mark.parametrize("on", [0, [0], [True], ["a", 1], [None], [["a"]]])
def test_columns_of_polars_have_names(on: Any) -> None:
    for frame in pl.DataFrame({"a": [1, 2]}), pl.LazyFrame({"a": [1, 2]}):
        with pytest.raises(TypeError, match="columns of Polars have names"):
            bloomline.dedup(frame, on=on, seen=seen_with())


def test_expressions_have_a_value_for_each_row() -> None:
    frame = pl.DataFrame({"a": ["x", "X", "y"], "b": [1, 1, 2]})
    for on, kept in [
        (pl.col("a").str.to_lowercase(), [0, 2]),
        ([pl.col("a").str.to_lowercase(), "b"], [0, 2]),
        (pl.col("a", "b"), [0, 1, 2]),
        (pl.selectors.numeric(), [0, 2]),
    ]:
        assert bloomline.dedup(frame, on=on).equals(frame[kept])
        assert bloomline.dedup(frame.lazy(), on=on).collect().equals(frame[kept])
    seen = seen_with()
    for one in [pl.lit(1), pl.col("b").max(), pl.len(), pl.col("a").head(1), pl.col("a").filter(pl.col("b") > 1)]:
        for on in one, [one], ["a", one]:
            for rows in frame, frame[:1], frame[:0]:
                with pytest.raises(TypeError, match="not have one value for each row"):
                    bloomline.dedup(rows, on=on, seen=seen)
    with pytest.raises(TypeError, match="not have one value for each row"):
        bloomline.dedup(frame, on=pl.col("a").head(2), seen=seen)
    assert not seen


def test_numbers_are_places_in_pyarrow_and_labels_in_pandas() -> None:
    table = pa.table({"a": [1, 1], "b": [1, 2]})
    assert (len(bloomline.dedup(table, on=0)), len(bloomline.dedup(table, on=[1]))) == (1, 2)
    assert len(bloomline.dedup(pd.DataFrame({7: [1, 1]}), on=7)) == 1
    for frame in table, table.to_pandas():
        with pytest.raises(TypeError, match="not a column"):
            bloomline.dedup(frame, on=[True, True])


def test_a_lazy_frame_is_collected_once_with_a_filter() -> None:
    seen = seen_with()
    lazy = bloomline.dedup(pl.LazyFrame({"a": ["x", "y", "x"]}), on="a", seen=seen)
    assert lazy.collect()["a"].to_list() == ["x", "y"]
    with pytest.raises(RuntimeError, match="collected before.*collect it once"):
        lazy.collect()
    # A collection that failed before a key was added may be repeated.
    failing = bloomline.dedup(pl.LazyFrame({"a": [None, "z"]}), on="a", seen=seen, nulls="fail")
    for _ in range(2):
        with pytest.raises(ValueError, match="null"):
            failing.collect()


# Kinds


ONE = {
    "texts": pa.array(["1"]),
    "byte strings": pa.array([b"1"]),
    "numbers": pa.array([1]),
    "booleans": pa.array([True]),
    "dates": pa.array([1], pa.date32()),
    "times of day": pa.array([1], pa.time32("s")),
    "timestamps without a zone": pa.array([1], pa.timestamp("us")),
    "timestamps with a zone": pa.array([1], pa.timestamp("us", "UTC")),
    "durations": pa.array([1], pa.duration("s")),
    "lists": pa.array([[1]]),
    "structs": pa.array([{"x": 1}]),
    "maps": pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64())),
}


def test_rows_of_another_kind_are_refused(tmp_path: pathlib.Path) -> None:
    for kind, array in ONE.items():
        seen, table = seen_with(), pa.table({"k": array})
        assert seen.add_rows(table).all()
        seen.save(tmp_path / "seen.bloom")
        for filter in seen, BloomFilter.load(tmp_path / "seen.bloom"), BloomFilter.map(tmp_path / "seen.bloom"), seen.copy():
            assert filter.contains_rows(table).all() and filter == seen
            for other, array in ONE.items():
                if other == kind:
                    continue
                asks: list[Callable[[Any], Any]] = [filter.contains_rows]
                if not isinstance(filter, MappedBloomFilter):
                    asks += [filter.add_rows, lambda rows, filter=filter: bloomline.dedup(rows, on="k", seen=filter)]
                for ask in asks:
                    with pytest.raises(TypeError) as refused:
                        ask(pa.table({"k": array}))
                    assert f'"k" has {other}, and the keys of the filter are {kind}: cast' in str(refused.value)
                    assert ".astype(str)" in str(refused.value) and "another filter" in str(refused.value)
        assert bytes(seen) == (tmp_path / "seen.bloom").read_bytes()


def test_a_column_of_rows_is_named() -> None:
    seen = seen_with()
    seen.add_rows(pa.table({"url": ["a"], "day": [1]}))
    with pytest.raises(TypeError, match='column "day" has dates, and the keys of the filter have numbers: cast'):
        seen.contains_rows(pa.table({"url": ["a"], "day": ONE["dates"]}))
    with pytest.raises(TypeError, match="rows of 3 named columns, and the earlier keys are rows of 2 named columns"):
        seen.add_rows(pa.table({"url": ["a"], "day": [1], "c": [1]}))


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "the frame cannot be read .*'a'.*rename"),
        (pd.DataFrame({"a": [2**70, -1]}), "column 'a' has objects that cannot be read .*convert them"),
        (pd.DataFrame({"a": [object()]}), "column 'a' has objects that cannot be read .*convert them"),
    ],
)
def test_frames_that_arrow_does_not_read_are_refused(frame: Any, told: str) -> None:
    with pytest.raises(TypeError, match=f"^{told}"):
        bloomline.dedup(frame)
    with pytest.raises(TypeError, match="seen is of type int"):
        bloomline.dedup(pa.table({"a": [1]}), seen=1)  # type: ignore[call-overload]


@pytest.mark.parametrize("make", [BloomFilter, AtomicBloomFilter, ScalableBloomFilter, RotatingBloomFilter])
def test_nulls_and_empty_filters_refuse_nothing(make: Any) -> None:
    nulls, texts, numbers = pa.table({"k": pa.array([None])}), pa.table({"k": ["a"]}), pa.table({"k": [1]})
    seen = make(1000, 1e-9)
    # Neither lookups in an empty filter nor rows without a key record a kind.
    assert not seen.contains_rows(numbers).any() and not seen.contains_rows(texts).any() and "a" not in seen and 1 not in seen
    seen.add_rows(texts[:0])
    seen.add_rows(nulls, nulls="skip")
    assert seen.add_rows(nulls).all()
    assert seen.add_rows(numbers).all() and seen.contains_rows(nulls).all()
    # A column of nulls and a column without rows are accepted with any type.
    assert seen.contains_rows(pa.table({"k": pa.array([None], pa.string())})).all()
    assert seen.contains_rows(texts[:0]).tolist() == []
    with pytest.raises(TypeError, match="texts.*numbers"):
        seen.add_rows(texts)
    seen.clear()
    assert seen.add_rows(texts).all()
    with pytest.raises(TypeError, match="numbers.*texts"):
        seen.add_rows(numbers)


def test_files_without_recorded_kinds_have_texts() -> None:
    """Earlier versions and Rust write such files."""
    seen = seen_with()
    seen.add("a")
    old = BloomFilter.from_bytes(bytes(seen))
    assert old.contains_rows(pa.table({"k": ["a"]})).all() and bytes(old) == bytes(seen)
    with pytest.raises(TypeError, match="numbers.*texts"):
        old.add_rows(pa.table({"k": [1]}))
    assert BloomFilter.from_bytes(bytes(seen_with())).add_rows(pa.table({"k": [1]})).all()


def test_merged_filters_have_the_kinds_of_both() -> None:
    texts, numbers = seen_with(), seen_with()
    texts.update(["a"])
    numbers.add_rows(pa.table({"k": [1]}))
    for merged in texts | numbers, numbers | texts:
        assert merged.contains_rows(pa.table({"k": ["a"]})).all() and merged.contains_rows(pa.table({"k": [1]})).all()
        with pytest.raises(TypeError, match="dates.*texts or numbers"):
            merged.contains_rows(pa.table({"k": ONE["dates"]}))
    with pytest.raises(TypeError, match="numbers.*texts"):
        (texts | seen_with()).contains_rows(pa.table({"k": [1]}))


@pytest.mark.parametrize(
    "bad",
    [
        pa.array([(1, 0, 0)], pa.month_day_nano_interval()),
        pa.array(pd.period_range("2026", periods=1, freq="Y")),
        pa.array(pd.arrays.IntervalArray.from_breaks([0, 1])),
        pa.array(pd.Categorical(pd.period_range("2026", periods=1, freq="Y"))),
        pa.array(pd.cut([0.5], [0, 1])),
        pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), UUIDS)),
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    ],
    ids=lambda array: str(array.type)[:30],
)
def test_types_that_cannot_be_keys_are_refused_by_name(bad: Any) -> None:
    seen, table = seen_with(), pa.table({"fine": ["x"], "bad": bad})
    for ask in seen.add_rows, seen.contains_rows, lambda rows: bloomline.dedup(rows, seen=seen):
        with pytest.raises(TypeError, match='column "bad": .*cannot be keys'):
            ask(table)
    assert not seen and len(bloomline.dedup(table, on="fine", seen=seen)) == 1


# Methods of keys beside methods of rows


def test_texts_are_the_same_keys_for_all_methods() -> None:
    seen, column = seen_with(), pa.table({"url": ["b"]})
    assert seen.add("a") and seen.add(b"b") and seen.add_many(pa.array(["c"])).all() and seen.add_many(np.array(["d"])).all()
    assert seen.contains_rows(pa.table({"url": ["a", "b", "c", "d", "e"]})).tolist() == [True] * 4 + [False]
    assert bloomline.dedup(pa.table({"url": ["d", "e"]}), on="url", seen=seen)["url"].to_pylist() == ["e"]
    assert "e" in seen and seen.contains_many(["a", "e", "f"]).tolist() == [True, True, False]
    # Integers of the library are not values, and texts are accepted beside them.
    assert seen.add(1) and 1 in seen and seen.contains_rows(column).all()
    for ask in seen.contains_rows, seen.add_rows:
        with pytest.raises(TypeError, match="numbers, and the keys of the filter are integers or tuples of add and add_many"):
            ask(pa.table({"k": [1]}))


LIBRARY = {
    "int": [1],
    "tuple": [("a", "b")],
    "numpy": np.array([1]),
    "arrow": pa.array([1]),
    "table": pa.table({"a": ["x"], "b": ["y"]}),
    "uuid": pa.array([uuid.UUID(UUID)]),
    "bool": [True],
}
VALUES = {"numbers": pa.table({"k": [1]}), "rows": pa.table({"a": ["x"], "b": ["y"]}), "bytes": pa.table({"k": [b"a"]})}


@pytest.mark.parametrize("keys", LIBRARY.values(), ids=LIBRARY)
@pytest.mark.parametrize("rows", VALUES.values(), ids=VALUES)
def test_other_keys_and_rows_refuse_each_other(keys: Any, rows: Any) -> None:
    methods = "use add_many and contains_many, or another filter"
    for fill in "add_many", "update":
        seen = seen_with()
        getattr(seen, fill)(keys)
        for filter in seen, BloomFilter.from_bytes(bytes(seen)):
            assert filter.contains_many(keys).all()
            for ask in filter.contains_rows, filter.add_rows, lambda rows: bloomline.dedup(rows, on=rows.column_names, seen=filter):
                with pytest.raises(TypeError, match=methods):
                    ask(rows)
            assert filter == seen
    seen = seen_with()
    seen.add_rows(rows)
    for filter in seen, BloomFilter.from_bytes(bytes(seen)):
        for ask in filter.add_many, filter.update, filter.contains_many:
            with pytest.raises(TypeError, match="use add_rows, contains_rows or dedup, or another filter"):
                ask(keys)
        assert filter == seen


def test_single_keys_are_refused_by_filters_of_rows() -> None:
    seen = seen_with()
    seen.add_rows(pa.table({"k": [1]}))
    before = bytes(seen)
    for key, brought in [(1, "integers or tuples"), ("1", "texts"), (b"1", "texts"), (("a", "b"), "integers or tuples")]:
        for ask in seen.add, seen.__contains__:
            with pytest.raises(TypeError, match=f"the keys are {brought}.*the keys of the filter are numbers"):
                ask(key)
    assert bytes(seen) == before
    seen.clear()
    assert seen.add(1) and 1 in seen and seen.add("1")
    # The recorded kinds include texts if a text was added beside integers.
    assert seen.contains_rows(pa.table({"k": ["1"]})).all()


def test_rows_find_texts_beside_integers() -> None:
    seen = seen_with()
    seen.update(["a", "b"])
    seen.update([1, 2])
    seen = BloomFilter.from_bytes(bytes(seen))
    assert seen.contains_rows(pa.table({"k": ["a", "c"]})).tolist() == [True, False]
    # Rows and tuples with the key of a text are texts.
    for single in [("a",)], pa.table({"k": ["a"]}):
        only = seen_with()
        only.add_many(single)
        assert "a" in only and only.contains_rows(pa.table({"k": ["a"]})).all()


# Names


def test_filters_refuse_columns_of_another_name() -> None:
    url, page = pa.table({"url": ["a"]}), pa.table({"page": ["a"]})
    for name in "url", "/url of JSON lines", "field 'url' of CSV lines":
        seen = seen_with(name)
        assert len(bloomline.dedup(url, on="url", seen=seen)) == 1 and seen.contains_rows(url).all()
        for ask in seen.contains_rows, seen.add_rows, lambda rows: bloomline.dedup(rows, on="page", seen=seen):
            with pytest.raises(ValueError, match=f"have the name \"{name}\", and these are \"page\": rename.*key_name"):
                ask(page)
        for ask in seen.contains_rows, seen.add_rows:
            with pytest.raises(ValueError, match=r': select the columns, such as frame\[\["url"\]\]'):
                ask(url.append_column("page", page["page"]))
        # Methods of keys have no columns.
        assert "a" in seen and seen.add("b")
    rows = pa.table({"b": [1], "a": [2]})
    assert len(bloomline.dedup(rows, seen=seen_with("a,b"))) == len(bloomline.dedup(rows, on=["b", "a"], seen=seen_with("a,b"))) == 1
    assert len(bloomline.dedup(url, seen=seen_with("row of url"))) == 1
    with pytest.raises(ValueError, match="row of url"):
        bloomline.dedup(url, seen=seen_with("url"))
    assert seen_with("'a,b'").add_rows(pa.table({"a,b": [1]})).all()
    long = pa.table({"ü" * 600: [1]})
    with pytest.raises(ValueError) as told:
        seen_with("url").add_rows(long)
    name = str(told.value).rpartition('key_name="')[2].removesuffix('"')
    assert len(name.encode()) <= 1024 and seen_with(name).add_rows(long).all()


# Objects of pandas


MIXED: dict[str, list[Any]] = {
    "texts and byte strings": ["a", b"a"],
    "byte strings and texts": [b"a", bytearray(b"b"), "a"],
    "UUIDs and byte strings": [uuid.UUID(UUID), uuid.UUID(UUID).bytes],
    "UUIDs and texts": [uuid.UUID(UUID), UUID],
    "UUIDs and numbers": [1, uuid.UUID(int=1)],
    "numbers and texts": [1, "1"],
    "booleans and numbers": [1, np.True_],
    "floats and booleans": [1.0, True],
    "decimals and booleans": [decimal.Decimal(1), True],
    "texts in lists": [["a"], [b"a"]],
    "booleans in lists": [[1.0], [True]],
    "members": [{"a": 1}, {"a": 1, "b": None}],
    "texts in members": [{"a": "x"}, {"a": b"x"}],
    "members in lists": [[{"a": 1}], [{"a": 1}, {"b": 1}]],
    "names of members": [{"a": 1}, {b"a": 1}],
    "numbers and dates": [dt.date(1970, 1, 2), 1],
    "texts and dates": [dt.date(1970, 1, 2), "1970-01-02"],
    "floats of two widths": [np.float32(0.1), 0.1],
    "short floats and integers": [np.float16(0.1), 1],
    "arrays of two widths": [np.array([0.1], "f4"), np.array([0.1])],
    "sets": [{0, 8}, {8, 0}],
    "sets in lists": [[{0, 8}], [{8, 0}]],
    "infinite decimals": [decimal.Decimal(1), decimal.Decimal("inf")],
}


@pytest.mark.parametrize("values", MIXED.values(), ids=MIXED)
def test_objects_of_several_kinds_are_refused(values: list[Any]) -> None:
    for order in values, values[::-1]:
        # Even if the objects are far apart, and among nulls.
        for objects in order, [order[0]] * 2000 + [None, *order[1:]]:
            frame = pd.DataFrame({"n": range(len(objects)), "mixed": pd.Series(objects, dtype=object)})
            seen = seen_with()
            for ask in seen.add_rows, seen.contains_rows, lambda rows: bloomline.dedup(rows, on="mixed", seen=seen):
                with pytest.raises(TypeError, match="column 'mixed' has "):
                    ask(frame)
            assert not seen


@pytest.mark.parametrize(
    ("values", "new"),
    [
        (["a", None, float("nan"), pd.NA, "a"], [True, True, False, False, False]),
        ([b"a", bytearray(b"a"), memoryview(b"b"), None], [True, False, True, True]),
        ([1, 1.0, np.int8(1), np.float64(2)], [True, False, False, True]),
        ([np.float32(0.1), None, np.float32(0.1)], [True, True, False]),
        ([1, decimal.Decimal("1.0"), decimal.Decimal("1.5")], [True, False, True]),
        ([True, float("nan"), np.False_, True], [True, True, True, False]),
        ([uuid.UUID(UUID), None, uuid.UUID(UUID)], [True, True, False]),
        ([{"a": 1, "b": None}, {"b": None, "a": 1}, {"a": 2, "b": "x"}], [True, False, True]),
        ([["a", None], ("a", None), [], np.array(["b"], object)], [True, False, True, True]),
        ([[1, 2.5], [1.0, 2.5], [float("nan")]], [True, False, True]),
    ],
    ids=repr,
)
def test_objects_of_one_kind_are_not_refused(values: list[Any], new: list[bool]) -> None:
    assert seen_with().add_rows(pd.DataFrame({"k": pd.Series(values, dtype=object)})).tolist() == new


def test_one_side_is_admitted_if_threads_add_keys_and_rows() -> None:
    numbers, barrier = pa.table({"k": range(50)}), threading.Barrier(8)
    for make in BloomFilter, AtomicBloomFilter, AtomicScalableBloomFilter:
        seen = make(1000, 1e-9)

        def add(thread: int, seen: Any = seen) -> str:
            barrier.wait()
            try:
                seen.add_rows(numbers) if thread % 2 else seen.add_many(range(50))
            except TypeError:
                return "refused"
            return "rows" if thread % 2 else "keys"

        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(add, range(8))) in (["keys"] * 4 + ["refused"] * 4, ["refused"] * 4 + ["rows"] * 4)
        assert round(seen.estimated_keys()) == 50
