"""Columns of every type, the rows that three readers find in a file, and the rows that are kept."""

import atexit
import datetime as dt
import functools
import json
import math
import pathlib
import uuid
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq


class Kind(NamedTuple):
    """A type, some of its values, and the readers that cannot read it."""

    type: pa.DataType
    values: list[Any]
    unread_by: tuple[str, ...] = ()

    def array(self, values: Sequence[Any]) -> pa.Array:
        return array(values, self.type)


def array(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    if isinstance(type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type, pa.array(values, type.storage_type))
    return pa.array(values, type)


def _kinds() -> dict[str, Kind]:
    kinds: dict[str, Kind] = {"bool": Kind(pa.bool_(), [True, False])}
    for integer in [pa.int8(), pa.int16(), pa.int32(), pa.int64()]:
        most = (1 << integer.bit_width - 1) - 1
        kinds[str(integer)] = Kind(integer, [0, -1, most, -most - 1, 1])
    for integer in [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]:
        most = (1 << integer.bit_width) - 1
        kinds[str(integer)] = Kind(integer, [0, most, most // 2 + 1, most // 2, 1])
    for number in [pa.float16(), pa.float32(), pa.float64()]:
        kinds[str(number)] = Kind(number, [0.0, -0.0, math.nan, 1.5, -math.inf, math.inf, -1.5])
    # A digit and the number are two keys, and so are an empty string and null.
    words = ["", "1", "ä\0\n", "twelve bytes", "thirteen byte", "x" * 300, "null"]
    data = [b"", b"1", b"\xff\xfe", b"\xff\xff", b"twelve bytes", b"thirteen byte", b"\xff1"]
    for text in [pa.string(), pa.large_string(), pa.string_view()]:
        kinds[str(text)] = Kind(text, words)
    for binary in [pa.binary(), pa.large_binary(), pa.binary_view()]:
        kinds[str(binary)] = Kind(binary, data)
    kinds["fixed"] = Kind(pa.binary(3), [b"\xff\xfe\0", b"\xff\xfd\0", b"abc", b"\0\0\0"])
    kinds["dictionary"] = Kind(pa.dictionary(pa.int32(), pa.string()), words)
    kinds["dictionary8"] = Kind(pa.dictionary(pa.int8(), pa.string(), ordered=True), words)
    kinds["dictionary-binary"] = Kind(pa.dictionary(pa.int32(), pa.binary()), data)
    for name, decimal in {
        "decimal32": pa.decimal32(5, 2),
        "decimal64": pa.decimal64(12, 3),
        "decimal128": pa.decimal128(38, 10),
        "decimal256": pa.decimal256(60, 5),
    }.items():
        widest = [Decimal((sign, (9,) * decimal.precision, -decimal.scale)) for sign in [0, 1]]
        # Polars has no wider ones than 128 bits.
        unread = ("polars",) if name == "decimal256" else ()
        kinds[name] = Kind(decimal, [Decimal("0.00"), Decimal("1.50"), *widest, Decimal("-1.50")], unread)
    days = [dt.date(1970, 1, 1), dt.date(2026, 11, 1), dt.date(1583, 1, 1), dt.date(2400, 2, 29)]
    kinds["date32"] = Kind(pa.date32(), days)
    kinds["date64"] = Kind(pa.date64(), days)
    kinds["time32[s]"] = Kind(pa.time32("s"), [0, 1, 86_399, 43_200])
    kinds["time32[ms]"] = Kind(pa.time32("ms"), [0, 1, 86_399_999, 43_200])
    kinds["time64[us]"] = Kind(pa.time64("us"), [0, 1, 86_399_999_999, 43_200])
    kinds["time64[ns]"] = Kind(pa.time64("ns"), [0, 1, 86_399_999_999_999, 43_200])
    for unit in ["s", "ms", "us", "ns"]:
        for zone in [None, "UTC", "Europe/Berlin", "+02:00"]:
            kind = pa.timestamp(unit, zone)
            kinds[str(kind)] = Kind(kind, [0, 1, -1, 1_793_500_000, 999])
        kinds[f"duration[{unit}]"] = Kind(pa.duration(unit), [0, 1, -1, 86_400_000])
    kinds["uuid"] = Kind(pa.uuid(), [uuid.UUID(int=number).bytes for number in [0, 1, 1 << 127, 0xFF << 120]])
    kinds["json"] = Kind(pa.json_(), ['{"a":1}', '{"a": 1}', "1", "null"])
    numbers = [[], [1], [1, None], [None], [None, 1], [2, 3, 4]]
    kinds["list"] = Kind(pa.list_(pa.int32()), numbers)
    kinds["large_list"] = Kind(pa.large_list(pa.int32()), numbers)
    # Polars does not support the type.
    kinds["list_view"] = Kind(pa.list_view(pa.int32()), numbers, ("polars",))
    kinds["fixed_size_list"] = Kind(pa.list_(pa.int16(), 2), [[1, 2], [1, None], [None, None], [2, 1]])
    kinds["list<string>"] = Kind(pa.list_(pa.string()), [[], ["a", "b"], ["a,b"], ['a","b'], ["ab"], ["\0"], [None]])
    kinds["list<binary>"] = Kind(pa.list_(pa.binary()), [[b"\xff"], [b"\xfe"], [b"ff"], [b"\xff", b"\xff"], [b""], []])
    # pyarrow reads it if there is one row group.
    kinds["list<dictionary>"] = Kind(
        pa.list_(pa.dictionary(pa.int32(), pa.string())), [[], ["a"], ["b", "a"], [None], ["b"]], ("pyarrow",)
    )
    kinds["list<double>"] = Kind(pa.list_(pa.float64()), [[0.0], [-0.0], [math.nan], [math.inf], [None], [0.1 + 0.2], [0.3]])
    kinds["struct"] = Kind(
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        [{"a": 1, "b": "x"}, {"a": None, "b": "x"}, {"a": None, "b": None}, {"a": 1, "b": None}, {"a": 2, "b": "1"}],
    )
    kinds["list<struct>"] = Kind(
        pa.list_(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
        [
            [],
            [None],
            [{"a": None, "b": None}],
            [{"a": 1, "b": []}],
            [{"a": 1, "b": ["x", None]}, {"a": 2, "b": None}],
            [{"a": 1, "b": ["x"]}],
        ],
    )
    kinds["struct<nested>"] = Kind(
        pa.struct([("s", pa.struct([("t", pa.timestamp("us", "UTC"))])), ("d", pa.decimal128(9, 2)), ("f", pa.binary(2))]),
        [
            {"s": {"t": 1}, "d": Decimal("1.10"), "f": b"\xff\xff"},
            {"s": {"t": 2}, "d": Decimal("1.10"), "f": b"\xff\xff"},
            {"s": {"t": 1}, "d": Decimal("1.11"), "f": b"\xff\xff"},
            {"s": {"t": 1}, "d": Decimal("1.10"), "f": b"\xff\xfe"},
            {"s": {"t": 1}, "d": Decimal("1.10"), "f": b"fe"},
            {"s": {"t": None}, "d": None, "f": None},
            {"s": None, "d": None, "f": None},
        ],
    )
    kinds["map"] = Kind(pa.map_(pa.string(), pa.int32()), [[], [("a", 1)], [("a", None)], [("a", 1), ("b", 2)], [("b", 2)]])
    kinds["map<struct>"] = Kind(
        pa.map_(pa.int32(), pa.struct([("a", pa.float32())])),
        [[], [(1, {"a": 1.0})], [(2, {"a": 1.0})], [(1, {"a": None})], [(1, None)]],
    )
    kinds["null"] = Kind(pa.null(), [None])
    kinds["bool8"] = Kind(pa.bool8(), [0, 1])
    kinds["opaque"] = Kind(pa.opaque(pa.binary(), "type", "vendor"), [b"a", b"b", b"\xff", b"\xfe"])
    kinds["tensor"] = Kind(pa.fixed_shape_tensor(pa.int32(), [2]), [[1, 2], [2, 1], [1, 1], [2, 2]])
    return kinds


KINDS = _kinds()


def plain(column: pa.ChunkedArray) -> list[str]:
    """The values as texts. -0.0 and 0.0 have two texts, and every NaN has the same one."""
    # Python's times have no nanoseconds.
    if pa.types.is_time64(column.type):
        column = column.cast(pa.int64())
    return [repr(value) for value in column.to_pylist()]


class Read(NamedTuple):
    schema: Any
    rows: list[tuple[str, ...]]


def rows_of(table: pa.Table) -> list[tuple[str, ...]]:
    return list(zip(*map(plain, table.columns))) if table.columns else [()] * table.num_rows


def by_pyarrow(path: pathlib.Path) -> Read:
    file = pq.ParquetFile(path)
    table = file.read()
    table.validate(full=True)
    # The metadata of pandas and Hugging Face are part of it.
    # The first line has the address of the object.
    return Read((table.schema.to_string(show_schema_metadata=True), str(file.schema).partition("\n")[2]), rows_of(table))


@functools.cache
def duckdb_connection() -> Any:
    # Not imported above: Hypothesis keeps modules until the interpreter ends, and DuckDB reports objects that they still hold.
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
    # DuckDB would report a connection that is open when the interpreter ends.
    atexit.register(duckdb_connection.cache_clear)
    return connection


def by_duckdb(path: pathlib.Path) -> Read:
    found = duckdb_connection().from_parquet(str(path), hive_partitioning=False)
    return Read((found.columns, [str(type) for type in found.types]), rows_of(found.to_arrow_table()))


def by_polars(path: pathlib.Path) -> Read:
    frame = pl.read_parquet(path, hive_partitioning=False, glob=False)
    return Read(frame.schema, rows_of(frame.to_arrow()))


READERS: dict[str, Callable[[pathlib.Path], Read]] = {"pyarrow": by_pyarrow, "duckdb": by_duckdb, "polars": by_polars}


def key(value: Any) -> Hashable:
    """A key that equal values have in common. Python's own equality does not suffice: 1 is 1.0 and True there, and NaN is not NaN."""
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else repr(value + 0.0))
    if isinstance(value, (list, tuple)):
        return ("list", *map(key, value))
    if isinstance(value, dict):
        return ("struct", *((name, key(inner)) for name, inner in sorted(value.items())))
    return (type(value).__name__, value)


def stay(parts: Iterable[Sequence[Any]], which: str = "first", nulls: str = "equal") -> list[int]:
    """The numbers of the rows that are kept, from the parts of each row's key."""
    keys: list[Hashable] = []
    for number, values in enumerate(parts):
        is_null = any(value is None for value in values)
        if is_null and nulls == "skip":
            keys.append(None)
        elif is_null and nulls == "keep":
            # The only one of its kind.
            keys.append(("kept", number))
        else:
            keys.append(tuple(map(key, values)))
    numbers = [number for number, of in enumerate(keys) if of is not None]
    count = Counter(keys[number] for number in numbers)
    first: dict[Hashable, int] = {}
    last: dict[Hashable, int] = {}
    for number in numbers:
        first.setdefault(keys[number], number)
        last[keys[number]] = number
    chosen: dict[str, Callable[[int], bool]] = {
        "first": lambda number: first[keys[number]] == number,
        "last": lambda number: last[keys[number]] == number,
        "unique": lambda number: count[keys[number]] == 1,
        "repeated": lambda number: count[keys[number]] > 1 and first[keys[number]] == number,
        "invert": lambda number: first[keys[number]] != number,
    }
    return [number for number in numbers if chosen[which](number)]


def json_lines(table: pa.Table) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in table.to_pylist())
