"""Filters as docs/FORMAT.md and crates/text/FORMAT.md specify them, by the Python of these pages. No code is shared with the module
under test."""

import datetime as dt
import functools
import math
import pathlib
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
_page: dict[str, Any] = {}
for page in ["docs/FORMAT.md", "crates/text/FORMAT.md"]:
    exec("".join(re.findall("```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)), _page)
_secret = _page["make_secret"] = functools.cache(_page["make_secret"])


def hash_of(key: Any, seed: int = 0) -> int:
    """The hash of a key of Python, as PYTHON.md describes it."""
    if isinstance(key, tuple):
        return _page["hash_tuple"]([hash_of(member, seed) for member in key], seed, _secret(seed))
    if isinstance(key, str):
        key = key.encode()
    elif isinstance(key, int):
        key = (key % 2**64).to_bytes(8, "little")
    return _page["wyhash"](bytes(key), seed, _secret(seed))


def number_of(number: int | float | Decimal) -> str:
    """A number's sign, its digits without zeros at the end, and its exponent unless that is 0. A float has its shortest digits."""
    if number != number:
        return "nan"
    if isinstance(number, float) and math.isinf(number):
        return "inf" if number > 0 else "-inf"
    sign, digits, exponent = Decimal(repr(number) if isinstance(number, float) else number).as_tuple()
    text = "".join(map(str, digits))
    stripped = text.strip("0")
    if not stripped:
        return "0"
    assert isinstance(exponent, int)
    exponent += len(text) - len(text.rstrip("0"))
    return "-" * sign + stripped.lstrip("0") + (f"e{exponent}" if exponent else "")


def seconds_of(time: dt.timedelta) -> str:
    return number_of(Decimal(time // dt.timedelta(microseconds=1)).scaleb(-6))


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data


def struct_of(members: Mapping[str, Any]) -> bytes:
    """A struct, or a row of named columns."""
    return b"\xff{" + b"".join(sized(name.encode()) + sized(value_of(value)) for name, value in sorted(members.items()))


def value_of(value: Any) -> bytes:
    """The key of a value of a row, as bytes."""
    day = dt.datetime(1970, 1, 1)
    match value:
        case None:
            return b"\xff0"
        case str():
            return value.encode()
        case bytes():
            return b"\xffb" + value
        case bool():
            return b"\xfft" if value else b"\xfff"
        case int() | float() | Decimal():
            return b"\xffn" + number_of(value).encode()
        case dt.datetime():
            tag, start = ("s", day) if value.tzinfo is None else ("i", day.replace(tzinfo=dt.UTC))
            return f"\xff{tag}{seconds_of(value - start)}".encode("latin-1")
        case dt.date():
            return f"\xffd{number_of((value - day.date()).days)}".encode("latin-1")
        case dt.time():
            since = dt.datetime.combine(day, value) - day
            return f"\xffc{seconds_of(since)}".encode("latin-1")
        case dt.timedelta():
            return f"\xffu{seconds_of(value)}".encode("latin-1")
        case list():
            return b"\xff[" + b"".join(sized(value_of(item)) for item in value)
        case Mapping():
            return struct_of(value)
    raise AssertionError(value)


def bits_of(data: bytes) -> int:
    """The blocks of a filter's file as one integer."""
    fields = int.from_bytes(data[48:52], "little")
    return int.from_bytes(data[64 + fields : -16], "little")


def expected_bits(data: bytes, keys: list[Any], seed: int = 0) -> int:
    """The blocks that these keys make in a filter like the one of this file."""
    probes = int.from_bytes(data[14:16], "little")
    blocks = int.from_bytes(data[16:24], "little")
    made = 0
    for key in keys:
        block, pairs = _page["bits"](hash_of(key, seed), blocks, probes)
        for word, bit in pairs:
            made |= 1 << 512 * block + 64 * word + bit
    return made


@functools.cache
def grams_of(text: str) -> frozenset[int]:
    """The hashes of the grams of five words of a text whose tokens are words between spaces."""
    tokens = [word.encode() for word in text.split(" ") if word]
    windows = [tokens[i : i + 5] for i in range(max(len(tokens) - 5, 0) + 1)] if tokens else []
    return frozenset(_page["gram_hash"](window, 0) for window in windows)


@functools.cache
def bands_of(text: str, bands: int, rows: int) -> frozenset[int]:
    """The hashes of the bands of such a text."""
    grams = grams_of(text)
    return frozenset(_page["hash_bands"](sorted(grams), bands, rows, 0, _secret(0)) if grams else [])
