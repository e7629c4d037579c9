"""Calls leave no memory behind, for any keys, and even if no other call follows."""

import collections
import ctypes
import gc
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from bloomline import BloomFilter


class Mallinfo(ctypes.Structure):
    """The result of glibc's `mallinfo2`."""

    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
pytestmark = pytest.mark.skipif(mallinfo is None, reason="asks glibc for the memory in use")
if mallinfo is not None:
    mallinfo.restype = Mallinfo

# Calls with each key.
CALLS = 6000

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


@pytest.fixture(scope="module", autouse=True)
def imported() -> Iterator[None]:
    """Excludes the objects of all imported modules from collections, which would traverse them at each measurement."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def in_use() -> tuple[int, int]:
    """The number of objects from Python's allocator, and of bytes from the C library's."""
    gc.collect()
    found = mallinfo()  # type: ignore[misc]
    return sys.getallocatedblocks(), found.uordblks + found.hblkhd


def check(calls: Callable[[int], None], count: int = CALLS) -> None:
    """Checks that calls leave no memory behind, except for what the first calls prepare."""
    calls(count // 10)
    before = in_use()
    calls(count)
    after = in_use()
    # Half of the memory of one object per call: allocators give 16 bytes or more.
    assert after[0] - before[0] < count // 2 and after[1] - before[1] < 8 * count


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
def test_add_and_in_leave_no_memory(key: Any) -> None:
    filter = BloomFilter(1000, 0.01)
    check(lambda count: run(map(filter.add, itertools.repeat(key, count))))
    check(lambda count: run(map(filter.__contains__, itertools.repeat(key, count))), CALLS // 3)


@pytest.mark.parametrize("key", NO_KEYS.values(), ids=NO_KEYS)
def test_refused_keys_leave_no_memory(key: Any) -> None:
    filter = BloomFilter(1000, 0.01)
    check(refused(filter.add, key))
    check(refused(filter.__contains__, key), CALLS // 3)


def test_add_to_a_mapped_filter_leaves_no_memory(tmp_path: Any) -> None:
    BloomFilter(1000, 0.01).save(tmp_path / "seen.bloom")
    check(refused(BloomFilter.map(tmp_path / "seen.bloom").add, "text"))


def test_batches_leave_no_memory() -> None:
    filter = BloomFilter(1000, 0.01)
    sound: list[Any] = [[*KEYS.values()], np.array([1, 2]), np.array(["a", "b"])]
    for call in filter.add_many, filter.contains_many, filter.update:
        for keys in sound:
            check(lambda count, call=call, keys=keys: run(map(call, itertools.repeat(keys, count))), CALLS // 3)
        for key in NO_KEYS.values():
            check(refused(call, ["a", key]), CALLS // 3)
