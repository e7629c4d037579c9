"""The methods that sets have too: operators, copies, comparison; and the figures of filters."""

import copy
import datetime
import importlib.metadata
import math
import pathlib
import pickle
import sys
import time
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bloomline
from bloomline import BloomFilter, Filter, RotatingBloomFilter
from test_keys import CLASSES

MERGING = [bloomline.BloomFilter, bloomline.AtomicBloomFilter]
COPIED = [make for make in CLASSES if make is not RotatingBloomFilter]


@pytest.mark.parametrize("make", MERGING)
@given(st.sets(st.integers(0, 999)), st.sets(st.integers(0, 999)))
def test_operators(make: Any, left: set[int], right: set[int]) -> None:
    a, b, union = (make(1000, 1e-9) for _ in range(3))
    a.update(left)
    b.update(right)
    union.update(left | right)
    before = a.copy()
    assert (a | b) == union == (b | a)
    both = a & b
    assert all(key in both for key in left & right)
    # The bits of both sides make another key only at the rate.
    assert not any(key in both for key in left ^ right)
    assert a == before
    same = a
    a |= b
    assert a is same and a == union
    a &= b
    assert all(key in a for key in right) and a is same
    a |= a
    a &= a
    assert all(key in a for key in right)


@pytest.mark.parametrize("make", CLASSES)
def test_incompatible_filters_do_not_merge(make: Any) -> None:
    a = make(1000, 0.01)
    for other in {1}, 1, None:
        for operate in (lambda: a | other, lambda: a & other, lambda: other | a):
            with pytest.raises(TypeError, match="unsupported operand"):
                operate()
        with pytest.raises(TypeError, match="unsupported operand"):
            a |= other  # type: ignore[misc, operator]
    other = next(kind for kind in CLASSES if kind is not make)(1000, 0.01)
    with pytest.raises(TypeError, match=make.__name__):
        a |= other
    with pytest.raises(TypeError, match=make.__name__):
        a | other
    if make in MERGING:
        for differs in make(5000, 0.01), make(1000, 1e-9), make(1000, 0.01, seed=1):
            with pytest.raises(ValueError, match="filters differ in"):
                a | differs
        with pytest.raises(ValueError, match="different kinds of keys: `host` and `url`"):
            make(1000, 0.01, key_name="host") | make(1000, 0.01, key_name="url")


@pytest.mark.parametrize("make", COPIED)
def test_copies_and_comparison(make: Any) -> None:
    filter = make(1000, 1e-6, seed=7, key_name="url")
    filter.update(["a", "b"])
    for other in filter.copy(), copy.copy(filter), copy.deepcopy(filter), make.from_bytes(bytes(filter)):
        assert type(other) is make
        assert other == filter and not other != filter
        assert (other.seed, other.key_name) == (7, "url")
        other.add("c")
        assert other != filter and "c" not in filter
    assert filter != {"a", "b"}
    assert filter != 1
    for other_class in COPIED:
        assert (filter == other_class.from_bytes(bytes(other_class(1000, 1e-6)))) is False


@pytest.mark.parametrize("make", CLASSES)
def test_a_filter_is_neither_hashable_nor_iterable(make: Any) -> None:
    filter = make(1000, 0.01)
    assert isinstance(filter, Filter)
    for operate in hash, iter, list, filter.update:
        with pytest.raises(TypeError):
            operate(filter)
    with pytest.raises(TypeError):
        type("Sub", (make,), {})
    with pytest.raises(TypeError):
        Filter()
    with pytest.raises(AttributeError):
        filter.other = 1


@pytest.mark.parametrize("make", CLASSES)
def test_invalid_sizes_are_refused(make: Any) -> None:
    for arguments, error, said in [
        ((0, 0.01), ValueError, "0 expected keys"),
        ((1000, 0.0), ValueError, "rate 0 is not between"),
        ((1000, 1.0), ValueError, "rate 1 is not between"),
        ((1000, math.nan), ValueError, "rate NaN is not between"),
        ((1000, math.inf), ValueError, "rate inf is not between"),
        ((-1, 0.01), OverflowError, "negative"),
        ((2**64, 0.01), OverflowError, ""),
        ((2**63, 1e-12), ValueError, ""),
        (("1000", 0.01), TypeError, "expected_keys is '1000'"),
        ((1e6, 0.01), TypeError, "expected_keys is 1000000.0"),
        ((0.01, 1000), TypeError, "expected_keys is 0.01"),
        ((), ValueError, ""),
    ]:
        with pytest.raises(error) as raised:
            make(*arguments)
        assert said in str(raised.value)
    for named in {"seed": -1}, {"seed": 2**64}:
        with pytest.raises(OverflowError):
            make(1000, 0.01, **named)
    with pytest.raises(ValueError, match="control"):
        make(1000, 0.01, key_name="a\nb")


def test_sizes() -> None:
    assert BloomFilter(memory=1 << 20, probes=8).memory_bytes == 1 << 20
    assert BloomFilter(memory=1 << 20, probes=12).probes == 12
    with pytest.raises(ValueError, match="choose 4, 8, 12 or 16"):
        BloomFilter(memory=1 << 20, probes=5)
    with pytest.raises(ValueError, match="at least 64"):
        BloomFilter(1000, memory=63)
    with pytest.raises((ValueError, MemoryError)):
        BloomFilter(2**50, 0.01)


def test_figures() -> None:
    filter = BloomFilter(100_000, 0.01, key_name="number")
    assert (filter.expected_keys, filter.false_positive_rate, filter.key_name, filter.seed) == (
        100_000, 0.01, "number", 0,
    )  # fmt: skip
    assert filter.fill_ratio() == filter.current_fpr() == filter.estimated_keys() == len(filter) == 0
    filter.update(range(100_000))
    assert filter.expected_fpr() == filter.expected_fpr(100_000) <= 0.01 < filter.expected_fpr(200_000)
    assert filter.current_fpr() == pytest.approx(filter.expected_fpr(), rel=0.1)
    assert filter.estimated_keys() == pytest.approx(100_000, rel=0.01)
    assert 100_000 <= filter.capacity(0.01) < 101_000
    assert 0.3 < filter.fill_ratio() < 0.6
    found = filter.contains_many(range(10**6, 2 * 10**6)).mean()
    # Its deviation is 0.0001.
    assert found == pytest.approx(filter.current_fpr(), abs=0.0006)
    with pytest.raises(TypeError, match="expected_fpr"):
        BloomFilter(memory=1000, probes=4).expected_fpr()


def test_a_filter_with_all_bits_has_no_length() -> None:
    filter = BloomFilter(memory=64, probes=16)
    filter.update(range(10_000))
    assert filter.estimated_keys() == math.inf
    with pytest.raises(ValueError, match="all bits are set"):
        len(filter)


@pytest.mark.parametrize("make", CLASSES)
def test_representation(make: Any) -> None:
    filter = make(1000, 0.25, seed=99)
    assert repr(filter).startswith(f"<{make.__name__} ")
    assert "0.25" in repr(filter) and f"memory_bytes={filter.memory_bytes}" in repr(filter)
    # A seed may be a secret.
    assert "99" not in repr(filter)


@pytest.mark.parametrize("make", CLASSES)
def test_filters_have_a_size_and_weak_references(make: Any) -> None:
    filter = make(1_000_000, 0.01)
    assert 0 < sys.getsizeof(filter) - filter.memory_bytes < 10_000
    died: list[Any] = []
    reference = weakref.ref(filter, died.append)
    assert reference() is filter
    del filter
    assert reference() is None and died == [reference]


def test_version() -> None:
    assert bloomline.__version__ == importlib.metadata.version("bloomline")


def test_growing_filters_keep_their_rate() -> None:
    for make in bloomline.ScalableBloomFilter, bloomline.AtomicScalableBloomFilter:
        filter = make(100, 0.01)
        filter.update(range(20_000))
        assert filter.current_fpr() <= 0.01
        assert 0.98 * 20_000 <= len(filter) <= 20_000
        assert filter.estimated_keys() == pytest.approx(len(filter), rel=0.02)
        assert filter.estimated_fpr() == pytest.approx(filter.current_fpr(), rel=0.2)
        assert 0 < filter.fill_ratio() < 0.6
        for ask in lambda filter=filter: filter.capacity(0.1), lambda filter=filter: filter.probes:
            with pytest.raises(TypeError, match=make.__name__):
                ask()
        for arguments in (), (20_000,):
            with pytest.raises(TypeError, match=rf"{make.__name__} .* call estimated_fpr\(\)"):
                filter.expected_fpr(*arguments)


def test_estimated_fpr_of_a_filter_of_one_size_names_expected_fpr() -> None:
    for make in MERGING:
        with pytest.raises(TypeError, match=rf"{make.__name__} .* expected_fpr\(keys\)"):
            make(1000, 0.01).estimated_fpr()


def test_a_rotating_filter_forgets() -> None:
    filter = RotatingBloomFilter(1000, 1e-6)
    filter.update(range(1000))
    assert filter.contains_many(range(1000)).all()
    filter.rotate()
    assert 0 in filter
    assert len(filter) == round(filter.estimated_keys()) == pytest.approx(1000, rel=0.1) and filter.fill_ratio() > 0
    filter.rotate()
    assert 0 not in filter and not filter and filter.rotations == 2
    asks: list[Any] = [filter.copy, filter.expected_fpr, filter.estimated_fpr, lambda: filter.capacity(0.1), lambda: filter.probes]
    for ask in asks:
        with pytest.raises(TypeError, match="RotatingBloomFilter"):
            ask()


@pytest.mark.parametrize("generations", [2, 3, 64])
def test_a_key_is_found_until_as_many_rotations_as_generations(generations: int) -> None:
    filter = RotatingBloomFilter(1000, 1e-6, generations=generations)
    filter.add("a")
    # A file has all generations.
    for seen in filter, RotatingBloomFilter.from_bytes(bytes(filter)):
        for _ in range(generations - 1):
            seen.rotate()
        assert "a" in seen
        seen.rotate()
        assert "a" not in seen and seen.rotations == generations
    for refused, error in (1, ValueError), (65, ValueError), (-1, OverflowError):
        with pytest.raises(error):
            RotatingBloomFilter(1000, 1e-6, generations=refused)


def test_a_full_generation_rotates_unless_rotation_is_off() -> None:
    filter, stays = RotatingBloomFilter(100, 1e-6), RotatingBloomFilter(100, 1e-6, rotate_when_full=False)
    for seen in filter, stays, pickle.loads(pickle.dumps(stays)):
        seen.update(range(1000))
        assert (seen.rotations > 0) == (seen is filter) == (0 not in seen)


def test_a_window_of_time() -> None:
    filter = RotatingBloomFilter(1000, 1e-6)
    filter.add("a")
    ages: list[Any] = [3600, 3600.0, datetime.timedelta(hours=1)]
    assert not any(map(filter.rotate_if_older_than, ages)) and filter.rotations == 0
    time.sleep(0.05)
    for age in 0.05, datetime.timedelta(milliseconds=1):
        assert filter.rotate_if_older_than(age) and not filter.rotate_if_older_than(3600)
        time.sleep(0.001)
    assert "a" not in filter and filter.rotations >= 2
    for age in -1, math.nan, math.inf, datetime.timedelta(seconds=-1):
        with pytest.raises(ValueError, match="give 0 or more"):
            filter.rotate_if_older_than(age)
    for age in "1", None, b"":
        with pytest.raises(TypeError, match="seconds or a timedelta"):
            filter.rotate_if_older_than(age)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/smaps")
@pytest.mark.parametrize("make", CLASSES)
def test_huge_pages(make: Any) -> None:
    """Filters ask the system for huge pages unless `huge_pages=False`."""

    def asked() -> int:
        flags = [line.split() for line in pathlib.Path("/proc/self/smaps").read_text().splitlines() if "VmFlags:" in line]
        return sum("hg" in line for line in flags)

    before = asked()
    small = make(20_000_000, 0.01, huge_pages=False)
    assert asked() == before
    large = make(20_000_000, 0.01)
    assert asked() > before
    del small, large
