"""Duplicates in frames and tables: pandas, Polars, pyarrow."""

import datetime
import math
import re
import time
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

from bloomline._bloomline import AtomicBloomFilter, BloomFilter, Filter, ScalableBloomFilter
from bloomline._progress import Progress

Nulls = Literal["equal", "keep", "skip", "fail"]


On = str | int | Sequence[str | int] | None
Keep = Literal["first", "last"]

_FRAMES = {
    "pandas": ["DataFrame"],
    "polars": ["DataFrame", "LazyFrame"],
    "pyarrow": ["Table", "RecordBatch", "RecordBatchReader", "Dataset"],
}
# Distinct keys of a stream of which nobody knows how many there are, to begin with.
_FIRST = 1_000_000


def is_data(data: object) -> bool:
    """True for what has rows or values, and for no list of paths."""
    has_arrow = hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
    return has_arrow or any(_package(kind) in (*_FRAMES, "numpy") for kind in type(data).__mro__)


def _package(kind: type) -> str:
    return kind.__module__.split(".")[0]


def _kind(data: object) -> tuple[str, str]:
    """The package of a frame and its class there, also where others extend that."""
    for kind in type(data).__mro__:
        if kind.__name__ in _FRAMES.get(_package(kind), []):
            return _package(kind), kind.__name__
    raise TypeError(
        f"{type(data).__name__} of {_package(type(data))} is not a frame: give a DataFrame of pandas or Polars, a LazyFrame, or a Table,"
        " RecordBatch, RecordBatchReader or Dataset of pyarrow"
    )


def dedup(
    frame: Any,
    on: On,
    n: int | None,
    p: float | None,
    nulls: Nulls,
    seen: Filter | None,
    keep: Keep,
    progress: bool | None = False,
    depth: int = 4,
) -> Any:
    """The rows whose key is new, in a frame of the same kind."""
    package, kind = _kind(frame)
    if keep not in ("first", "last"):
        raise ValueError(f"keep is {keep!r}: give 'first' or 'last'")
    if kind == "LazyFrame":
        # Whoever collects it twice gets the same rows twice: each time has a filter of its own. Polars before 2 moves a later filter, a limit
        # and a choice of columns before it unless it is told not to, and other rows would stay.
        stays_here = {"predicate_pushdown": False, "projection_pushdown": False, "slice_pushdown": False}
        return frame.map_batches(lambda batch: dedup(batch, on, n, p, nulls, seen, keep), **stays_here)
    if kind in ("RecordBatchReader", "Dataset"):
        if keep == "last":
            raise ValueError(f"a {kind} is read once and in order, so keep='last' needs a table: give reader.read_all() or dataset.to_table()")
        return _stream(frame, on, n, p, nulls, seen, progress)
    keys = _columns(frame, on, package)
    if seen is None:
        rows = max(len(frame), 1)
        make = BloomFilter if n is None or n >= rows else ScalableBloomFilter
        seen = make(rows if n is None else n, 1e-6 if p is None else p)
    try:
        # Before a key is taken.
        _rows(frame[:2], import_module("numpy").arange(len(frame[:2])) == 0, package)
    except NotImplementedError as error:
        raise TypeError(f"{package} does not choose rows of this frame: {error}; cast the column") from error
    order = slice(None, None, None if keep == "first" else -1)
    new = None
    try:
        new = seen.add_rows(keys if keep == "first" else keys[order], nulls=nulls)[order]
        _check(seen, warn_if_full(seen, len(frame), depth=depth))
        return _rows(frame, new, package)
    except BaseException as error:
        found = getattr(error, "new", None) if new is None else new
        if found is not None:
            error.new = found[order] if new is None else new  # type: ignore[attr-defined]
        raise


def _columns(frame: Any, on: On, package: str) -> Any:
    """The columns of the key."""
    if on is None:
        return frame
    # A tuple may be a name of pandas.
    is_one = isinstance(on, (str, int)) or package == "pandas" and isinstance(on, tuple) and on in frame.columns
    names = [on] if is_one else list(on)  # type: ignore[arg-type]
    if not names:
        raise ValueError("on names no column: leave it out for all columns")
    return frame[names] if package == "pandas" else frame.select(names)


def _stream(
    source: Any, on: On, n: int | None, p: float | None, nulls: Nulls, seen: Filter | None, progress: bool | None
) -> Any:
    """The new rows of a reader or a data set, batch by batch as they are read."""
    reader = source.scanner().to_reader() if hasattr(source, "scanner") else source
    # A column that is not there fails at the call.
    _columns(reader.schema.empty_table(), on, "pyarrow")
    known = ScalableBloomFilter(_FIRST if n is None else n, 1e-6 if p is None else p) if seen is None else seen

    def batches() -> Iterator[Any]:
        rows = unique = 0
        started = time.monotonic()
        with Progress(progress) as shown:
            for batch in reader:
                new = dedup(batch, on, n, p, nulls, known, "first")
                rows, unique = rows + batch.num_rows, unique + new.num_rows
                speed = rows / max(time.monotonic() - started, 1e-9)
                shown.show([f"{rows:,} rows", f"{unique:,} unique", f"{speed:,.0f} rows/s"])
                yield new
        # A batch alone may be small beside the filter.
        _check(known, warn_if_full(known))

    return import_module("pyarrow").RecordBatchReader.from_batches(reader.schema, batches())


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


def loses_too_many(seen: Filter, rate: float) -> bool:
    """True for a rate that loses a hundred times more rows than the filter should, or half of them."""
    return rate > min(100 * (seen.false_positive_rate or 0.0), 0.5)


def _check(seen: Filter, rate: float) -> None:
    if loses_too_many(seen, rate):
        raise ValueError(
            f"the filter is made for {seen.expected_keys} keys, and has so many more that rows are lost at a rate of {rate:.2g}: give a"
            " larger one, or a ScalableBloomFilter, which grows"
        )


def table_of_pandas(frame: Any) -> Any:
    """A frame of pandas as a table of Arrow, without its index.

    Raises:
        TypeError: If times that differ would become equal. Arrow reads a column of objects as one type of time, and cuts off what that lacks:
            the time of a day, the zone or nanoseconds.
    """
    pa = import_module("pyarrow")
    names = pa.Table.from_pandas(frame.iloc[:0], preserve_index=False).column_names
    table = pa.Table.from_arrays([array_of_pandas(frame.iloc[:, place]) for place in range(len(names))], names)
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


# Objects that are converted in a millisecond or two, between which Ctrl-C is heard.
_SLICE = 1 << 16


def array_of_pandas(column: Any) -> Any:
    """A column of pandas as chunks of Arrow, which alone export a stream: of objects slice by slice."""
    pa = import_module("pyarrow")

    def whole() -> Any:
        made = pa.Array.from_pandas(column)
        return made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])

    if column.dtype != object and getattr(column.dtype, "storage", None) != "python":
        return whole()
    try:
        slices = (pa.Array.from_pandas(column.iloc[start : start + _SLICE]) for start in range(0, max(len(column), 1), _SLICE))
        # A slice of nulls takes the type of the others.
        return pa.concat_tables([pa.table([part], [""]) for part in slices], promote_options="default").column(0)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Slices of several types may have one together.
        return whole()


_TIMES = datetime.date, datetime.time, datetime.timedelta
_NESTED = list, tuple, set, frozenset, Mapping


def _are_exact(objects: Any, kind: str) -> bool:
    """True if Arrow tells the times among objects apart, which it reads as this type."""
    np = import_module("numpy")
    found: set[type] = set()
    for start in range(0, len(objects), _SLICE):
        found.update(map(type, objects[start : start + _SLICE]))
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


def polars_for_arrow(frame: Any) -> Any:
    """A frame of Polars with the types that Arrow has, for the same keys: of integers of 128 bits decimals, and of nulls any other type.

    Raises:
        TypeError: If an integer has more than 38 digits.
    """
    pl = import_module("polars")

    def known(kind: Any) -> Any:
        if kind in (pl.Int128, pl.UInt128):
            return pl.Decimal(38, 0)
        if kind == pl.Null:
            return pl.Boolean
        if isinstance(kind, pl.List):
            return pl.List(known(kind.inner))
        if isinstance(kind, pl.Struct):
            return pl.Struct({field.name: known(field.dtype) for field in kind.fields})
        return kind

    casts = {name: known(kind) for name, kind in getattr(frame, "schema", {}).items() if known(kind) != kind}
    try:
        return frame.cast(casts) if casts else frame
    except pl.exceptions.InvalidOperationError as error:
        raise TypeError(f"integers of more than 38 digits cannot be keys: {error}; cast the column to a string") from error
