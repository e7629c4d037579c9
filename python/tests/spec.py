"""Filters as docs/FORMAT.md and crates/text/FORMAT.md specify them, with the Python of these pages: no code is shared with the module
under test."""

import functools
import pathlib
import re
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
_page: dict[str, Any] = {}
for page in ["docs/FORMAT.md", "crates/text/FORMAT.md"]:
    exec("".join(re.findall("```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)), _page)
_secret = _page["make_secret"] = functools.cache(_page["make_secret"])


def hash_of(key: Any, seed: int = 0) -> int:
    """The hash of a key of Python, as README.md describes it."""
    if isinstance(key, tuple):
        return _page["hash_tuple"]([hash_of(member, seed) for member in key], seed, _secret(seed))
    if isinstance(key, str):
        key = key.encode()
    elif isinstance(key, int):
        key = (key % 2**64).to_bytes(8, "little")
    return _page["wyhash"](bytes(key), seed, _secret(seed))


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
