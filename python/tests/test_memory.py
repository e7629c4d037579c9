"""Calls leave no memory behind, whatever their keys, and also where no other call follows."""

import collections
import itertools
import os
import resource
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from bloomline import BloomFilter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/statm")

# Calls with each key, unless BLOOMLINE_CALLS says another number.
CALLS = int(os.environ.get("BLOOMLINE_CALLS", 300_000 if os.environ.get("CI") else 100_000))

KEYS: dict[str, Any] = {
    "text": "https://example.org/é",
    "bytes": b"bytes",
    "a bytearray": bytearray(b"bytes"),
    "a small integer": 7,
    "an integer below 0": -7,
    "a large integer": 2**63,
    "NumPy's integer": np.uint64(2**63),
    "NumPy's bool": np.True_,
    "a tuple": ("a", 2**63, (b"b", -1)),
}
NO_KEYS: dict[str, Any] = {
    "nothing": None,
    "a float": 1.5,
    "too large an integer": 2**64,
    "half a character": "\ud800",
    "an empty tuple": (),
    "a tuple of no key": ("a", None),
}


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def least(count: int) -> int:
    """Half of what the calls would leave behind with an object each: no allocator gives less than 16 bytes."""
    return max(1 << 20, 8 * count)


def check(calls: Callable[[int], None], count: int = CALLS) -> None:
    """That calls leave nothing behind, but for what the first ones prepare."""
    calls(count // 10)
    before = resident()
    calls(count)
    assert resident() - before < least(count)


def run(answers: Iterable[Any]) -> None:
    collections.deque(answers, maxlen=0)


def refused(call: Callable[[Any], Any], key: Any) -> Callable[[int], None]:
    def calls(count: int) -> None:
        for _ in itertools.repeat(None, count):
            try:
                call(key)
            except (TypeError, ValueError, OverflowError):
                continue
            raise AssertionError("no exception")

    return calls


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_add_and_in(key: Any) -> None:
    filter = BloomFilter(1000, 0.01)
    check(lambda count: run(map(filter.add, itertools.repeat(key, count))))
    check(lambda count: run(map(filter.__contains__, itertools.repeat(key, count))), CALLS // 3)


@pytest.mark.parametrize("key", NO_KEYS.values(), ids=NO_KEYS)
def test_what_is_no_key(key: Any) -> None:
    filter = BloomFilter(1000, 0.01)
    check(refused(filter.add, key))
    check(refused(filter.__contains__, key), CALLS // 3)


def test_add_to_what_is_for_reading(tmp_path: Any) -> None:
    BloomFilter(1000, 0.01).save(tmp_path / "seen.bloom")
    check(refused(BloomFilter.map(tmp_path / "seen.bloom").add, "text"))


def test_many_keys() -> None:
    filter = BloomFilter(1000, 0.01)
    sound: list[Any] = [[*KEYS.values()], np.array([1, 2]), np.array(["a", "b"])]
    for call in filter.add_many, filter.contains_many, filter.update:
        for keys in sound:
            check(lambda count, call=call, keys=keys: run(map(call, itertools.repeat(keys, count))), CALLS // 3)
        for key in NO_KEYS.values():
            check(refused(call, ["a", key]), CALLS // 3)
