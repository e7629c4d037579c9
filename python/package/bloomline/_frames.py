"""Duplicates in frames and tables: pandas, Polars, pyarrow."""

import datetime
import math
import re
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

from bloomline._bloomline import AtomicBloomFilter, BloomFilter, Filter, ScalableBloomFilter

Nulls = Literal["equal", "keep", "skip", "fail"]


def is_frame(data: object) -> bool:
    """Whether it has rows that can be read."""
    return hasattr(data, "__arrow_c_stream__") or _is_lazy(data)


def _is_lazy(data: object) -> bool:
    return type(data).__name__ == "LazyFrame" and _package(data) == "polars"


def _package(data: object) -> str:
    return type(data).__module__.split(".")[0]


def dedup(
    frame: Any, on: str | Sequence[str] | None, n: int | None, p: float | None, nulls: Nulls, seen: Filter | None
) -> Any:
    """The rows whose key is new, in a frame of the same kind."""
    if _is_lazy(frame):
        # Whoever collects it twice gets the same rows twice: each time has a filter of its own. Polars before 2 moves a later filter, a limit
        # and a choice of columns before it unless it is told not to, and other rows would stay.
        stays_here = {"predicate_pushdown": False, "projection_pushdown": False, "slice_pushdown": False}
        return frame.map_batches(lambda batch: dedup(batch, on, n, p, nulls, seen), **stays_here)
    package = _package(frame)
    if package not in ("pandas", "polars", "pyarrow"):
        what = f"a {type(frame).__name__} of {package} is no frame that is known here"
        raise TypeError(f"{what}: give one of pandas, Polars or pyarrow")
    columns = [on] if isinstance(on, str) else on
    keys = frame if columns is None else frame[list(columns)] if package == "pandas" else frame.select(list(columns))
    if seen is None:
        rows = max(len(frame), 1)
        make = BloomFilter if n is None or n >= rows else ScalableBloomFilter
        seen = make(rows if n is None else n, 1e-6 if p is None else p)
    try:
        # Before a key is taken.
        _rows(frame[:2], import_module("numpy").arange(len(frame[:2])) == 0, package)
    except NotImplementedError as error:
        raise TypeError(f"{package} does not choose rows of this frame: {error}; cast the column") from error
    new = seen.add_rows(keys, nulls=nulls)
    try:
        warn_if_full(seen, len(frame), depth=4)
        return _rows(frame, new, package)
    except BaseException as error:
        error.new = new  # type: ignore[attr-defined]
        raise


def _rows(frame: Any, new: Any, package: str) -> Any:
    if package == "pyarrow":
        return frame.filter(import_module("pyarrow").array(new))
    return frame[new] if package == "pandas" else frame.filter(new)


# Bytes that are read in a millisecond or two.
_FEW = 1 << 24


def warn_if_full(seen: Filter, rows: int | None = None, *, depth: int = 3) -> float:
    """Warns of a filter with far more keys than it is made for. Returns its rate, or 0 where it is kept or was not read.

    Args:
        rows: Those that were added. A filter that takes long to read beside them is not read.
        depth: The caller that the warning names.
    """
    n, p = seen.expected_keys, seen.false_positive_rate
    if not isinstance(seen, (BloomFilter, AtomicBloomFilter)) or n is None or p is None:
        return 0.0
    if rows is not None and seen.memory_bytes > max(_FEW, 1000 * rows):
        return 0.0
    rate = seen.current_fpr()
    # What chance makes of n keys is far below.
    if rate > 1.5 * p:
        keys = seen.estimated_keys()
        about = f"about {keys:.3g}" if math.isfinite(keys) else "many more"
        warnings.warn(f"the filter is made for {n} keys and has {about}: its false-positive rate is {rate:.2g}", stacklevel=depth)
    return rate


def table_of_pandas(frame: Any) -> Any:
    """A frame of pandas as a table of Arrow, without its index.

    Raises:
        TypeError: If times that differ would become equal. Arrow reads a column of objects as one type of time, and cuts off what that lacks:
            the time of a day, the zone or nanoseconds.
    """
    pa = import_module("pyarrow")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for place, field in enumerate(table.schema):
        column = frame.iloc[:, place]
        objects = column.cat.categories if hasattr(column, "cat") else column
        if objects.dtype != object or _are_exact(objects.to_numpy(), str(field.type)):
            continue
        times = column.infer_objects()
        if times.dtype.kind not in "mM":
            raise TypeError(
                f"column {frame.columns[place]!r} has objects of several types of time, or of nanoseconds: convert it, such as by"
                " pandas.to_datetime"
            )
        table = table.set_column(place, field.name, pa.chunked_array(pa.Array.from_pandas(times)))
    return table


_TIMES = datetime.date, datetime.time, datetime.timedelta
_NESTED = list, tuple, set, frozenset, Mapping


def _are_exact(objects: Any, kind: str) -> bool:
    """True if Arrow tells the times among objects apart, which it reads as this type."""
    np = import_module("numpy")
    found = set(map(type, objects))
    has_times = any(issubclass(one, (*_TIMES, np.datetime64, np.timedelta64)) for one in found)
    has_nested = any(issubclass(one, (*_NESTED, np.ndarray)) for one in found)
    # The name of a member may say so as well, which costs the time of a look at its values alone.
    if not (has_times or has_nested and re.search("date|time|duration", kind)):
        return True
    types: dict[Hashable, Hashable] = {}
    return all(types.setdefault(place, one) == one and one != "inexact" for place, one in _types(objects, (), np))


def _types(objects: Iterable[Any], place: tuple[object, ...], np: Any) -> Iterator[tuple[Hashable, Hashable]]:
    """What Arrow would have to keep of the type of each value, with the names that lead to it."""
    for value in objects:
        if isinstance(value, Mapping):
            yield from _types(value.keys(), (*place, "keys"), np)
            for name, member in value.items():
                yield from _types([member], (*place, name), np)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "mM":
            yield (*place, None), value.dtype
        elif isinstance(value, (*_NESTED, np.ndarray)):
            yield from _types(value, (*place, None), np)
        elif isinstance(value, (np.datetime64, np.timedelta64)):
            yield place, value.dtype
        # Nulls, of which NaT is a time, and NaN is not itself.
        elif value is None or type(value).__name__ == "NAType" or value != value:
            continue
        elif getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):
            yield place, "inexact"
        elif isinstance(value, datetime.datetime):
            yield place, "naive" if value.tzinfo is None else "aware"
        elif isinstance(value, datetime.time):
            yield place, "time" if value.tzinfo is None else "inexact"
        else:
            yield place, next((one for one in _TIMES if isinstance(value, one)), "no time")
