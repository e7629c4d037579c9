"""Threads on one filter: no key is lost or claimed twice, and no thread waits for ever."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from bloomline import AtomicBloomFilter, AtomicScalableBloomFilter, BloomFilter
from test_filters import MERGING
from test_keys import CLASSES

THREADS = 4


def together(*works: Callable[[], Any]) -> list[Any]:
    """The results of calls that begin at once."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], Any]) -> Any:
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result(300) for future in [pool.submit(run, work) for work in works]]


@pytest.fixture(autouse=True)
def switch_often() -> Any:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("make", CLASSES)
def test_a_key_is_claimed_once(make: Any) -> None:
    filter = make(100_000, 1e-9)
    keys = np.arange(20_000)
    claims = together(*[lambda: filter.add_many(keys)] * THREADS)
    assert np.sum(claims, axis=0).tolist() == [1] * len(keys)
    singly = together(*[lambda: [filter.add(f"key {i}") for i in range(2000)]] * THREADS)
    assert np.sum(singly, axis=0).tolist() == [1] * 2000


@pytest.mark.parametrize("make", CLASSES)
def test_readers_find_known_keys_beside_writers(make: Any) -> None:
    filter = make(200_000, 1e-9)
    known = np.arange(10_000)
    filter.update(known)
    done = threading.Event()

    def write() -> None:
        try:
            for start in range(10_000, 100_000, 10_000):
                filter.update(np.arange(start, start + 10_000))
                filter.update([f"{start} {i}" for i in range(100)])
        finally:
            done.set()

    def read() -> int:
        rounds = 0
        while not done.is_set() or not rounds:
            assert filter.contains_many(known).all() and 77 in filter
            filter.current_fpr(), filter.memory_bytes, repr(filter)
            rounds += 1
        return rounds

    together(write, read, read)
    assert filter.contains_many(np.arange(100_000)).all()


@pytest.mark.parametrize("make", MERGING)
def test_merging_in_both_directions_does_not_deadlock(make: Any) -> None:
    a, b = make(1_000_000, 0.01), make(1_000_000, 0.01)
    a.update(range(1000))
    b.update(range(1000, 2000))

    def merge(left: Any, right: Any) -> None:
        for _ in range(20):
            left |= right
            assert left == left
            left == right
            left | right

    together(lambda: merge(a, b), lambda: merge(b, a), lambda: [a.add(i) for i in range(1000)])
    assert a.contains_many(range(2000)).all() and b.contains_many(range(2000)).all()


@pytest.mark.parametrize("make", [BloomFilter, AtomicBloomFilter, AtomicScalableBloomFilter])
def test_all_calls_may_run_at_once(make: Any, tmp_path: Any) -> None:
    filter = make(50_000, 0.01)
    keys = np.arange(5000)

    def many(*calls: Callable[[], Any]) -> Callable[[], None]:
        return lambda: [call() for _ in range(20) for call in calls] and None

    together(
        many(lambda: filter.add_many(keys), filter.clear),
        many(filter.copy, lambda: bytes(filter), lambda: filter == filter.copy()),
        many(lambda: filter.save(tmp_path / "a.bloom"), lambda: make.load(tmp_path / "a.bloom")),
        many(lambda: filter.update(str(i) for i in range(1000)), filter.estimated_keys),
    )


def while_it_runs(call: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """The result of a call. Another thread learns when the call begins, and runs `other` then."""
    begins = threading.Lock()
    begins.acquire()
    thread = threading.Thread(target=lambda: begins.acquire() and other())
    thread.start()
    begins.release()
    result = call()
    thread.join()
    return result


# The system may let the other thread wait for the whole of a call. If calls keep the GIL, it waits in all of them.
CALLS = 1000


def test_calls_on_arrays_release_the_gil() -> None:
    """Another thread of Python runs while an array is added."""
    filter, keys = BloomFilter(2_000_000, 0.01), np.arange(2_000_000)
    sys.setswitchinterval(100)  # A thread that keeps the GIL does not lose it to another one.

    def lets_others_run() -> bool:
        ran = threading.Event()

        def update() -> bool:
            filter.update(keys)
            return ran.is_set()

        return bool(while_it_runs(update, ran.set))

    assert any(lets_others_run() for _ in range(CALLS))


@pytest.mark.parametrize("call", ["update", "add_many", "contains_many"])
def test_calls_on_lists_let_other_threads_run(call: str) -> None:
    """Another thread of Python empties a list while it is read, and needs the GIL for that."""
    sys.setswitchinterval(0.001)

    def is_read_in_part() -> bool:
        filter, keys = BloomFilter(10, 1e-9), ["first", *["key"] * 2_000_000, "last"]
        count = len(keys)
        answers = while_it_runs(lambda: getattr(filter, call)(keys), keys.clear)
        return "first" in filter and "last" not in filter if answers is None else 0 < len(answers) < count

    assert any(is_read_in_part() for _ in range(CALLS))


def test_an_array_may_change_during_a_call() -> None:
    """Each key is one of the values that the array has had."""
    filter = AtomicBloomFilter(1000, 1e-9)
    keys = np.zeros(200_000, np.int64)
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            keys[:] = 1
            keys[:] = 0

    def add() -> None:
        try:
            for _ in range(20):
                filter.update(keys)
        finally:
            done.set()

    together(change, add)
    assert len(filter) <= 2


def test_a_list_may_change_during_a_call() -> None:
    filter = BloomFilter(100_000, 0.01)
    keys: list[Any] = []

    class Grows:
        def __index__(self) -> int:
            keys.clear()
            filter.clear()
            filter.add("from within")
            return 5

    keys.extend(["a"] * 1000 + [Grows()] + ["b"] * 1000)
    filter.update(keys)
    assert 5 in filter and "from within" in filter and "b" not in filter

    def shrinking(keys: dict[str, int]) -> None:
        for key in list(keys):
            keys.pop(key, None)

    table = {str(i): i for i in range(20_000)}
    try:
        together(lambda: filter.update(table), lambda: shrinking(table))
    except RuntimeError as error:
        assert "changed size" in str(error)
