"""bloomline beside the Bloom filters of PyPI and Python's set: nanoseconds a key, in turns, at the same measured rate.

    python -m venv peers
    peers/bin/pip install ./python numpy pyarrow rbloom abloom fastbloom-rs pybloom-live pybloomfiltermmap3 xxhash
    peers/bin/python benches/python.py [KEYS] [ROUNDS]

A peer that is not installed is left out. rbloom and abloom use Python's hash, which differs in each process, unless they are
told otherwise: the rows "portable" tell them so. Each contender is made for the rate that makes it measure 1 %, as far as its
constructor lets it: the column says what it measured. The best of all rounds counts, as the least disturbed one.

Two more tables follow: one thread beside two, each with half of an array, the median of the rounds; and memory, what the resident
memory of a process grows by while it adds keys that it makes one by one, and while an array that it has is added.
"""

import gc
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

RATE = 0.01


class Contender(NamedTuple):
    make: Callable[[int, float], Any]
    portable: bool
    add: Callable[[Any, Any], Any]
    update: Callable[[Any, Iterable[Any]], Any] | None = None
    array: Callable[[Any, np.ndarray], Any] | None = None
    found: Callable[[Any, np.ndarray], Any] | None = None
    arrow: Callable[[Any, Any], Any] | None = None


def each_in(filter: Any, keys: Iterable[Any]) -> int:
    found = 0
    for key in keys:
        found += key in filter
    return found


def each_asked(filter: Any, keys: Iterable[Any]) -> None:
    for key in keys:
        key in filter  # noqa: B015


def each_add(filter: Any, keys: Iterable[Any]) -> None:
    add = filter.add
    for key in keys:
        add(key)


def contenders() -> dict[str, Contender]:
    """Those that are installed."""
    found: dict[str, Contender] = {}

    def bloomline() -> None:
        import bloomline

        update = bloomline.Filter.update
        for make in bloomline.BloomFilter, bloomline.AtomicBloomFilter:
            found[make.__name__] = Contender(
                make, True, each_add, update, update, bloomline.Filter.contains_many, update
            )

    def rbloom() -> None:
        import rbloom
        import xxhash

        def portable(key: Any) -> int:
            data = key.encode() if isinstance(key, str) else key.to_bytes(8, "little")
            return int.from_bytes(xxhash.xxh3_128_digest(data), "little", signed=True)

        update = rbloom.Bloom.update
        found["rbloom"] = Contender(rbloom.Bloom, False, each_add, update)
        found["rbloom portable"] = Contender(lambda n, p: rbloom.Bloom(n, p, portable), True, each_add, update)

    def abloom() -> None:
        from abloom import BloomFilter

        update = BloomFilter.update
        found["abloom"] = Contender(BloomFilter, False, each_add, update)
        found["abloom portable"] = Contender(
            lambda n, p: BloomFilter(n, p, serializable=True), True, each_add, update
        )

    def fastbloom() -> None:
        from fastbloom_rs import BloomFilter

        def update(filter: Any, keys: Any) -> None:
            (filter.add_str_batch if isinstance(keys[0], str) else filter.add_int_batch)(keys)

        found["fastbloom-rs"] = Contender(BloomFilter, True, each_add, update)

    def pybloom() -> None:
        from pybloom_live import BloomFilter

        found["pybloom-live"] = Contender(BloomFilter, True, each_add)

    def pybloomfilter() -> None:
        from pybloomfilter import BloomFilter

        found["pybloomfiltermmap3"] = Contender(BloomFilter, True, each_add, BloomFilter.update)

    for load in bloomline, rbloom, abloom, fastbloom, pybloom, pybloomfilter:
        try:
            load()
        except ImportError as error:
            print(f"left out: {load.__name__} ({error})", file=sys.stderr)
    found["set"] = Contender(lambda n, p: set(), False, each_add, set.update)
    return found


def lookup(filter: Any) -> Any:
    """What `in` works on: fastbloom-rs has a method instead."""
    if hasattr(filter, "__contains__"):
        return filter

    class Asked:
        __contains__ = staticmethod(filter.contains)

    return Asked


def tuned(contender: Contender, keys: list[str], others: list[str]) -> tuple[float, float]:
    """The rate to ask for, and what it measures: as near to RATE as a few attempts come."""
    asked = RATE
    for _ in range(4):
        filter = contender.make(len(keys), asked)
        each_add(filter, keys)
        measured = each_in(lookup(filter), others) / len(others)
        if not measured or abs(measured / RATE - 1) < 0.05:
            break
        asked = min(0.5, asked * RATE / measured)
    return asked, measured


def timed(count: int, work: Callable[[], Any]) -> float:
    gc.collect()
    gc.disable()
    start = time.perf_counter_ns()
    work()
    spent = time.perf_counter_ns() - start
    gc.enable()
    return spent / count


def rows(contender: Contender, rate: float, data: dict[str, Any]) -> dict[str, float]:
    """One round: nanoseconds a key of each row that the contender has."""
    strings, others, numbers = data["strings"], data["others"], data["numbers"]
    n = len(strings)
    make = lambda: contender.make(n, rate)  # noqa: E731
    filter = make()
    spent = {"add": timed(n, lambda: each_add(filter, strings))}
    asked = lookup(filter)
    spent["in, hits"] = timed(n, lambda: each_asked(asked, strings))
    spent["in, misses"] = timed(n, lambda: each_asked(asked, others))
    if contender.update:
        fresh = make()
        spent["update"] = timed(n, lambda: contender.update(fresh, strings))
    fresh = make()
    if contender.array:
        spent["int array, add"] = timed(n, lambda: contender.array(fresh, numbers))
        spent["int array, in"] = timed(n, lambda: contender.found(fresh, numbers))
    elif contender.update:
        spent["int array, add"] = timed(n, lambda: contender.update(fresh, numbers.tolist()))
        spent["int array, in"] = timed(n, lambda: each_asked(lookup(fresh), numbers.tolist()))
    if "arrow" in data and contender.update:
        fresh = make()
        arrow = data["arrow"]
        given = (lambda: arrow) if contender.arrow else arrow.to_pylist
        spent["Arrow strings, add"] = timed(n, lambda: (contender.arrow or contender.update)(fresh, given()))
    return spent


def resident(peak: bool = False) -> int:
    """Bytes of memory that the process has, or has had."""
    if peak:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def memory(name: str, n: int) -> None:
    """Prints what a process of its own grows by: for the filter, and beyond it while an array is added."""
    contender = contenders()[name]
    # What code takes is there before.
    contender.make(1000, RATE).add("")
    before = resident()
    filter = contender.make(n, RATE)
    add = filter.add
    for key in range(n):
        add(f"{key:032x}")
    gc.collect()
    filled = resident() - before
    beyond = 0
    if contender.array:
        numbers = np.arange(4 * n, dtype=np.uint64)
        contender.array(filter, numbers[:1000])
        # So that no peak of before hides what the call takes.
        held = np.ones((resident(peak=True) - resident()) // 8 + (1 << 20))
        before = resident(peak=True)
        contender.array(filter, numbers)
        beyond = resident(peak=True) - before
        del held
    print(filled, beyond)


def memories(names: Iterable[str], n: int) -> None:
    print(f"\nmemory with {n} keys of 32 characters; what the peak grows by while an array of {4 * n * 8 / 1e6:.0f} MB is added")
    print("| |MB|beyond, MB|\n|-|-:|-:|")
    for name in names:
        command = [sys.executable, __file__, "--memory", name, str(n)]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        filled, beyond = map(int, told.split())
        array = f"{beyond / 1e6:.1f}" if name in ("BloomFilter", "AtomicBloomFilter") else ""
        print(f"|{name}|{filled / 1e6:.1f}|{array}|")


def threads(n: int, rounds: int) -> None:
    """One thread with an array, and two with half of it each."""
    import bloomline

    numbers = np.random.default_rng(1).integers(0, 2**63, n, dtype=np.uint64)
    asked, shared = bloomline.BloomFilter(n, RATE), bloomline.AtomicBloomFilter(n, RATE)
    asked.update(numbers)
    shared.update(numbers)

    def fresh() -> Any:
        filter = bloomline.AtomicBloomFilter(n, RATE)
        filter.update(numbers[:1000])
        filter.clear()
        return filter.update

    works = {
        "BloomFilter.contains_many": lambda: asked.contains_many,
        "AtomicBloomFilter.contains_many": lambda: shared.contains_many,
        "AtomicBloomFilter.add_many, seen keys": lambda: shared.add_many,
        "AtomicBloomFilter.update, new keys": fresh,
    }

    def spent(work: Callable[[Any], Any], parts: list[np.ndarray]) -> float:
        running = [threading.Thread(target=work, args=[part]) for part in parts]
        start = time.perf_counter()
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return (time.perf_counter() - start) / n * 1e9

    print(f"\n{n} integers of an array, median of {rounds}, nanoseconds a key")
    print("| |one thread|two threads|ratio|\n|-|-:|-:|-:|")
    for name, work in works.items():
        pairs = [(spent(work(), [numbers]), spent(work(), np.array_split(numbers, 2))) for _ in range(rounds)]
        one, two = (statistics.median(column) for column in zip(*pairs))
        print(f"|{name}|{one:.1f}|{two:.1f}|×{one / two:.2f}|")


def main() -> None:
    if sys.argv[1:2] == ["--memory"]:
        return memory(sys.argv[2], int(sys.argv[3]))
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    dice = random.Random(1)
    strings = [f"{dice.getrandbits(128):032x}" for _ in range(n)]
    data: dict[str, Any] = {
        "strings": strings,
        "others": [f"{dice.getrandbits(128):032x}" for _ in range(n)],
        "numbers": np.array([dice.getrandbits(63) for _ in range(n)], np.uint64),
    }
    try:
        import pyarrow

        data["arrow"] = pyarrow.array(strings)
    except ImportError:
        print("left out: Arrow", file=sys.stderr)
    field = contenders()
    asked = {name: tuned(contender, strings, data["others"]) for name, contender in field.items()}
    best: dict[str, dict[str, float]] = {name: {} for name in field}
    for turn in range(rounds):
        names = list(field)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            for row, spent in rows(field[name], asked[name][0], data).items():
                best[name][row] = min(spent, best[name].get(row, spent))
    columns = list(best["set"]) if "BloomFilter" not in best else list(best["BloomFilter"])
    print(f"{n} keys, best of {rounds}, nanoseconds a key; Python {sys.version.split()[0]}")
    print("| |measured rate|portable|" + "|".join(columns) + "|")
    print("|-|-|-|" + "-|" * len(columns))
    for name, contender in field.items():
        figures = [f"{best[name][row]:.1f}" if row in best[name] else "" for row in columns]
        portable = "yes" if contender.portable else "no"
        print(f"|{name}|{asked[name][1]:.2%}|{portable}|" + "|".join(figures) + "|")
    if "BloomFilter" in field:
        threads(8 * n, 2 * rounds + 1)
    memories((name for name in field if "portable" not in name), n)


if __name__ == "__main__":
    main()
