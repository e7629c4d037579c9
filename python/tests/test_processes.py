"""Forked and spawned processes and pools: filters that are sent, and a filter that all processes map."""

import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from bloomline import AtomicBloomFilter, BloomFilter, Filter
from test_keys import CLASSES

METHODS = [method for method in ("fork", "spawn", "forkserver") if method in multiprocessing.get_all_start_methods()]


@pytest.fixture(scope="module", params=METHODS)
def pool(request: pytest.FixtureRequest) -> Iterator[Any]:
    with multiprocessing.get_context(request.param).Pool(2) as pool:
        yield pool


def fill(job: tuple[Any, int]) -> Filter:
    filter, start = job
    filter.update(range(start, start + 1000))
    return filter


def ask(job: tuple[Filter, list[str]]) -> list[bool]:
    filter, keys = job
    return filter.contains_many(keys).tolist()


def test_workers_get_and_return_filters(pool: Any) -> None:
    for make in CLASSES:
        sent = make(10_000, 1e-6)
        sent.add("sent")
        for start, filter in zip((0, 1000), pool.map(fill, [(sent, 0), (sent, 1000)])):
            assert type(filter) is make
            assert "sent" in filter and filter.contains_many(range(start, start + 1000)).all()
    merged = BloomFilter(10_000, 1e-6)
    for filter in pool.map(fill, [(BloomFilter(10_000, 1e-6), start) for start in range(0, 4000, 1000)]):
        merged |= filter
    whole = BloomFilter(10_000, 1e-6)
    whole.update(range(4000))
    assert merged == whole


def test_workers_share_a_mapped_filter(pool: Any, tmp_path: pathlib.Path) -> None:
    seen = BloomFilter(10_000, 1e-9)
    seen.update(f"key {i}" for i in range(5000))
    seen.save(tmp_path / "seen.bloom")
    mapped = BloomFilter.map(tmp_path / "seen.bloom")
    assert pool.map(ask, [(mapped, [f"key {i}" for i in range(4000, 6000)])] * 4) == [[True] * 1000 + [False] * 1000] * 4


def test_a_pickled_mapped_filter_keeps_its_absolute_path(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The filter is opened by a relative path, and the current folder changes."""
    for name in ["here", "there"]:
        (tmp_path / name).mkdir()
        seen = BloomFilter(1000, 1e-9)
        seen.add(name)
        seen.save(tmp_path / name / "seen.bloom")
    monkeypatch.chdir(tmp_path / "here")
    mapped = BloomFilter.map("seen.bloom")
    monkeypatch.chdir(tmp_path / "there")
    assert "here" in pickle.loads(pickle.dumps(mapped))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_filter_is_independent() -> None:
    seen = AtomicBloomFilter(10_000, 1e-9)
    seen.update(range(1000))
    child = os.fork()
    if child == 0:
        sound = seen.contains_many(range(1000)).all() and seen.add("child") and seen.copy() == seen
        os._exit(0 if sound else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert "child" not in seen


ENDLESS = ["range(10**9)", "np.broadcast_to(1, 10**10)", "pa.array(np.zeros(3 * 10**8, np.int8))"]


@pytest.mark.parametrize(("call", "keys"), [*(("update", keys) for keys in ENDLESS), ("add_rows", "pa.table({'a': pa.chunked_array([pa.array(['x', 'y'] * 10**5)] * 100)})")])
def test_ctrl_c_ends_a_call_within_a_second(call: str, keys: str) -> None:
    """Calls that take several seconds end within one. Seconds are CPU time of this process, because other processes may run meanwhile."""
    program = f"""
import signal, time
import numpy as np
import pyarrow as pa
from bloomline import AtomicBloomFilter
seen, keys = AtomicBloomFilter(memory=1 << 28, probes=16), {keys}
# The system sends a signal after 0.3 s of CPU time. Its handler is that of Ctrl-C.
signal.signal(signal.SIGPROF, signal.default_int_handler)
start = time.process_time()
signal.setitimer(signal.ITIMER_PROF, 0.3)
try:
    while True:
        seen.{call}(keys)
except KeyboardInterrupt:
    assert time.process_time() - start < 1.3, time.process_time() - start
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_lack_of_memory_raises_an_exception() -> None:
    program = """
import copy, pickle, resource
import numpy as np
import pyarrow as pa
from bloomline import AtomicBloomFilter, AtomicScalableBloomFilter, BloomFilter, RotatingBloomFilter, ScalableBloomFilter
many = np.broadcast_to(np.int8(1), 125 << 20)
wide = np.broadcast_to(np.array([b"x"], "S1000000"), 30)
classes = BloomFilter, AtomicBloomFilter, ScalableBloomFilter, AtomicScalableBloomFilter, RotatingBloomFilter
made = [make(25 << 20, 0.01) for make in classes]
data = bytes(made[0])
table = pa.table({"a": pa.array(np.zeros(5 << 20, np.int8))})
huge = bytearray(25 << 20)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), used + (20 << 20)))
for seen in made:
    copies = seen.estimated_keys if isinstance(seen, RotatingBloomFilter) else seen.copy
    rows = lambda: seen.add_rows(table), lambda: seen.contains_rows(table), lambda: seen.add(huge), lambda: huge in seen
    for ask in copies, seen.__bytes__, lambda: pickle.dumps(seen), lambda: seen.contains_many(many), *rows:
        try:
            ask()
            print(type(seen), ask)
        except MemoryError:
            pass
assert made[0].add_many(wide).tolist() == [True] + [False] * 29
for ask in lambda: BloomFilter.from_bytes(data), lambda: BloomFilter.from_bytes(bytearray(data)):
    try:
        ask()
        print(ask)
    except MemoryError:
        pass
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == ""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_an_exception_reports_which_rows_were_added() -> None:
    """A filter that grows finds no memory for its next stage."""
    program = """
import resource
import numpy as np
import pyarrow as pa
from bloomline import ScalableBloomFilter
numbers = np.arange(300_000)
table = pa.table({"a": pa.array(numbers, mask=numbers % 3 == 0)})
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for nulls in "keep", "skip":
    seen = ScalableBloomFilter(1000, 1e-9)
    resource.setrlimit(resource.RLIMIT_AS, (used + (6 << 20), resource.RLIM_INFINITY))
    try:
        seen.add_rows(table, nulls=nulls)
    except MemoryError as error:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert len(error.new) == 300_000 and 0 < error.new.sum() < 200_000
        # Rows with a null, which have no key, are answered when all rows are added again.
        assert (seen.contains_rows(table, nulls="skip") == error.new).all()
    else:
        raise AssertionError("no error")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
