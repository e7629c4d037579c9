"""Values of each kind, the files and frames that other programs write of them, and the doors through which bloomline takes them.

The expected answer of a door follows from the rules, which are written by hand, and from the values that other readers find in the file.
It never depends on what bloomline takes a value for.
"""

import contextlib
import csv
import datetime as dt
import enum
import functools
import hashlib
import json
import math
import os
import pathlib
import queue
import random
import re
import subprocess
import sys
import threading
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

import bloomline
from bloomline import ScalableBloomFilter
from tables import duckdb_connection

# --- The rules ---


class Kind(enum.StrEnum):
    """A kind of values, by the name that messages have for it."""

    TEXT = "texts"
    BYTES = "byte strings"
    NUMBER = "numbers"
    BOOLEAN = "booleans"
    DATE = "dates"
    TIME = "times of day"
    TIMESTAMP = "timestamps without a zone"
    INSTANT = "timestamps with a zone"
    DURATION = "durations"
    LIST = "lists"
    STRUCT = "structs"
    MAP = "maps"
    NULL = "nulls"
    # Values that cannot be keys: periods, intervals, unions.
    OTHER = "others"


class Rule(enum.StrEnum):
    """The treatment of a value of one kind beside keys of another."""

    BY_VALUE = "by value"
    # Nulls are equal, and no value is null.
    NULLS = "null"
    REFUSED = "refused"
    # Refused as well; the option `--normalize` makes one kind of both.
    NUMBER = "refused, `number`"
    TIME = "refused, `time`"
    TEXT = "refused, `text`"


CLOCKS = (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.INSTANT)
# The remedies of `--normalize`, for kinds that differ.
REMEDIES: dict[frozenset[Kind], Rule] = {
    frozenset({Kind.TEXT, Kind.NUMBER}): Rule.NUMBER,
    frozenset({Kind.TEXT, Kind.BYTES}): Rule.TEXT,
    **{frozenset({Kind.TEXT, kind}): Rule.TIME for kind in CLOCKS},
}


def rule(one: Kind, other: Kind) -> Rule:
    """The rule for values of two kinds: two values are equal only if their kinds are."""
    if Kind.OTHER in (one, other):
        return Rule.REFUSED
    if Kind.NULL in (one, other):
        return Rule.NULLS
    if one == other:
        return Rule.BY_VALUE
    return REMEDIES.get(frozenset({one, other}), Rule.REFUSED)


def table_of_rules() -> str:
    """The rules as a table of Markdown, which docs/FORMAT.md has."""
    names = {
        Kind.TEXT: "text",
        Kind.BYTES: "byte string",
        Kind.NUMBER: "number",
        Kind.DATE: "date",
        Kind.TIME: "time of day",
        Kind.TIMESTAMP: "timestamp without a zone",
        Kind.INSTANT: "timestamp with a zone",
    }
    lines = [
        "| kinds | result |",
        "|---|---|",
        "| the same kind | equal if they are the same value |",
        "| null and another kind | different |",
    ]
    for remedy, word in {Rule.NUMBER: "number", Rule.TEXT: "text", Rule.TIME: "time"}.items():
        *others, last = (names[kind] for kind in Kind if rule(Kind.TEXT, kind) == remedy)
        listed = ", ".join(others) + (", or " if others else "") + last
        lines.append(f"| text and {listed} | refused, unless `--normalize {word}` is given |")
    return "\n".join([*lines, "| any other two kinds | refused |"]) + "\n"


class Engine(NamedTuple):
    """A comparison in SQL whose answer by DuckDB differs from the rules."""

    question: str
    answer: bool | None
    reason: str


DUCKDB = [
    Engine("9007199254740993::BIGINT = 9007199254740992::DOUBLE", True, "the integer becomes a double"),
    Engine("9223372036854775808::HUGEINT = 9223372036854775808::DOUBLE", True, "the same"),
    Engine("0.1::FLOAT = 0.1::DOUBLE", False, "the float becomes 0.10000000149011612"),
    Engine("'1'::VARCHAR = 1", True, "the text becomes a number"),
    Engine("true = 1", True, "the boolean becomes a number"),
    Engine("'2026-01-01'::VARCHAR = DATE '2026-01-01'", True, "the text becomes a date"),
    Engine("DATE '2026-01-01' = TIMESTAMP '2026-01-01 00:00:00'", True, "the date becomes its midnight"),
    Engine("TIMESTAMP '2026-01-01 00:00:00' = TIMESTAMPTZ '2026-01-01 00:00:00+00'", True, "the timestamp gets the zone of the session"),
    Engine("'a'::VARCHAR = 'a'::BLOB", True, "the text becomes its bytes"),
    Engine("MAP {'a': 1, 'b': 2} = MAP {'b': 2, 'a': 1}", False, "entries are compared in their order"),
    Engine("NULL = NULL", None, "here nulls are equal, unless --nulls says otherwise"),
]
# Of each of these, both sides are equal here as well, so that `=` is not transitive.
EQUAL_TO_DUCKDB = [
    "9007199254740992::BIGINT = 9007199254740992::DOUBLE",
    "0.1::FLOAT = 0.1::DECIMAL(2, 1)",
    "0.1::DOUBLE = 0.1::DECIMAL(2, 1)",
]


# --- Values ---


class Value(NamedTuple):
    """A value as its kind and its meaning. Two values are equal if both are equal."""

    kind: Kind
    content: Hashable


NULL = Value(Kind.NULL, None)


def number(written: str | int | Decimal) -> Value:
    """A number by its sign, its digits without zeros at the end, and its exponent."""
    exact = Decimal(written)
    if exact.is_nan():
        return Value(Kind.NUMBER, "nan")
    if exact.is_infinite():
        return Value(Kind.NUMBER, "inf" if exact > 0 else "-inf")
    sign, digits, exponent = exact.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    shortest = text.rstrip("0")
    assert isinstance(exponent, int)
    return Value(Kind.NUMBER, (sign, shortest, exponent + len(text) - len(shortest)) if shortest else 0)


def shortest(value: Any) -> Value:
    """A float of NumPy by the fewest digits that read back in its own width."""
    if not math.isfinite(value):
        return number(str(float(value)))
    return number(np.format_float_scientific(value, unique=True, trim="-"))


def text(value: str) -> Value:
    return Value(Kind.TEXT, value)


def data(value: bytes) -> Value:
    return Value(Kind.BYTES, value)


def boolean(value: bool) -> Value:
    return Value(Kind.BOOLEAN, bool(value))


def date(days: int) -> Value:
    return Value(Kind.DATE, days)


def seconds(kind: Kind, count: int, unit: str = "s") -> Value:
    """A time of a kind, as a number of units."""
    return Value(kind, Fraction(count, {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]))


def items(*values: Value) -> Value:
    return Value(Kind.LIST, values)


def members(**values: Value) -> Value:
    return Value(Kind.STRUCT, frozenset(values.items()))


def entries(*pairs: tuple[Value, Value]) -> Value:
    return Value(Kind.MAP, frozenset(Counter(pairs).items()))


def other(name: str) -> Value:
    return Value(Kind.OTHER, name)


# --- Sorts of columns ---


class Raw(NamedTuple):
    """The text of a file that no other program writes."""

    format: str
    values: list[bytes]


class Sort(NamedTuple):
    """A column of a type, and what its values mean, by hand."""

    name: str
    # An array of Arrow, a list of objects for a column of pandas alone, or the text of a file.
    column: Any
    meanings: list[Value]
    # True for objects of several kinds, which a door takes one by one or refuses.
    is_mixed: bool = False


# 2026-01-01 in days and in seconds.
DAY = 20_454
NOW = DAY * 86_400
ONE, ANOTHER = uuid.UUID(int=1), uuid.UUID(int=0xFFFE << 112)


def _numbers() -> Iterator[Sort]:
    for width in 8, 16, 32, 64:
        most = (1 << width - 1) - 1
        signed = [1, 0, -1, most, -most - 1] + ([2**53 + 1] if width == 64 else [])
        yield Sort(f"int{width}", pa.array(signed, getattr(pa, f"int{width}")()), [number(value) for value in signed])
        unsigned = [1, 0, most, 2 * most + 1, most + 1]
        yield Sort(f"uint{width}", pa.array(unsigned, getattr(pa, f"uint{width}")()), [number(value) for value in unsigned])
    yield Sort("int64 and null", pa.array([1, None, 1200]), [number(1), NULL, number("12e2")])
    for width in 16, 32, 64:
        kind = getattr(np, f"float{width}")
        type_ = getattr(pa, f"float{width}")()
        finite = ["1", "-0.0", "0.1", {16: "65504", 32: "16777216", 64: "0.30000000000000004"}[width]]
        more = ["9007199254740992", "9.223372036854776e18"] if width == 64 else ["1.5"]
        # The neighbours of 65504 in 16 bits are 32 away, so 655e2 are its digits.
        meanings = [number(value.replace("65504", "65500")) for value in finite + more]
        yield Sort(f"float{width}", pa.array([kind(value) for value in finite + more], type_), meanings)
        special = ["nan", "inf", "-inf", "1"]
        yield Sort(f"float{width} special", pa.array([kind(value) for value in special], type_), [number(value) for value in special])
    for width, precision, scale in (32, 9, 2), (64, 18, 4), (128, 38, 10), (256, 76, 20):
        written = ["1", "0.1", "0", "-1.5"] + ([str(2**53 + 1), str(2**63)] if width > 64 else [])
        column = pa.array([Decimal(value) for value in written], getattr(pa, f"decimal{width}")(precision, scale))
        yield Sort(f"decimal{width}", column, [number(value) for value in written])


def _times() -> Iterator[Sort]:
    for type_ in pa.date32(), pa.date64():
        column = pa.array([DAY, 0, -1], pa.int32()).cast(pa.date32()).cast(type_)
        yield Sort(str(type_).partition("[")[0], column, [date(DAY), date(0), date(-1)])
    for unit, scale in ("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9):
        clock = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
        counts = [3723 * scale, 5, 0]
        yield Sort(f"time {unit}", pa.array(counts, clock), [seconds(Kind.TIME, count, unit) for count in counts])
        counts = [NOW * scale, 5, NOW * scale + 1, 5 * scale]
        for zone in None, "UTC", "Europe/Berlin":
            kind = Kind.INSTANT if zone else Kind.TIMESTAMP
            name = f"timestamp {unit}" + (f" {zone}" if zone else "")
            yield Sort(name, pa.array(counts, pa.timestamp(unit, zone)), [seconds(kind, count, unit) for count in counts])
        # Whole seconds, which all writers of text can write.
        counts = [5 * scale, 5, 90_061 * scale, 1, 1000]
        yield Sort(f"duration {unit}", pa.array(counts, pa.duration(unit)), [seconds(Kind.DURATION, count, unit) for count in counts])


WORDS = ["a", "1", "true", "2026-01-01", "2026-01-01 00:00:00", "null", "0.1", "ä", str(ONE), "1.0"]
BLOBS = [b"a", b"1", b"\xff0", b"\xffn1", b"", ONE.bytes]


def _texts() -> Iterator[Sort]:
    for type_ in pa.string(), pa.large_string(), pa.string_view():
        yield Sort(str(type_), pa.array(WORDS, type_), [text(word) for word in WORDS])
    for type_ in pa.binary(), pa.large_binary(), pa.binary_view():
        yield Sort(str(type_), pa.array(BLOBS, type_), [data(blob) for blob in BLOBS])
        plain = [b"a", b"1", b"1.0"]
        yield Sort(f"{type_} of text", pa.array(plain, type_), [data(blob) for blob in plain])
    yield Sort("fixed 1", pa.array([b"a", b"1", b"\xff"], pa.binary(1)), [data(b"a"), data(b"1"), data(b"\xff")])
    yield Sort("fixed 16", pa.array([ONE.bytes, ANOTHER.bytes], pa.binary(16)), [data(ONE.bytes), data(ANOTHER.bytes)])
    ids = pa.array([ONE.bytes, ANOTHER.bytes], pa.binary(16))
    yield Sort("uuid", pa.ExtensionArray.from_storage(pa.uuid(), ids), [text(str(ONE)), text(str(ANOTHER))])
    documents = ['{"a":1}', '{"a": 1}', "1"]
    yield Sort("json", pa.ExtensionArray.from_storage(pa.json_(), pa.array(documents)), [text(document) for document in documents])
    yield Sort("text and null", pa.array(["a", None, "1"]), [text("a"), NULL, text("1")])


def _encoded() -> Iterator[Sort]:
    yield Sort("dictionary of text", pa.array(["a", "1", "a"]).dictionary_encode(), [text("a"), text("1"), text("a")])
    yield Sort("dictionary of int64", pa.array([1, 7, 1]).dictionary_encode(), [number(1), number(7), number(1)])
    yield Sort(
        "dictionary of timestamp",
        pa.array([NOW], pa.timestamp("s")).dictionary_encode(),
        [seconds(Kind.TIMESTAMP, NOW)],
    )
    yield Sort("runs of text", pc.run_end_encode(pa.array(["a", "a", "1"])), [text("a"), text("a"), text("1")])
    yield Sort("runs of int64", pc.run_end_encode(pa.array([1, 1, 0])), [number(1), number(1), number(0)])


def _nested() -> Iterator[Sort]:
    lists: list[list[int | None]] = [[1, 2], [], [1], [None]]
    meanings = [items(number(1), number(2)), items(), items(number(1)), items(NULL)]
    for type_ in pa.list_(pa.int8()), pa.large_list(pa.int64()), pa.list_view(pa.int32()), pa.list_(pa.float64()):
        yield Sort(str(type_).replace("item: ", ""), pa.array(lists, type_), meanings)
    yield Sort(
        "fixed_size_list", pa.array([[1, 2], [2, 1]], pa.list_(pa.float32(), 2)), [items(*map(number, pair)) for pair in ((1, 2), (2, 1))]
    )
    yield Sort(
        "list<string>", pa.array([["1"], ["1", "2"], ["1, 2"]]), [items(text("1")), items(text("1"), text("2")), items(text("1, 2"))]
    )
    yield Sort(
        "list<timestamp>",
        pa.array([[NOW], []], pa.list_(pa.timestamp("s"))),
        [items(seconds(Kind.TIMESTAMP, NOW)), items()],
    )
    yield Sort(
        "struct a, b",
        pa.array([{"a": 1, "b": None}, {"a": 1, "b": "x"}], pa.struct([("a", pa.int64()), ("b", pa.string())])),
        [members(a=number(1), b=NULL), members(a=number(1), b=text("x"))],
    )
    yield Sort(
        "struct b, a",
        pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": "x"}], pa.struct([("b", pa.large_string()), ("a", pa.float64())])),
        [members(a=number(1), b=text("x")), members(a=number(2), b=text("x"))],
    )
    yield Sort("struct a", pa.array([{"a": 1}, {"a": None}], pa.struct([("a", pa.int32())])), [members(a=number(1)), members(a=NULL)])
    pairs = [[("a", 1)], [("a", 1), ("b", 2)], [("b", 2), ("a", 1)], []]
    one, two = (text("a"), number(1)), (text("b"), number(2))
    for value in pa.int32(), pa.int64():
        yield Sort(
            f"map<string, {value}>",
            pa.array(pairs, pa.map_(pa.string(), value)),
            [entries(one), entries(one, two), entries(one, two), entries()],
        )


def _others() -> Iterator[Sort]:
    yield Sort("boolean", pa.array([True, False]), [boolean(True), boolean(False)])
    yield Sort("boolean and null", pa.array([True, None]), [boolean(True), NULL])
    yield Sort("bool8", pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8())), [boolean(True), boolean(False)])
    yield Sort("null", pa.nulls(2), [NULL, NULL])
    yield Sort("interval", pa.array([(1, 0, 0), (0, 30, 0)], pa.month_day_nano_interval()), [other("interval")] * 2)
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    yield Sort("union", union, [other("union")] * 2)
    yield Sort(
        "opaque", pa.ExtensionArray.from_storage(pa.opaque(pa.binary(), "type", "vendor"), pa.array([b"a", b"b"])), [other("opaque")] * 2
    )


def _objects() -> Iterator[Sort]:
    yield Sort("period", pd.array(["2026-01-01", "2026-01-02"], dtype="period[D]"), [other("period")] * 2)
    yield Sort("period year", pd.array(["2026", "2027"], dtype="period[Y]"), [other("period")] * 2)
    yield Sort("pandas interval", pd.arrays.IntervalArray.from_breaks([0, 1, 2], closed="left"), [other("interval")] * 2)
    yield Sort("objects: text and bytes", ["a", b"a"], [text("a"), data(b"a")], is_mixed=True)
    yield Sort("objects: uuid and bytes", [ONE, ONE.bytes], [text(str(ONE)), data(ONE.bytes)], is_mixed=True)
    shapes = [members(a=number(1)), members(a=number(1), b=NULL)]
    yield Sort("objects: structs", [{"a": 1}, {"a": 1, "b": None}], shapes, is_mixed=True)
    yield Sort("objects: int and float", [1, 2.5], [number(1), number("2.5")], is_mixed=True)
    yield Sort("objects: decimals", [Decimal("1.00"), Decimal("0.1")], [number(1), number("0.1")])
    yield Sort("objects: text and int", ["1", 1], [text("1"), number(1)], is_mixed=True)


def _raw() -> Iterator[Sort]:
    numbers = ["1", "1.0", "1e0", "0.1", "-0.0", "9007199254740993", "1e999999999", "10E+999999998", "1e-400", "9223372036854775808"]
    yield Sort("numbers of JSON", Raw("json", [one.encode() for one in numbers]), [number(one) for one in numbers])
    yield Sort(
        "structs of JSON",
        Raw("json", [b'{"a":1}', b'{"a":1,"b":null}', b'{"b":null,"a":1.0}', b'{"a":"1"}']),
        [members(a=number(1)), members(a=number(1), b=NULL), members(a=number(1), b=NULL), members(a=text("1"))],
    )
    yield Sort("kinds of JSON", Raw("json", [b'"1"', b"1", b"true", b"null"]), [text("1"), number(1), boolean(True), NULL])
    # Each begins like a key of another kind, in the encoding of docs/FORMAT.md.
    bytes_ = [b"\xffn1", b"\xff0", b"\xff\xffn1", b"\xfft", b"\xff"]
    yield Sort("bytes of CSV", Raw("csv", bytes_), [text(one.decode(errors="surrogateescape")) for one in bytes_])


SORTS = {sort.name: sort for make in (_raw, _numbers, _times, _texts, _encoded, _nested, _others, _objects) for sort in make()}

# --- Readers: what a written column means, by Python's own modules and pyarrow ---

_CLOCKS = {pa.lib.Type_TIME32: Kind.TIME, pa.lib.Type_TIME64: Kind.TIME, pa.lib.Type_DURATION: Kind.DURATION}
_LISTS = [getattr(pa.lib, f"Type_{name}") for name in ("LIST", "LARGE_LIST", "LIST_VIEW", "LARGE_LIST_VIEW", "FIXED_SIZE_LIST")]
_OTHERS = [getattr(pa.lib, f"Type_{name}") for name in ("SPARSE_UNION", "DENSE_UNION", "INTERVAL_MONTH_DAY_NANO")]


def kind_of_type(type_: pa.DataType) -> Kind:
    """The kind of a type of Arrow."""
    if isinstance(type_, pa.BaseExtensionType):
        known = {"arrow.uuid": Kind.TEXT, "arrow.json": Kind.TEXT, "arrow.bool8": Kind.BOOLEAN}
        return known.get(type_.extension_name, Kind.OTHER)
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return kind_of_type(type_.value_type)
    is_: Any = pa.types
    return next(
        kind
        for kind, holds in [
            (Kind.OTHER, type_.id in _OTHERS),
            (Kind.NULL, is_.is_null(type_)),
            (Kind.BOOLEAN, is_.is_boolean(type_)),
            (Kind.NUMBER, is_.is_integer(type_) or is_.is_floating(type_) or is_.is_decimal(type_)),
            (Kind.TEXT, is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_)),
            (
                Kind.BYTES,
                is_.is_binary(type_) or is_.is_large_binary(type_) or is_.is_binary_view(type_) or is_.is_fixed_size_binary(type_),
            ),
            (Kind.DATE, is_.is_date(type_)),
            (Kind.TIME, is_.is_time(type_)),
            (Kind.DURATION, is_.is_duration(type_)),
            (Kind.INSTANT, is_.is_timestamp(type_) and type_.tz is not None),
            (Kind.TIMESTAMP, is_.is_timestamp(type_)),
            (Kind.LIST, type_.id in _LISTS),
            (Kind.STRUCT, is_.is_struct(type_)),
            (Kind.MAP, is_.is_map(type_)),
        ]
        if holds
    )


def of_arrow(column: Any) -> list[Value]:
    """The values of an array of Arrow."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    type_, kind = array.type, kind_of_type(array.type)
    if pa.types.is_dictionary(type_):
        return of_arrow(array.dictionary_decode())
    if pa.types.is_run_end_encoded(type_):
        return of_arrow(pc.run_end_decode(array))
    if kind == Kind.OTHER:
        return [other(str(type_))] * len(array)
    return [NULL if not one.is_valid else _of_scalar(kind, type_, one) for one in array]


def _of_scalar(kind: Kind, type_: Any, scalar: Any) -> Value:
    if isinstance(type_, pa.BaseExtensionType):
        stored = scalar.value.as_py()
        if kind == Kind.BOOLEAN:
            return boolean(stored != 0)
        return text(str(uuid.UUID(bytes=stored)) if isinstance(stored, bytes) else stored)
    if kind == Kind.NUMBER:
        if pa.types.is_floating(type_):
            return shortest(getattr(np, f"float{type_.bit_width}")(scalar.as_py()))
        return number(scalar.as_py())
    if kind in (Kind.TIME, Kind.TIMESTAMP, Kind.INSTANT, Kind.DURATION):
        return seconds(kind, scalar.value, type_.unit)
    if kind == Kind.DATE:
        return date((scalar.as_py() - dt.date(1970, 1, 1)).days)
    if kind == Kind.LIST:
        return items(*of_arrow(scalar.values))
    if kind == Kind.STRUCT:
        return members(
            **{
                name: of_arrow(pa.array([member.as_py()], member.type) if member.is_valid else pa.nulls(1))[0]
                for name, member in scalar.items()
            }
        )
    if kind == Kind.MAP:
        return entries(*zip(of_arrow(scalar.values.field(0)), of_arrow(scalar.values.field(1)), strict=True))
    plain: dict[Kind, Callable[[Any], Value]] = {Kind.BOOLEAN: boolean, Kind.TEXT: text, Kind.BYTES: data}
    return plain[kind](scalar.as_py())


def of_object(value: Any) -> Value:
    """An object of Python, as a column of pandas has them. There NaN is a missing value."""
    epoch = dt.datetime(1970, 1, 1)
    if isinstance(value, (pd.Period, pd.Interval, pd.DateOffset)):
        return other(type(value).__name__)
    if isinstance(value, (list, tuple, np.ndarray)):
        return items(*map(of_object, value))
    if isinstance(value, dict):
        return members(**{name: of_object(member) for name, member in value.items()})
    if pd.isna(value):
        return NULL
    if isinstance(value, (bool, np.bool_)):
        return boolean(bool(value))
    if isinstance(value, (int, np.integer, Decimal)):
        return number(value if isinstance(value, Decimal) else int(value))
    if isinstance(value, (float, np.floating)):
        return shortest(value)
    if isinstance(value, (bytes, str)):
        return data(value) if isinstance(value, bytes) else text(value)
    if isinstance(value, uuid.UUID):
        return text(str(value))
    if isinstance(value, pd.Timestamp):
        return seconds(Kind.INSTANT if value.tzinfo else Kind.TIMESTAMP, value.as_unit("ns").value, "ns")
    if isinstance(value, pd.Timedelta):
        return seconds(Kind.DURATION, value.as_unit("ns").value, "ns")
    if isinstance(value, np.datetime64):
        return seconds(Kind.TIMESTAMP, int(value.astype("datetime64[ns]").astype(int)), "ns")
    if isinstance(value, dt.datetime):
        since = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return seconds(Kind.INSTANT if value.tzinfo else Kind.TIMESTAMP, (since - epoch) // dt.timedelta(microseconds=1), "us")
    if isinstance(value, dt.date):
        return date((value - epoch.date()).days)
    assert isinstance(value, dt.time), type(value)
    return seconds(Kind.TIME, (dt.datetime.combine(epoch, value) - epoch) // dt.timedelta(microseconds=1), "us")


def of_json(value: Any) -> Value:
    """The values that `json` reads, with numbers as they are written."""
    if value is None:
        return NULL
    if isinstance(value, list):
        return items(*map(of_json, value))
    if isinstance(value, dict):
        return members(**{name: of_json(member) for name, member in value.items()})
    if isinstance(value, bool):
        return boolean(value)
    return number(value) if isinstance(value, Decimal) else text(value)


def read_csv(path: pathlib.Path) -> list[Value]:
    with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        return [text(row["v"]) for row in csv.DictReader(file)]


def read_json(path: pathlib.Path) -> list[Value]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line, parse_float=Decimal, parse_int=Decimal, parse_constant=refuse) for line in lines]
    # A line without the member has no key, and ends the run.
    if not all("v" in row for row in rows):
        raise ValueError("a member is missing")
    return [of_json(row["v"]) for row in rows]


def read_parquet(path: pathlib.Path) -> tuple[list[Value], Kind]:
    file = pq.ParquetFile(path)
    column = file.read(columns=["v"]).column("v")
    stored = file.schema.column(0)
    logical = json.loads(stored.logical_type.to_json())["Type"] if stored.path.startswith("v") else "None"
    if logical == "Interval" or stored.converted_type == "INTERVAL":
        return [other("interval")] * len(column), Kind.OTHER
    if logical == "UUID" and not isinstance(column.type, pa.BaseExtensionType):
        return [NULL if one is None else text(str(uuid.UUID(bytes=one))) for one in column.to_pylist()], Kind.TEXT
    return of_arrow(column), kind_of_type(column.type)


# --- Remedies: what a text is if the command reads it as a number or a time ---

_ISO = re.compile(
    r"(?:(?P<date>\d{4}-\d\d-\d\d))?(?:(?<=\d)[T ])?(?:(?P<time>\d\d:\d\d:\d\d)(?:\.(?P<part>\d+))?)?(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?"
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


def read_as(remedy: Rule, value: Value) -> Value | None:
    """The value that a text spells, or with `Rule.TEXT` a byte string. None if it spells no such value."""
    if value.kind not in (Kind.TEXT, Kind.BYTES):
        return value
    if remedy == Rule.TEXT:
        assert isinstance(value.content, (bytes, str))
        try:
            return text(value.content.decode()) if isinstance(value.content, bytes) else value
        except UnicodeDecodeError:
            return None
    if value.kind == Kind.BYTES:
        return value
    written = str(value.content)
    if remedy == Rule.NUMBER:
        return number(written) if _NUMBER.fullmatch(written) else None
    found = _ISO.fullmatch(written)
    if not found or not (found["date"] or found["time"]):
        return None
    days = (dt.date.fromisoformat(found["date"]) - dt.date(1970, 1, 1)).days if found["date"] else 0
    if not found["time"]:
        return date(days) if not found["zone"] else None
    hours, minutes, rest = map(int, found["time"].split(":"))
    part = found["part"] or "0"
    passed = Fraction(days * 86_400 + hours * 3600 + minutes * 60 + rest) + Fraction(int(part), 10 ** len(part))
    if not found["date"]:
        return Value(Kind.TIME, passed) if not found["zone"] else None
    if not found["zone"]:
        return Value(Kind.TIMESTAMP, passed)
    zone = "+00:00" if found["zone"] == "Z" else found["zone"]
    ahead = (60 * int(zone[1:3]) + int(zone[-2:] if len(zone) > 3 else 0)) * 60
    return Value(Kind.INSTANT, passed + (ahead if zone[0] == "-" else -ahead))


# --- Writers ---


class Source(NamedTuple):
    """A column of a sort as a file or a frame, by one writer."""

    sort: Sort
    writer: str
    # csv, json, parquet or frame.
    format: str
    # The path of the file, or the frame.
    content: Any
    # The values that other readers find there.
    read: tuple[Value, ...]
    kinds: frozenset[Kind]
    # False for a frame whose package cannot select rows of it.
    can_choose: bool = True

    @property
    def name(self) -> str:
        return f"{self.sort.name} by {self.writer} {self.format}"

    @property
    def is_file(self) -> bool:
        return self.format != "frame"

    @property
    def options(self) -> list[str]:
        return ["--csv", "--header", "-f", "v"] if self.format == "csv" else ["--column", "v"]

    def as_read(self, remedy: Rule) -> "Source | None":
        """The same with the values of a remedy, or None if it does not read all of them."""
        values = [read_as(remedy, value) for value in self.read]
        if any(value is None for value in values):
            return None
        read = tuple(value for value in values if value is not None)
        return self._replace(read=read, kinds=kinds_of(read))


def kinds_of(values: Iterable[Value]) -> frozenset[Kind]:
    return frozenset(value.kind for value in values) - {Kind.NULL}


def _table(sort: Sort) -> pa.Table:
    if not isinstance(sort.column, pa.Array):
        raise TypeError("pandas alone has these")
    return pa.table({"v": sort.column, "w": pa.array(range(len(sort.meanings)), pa.int64())})


def _pandas(sort: Sort) -> pd.DataFrame:
    if isinstance(sort.column, pa.Array):
        return _table(sort).to_pandas()
    if isinstance(sort.column, Raw):
        raise TypeError("nobody writes these")
    column = pd.Series(sort.column, dtype=object) if isinstance(sort.column, list) else pd.Series(sort.column)
    return pd.DataFrame({"v": column, "w": range(len(column))})


def _pyarrow_csv(sort: Sort, path: pathlib.Path) -> None:
    pyarrow.csv.write_csv(_table(sort), path)


def _pyarrow_parquet(sort: Sort, path: pathlib.Path) -> None:
    pq.write_table(_table(sort), path)


def _pandas_json(sort: Sort, path: pathlib.Path, **options: Any) -> None:
    _pandas(sort).to_json(path, orient="records", lines=True, **options)


def _polars(sort: Sort) -> pl.DataFrame:
    # Polars would panic.
    if sort.name == "decimal256":
        raise TypeError("Polars has no decimals of 256 bits")
    frame = pl.from_arrow(_table(sort))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _polars_json(sort: Sort, path: pathlib.Path) -> None:
    frame = _polars(sort)
    # Polars would panic here, too.
    if frame["v"].dtype == pl.Binary or sort.name in ("uuid", "opaque"):
        raise TypeError("Polars writes no binary as JSON")
    frame.write_ndjson(path)


def _duckdb(sort: Sort, path: pathlib.Path, options: str) -> None:
    connection = duckdb_connection()
    connection.register("written", _table(sort))
    connection.execute(f"COPY written TO '{path}' ({options})")


def _python_json(sort: Sort, path: pathlib.Path) -> None:
    """Writes the values of `to_pylist` by the module `json`."""
    rows = _table(sort).to_pylist()
    path.write_text("".join(json.dumps(row, allow_nan=False) + "\n" for row in rows))


def _as_it_is(sort: Sort, path: pathlib.Path, format: str) -> None:
    if not isinstance(sort.column, Raw) or sort.column.format != format:
        raise TypeError("others write these")
    begin, line = {"csv": (b"v,w\n", b"%s,%d\n"), "json": (b"", b'{"v":%s,"w":%d}\n')}[format]
    path.write_bytes(begin + b"".join(line % (value, row) for row, value in enumerate(sort.column.values)))


WRITERS: dict[tuple[str, str], Callable[[Sort, pathlib.Path], None]] = {
    ("pyarrow", "csv"): _pyarrow_csv,
    ("pyarrow", "parquet"): _pyarrow_parquet,
    ("pandas", "csv"): lambda sort, path: _pandas(sort).to_csv(path, index=False),
    ("pandas", "json"): functools.partial(_pandas_json, date_format="epoch"),
    ("pandas iso", "json"): functools.partial(_pandas_json, date_format="iso"),
    ("pandas", "parquet"): lambda sort, path: _pandas(sort).to_parquet(path, index=False),
    ("polars", "csv"): lambda sort, path: _polars(sort).write_csv(path),
    ("polars", "json"): _polars_json,
    ("polars", "parquet"): lambda sort, path: _polars(sort).write_parquet(path),
    ("duckdb", "csv"): functools.partial(_duckdb, options="FORMAT csv, HEADER"),
    ("duckdb", "json"): functools.partial(_duckdb, options="FORMAT json"),
    ("duckdb", "parquet"): functools.partial(_duckdb, options="FORMAT parquet"),
    ("python", "json"): _python_json,
    ("by hand", "csv"): functools.partial(_as_it_is, format="csv"),
    ("by hand", "json"): functools.partial(_as_it_is, format="json"),
}


def _frames(sort: Sort) -> Iterator[tuple[str, Callable[[], tuple[Any, list[Value], frozenset[Kind]]]]]:
    """Functions that make the frames of a sort, with their values and kinds."""

    def of_pandas() -> tuple[Any, list[Value], frozenset[Kind]]:
        frame = _pandas(sort)
        # What has no array of Arrow has no key.
        if sort.meanings[0].kind != Kind.OTHER and not sort.is_mixed:
            pa.Array.from_pandas(frame["v"])
        read = [of_object(frame["v"].iloc[row]) for row in range(len(frame))]
        return frame, read, kinds_of(read)

    def of_pandas_arrow() -> tuple[Any, list[Value], frozenset[Kind]]:
        frame = _table(sort).to_pandas(types_mapper=pd.ArrowDtype)
        column = pa.array(frame["v"].array)
        return frame, of_arrow(column), frozenset({kind_of_type(column.type)}) - {Kind.NULL}

    def of_polars() -> tuple[Any, list[Value], frozenset[Kind]]:
        frame = _polars(sort)
        column = frame["v"].to_arrow()
        return frame, of_arrow(column), frozenset({kind_of_type(column.type)}) - {Kind.NULL}

    def of_pyarrow() -> tuple[Any, list[Value], frozenset[Kind]]:
        return _table(sort), sort.meanings, frozenset({kind_of_type(sort.column.type)}) - {Kind.NULL}

    yield "pandas", of_pandas
    if isinstance(sort.column, pa.Array):
        yield from [("pandas arrow", of_pandas_arrow), ("polars", of_polars), ("pyarrow", of_pyarrow)]


def _can_choose(frame: Any) -> bool:
    mask = np.arange(len(frame)) % 2 == 0
    try:
        if isinstance(frame, pd.DataFrame):
            frame[mask]
        else:
            frame.filter(pa.array(mask) if isinstance(frame, pa.Table) else mask)
    except _UNKNOWN:
        return False
    return True


# Errors of writers and readers that do not support a type.
_UNKNOWN = (
    pa.ArrowException,
    pl.exceptions.PolarsError,
    AttributeError,
    NotImplementedError,
    OverflowError,
    TypeError,
    ValueError,
)


def _written(writers: dict[tuple[str, str], Any], folder: pathlib.Path) -> Iterator[Source]:
    import duckdb

    for sort in SORTS.values():
        for (writer, format), write in writers.items():
            path = folder / f"{hashlib.sha256(repr((sort.name, writer)).encode()).hexdigest()[:16]}.{format}"
            try:
                write(sort, path)
                values, kinds = _read(path, format)
            except (*_UNKNOWN, duckdb.Error):
                path.unlink(missing_ok=True)
                continue
            yield Source(sort, writer, format, path, tuple(values), kinds)


def _read(path: pathlib.Path, format: str) -> tuple[list[Value], frozenset[Kind]]:
    if format == "parquet":
        values, kind = read_parquet(path)
        return values, frozenset({kind}) - {Kind.NULL}
    values = read_csv(path) if format == "csv" else read_json(path)
    return values, kinds_of(values)


def sources(folder: pathlib.Path, writers: dict[tuple[str, str], Any] | None = None) -> list[Source]:
    """Each sort by each writer that can write it, and as frames."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(_written(WRITERS if writers is None else writers, folder))
        for sort in SORTS.values() if writers is None else ():
            for writer, make in _frames(sort):
                with contextlib.suppress(*_UNKNOWN):
                    frame, read, kinds = make()
                    found.append(Source(sort, writer, "frame", frame, tuple(read), kinds, _can_choose(frame)))
    return found


SPARK_FORMATS = "csv", "json", "parquet"


def write_by_spark(folder: str) -> None:
    """Writes each sort that Spark supports, in a process of its own."""
    import spark_session

    session = spark_session.start("local[1]")
    for sort in SORTS.values():
        with contextlib.suppress(Exception):
            frame = session.createDataFrame(_table(sort)).coalesce(1)
            for format in SPARK_FORMATS:
                with contextlib.suppress(Exception):
                    frame.write.format(format).options(header=True, ignoreNullFields=False).save(f"{folder}/{sort.name}-{format}")


def sources_of_spark(folder: pathlib.Path) -> list[Source]:
    program = "import sys, doors; doors.write_by_spark(sys.argv[1])"
    directory = pathlib.Path(__file__).parent
    subprocess.run([sys.executable, "-c", program, folder], check=True, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def move(sort: Sort, path: pathlib.Path) -> None:
        parts = list(folder.glob(f"{sort.name}-{path.suffix[1:]}/part-*"))
        if len(parts) != 1:
            raise TypeError("Spark does not write it")
        parts[0].rename(path)

    return sources(folder, {("spark", format): move for format in SPARK_FORMATS})


# --- Doors ---

# Another build of the command than that of the wheel.
COMMAND = os.environ.get("BLOOMLINE_COMMAND")
# A program that runs the command of the wheel in a child for each line of its input. To start Python each time takes ten times as long.
STARTER = """
import json, os, sys
from bloomline._bloomline import _run_command_line
for line in sys.stdin:
    folder, *arguments = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        for number, name in (1, "stdout"), (2, "stderr"):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os._exit(_run_command_line(["bloomline", *arguments]))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
# No false positive is likely in all cells.
RATE = "1e-9"
# The name of keys that are the column `v`.
KEY_NAME = "v"


class Answer(NamedTuple):
    """The answer of a door: the rows that are new, or a sentence that refuses them."""

    # Numbers of rows, or None if it refused.
    new: frozenset[int] | None
    sentence: str
    # True if the door neither answered nor refused, or wrote rows before it refused.
    is_broken: bool = False
    # The command or the call.
    call: str = ""


class Commands:
    """Runs of the command by several threads, each in a folder of its own."""

    def __init__(self, folder: pathlib.Path, threads: int) -> None:
        self.threads = threads
        self.workers: queue.SimpleQueue[tuple[pathlib.Path, Any]] = queue.SimpleQueue()
        self.starters: list[Any] = []
        for number in range(threads):
            directory = folder / f"thread{number}"
            directory.mkdir()
            starter: Any = None
            if not COMMAND:
                starter = subprocess.Popen([sys.executable, "-c", STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                self.starters.append(starter)
            self.workers.put((directory, starter))

    def close(self) -> None:
        for starter in self.starters:
            starter.stdin.close()
            starter.wait()

    def run(
        self, arguments: Sequence[str], format: str, *, changes: pathlib.Path | None = None, keeps: pathlib.Path | None = None
    ) -> Answer:
        """Runs the command on inputs of a format. Its state begins as a copy of `changes` and ends as `keeps`."""
        directory, starter = self.workers.get()
        try:
            state = directory / "state"
            state.unlink(missing_ok=True)
            if changes:
                state.write_bytes(changes.read_bytes())
            if not COMMAND:
                starter.stdin.write(json.dumps([str(directory), *arguments]) + "\n")
                starter.stdin.flush()
                code = int(starter.stdout.readline())
            else:
                with (directory / "stdout").open("wb") as output, (directory / "stderr").open("wb") as errors:
                    code = subprocess.run(
                        [COMMAND, *arguments], cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=errors
                    ).returncode
            sentence = (directory / "stderr").read_text(errors="replace")
            call = " ".join(["bloomline", *arguments])
            if code not in (0, 1):
                is_late = _has_rows(directory / "stdout", format) or changes is not None and state.read_bytes() != changes.read_bytes()
                return Answer(None, sentence, is_late or code != 2 or "panicked" in sentence, call)
            if keeps:
                state.rename(keeps)
            return Answer(frozenset(_rows(directory / "stdout", format)), sentence, "panicked" in sentence, call)
        finally:
            self.workers.put((directory, starter))


def _rows(path: pathlib.Path, format: str) -> list[int]:
    """The numbers of the rows of an output."""
    if path.stat().st_size == 0:
        return []
    if format == "parquet":
        return list(pq.read_table(path, columns=["w"]).column("w").to_pylist())
    if format == "json":
        return [json.loads(line)["w"] for line in path.read_text().splitlines()]
    with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        return [int(row["w"]) for row in csv.DictReader(file)]


def _has_rows(path: pathlib.Path, format: str) -> bool:
    try:
        return bool(_rows(path, format))
    except pa.ArrowException:
        # A file without its footer has no rows.
        return False


def _asked(ask: Callable[[], Any], call: str) -> Answer:
    """The answer of a door of the Python module."""
    try:
        return Answer(frozenset(ask()), "", call=call)
    except (TypeError, ValueError) as error:
        return Answer(None, str(error), call=call)
    except Exception as error:
        return Answer(None, repr(error), True, call)


def _numbers_of(frame: Any) -> list[int]:
    return [int(row) for row in (frame["w"].to_pylist() if isinstance(frame, pa.Table) else frame["w"].to_list())]


def _select(frame: Any) -> Any:
    return frame.select(["v"]) if isinstance(frame, (pa.Table, pl.DataFrame)) else frame[["v"]]


class Cell(NamedTuple):
    """The answers for the rows of a column, after another column."""

    # The number of rows that are equal, different, changed by their writer or refused, or for which the door is wrong.
    labels: Counter[str]
    # The rows for which the door is wrong, or an empty text.
    trouble: str


WRONG = ("silent", "refused without need", "no reason given", "broken")


def names_of(kinds: Collection[Kind]) -> str:
    return " or ".join(sorted(kinds)) or "nulls"


def is_refused(old: frozenset[Kind], new: frozenset[Kind]) -> bool:
    """True if a door has to refuse a column of some kinds beside a filter, or old lines, of others."""
    if Kind.OTHER in old | new:
        return True
    return bool(old and new) and all(rule(one, other) != Rule.BY_VALUE for one in old for other in new)


def judge(old: Source | None, new: Source, answer: Answer, *, distinct: bool, is_command: bool) -> Cell:
    """Compares the answer of a door with the rules."""
    known = set(old.read) if old else set()
    meant = set(old.sort.meanings) if old else set()
    old_kinds = old.kinds if old else frozenset()
    refuses = is_refused(old_kinds, new.kinds)
    # Objects of several kinds are refused by themselves.
    is_of_objects = new.sort.is_mixed and any(reason in answer.sentence for reason in ("several kinds", "lack a member"))
    may_refuse = new.sort.is_mixed or bool(old and old.sort.is_mixed)
    labels: Counter[str] = Counter()
    wrong: list[str] = []
    before: set[Value] = set()
    for row, (meaning, read) in enumerate(zip(new.sort.meanings, new.read, strict=True)):
        is_known, is_meant = read in known or distinct and read in before, meaning in meant
        if distinct and read in before and old:
            continue
        before.add(read)
        if old is None:
            is_meant = meaning in new.sort.meanings[:row]
        if refuses:
            label = "refused"
        elif is_known != is_meant:
            label = "changed by its writer"
        else:
            label = "equal" if is_known else "different"
        if answer.is_broken:
            label = "broken"
        elif answer.new is None:
            if not refuses and not may_refuse:
                label = "refused without need"
            elif not is_of_objects and not has_reason(old_kinds, new.kinds, answer.sentence, is_command):
                label = "no reason given"
            else:
                label = "refused"
        elif refuses or (row in answer.new) == is_known:
            label = "silent"
        labels[label] += 1
        if label in WRONG:
            expected = "refused" if refuses else "seen" if is_known else "new"
            got = answer.sentence.strip() if answer.new is None else "new" if row in answer.new else "seen"
            wrong.append(f"  row {row}: {describe(read)} is {expected} by the rules, but {label}: {got}")
    if not wrong:
        return Cell(labels, "")
    first = f"{old.name}, {names_of(old.kinds)}: {', '.join(map(describe, old.read))}\n  then " if old else ""
    return Cell(labels, f"{first}{new.name}, {names_of(new.kinds)}\n  {answer.call}\n" + "\n".join(wrong))


def describe(value: Value) -> str:
    content = value.content
    if value.kind == Kind.NUMBER and isinstance(content, tuple):
        sign, digits, exponent = content
        content = f"{'-' * sign}{digits}" + (f"e{exponent}" if exponent else "")
    elif value.kind in (Kind.LIST, Kind.STRUCT, Kind.MAP):
        content = "…"
    return f"{value.kind.name.lower()} {content}"


def has_reason(old: frozenset[Kind], new: frozenset[Kind], sentence: str, is_command: bool) -> bool:
    """True if a sentence names the kinds that differ, and the option that makes them one."""
    if Kind.OTHER in old | new:
        return "cannot be keys" in sentence
    remedies = {rule(one, other).name.lower() for one in old for other in new} - {"refused"}
    names = any(kind in sentence for kind in old) and any(kind in sentence for kind in new)
    return names and (not is_command or not remedies or any(f"--normalize {name}" in sentence for name in remedies))


class Way(NamedTuple):
    """The two doors that columns take, one after the other."""

    name: str
    # A file of the command, or a frame.
    old: str
    new: str


WAYS = [
    Way("dedup -s", "file", "file"),
    Way("dedup -s", "frame", "file"),
    Way("check", "file", "file"),
    Way("check", "frame", "file"),
    Way("dedup(seen=)", "file", "frame"),
    Way("dedup(seen=)", "frame", "frame"),
    Way("contains_rows", "file", "frame"),
    Way("contains_rows", "frame", "frame"),
    Way("not-in", "file", "file"),
    Way("not-in --exact", "file", "file"),
]


def can_go(way: Way, old: Source, new: Source) -> bool:
    """True if the doors take these columns."""
    if (old.is_file, new.is_file) != (way.old == "file", way.new == "file"):
        return False
    if way.name == "dedup(seen=)" and not new.can_choose:
        return False
    # One run reads either CSV or what has columns.
    return not way.name.startswith("not-in") or (old.format == "csv") == (new.format == "csv")


class Pair(NamedTuple):
    """Two columns, the doors that they take, and the option `--normalize` for those that have texts."""

    way: Way
    old: Source
    new: Source
    remedy: Rule | None = None


class Table:
    """Filters that are filled with columns, and asked for others."""

    def __init__(self, folder: pathlib.Path, threads: int = 2 * (os.cpu_count() or 1)) -> None:
        self.folder = folder
        self.commands = Commands(folder, threads)
        self.filters: dict[tuple[str, Rule | None], tuple[pathlib.Path | None, Cell]] = {}
        self.locks: dict[tuple[str, Rule | None], threading.Lock] = {}
        self.lock = threading.Lock()

    def close(self) -> None:
        self.commands.close()

    def fill(self, source: Source, remedy: Rule | None = None) -> tuple[pathlib.Path | None, Cell]:
        """The file of a filter with the keys of a column, or None if they are refused."""
        key = source.name, remedy
        with self.lock:
            lock = self.locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self.filters:
                self.filters[key] = self._fill(source, remedy)
            return self.filters[key]

    def _fill(self, source: Source, remedy: Rule | None) -> tuple[pathlib.Path | None, Cell]:
        with self.lock:
            path = self.folder / f"{len(self.locks)}-{random.getrandbits(32):x}.bloom"
        if source.is_file:
            arguments = ["dedup", "-s", "state", "-n", "1000", "-p", RATE, *source.options, *_normalize(remedy), str(source.content)]
            answer = self.commands.run(arguments, source.format, keeps=path)
        else:
            seen = ScalableBloomFilter(1000, float(RATE), key_name=KEY_NAME)
            if source.can_choose:
                answer = _asked(
                    lambda: _numbers_of(bloomline.dedup(source.content, on="v", seen=seen)), "bloomline.dedup(frame, on='v', seen=filter)"
                )
            else:
                answer = _asked(lambda: np.flatnonzero(seen.add_rows(_select(source.content))).tolist(), "filter.add_rows(frame[['v']])")
            if answer.new is not None:
                seen.save(path)
        read = source.as_read(remedy) if remedy else source
        assert read
        return (None if answer.new is None else path), judge(None, read, answer, distinct=True, is_command=source.is_file)

    def ask(self, pair: Pair) -> Cell | None:
        """The cell of a pair, or None if a filter cannot have the keys of the first column."""
        way, old, new, remedy = pair
        # Only a run that reads texts needs the remedy.
        old_read, new_read = [(source.as_read(remedy) if remedy else source) for source in (old, new)]
        assert old_read and new_read
        old_remedy, new_remedy = [
            remedy if remedy and read.read != source.read else None for read, source in ((old_read, old), (new_read, new))
        ]
        if way.name.startswith("not-in"):
            command, *options = way.name.split()
            rate = [] if options else ["-p", RATE]
            arguments = [command, *options, *rate, *new.options, *_normalize(remedy), str(old.content), "--", str(new.content)]
            return judge(old_read, new_read, self.commands.run(arguments, new.format), distinct=False, is_command=True)
        path, _ = self.fill(old, old_remedy)
        if path is None:
            return None
        if way.name == "contains_rows":
            answer = _asked(
                lambda: [row for row, known in enumerate(_load(path).contains_rows(_select(new.content))) if not known],
                "filter.contains_rows(frame[['v']])",
            )
            return judge(old_read, new_read, answer, distinct=False, is_command=False)
        if way.name == "dedup(seen=)":
            answer = _asked(
                lambda: _numbers_of(bloomline.dedup(new.content, on="v", seen=_load(path))), "bloomline.dedup(frame, on='v', seen=filter)"
            )
            return judge(old_read, new_read, answer, distinct=True, is_command=False)
        options = [*new.options, *_normalize(new_remedy), str(new.content)]
        if way.name == "check":
            answer = self.commands.run(["check", "-v", "-s", str(path), *options], new.format)
        else:
            answer = self.commands.run(["dedup", "-s", "state", *options], new.format, changes=path)
        return judge(old_read, new_read, answer, distinct=way.name != "check", is_command=True)

    def ask_all(self, pairs: Sequence[Pair]) -> list[tuple[Pair, Cell]]:
        """The cells of pairs, those of the command side by side."""
        of_command = [pair for pair in pairs if pair.new.is_file]
        of_frames = [pair for pair in pairs if not pair.new.is_file]
        files = {pair.old.name: pair for pair in of_frames if pair.old.is_file}
        with ThreadPoolExecutor(self.commands.threads) as pool:
            # Frames stay in this thread.
            for pair in pairs:
                if not pair.old.is_file and not pair.way.name.startswith("not-in"):
                    self.fill(pair.old)
            list(pool.map(lambda pair: self.fill(pair.old), files.values()))
            answers = list(pool.map(self.ask, of_command))
        found = [*zip(of_command, answers, strict=True), *((pair, self.ask(pair)) for pair in of_frames)]
        return [(pair, cell) for pair, cell in found if cell]

    def fill_all(self, filled: Sequence[Source]) -> list[tuple[Source, Cell]]:
        """The cells of columns alone, whose repeats are found."""
        with ThreadPoolExecutor(self.commands.threads) as pool:
            cells = list(pool.map(lambda source: self.fill(source)[1] if source.is_file else None, filled))
        return [(source, cell or self.fill(source)[1]) for source, cell in zip(filled, cells, strict=True)]


def _normalize(remedy: Rule | None) -> list[str]:
    return ["--normalize", remedy.name.lower()] if remedy else []


def _load(path: pathlib.Path) -> Any:
    return ScalableBloomFilter.load(path)


# --- The pairs of columns ---


def by_kinds(found: Sequence[Source]) -> dict[frozenset[Kind], list[Source]]:
    groups: dict[frozenset[Kind], list[Source]] = {}
    for source in found:
        groups.setdefault(source.kinds, []).append(source)
    return groups


def pairs_of_kinds(found: Sequence[Source], chance: random.Random, each: int) -> Iterator[Pair]:
    """For each pair of kinds and each way, some pairs of columns."""
    groups = by_kinds(found)
    for old_group in groups.values():
        for new_group in groups.values():
            for way in WAYS:
                olds = [source for source in old_group if source.is_file == (way.old == "file")]
                news = [source for source in new_group if source.is_file == (way.new == "file")]
                possible = 0
                for _ in range(4 * each if olds and news else 0):
                    old, new = chance.choice(olds), chance.choice(news)
                    if can_go(way, old, new) and possible < each:
                        possible += 1
                        yield Pair(way, old, new)


def pairs_of_sources(found: Sequence[Source], chance: random.Random, each: int) -> Iterator[Pair]:
    """For each column some others of its kinds, before it and after it."""
    groups = by_kinds(found)
    for source in found:
        for _ in range(each):
            another = chance.choice(groups[source.kinds])
            old, new = chance.sample([source, another], 2)
            ways = [way for way in WAYS if can_go(way, old, new)]
            if ways:
                yield Pair(chance.choice(ways), old, new)


def is_spelled(source: Source, remedy: Rule, kinds: Collection[Kind]) -> bool:
    """True for a file of texts, or for the remedy of texts, of byte strings, that spell values of some kinds."""
    if not source.is_file or source.kinds != {Kind.BYTES if remedy == Rule.TEXT else Kind.TEXT}:
        return False
    # Texts that are numbers or times by chance are left out.
    return source.as_read(remedy) is not None and (remedy == Rule.TEXT or kinds_of(source.sort.meanings) <= set(kinds))


def pairs_of_remedies(found: Sequence[Source], chance: random.Random, each: int) -> Iterator[Pair]:
    """For each file whose texts a remedy reads as the values that were written, some columns of that kind, and other spellings of it."""
    for remedy, kinds in (Rule.NUMBER, [Kind.NUMBER]), (Rule.TIME, CLOCKS), (Rule.TEXT, [Kind.TEXT]):
        groups = by_kinds([source for source in found if source.kinds <= set(kinds)])
        spelled = [source for source in found if is_spelled(source, remedy, kinds)]
        spellings = by_kinds([read for read in (source.as_read(remedy) for source in spelled) if read])
        for source in spelled:
            read = source.as_read(remedy)
            assert read
            others = groups.get(read.kinds, [])
            for number in range(2 * each):
                # The spellings are found by the files that they are in.
                another = chance.choice(others if number % 2 and others else spellings[read.kinds])
                old, new = chance.sample([source, next((one for one in spelled if one.content is another.content), another)], 2)
                ways = [way for way in WAYS if can_go(way, old, new)]
                if ways:
                    yield Pair(chance.choice(ways), old, new, remedy)


def pairs_of_sorts(found: Sequence[Source], chance: random.Random, each: int) -> Iterator[Pair]:
    """For each pair of sorts and each way, some pairs of writers whose values are of one kind."""
    groups: dict[str, list[Source]] = {}
    for source in found:
        groups.setdefault(source.sort.name, []).append(source)
    for old_group in groups.values():
        for new_group in groups.values():
            for way in WAYS:
                possible = [
                    (old, new) for old in old_group for new in new_group if can_go(way, old, new) and not is_refused(old.kinds, new.kinds)
                ]
                for old, new in chance.sample(possible, min(each, len(possible))):
                    yield Pair(way, old, new)


def sample(found: Sequence[Source], seed: int) -> list[Pair]:
    """Pairs of the everyday checks: all kinds, all writers and formats, all doors."""
    chance = random.Random(seed)
    pairs = [*pairs_of_kinds(found, chance, 1), *pairs_of_sources(found, chance, 1), *pairs_of_remedies(found, chance, 1)]
    return [pair for pair in pairs if chance.random() < 0.5]


def whole(found: Sequence[Source], seed: int) -> list[Pair]:
    """Pairs of the nightly checks."""
    chance = random.Random(seed)
    return [
        *pairs_of_kinds(found, chance, 5),
        *pairs_of_sources(found, chance, 10),
        *pairs_of_remedies(found, chance, 10),
        *pairs_of_sorts(found, chance, 1),
    ]
