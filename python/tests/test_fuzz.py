"""Random calls from three threads at once, over every class, with keys and arrays that are sound, odd or broken.

Each thread shares some filters with the others and has some of its own. Its own filters must answer like twins that get one key at a
time. BLOOMLINE_FUZZ_SECONDS is the duration; without it, a second or two.
"""

import array
import faulthandler
import io
import itertools
import os
import pathlib
import pickle
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from bloomline import BloomFilter, RotatingBloomFilter
from test_arrays import unaligned
from test_filters import COPIED
from test_keys import CLASSES

SECONDS = float(os.environ.get("BLOOMLINE_FUZZ_SECONDS", 0))
ROUNDS = 400
THREADS = 3


class Boom(Exception):
    """The error of a producer."""


ALLOWED = (TypeError, ValueError, OverflowError, RecursionError, BufferError, OSError, MemoryError, Boom)
# Exceptions of damaged pickles before from_bytes is called.
UNPICKLED = (*ALLOWED, pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, KeyError)
shared = [make(3000, 0.01) for make in CLASSES for _ in range(2)]
moving, growing = np.zeros(3000, np.int64), bytearray(3000)


def word(r: random.Random) -> str:
    return "".join(r.choices("abé\U0001f600", k=r.choice([0, 1, 2, 12, 13, 40])))


def sound_arrays(r: random.Random) -> tuple[Any, list[Any]]:
    """Keys of any shape, and the same keys as a list. Keys that can be read once are a function."""
    count = r.choice([0, 1, 7, 511, 512, 513, 1500])
    start = r.choice([0, 0, 1, 3, 100])
    step = r.choice([1, 2, -1, -3])
    numbers = [r.randrange(100) for _ in range(count)]
    words = [word(r) for _ in range(count)]
    pairs = list(zip(numbers, words))
    integers = pa.array(numbers, r.choice([pa.int8(), pa.uint16(), pa.int32(), pa.uint64()]))
    strings = pa.array(words, r.choice([pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]))
    views = pa.array(words, r.choice([pa.string_view(), pa.binary_view()]))
    table = pa.table({"number": integers, "word": r.choice([strings, views, strings.dictionary_encode()])})

    def batches() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(100)))

    arrays: list[Callable[[], tuple[Any, list[Any]]]] = [
        lambda: (words, words),
        lambda: (lambda: (key for key in pairs), pairs),
        lambda: (np.array(numbers, r.choice(["i1", ">u2", "<i4", ">i8"]))[::step], numbers[::step]),
        lambda: (np.array(words, r.choice(["<U40", ">U40"]))[::step], words[::step]),
        lambda: (np.array([key.encode() for key in words], "S160"), words),
        lambda: (np.array(words, object), words),
        lambda: (memoryview(bytes(numbers))[::step], numbers[::step]),
        lambda: (array.array("h", numbers), numbers),
        lambda: (integers[start:], numbers[start:]),
        lambda: (strings[start:], words[start:]),
        lambda: (views[start:], words[start:]),
        lambda: (unaligned(integers), numbers),
        lambda: (pa.concat_arrays([unaligned(strings)]), words),
        lambda: (unaligned(views), words),
        lambda: (strings.dictionary_encode()[start:], words[start:]),
        lambda: (pa.chunked_array([strings[start:], strings[:start]]), words[start:] + words[:start]),
        lambda: (table[start:], pairs[start:]),
        lambda: (pa.table({"row": table.to_struct_array(), "number": integers})[start:], list(zip(pairs, numbers))[start:]),
        lambda: (batches, pairs),
        lambda: (pl.Series(words, dtype=r.choice([pl.String, pl.Categorical])), words),
        lambda: (pl.DataFrame({"number": numbers, "word": words}, schema={"number": pl.Int16, "word": pl.String}), pairs),
        lambda: (pd.Series(words, dtype=r.choice(["str", "string", "category"])), words),
        lambda: (pd.DataFrame(pairs, columns=["number", "word"]).astype({"word": "str"})[start:], pairs[start:]),
    ]
    return r.choice(arrays)()


def broken_arrays(r: random.Random) -> Any:
    """Keys of which some are invalid, or whose memory is damaged."""
    count = r.randrange(1, 600)
    noise = r.randbytes(count * 16)
    few = [r.choice(["a", "b" * 20, None]) for _ in range(count)]

    def raises() -> Iterator[pa.RecordBatch]:
        for _ in range(r.randrange(3)):
            yield pa.record_batch({"a": range(1000)})
        r.choice(shared).clear()
        raise Boom

    def stream() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), raises())

    arrays: list[Callable[[], Any]] = [
        lambda: [any_key(r) for _ in range(count % 20)],
        lambda: moving[:: r.choice([1, -2])],
        lambda: pa.array(moving),
        lambda: memoryview(growing),
        lambda: np.frombuffer(noise, r.choice(["f4", "M8[s]", "U2", ">U1", "V4", "c16", "S16", "?", "i4,S4", ">i8"])),
        lambda: np.frombuffer(noise, np.uint8).reshape(-1, 4),
        lambda: np.ma.array([1, 2], mask=[0, 1]),
        lambda: pa.array(few, r.choice([pa.string(), pa.string_view(), pa.large_binary()])),
        lambda: pa.array(few).dictionary_encode(),
        lambda: unaligned(pa.array(["a"] * count, r.choice([pa.string(), pa.large_binary()]))),
        lambda: pa.DictionaryArray.from_arrays(pa.array(moving[:count] - 3), ["a", "b"], safe=False),
        lambda: pa.table({"number": range(count), "word": few}),
        lambda: pa.Array.from_buffers(pa.string_view(), count, [None, pa.py_buffer(noise), pa.py_buffer(b"abc")]),
        lambda: pa.Array.from_buffers(pa.binary_view(), count, [None, pa.py_buffer(noise)]),
        lambda: pa.Array.from_buffers(
            pa.string(), 3, [None, pa.py_buffer(bytes(4) + noise[:8] + (3).to_bytes(4, "little")), pa.py_buffer(b"abc")]
        ),
        lambda: pa.array([1.5] * count),
        stream,
        lambda: (any_key(r) if i % 99 else 1 / 0 for i in range(r.randrange(200))),
        lambda: any_key(r),
    ]
    return r.choice(arrays)()


class Index:
    """A key that calls its filter."""

    def __init__(self, r: random.Random) -> None:
        self.r = r

    def __index__(self) -> int:
        filter = self.r.choice(shared)
        self.r.choice([filter.clear, lambda: filter.add(1), lambda: filter.update([2]), lambda: filter == filter.copy()])()
        return self.r.randrange(-(2**70), 2**70)


def any_key(r: random.Random, depth: int = 0) -> Any:
    keys: list[Callable[[], Any]] = [
        lambda: word(r),
        lambda: r.randrange(-(2**65), 2**65),
        lambda: tuple(any_key(r, depth + 1) for _ in range(r.randrange(3 if depth < 4 else 1))),
        lambda: chr(r.randrange(0x110000)),
        lambda: memoryview(r.randbytes(20))[:: r.choice([1, 2, -1])],
        lambda: np.array(r.randrange(100), r.choice(["i1", ">i4", "f4", "S3", "?", "U2"])),
        lambda: growing,
        lambda: Index(r),
        lambda: r.choice([None, 1.5, [], object(), float("nan"), True, b"", (), 10**400]),
    ]
    return r.choice(keys)()


def call_shared(r: random.Random, folder: pathlib.Path) -> None:
    """One call on filters that other threads use."""
    filter, other = r.choice(shared), r.choice(shared)
    path = folder / f"{r.randrange(3)}.bloom"

    def damaged() -> Any:
        data = bytearray(pickle.dumps(filter))
        for _ in range(r.randrange(1, 4)):
            data[r.randrange(max(1, len(data) >> r.randrange(8)))] = r.randrange(256)
        return pickle.load(io.BytesIO(data))

    calls: list[Callable[[], Any]] = [
        lambda: filter.add(any_key(r)),
        lambda: any_key(r) in filter,
        lambda: filter.update(broken_arrays(r)),
        lambda: filter.add_many(broken_arrays(r)),
        lambda: filter.contains_many(broken_arrays(r)),
        lambda: filter | other,
        lambda: filter & other,
        lambda: filter.__ior__(other),
        lambda: filter.__iand__(other),
        lambda: filter == other,
        filter.copy,
        filter.clear,
        lambda: pickle.loads(pickle.dumps(filter)) == filter,
        lambda: type(filter).from_bytes(r.randbytes(200)),
        damaged,
        lambda: filter.save(path),
        lambda: type(filter).load(path),
        lambda: BloomFilter.map(path).contains_many(broken_arrays(r)),
        lambda: (len(filter), bool(filter), repr(filter), filter.current_fpr(), filter.estimated_keys()),
        lambda: filter.fill_ratio() + filter.capacity(r.choice([0.1, -1, 0, 2, float("nan")])),
        lambda: filter.expected_fpr(r.choice([None, 0, 5, 2**64 - 1])),
        lambda: filter.estimated_fpr(),
        lambda: filter.rotate_if_older_than(r.choice([-1, 0, 0.001, 1e9])),
        lambda: moving.__setitem__(slice(None), r.randrange(99)),
        lambda: growing.append(growing.pop()),
    ]
    call = r.choice(calls)
    try:
        call()
    except UNPICKLED if call is damaged else (*ALLOWED, AttributeError, ZeroDivisionError):
        pass


def call_own(r: random.Random, own: list[tuple[Any, Any]]) -> None:
    """Keys in an array give the same answers as one by one."""
    chosen = r.randrange(len(own))
    filter, twin = own[chosen]
    keys, singly = sound_arrays(r)
    once = keys if callable(keys) else lambda: keys
    if r.random() < 0.5:
        assert filter.contains_many(once()).tolist() == [key in twin for key in singly], keys
    assert filter.add_many(once()).tolist() == [twin.add(key) for key in singly], keys
    assert filter.contains_many(once()).all(), keys
    if type(filter) in COPIED:
        assert filter == twin
        if r.random() < 0.1:
            own[chosen] = filter.copy(), pickle.loads(pickle.dumps(twin))
    if r.random() < 0.05:
        filter.clear()
        twin.clear()


def work(seed: int, folder: pathlib.Path, until: float, errors: list[BaseException]) -> None:
    r = random.Random(seed)
    # The window has room for all keys, because a filter forgets halves, and not at the same key as its twin.
    own = [[make(100_000 if make is RotatingBloomFilter else 2000, 1e-6) for _ in range(2)] for make in CLASSES]
    twins = [(filter, twin) for filter, twin in own]
    try:
        for i in itertools.count():
            if errors or (time.monotonic() > until if SECONDS else i == ROUNDS):
                break
            call_shared(r, folder)
            if i % 5 == 0:
                call_own(r, twins)
    except BaseException as error:
        errors.append(error)


def test_random_calls_from_three_threads(tmp_path: pathlib.Path) -> None:
    errors: list[BaseException] = []
    until = time.monotonic() + SECONDS
    # A deadlock is shown and ended.
    faulthandler.dump_traceback_later(SECONDS + 600, exit=True)
    threads = [threading.Thread(target=work, args=(seed, tmp_path, until, errors)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    faulthandler.cancel_dump_traceback_later()
    assert not errors, errors[0]
