"""Files that this module, Rust and the command exchange, and files that are refused."""

import errno
import os
import pathlib
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomline import BloomFilter, Filter, MappedBloomFilter, ScalableBloomFilter
from test_filters import COPIED
from test_keys import CLASSES

ROOT = pathlib.Path(__file__).parents[2]


def run(*arguments: Any, text: str = "") -> str:
    """The output of the wheel's command."""
    command = [sys.executable, "-m", "bloomline", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def test_python_reads_filters_of_the_command(tmp_path: pathlib.Path) -> None:
    lines = [f"https://example.org/{i}/é" for i in range(2000)]
    path = tmp_path / "seen.bloom"
    run("build", "--quiet", "--no-shrink", "--when-full", "warn", "-n", 2000, "-p", 0.001, "-o", path, text="\n".join(lines))
    loaded = BloomFilter.load(path)
    assert loaded.contains_many(lines).all()
    assert loaded.contains_many([line.encode() for line in lines]).all()
    made = BloomFilter(2000, 0.001, key_name=loaded.key_name)
    made.update(lines)
    assert made == loaded
    assert bytes(made) == path.read_bytes()
    mapped = BloomFilter.map(path)
    assert mapped.contains_many(lines).all() and not mapped.contains_many(["x", "y"]).all()


def test_the_command_reads_filters_of_python(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "seen.bloom"
    seen = BloomFilter(2000, 1e-6, seed=5)
    seen.update(f"line {i}" for i in range(1000))
    seen.save(path)
    probes = [f"line {i}" for i in range(500, 1500)]
    assert run("check", "-s", path, text="\n".join(probes)).split("\n")[:-1] == probes[:500]
    run("build", "--quiet", "--append", "-o", path, text="\n".join(probes))
    seen.update(probes)
    assert BloomFilter.load(path).contains_many(probes).all()
    assert BloomFilter.load(path) == seen


def test_python_reads_files_that_rust_wrote() -> None:
    for path in (ROOT / "tests/data").glob("probes*.bloom"):
        data = path.read_bytes()
        loaded = BloomFilter.load(path)
        assert bytes(loaded) == data and len(loaded) > 0
        assert bytes(BloomFilter.from_bytes(data)) == data
    series = ROOT / "tests/data/series.bloom"
    assert bytes(ScalableBloomFilter.load(series)) == series.read_bytes()


@pytest.mark.parametrize("make", CLASSES)
def test_saved_and_pickled_filters_round_trip(make: Any, tmp_path: pathlib.Path) -> None:
    filter = make(500, 1e-6, seed=3, key_name="url")
    filter.update(str(i) for i in range(3000))
    for path in tmp_path / "seen.bloom", str(tmp_path / "seen.bloom"):
        filter.save(path)
        assert bytes(make.load(path)) == bytes(filter)
        assert (tmp_path / "seen.bloom").read_bytes() == bytes(filter)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        loaded = pickle.loads(pickle.dumps(filter, protocol))
        assert type(loaded) is make and bytes(loaded) == bytes(filter)
        assert loaded == filter or make not in COPIED


def test_a_mapped_filter_is_read_only(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "seen.bloom"
    seen = BloomFilter(1000, 1e-6)
    seen.update(["a", "b"])
    seen.save(path)
    mapped = BloomFilter.map(path)
    assert type(mapped) is MappedBloomFilter and isinstance(mapped, Filter)
    mapped.verify()
    assert "a" in mapped and "c" not in mapped
    assert (mapped.fill_ratio(), mapped.expected_fpr(), len(mapped)) == (seen.fill_ratio(), seen.expected_fpr(), 2)
    for ask in (
        lambda: mapped.add("c"),
        lambda: mapped.update(["c"]),
        lambda: mapped.add_many(["c"]),
        mapped.clear,
        mapped.copy,
        lambda: mapped.save(path),
        lambda: mapped | seen,
    ):
        with pytest.raises(TypeError, match="MappedBloomFilter"):
            ask()
    other = BloomFilter(1000, 1e-6)
    other.update(["c"])
    united = other | mapped
    assert type(united) is BloomFilter and all(key in united for key in "abc") and united & mapped == seen == mapped != other
    # A mapped filter is pickled as its path.
    monkeypatch.chdir(tmp_path)
    travelling = pickle.dumps(BloomFilter.map("seen.bloom"))
    monkeypatch.chdir("/")
    assert len(travelling) < 1000 and pickle.loads(travelling) == mapped
    # A save does not change the file that is mapped already.
    seen.add("c")
    seen.save(path)
    assert "c" not in mapped and "c" in BloomFilter.map(path)
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        BloomFilter.map(path).verify()


@pytest.mark.parametrize("make", CLASSES)
def test_errors_of_the_system_are_raised(make: Any, tmp_path: pathlib.Path) -> None:
    filter = make(1000, 0.01)
    missing = str(tmp_path / "none" / "seen.bloom")
    for ask in make.load, filter.save:
        with pytest.raises(FileNotFoundError) as raised:
            ask(missing)
        assert (raised.value.errno, raised.value.filename) == (errno.ENOENT, missing)
        assert raised.value.strerror == os.strerror(errno.ENOENT)
    with pytest.raises(IsADirectoryError):
        make.load(tmp_path)
    with pytest.raises(IsADirectoryError, match=r"not a regular file: open it and write bytes\(filter\)") as raised:
        filter.save(tmp_path)
    assert (raised.value.errno, raised.value.filename) == (errno.EISDIR, str(tmp_path))
    with pytest.raises(OSError, match=r"not a regular file: open it and write bytes\(filter\)") as raised:
        filter.save(os.devnull)
    assert (raised.value.errno, raised.value.filename) == (errno.EINVAL, os.devnull)
    with pytest.raises(OSError, match="not a regular file: read it with load") as raised:
        BloomFilter.map(os.devnull)
    assert (raised.value.errno, raised.value.filename) == (errno.EINVAL, os.devnull)
    for ask in make.load, filter.save:
        with pytest.raises(OSError, match="NUL byte"):
            ask("nul\0in it")
        with pytest.raises(TypeError):
            ask(3)


@pytest.mark.parametrize("make", CLASSES)
@given(data=st.data())
def test_damaged_bytes_are_refused(make: Any, data: st.DataObject) -> None:
    sound = bytes(make(100, 0.01))
    flipped = bytearray(sound)
    flipped[data.draw(st.integers(0, len(sound) - 1))] ^= data.draw(st.integers(1, 255))
    cut = sound[: data.draw(st.integers(0, len(sound) - 1))]
    for damaged in bytes(flipped), cut, sound + b"x", data.draw(st.binary()):
        with pytest.raises((ValueError, MemoryError)):
            make.from_bytes(damaged)


@pytest.mark.parametrize("make", CLASSES)
def test_filters_are_read_from_any_buffer(make: Any) -> None:
    sound = bytes(make(100, 0.01))
    for buffer in memoryview(sound), pa.py_buffer(sound), np.frombuffer(sound, np.int8):
        assert bytes(make.from_bytes(buffer)) == sound
    for kind in "text", None, 3:
        with pytest.raises((TypeError, BufferError)):
            make.from_bytes(kind)


def test_files_of_another_class_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="load it as a ScalableBloomFilter"):
        BloomFilter.from_bytes(bytes(ScalableBloomFilter(100, 0.01)))
    with pytest.raises(ValueError, match="load it as a BloomFilter"):
        ScalableBloomFilter.from_bytes(bytes(BloomFilter(100, 0.01)))
