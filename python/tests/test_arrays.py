"""Arrays of any width, order, step and producer have the keys of their elements."""

import array
import ctypes
import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomline import AtomicBloomFilter, BloomFilter, ScalableBloomFilter
from conftest import needs_unix
from test_keys import CLASSES, TEXT

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]


def one_by_one(keys: list[Any]) -> tuple[BloomFilter, list[bool]]:
    filter = BloomFilter(10_000, 1e-9)
    return filter, [filter.add(key) for key in keys]


def check(keys: Any, model: list[Any]) -> None:
    """Checks that an array gives the same answers and bits as its keys one by one."""
    given = keys if callable(keys) else lambda: keys
    expected, new = one_by_one(model)
    filter = BloomFilter(10_000, 1e-9)
    answers = filter.add_many(given())
    assert answers.dtype == np.bool_
    assert answers.tolist() == new
    assert filter == expected
    updated = BloomFilter(10_000, 1e-9)
    updated.update(given())
    assert updated == expected
    assert updated.contains_many(given()).all()
    assert not BloomFilter(10_000, 1e-9).contains_many(given()).any()


@given(st.sampled_from(INTEGERS), st.sampled_from("<>"), st.integers(-3, 3).filter(bool), st.data())
def test_integers_of_numpy(kind: str, order: str, step: int, data: st.DataObject) -> None:
    dtype = np.dtype(order + kind) if kind != "?" else np.dtype("?")
    low, high = (0, 1) if kind == "?" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    values = data.draw(st.lists(st.integers(int(low), int(high)), max_size=1500))
    keys = np.array(values, dtype)[::step]
    check(keys, [int(key) for key in keys.tolist()])


@given(st.integers(1, 40), st.integers(1, 3), st.lists(st.binary(max_size=40), max_size=100))
def test_bytes_of_numpy(width: int, step: int, values: list[bytes]) -> None:
    keys = np.array([value[:width] for value in values], f"S{width}")[::step]
    check(keys, keys.tolist())


@given(st.sampled_from("<>"), st.integers(-3, 3).filter(bool), st.lists(TEXT, max_size=1200))
def test_text_of_numpy(order: str, step: int, values: list[str]) -> None:
    keys = np.array(values, f"{order}U40")[::step]
    check(keys, keys.tolist())


@pytest.mark.parametrize(
    "keys",
    [
        array.array("h", [-1, 2]),
        array.array("u", "a\0é"),
        np.array(["a", "é"], np.dtypes.StringDType()),
        np.frombuffer(b"\2\0\1", np.bool_),
        array.array("Q", [2**64 - 1, 2]),
        memoryview(b"abc"),
        b"abc",
        bytearray(b"abc"),
        (ctypes.c_int32 * 3)(1, -2, 3),
        "abc",
        range(1000),
        {"a": 1, "b": 2},
        np.array(["a", "é"]),
        np.array(["a", 2, ("b", 3)], object),
        np.array([], np.int64),
        np.lib.stride_tricks.as_strided(np.array([7], np.int32), (5,), (0,)),
        np.frombuffer(b"x" + (5).to_bytes(8, "little"), np.uint8)[1:].view(np.int64),
        [],
        ["é", b"b", 3, (4, "d")] * 300,
    ],
    ids=lambda keys: f"{type(keys).__name__}{str(keys)[:20]}",
)
def test_other_iterables(keys: Any) -> None:
    check(keys, list(keys))


def test_a_generator() -> None:
    check(lambda: (str(key) for key in range(2000)), [str(key) for key in range(2000)])


WIDTHS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


@given(st.sampled_from(WIDTHS), st.lists(st.integers(0, 127), max_size=1200), st.integers(0, 5))
def test_integers_of_arrow(kind: pa.DataType, values: list[int], offset: int) -> None:
    keys = pa.array(values, kind)[offset:]
    check(keys, keys.to_pylist())
    check(pa.chunked_array([keys, keys[:3]]), keys.to_pylist() + keys[:3].to_pylist())


@given(st.lists(TEXT, max_size=700), st.integers(0, 5))
def test_strings_of_arrow(values: list[str], offset: int) -> None:
    for kind in pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()):
        if kind == pa.string_view():
            keys = pa.array(values, kind).slice(offset)
        else:
            keys = pa.array(values).cast(kind)[offset:]
        check(keys, values[offset:])
    for kind in pa.binary(), pa.large_binary():
        check(pa.array(values).cast(kind)[offset:], values[offset:])
    check(pl.Series(values, dtype=pl.String), values)
    check(pl.Series(values, dtype=pl.Categorical), values)
    check(pd.Series(values, dtype="string"), values)


ROWS = {"url": ["a", "b"], "day": [1, 2]}


def test_other_types_of_arrow() -> None:
    check(pa.array([b"ab", b"c\0"], pa.binary(2)), [b"ab", b"c\0"])
    check(pa.array([True, False, True]), [True, False, True])
    check(pa.array([3, 5, 3]).dictionary_encode(), [3, 5, 3])
    check(pd.Series([1, 2, 3]), [1, 2, 3])
    check(pd.Series(["a", "b", "a"], dtype="category"), ["a", "b", "a"])
    check(pl.Series([-1, 2], dtype=pl.Int8), [-1, 2])
    check(pa.array([], pa.string()), [])
    for empty in pa.array([], pa.null()), pl.Series([]), pl.DataFrame({"a": [], "b": []}), pd.Series([], dtype=object):
        check(empty, [])
    check(pa.array([1, 0, 1]).dictionary_encode()[1:].dictionary_encode(), [0, 1])
    nested = pa.table({"row": pa.table(ROWS).to_struct_array(), "more": [7, 8]})
    check(nested[1:], [(("b", 2), 8)])
    frame = pd.DataFrame(ROWS)
    arrow = pa.table(ROWS), pa.RecordBatch.from_pydict(ROWS)
    for table in *arrow, pl.DataFrame(ROWS), frame, frame.set_index(pd.Index([7, 9])), frame.set_index(frame.day):
        check(table, [("a", 1), ("b", 2)])
    check(pl.DataFrame({"only": ["a", "b"]}), ["a", "b"])
    batches = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), pa.table({"a": [1, 2]}).to_batches())
    assert BloomFilter(1000, 1e-9).add_many(batches).tolist() == [True, True]


class ForeignFrame:
    """A frame like those of Dask, Modin and others: its iterator yields the names of its columns."""

    columns = dtypes = ["a", "b"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)


def test_frames_of_old_pandas_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame(ROWS)
    # As pandas before 2.2.
    monkeypatch.delattr(pd.DataFrame, "__arrow_c_stream__")
    check(frame, [("a", 1), ("b", 2)])
    assert BloomFilter(1000, 1e-9).add_rows(frame).all()


OBJECTS = pl.Series([object(), object()], dtype=pl.Object)
PERIODS = pd.Series(pd.period_range("2020-01", periods=2, freq="M"))


@pytest.mark.parametrize(
    ("keys", "error", "said"),
    [
        (np.array([1.0, float("nan")]), TypeError, r"keys\[0\].*not numpy.float64"),
        (np.array([1], "m8[s]"), TypeError, r'keys\[0\].*not numpy.timedelta64; array.view\("i8"\) has ints'),
        (np.array(["a", "b\ud800"]), ValueError, r"keys\[1\]: UTF-8 has no U\+D800"),
        (np.array(["a"] * 600 + ["é\ud800"]), ValueError, r"keys\[600\]"),
        (np.array([["a"]]), ValueError, "2 dimensions"),
        (np.ma.array([1, 2], mask=[0, 1]), ValueError, r"masked.*array.compressed\(\)"),
        (type("Sub", (np.ma.MaskedArray,), {})([1, 2], mask=[0, 1]), ValueError, r"masked.*array.compressed\(\)"),
        (ForeignFrame(), TypeError, "ForeignFrame is a frame that is not read here: give it as one of pandas"),
        (np.zeros((2, 3), np.int64), ValueError, "2 dimensions"),
        (np.array(["a", None], object), TypeError, r"keys\[1\].*not NoneType"),
        (np.zeros(2, [("a", "i4")]), TypeError, r"keys\[0\].*not numpy.void"),
        (np.int64(3), TypeError, "not iterable"),
        (3, TypeError, "not iterable"),
        (None, TypeError, "not iterable"),
        (pa.array([1.5]), TypeError, "Float64"),
        (pa.array([[1]]), TypeError, "List"),
        (pa.array([None]), ValueError, r"keys\[0\]: a null"),
        (pa.table({"a": [1], "b": [None]}), ValueError, r"keys\[0\]: a null"),
        (pa.DictionaryArray.from_arrays([0], pa.nulls(1)), ValueError, r"keys\[0\]: a null"),
        (pa.DictionaryArray.from_arrays([0], pa.table(ROWS).to_struct_array()), TypeError, "Dictionary"),
        (pa.array([1, None, 2]), ValueError, r"keys\[1\]: a null"),
        (pa.chunked_array([["a", "b"], ["c", None]]), ValueError, r"keys\[3\]: a null"),
        (pl.Series(["a", None]), ValueError, r"keys\[1\]: a null"),
        (pa.table({"a": [1, 2], "b": [1, None]}), ValueError, r"keys\[1\]: a null"),
        (pa.DictionaryArray.from_arrays([0, 1], ["a", None]), ValueError, r"keys\[1\]: a null"),
        (pd.Series([1.0]), TypeError, "Float64"),
        (pl.DataFrame(), TypeError, "Struct"),
        (pl.Series([None]), ValueError, r"keys\[0\]: a null"),
        (pl.DataFrame({"a": [1], "b": [None]}), ValueError, r"keys\[0\]: a null"),
        (OBJECTS, TypeError, "Polars' type Object"),
        (pl.DataFrame({"a": [1, 2], "b": OBJECTS}), TypeError, "Polars' type Object"),
        (type("Sub", (pl.Series,), {})(OBJECTS), TypeError, "Polars' type Object"),
        (pl.Series([1], dtype=pl.Int128), TypeError, 'unknown type "_pli128": .*64 bits'),
        (pl.DataFrame({"a": [1], "b": pl.Series([1], dtype=pl.Int128)}), TypeError, 'unknown type "_pli128"'),
        (PERIODS, TypeError, "extension type pandas.period"),
        (pd.DataFrame({"a": [1, 2], "b": PERIODS}), TypeError, "extension type pandas.period"),
        (PERIODS.astype("category"), TypeError, "extension type pandas.period in a dictionary"),
        (pd.Series([1, "a"]), TypeError, "cannot be read as an Arrow array.*'a'.*give a list of the keys"),
        (pd.Series(["a", 1]), TypeError, "cannot be read as an Arrow array.*give a list of the keys"),
        (pd.Series([object()]), TypeError, "cannot be read as an Arrow array.*give a list of the keys"),
        (pd.DataFrame({"a": [1, "a"]}), TypeError, "column 'a' has objects of several kinds, .*convert them"),
    ],
    ids=lambda value: str(value)[:25].replace("\n", " "),
)
def test_objects_that_are_not_arrays_of_keys_are_refused(keys: Any, error: type[Exception], said: str) -> None:
    for make in BloomFilter, AtomicBloomFilter, ScalableBloomFilter:
        filter = make(1000, 0.01)
        for ask in filter.add_many, filter.contains_many, filter.update:
            with pytest.raises(error, match=said):
                ask(keys)


# Each has an invalid key after more keys than are hashed at once.
LATE = 1000


@pytest.mark.parametrize(
    "keys",
    [
        lambda: pa.chunked_array([range(LATE), [4, None]]),
        lambda: pa.RecordBatchReader.from_batches(
            pa.schema([("a", pa.int64())]), [pa.record_batch({"a": pa.array(part)}) for part in (range(LATE), [4, None])]
        ),
        lambda: pl.DataFrame({"a": [*range(LATE), None]}),
        lambda: [*range(LATE), None],
        lambda: iter([*range(LATE), None]),
        lambda: np.array([*"a" * LATE, "\ud800"]),
        lambda: np.array([*range(LATE), None], object),
        lambda: (1 // (LATE - key) for key in range(LATE + 1)),
    ],
    ids=["chunks", "batches", "polars", "list", "iterator", "text", "objects", "generator"],
)
@pytest.mark.parametrize("make", CLASSES)
def test_a_batch_with_an_invalid_key_adds_nothing(keys: Any, make: Any) -> None:
    filter = make(10_000, 0.01)
    with pytest.raises((TypeError, ValueError, ZeroDivisionError)) as raised:
        filter.add_many(keys())
    assert not filter
    assert not raised.value.new.any()  # type: ignore[attr-defined]


@needs_unix
@pytest.mark.parametrize("make", [BloomFilter, AtomicBloomFilter])
def test_an_exception_has_the_answers_so_far(make: Any) -> None:
    """The exception of a signal that arrives while keys are added, after some CPU time of the process."""
    filter, count = make(memory=1 << 28, probes=16), 4_000_000

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    def then_interrupt() -> Iterator[int]:
        signal.setitimer(signal.ITIMER_PROF, 0.01)
        yield from ()

    before = signal.signal(signal.SIGPROF, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt) as raised:
            filter.add_many(itertools.chain(range(count), then_interrupt()))
    finally:
        signal.signal(signal.SIGPROF, before)
    answers = raised.value.new  # type: ignore[attr-defined]
    # Keys without an answer were not added.
    new = np.zeros(count, bool)
    new[: len(answers)] = answers
    assert 0 < new.sum() < count
    assert (filter.contains_many(np.arange(count)) == new).all()
    assert (filter.add_many(np.arange(count)) == ~new).all()
    filter.clear()
    keys = np.arange(3 * 10**7)
    before = signal.signal(signal.SIGPROF, interrupt)
    try:
        signal.setitimer(signal.ITIMER_PROF, 0.01)
        with pytest.raises(KeyboardInterrupt) as raised:
            filter.add_many(keys)
    finally:
        signal.signal(signal.SIGPROF, before)
    new = raised.value.new  # type: ignore[attr-defined]
    assert 0 < len(new) < len(keys)
    assert filter.contains_many(keys[: len(new)]).all() and not filter.contains_many(keys[len(new) :][:1000]).any()


VIEWS = pa.string_view()


class Lies:
    """An object whose exports are wrong."""

    def __init__(self, **exports: Any) -> None:
        for name, value in exports.items():
            setattr(self, name, lambda *_, value=value: value)


@pytest.mark.parametrize(
    "lie",
    [
        Lies(__arrow_c_array__=None),
        Lies(__arrow_c_array__=(1, 2)),
        Lies(__arrow_c_array__=()),
        Lies(__arrow_c_stream__=b""),
        Lies(__arrow_c_array__=tuple(reversed(pa.array([1]).__arrow_c_array__()))),
        Lies(__arrow_c_stream__=pa.array([1]).__arrow_c_array__()[0]),
        Lies(__arrow_c_array__=(pa.array(["a"]).__arrow_c_array__()[0], pa.array([1]).__arrow_c_array__()[1])),
        Lies(__arrow_c_array__=(pa.array(["a"], VIEWS).__arrow_c_array__()[0], pa.array([1]).__arrow_c_array__()[1])),
    ],
)
def test_wrong_exports_are_refused(lie: Any) -> None:
    with pytest.raises((TypeError, ValueError, IndexError)):
        BloomFilter(1000, 0.01).update(lie)


def test_a_used_capsule_is_refused() -> None:
    used = pa.array([1]).__arrow_c_array__()
    BloomFilter(1000, 0.01).update(Lies(__arrow_c_array__=used))
    with pytest.raises((TypeError, ValueError)):
        BloomFilter(1000, 0.01).update(Lies(__arrow_c_array__=used))
    with pytest.raises(ValueError, match="breaks the rules"):
        BloomFilter(1000, 0.01).update(Lies(__arrow_c_array__=(used[0], pa.array([1]).__arrow_c_array__()[1])))
    stream = pa.table(ROWS).__arrow_c_stream__()
    BloomFilter(1000, 0.01).update(Lies(__arrow_c_stream__=stream))
    with pytest.raises(ValueError, match="another reader took it"):
        BloomFilter(1000, 0.01).update(Lies(__arrow_c_stream__=stream))


@pytest.mark.parametrize("offsets", [[0, 100, 3], [0, 3, 1, 3], [0, -5, 3]])
def test_offsets_beyond_the_data_are_refused(offsets: list[int]) -> None:
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(b"abc")]
    broken = pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)
    for ask in BloomFilter(1000, 0.01).update, BloomFilter(1000, 0.01).contains_many:
        with pytest.raises(ValueError, match="offsets beyond the data"):
            ask(broken)


# Length, 4 bytes, number of a buffer, offset in it.
@pytest.mark.parametrize("view", [(20, 0, 0, 11), (31, 0, 0, 0), (20, 0, 1, 0), (20, 0, -1, 0), (20, 0, 0, -1), (-1, 0, 0, 0)])
@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
def test_views_beyond_the_data_are_refused(kind: pa.DataType, view: tuple[int, ...]) -> None:
    data = pa.py_buffer(b"x" * 30)
    sound = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(np.array([20, 0, 0, 10], np.int32)), data])
    check(sound, [b"x" * 20])
    broken = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(np.array(view, np.int32)), data])
    for ask in BloomFilter(1000, 0.01).update, BloomFilter(1000, 0.01).contains_many:
        with pytest.raises(ValueError, match="views beyond the data"):
            ask(broken)


@pytest.mark.parametrize("values", [["a", "b"], []])
@pytest.mark.parametrize("key", [2, 100, -1])
def test_keys_beyond_the_dictionary_are_refused(key: int, values: list[str]) -> None:
    keys = pa.DictionaryArray.from_arrays(pa.array([key], pa.int8()), pa.array(values, pa.string()), safe=False)
    with pytest.raises(ValueError, match="keys beyond the dictionary"):
        BloomFilter(1000, 0.01).update(keys)


def unaligned(keys: pa.Array, move: int = 1) -> pa.Array:
    buffers = [buffer and pa.py_buffer(b"x" * move + buffer.to_pybytes()).slice(move) for buffer in keys.buffers()]
    return pa.Array.from_buffers(keys.type, len(keys), buffers)


@pytest.mark.parametrize("move", [1, 3])
def test_unaligned_arrays_of_arrow(move: int) -> None:
    for keys in pa.array([1, -2]), pa.array(["a", "b" * 20], pa.string_view()), pa.array([b"ab"], pa.binary(2)):
        check(unaligned(keys, move), keys.to_pylist())


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()], ids=str)
def test_unaligned_offsets_of_arrow(kind: pa.DataType) -> None:
    keys = pa.array(["a", "b" * 20]).cast(kind)
    strange = unaligned(keys, 4 if kind in (pa.large_string(), pa.large_binary()) else 2)
    row = pa.StructArray.from_arrays([keys, strange], ["a", "b"])
    many = pa.DictionaryArray.from_arrays([0, 1], strange)
    for broken in strange, row, many, pa.table({"a": keys, "b": strange}), pa.chunked_array([keys, strange]):
        for ask in BloomFilter(1000, 0.01).add_many, BloomFilter(1000, 0.01).contains_many:
            with pytest.raises(ValueError, match=r"offsets are not aligned; copy it, .*concat_arrays.*dictionary_decode"):
                ask(broken)
    check(pa.concat_arrays([strange]), keys.to_pylist())
    check(pa.concat_arrays([row]), list(zip(keys.to_pylist(), keys.to_pylist())))
    check(many.dictionary_decode(), keys.to_pylist())
    check(unaligned(keys[:0]), [])


class Numbers(ctypes.Structure):
    """The first members of the C interface's array."""

    _fields_ = [(name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")]


class Changed:
    """An array or a batch whose producer reports a wrong number, of itself or of its first column."""

    def __init__(self, array: Any, name: str, number: int, is_column: bool) -> None:
        self.array, self.name, self.number, self.is_column = array, name, number, is_column

    def __arrow_c_array__(self, requested_schema: object | None = None) -> Any:
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        schema, array = self.array.__arrow_c_array__()
        address = pointer(array, b"arrow_array")
        if self.is_column:
            # The pointer to the buffers comes before the pointer to the columns.
            members = ctypes.sizeof(Numbers) + ctypes.sizeof(ctypes.c_void_p)
            address = ctypes.POINTER(ctypes.c_void_p).from_address(address + members)[0]
        setattr(Numbers.from_address(address), self.name, self.number)
        return schema, array


@pytest.mark.parametrize("number", [-1, -(2**63), 2**62])
@pytest.mark.parametrize("name", ["length", "offset"])
def test_impossible_lengths_are_refused(name: str, number: int) -> None:
    batch = pa.record_batch({"a": ["x", "y", "z"]})
    arrays = [pa.array(["x", "y", "z"]), pa.array([1, 2, 3]), pa.array([True]), pa.array(["x"]).dictionary_encode(), batch]
    seen = BloomFilter(1000, 0.01)
    for array, is_column in [*((array, False) for array in arrays), (batch, True)]:
        for ask in seen.add_many, seen.update, seen.contains_many:
            with pytest.raises(ValueError, match="its length or its offset is negative or too large"):
                ask(Changed(array, name, number, is_column))
    assert not seen


def test_unaligned_offsets_within_rows() -> None:
    strange = unaligned(pa.array(["a", "b" * 20]), 2)
    lists = pa.ListArray.from_arrays([0, 1, 2], strange)
    for column in (
        lists,
        pa.LargeListArray.from_arrays([0, 1, 2], strange),
        pa.FixedSizeListArray.from_arrays(strange, 1),
        pa.MapArray.from_arrays([0, 1, 2], strange, [1, 2]),
        pa.StructArray.from_arrays([lists], ["a"]),
    ):
        with pytest.raises(ValueError, match="offsets are not aligned"):
            BloomFilter(1000, 0.01).add_rows(pa.table({"a": column}))


def test_a_failed_stream_adds_its_earlier_batches() -> None:
    """The stream may use the filter, and the exception has its reason."""
    filter = BloomFilter(10_000, 1e-9)

    def batches() -> Any:
        yield pa.record_batch({"key": range(1000)})
        assert 999 in filter and filter.add("from the stream")
        raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError, match="disk on fire"):
        filter.update(pa.RecordBatchReader.from_batches(pa.schema([("key", pa.int64())]), batches()))
    assert filter.contains_many(range(1000)).all() and "from the stream" in filter


@pytest.mark.parametrize("make", CLASSES)
def test_every_class_accepts_arrays(make: Any) -> None:
    filter = make(10_000, 1e-9)
    keys = np.arange(3000)
    assert filter.add_many(keys).all()
    assert not filter.add_many(keys).any()
    assert filter.contains_many(keys.astype(np.int16)).all()
    assert all(key in filter for key in range(3000))


ADD = "BloomFilter(memory=1 << 16, probes=4).update"
DISTINCT = "lambda rows: _distinct_rows(rows, 'equal', True, False)"


@pytest.mark.skipif(sys.platform != "linux", reason="reads the size of the process in /proc")
@pytest.mark.parametrize(
    ("call", "keys", "memory"),
    [
        (ADD, "np.arange(4_000_000)", 4_000_000),
        (ADD, "pa.concat_arrays([pa.array(['x' * 32] * 1000)] * 1000)", 4_000_000),
        (DISTINCT, "pa.table({'a': np.arange(1_000_000), 'b': np.arange(1_000_000)})", 7_500_000),
        (DISTINCT, "pl.concat([pl.DataFrame({'a': np.arange(100_000).astype(str)})] * 10, rechunk=False)", 7_500_000),
    ],
)
def test_arrays_are_not_copied(call: str, keys: str, memory: int) -> None:
    """The call succeeds with an eighth of the memory of its keys, or with 7.5 bytes for each row that it compares."""
    # Threads of Polars that start during the call would take memory, too.
    program = f"""
import os
os.environ["POLARS_MAX_THREADS"] = "1"
import resource
import numpy as np
import polars as pl
import pyarrow as pa
from bloomline import BloomFilter
from bloomline._bloomline import _distinct_rows
call, keys = {call}, {keys}
call(keys[:1000])
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
with open("/proc/self/statm") as sizes:
    size = int(sizes.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + {memory}, hard))
call(keys)
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_numpy_is_optional() -> None:
    program = """
import sys
sys.modules["numpy"] = None
from bloomline import BloomFilter
seen = BloomFilter(1000, 0.01)
seen.update(["a"])
assert "a" in seen
try:
    seen.add_many(["b"])
except ImportError as error:
    print("ImportError")
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "ImportError\n"
