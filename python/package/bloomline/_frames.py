"""Duplicates in frames and tables: pandas, Polars, pyarrow, datasets."""

import datetime
import functools
import itertools
import math
import os
import re
import time
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, Protocol, TypeVar

from bloomline._bloomline import AtomicBloomFilter, BloomFilter, Filter, MappedBloomFilter, ScalableBloomFilter, _distinct_rows
from bloomline._datasets import new_examples, table_of_dataset
from bloomline._progress import Progress

Nulls = Literal["equal", "keep", "skip", "fail"]


# Types of packages that may not be installed, by methods and properties that no other frames have.
class Expression(Protocol):
    """An expression of Polars."""

    @property
    def meta(self) -> Any: ...


class _PolarsFrame(Protocol):
    def lazy(self) -> Any: ...


class _PandasFrame(Protocol):
    @property
    def iloc(self) -> Any: ...
    @property
    def columns(self) -> Any: ...


class _ArrowTable(Protocol):
    """A table or a batch of pyarrow."""

    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...


class _Relation(Protocol):
    """A relation of DuckDB."""

    @property
    def columns(self) -> list[str]: ...
    def fetchall(self) -> list[Any]: ...


class _Reader(Protocol):
    def read_next_batch(self) -> Any: ...


class _HuggingFace(Protocol):
    """A Dataset or an IterableDataset of Hugging Face."""

    @property
    def features(self) -> Any: ...
    def with_format(self, type: Any = None) -> Any: ...


class Dataset(Protocol):
    """A data set of pyarrow."""

    def scanner(self) -> Any: ...


PolarsFrame = TypeVar("PolarsFrame", bound=_PolarsFrame)
PandasFrame = TypeVar("PandasFrame", bound=_PandasFrame)
Table = TypeVar("Table", bound=_ArrowTable | _Relation | _HuggingFace)
Reader = TypeVar("Reader", bound=_Reader)

On = Hashable | Expression | Sequence[Hashable | Expression] | None
Keep = Literal["first", "last"]

_FRAMES = {
    "pandas": ["DataFrame"],
    "polars": ["DataFrame", "LazyFrame"],
    "pyarrow": ["Table", "RecordBatch", "RecordBatchReader", "Dataset"],
    "duckdb": ["DuckDBPyRelation"],
    "_duckdb": ["DuckDBPyRelation"],
    "datasets": ["Dataset", "IterableDataset"],
}
# The least versions that are read. Nightly tests run with them.
LEAST = {
    "datasets": (4, 0),
    "duckdb": (1, 1),
    "fsspec": (2024, 6),
    "numpy": (1, 24),
    "pandas": (2, 0),
    "polars": (1, 4),
    "pyarrow": (14, 0),
}
_USES = {
    "fsspec": "it reads and writes files by URL",
    "numpy": "masks of rows are its arrays",
    "pyarrow": "it reads frames of pandas and relations of DuckDB",
}
# The initial number of distinct keys for a stream of unknown length.
_FIRST = 1_000_000


def is_data(data: object) -> bool:
    """True for objects with rows or values; False for a list of paths."""
    has_arrow = hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
    return has_arrow or any(_package(kind) in (*_FRAMES, "numpy") for kind in type(data).__mro__)


def _package(kind: type) -> str:
    return kind.__module__.split(".")[0]


@functools.cache
def needed(name: str) -> Any:
    """Imports a package.

    Raises:
        ImportError: If it is missing, or older than the least version.
    """
    least = ".".join(map(str, LEAST[name]))
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        missing = f"{name} is not installed, and {_USES.get(name, 'this call needs it')}: pip install '{name}>={least}'"
        raise ModuleNotFoundError(missing, name=name) from error
    version = str(getattr(module, "__version__", ""))
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < LEAST[name]:
        too_old = f"{name} is of version {version}, and the least that can be used is {least}: pip install '{name}>={least}'"
        raise ImportError(too_old, name=name)
    return module


def check_package(data: Any) -> None:
    """Refuses objects of packages that are older than the least version, lazy frames, and types that a package does not export."""
    if type(data).__name__ == "LazyFrame":
        raise TypeError("a LazyFrame has no rows before it is collected: give frame.collect()")
    for kind in type(data).__mro__:
        if _package(kind) in LEAST:
            needed(_package(kind))
    if type(data).__name__ == "DuckDBPyRelation":
        for name, kind in zip(data.columns, data.types, strict=True):
            if _is_changed(kind):
                raise TypeError(f"column {name!r} has the type {kind}, whose values DuckDB exports as others: cast it to VARCHAR")


# Of these types DuckDB exports times without their zone, numbers from 2**127 on as negative ones, and bits as bytes.
_CHANGED = "time with time zone", "uhugeint", "bit"


def _is_changed(kind: Any) -> bool:
    """True for a type of DuckDB that is exported as another, and for types with such values in them."""
    inner = kind.children if kind.id in ("list", "array", "struct", "map", "union") else []
    return kind.id in _CHANGED or any(_is_changed(one) for _, one in inner if hasattr(one, "id"))


def _kind(data: object) -> tuple[str, str]:
    """Returns the package of a frame and its class there, also for derived classes."""
    for kind in type(data).__mro__:
        if kind.__name__ in _FRAMES.get(_package(kind), []):
            package = _package(kind).removeprefix("_")
            needed(package)
            return package, kind.__name__
    remedy = (
        "a DataFrame of pandas or Polars, a LazyFrame, a relation of DuckDB, a Table, RecordBatch, RecordBatchReader or Dataset of"
        " pyarrow, or a dataset of Hugging Face"
    )
    remedy = "inputs.to_frame()" if hasattr(data, "to_frame") else remedy
    if _package(type(data)) == "pyspark":
        remedy = "it to bloomline.spark.drop_duplicates"
    if isinstance(data, dict) and data:
        remedy = f"one of its splits, such as inputs[{next(iter(data))!r}]"
    raise TypeError(f"inputs is of type {type(data).__name__} of {_package(type(data))}, which is not a frame: give {remedy}")


def check_arguments(n: Any, p: Any, nulls: Any, keep: Any) -> None:
    """Refuses arguments that neither frames nor files take, by their names."""
    if n is not None and (isinstance(n, bool) or not hasattr(n, "__index__")):
        raise TypeError(f"n is {n!r}: give a whole number of keys")
    if n is not None and not 1 <= n < 1 << 64:
        raise ValueError(f"n is {n!r}: give at least 1 key, and less than 2**64")
    if p is not None and (isinstance(p, bool) or not hasattr(p, "__float__")):
        raise TypeError(f"p is {p!r}: give a rate between 0 and 1")
    if p is not None and not 0 < float(p) < 1:
        raise ValueError(f"p is {p!r}: give a rate between 0 and 1 (both excluded)")
    if nulls not in ("equal", "keep", "skip", "fail"):
        raise ValueError(f"nulls is {nulls!r}: give 'equal', 'keep', 'skip' or 'fail'")
    if keep not in (None, "first", "last"):
        raise ValueError(f"keep is {keep!r}: give 'first' or 'last'")


def _check_seen(seen: object) -> None:
    if isinstance(seen, (str, os.PathLike)):
        raise TypeError(f"seen is the path {str(seen)!r}: give the filter that it has, such as ScalableBloomFilter.load({str(seen)!r})")
    if isinstance(seen, MappedBloomFilter):
        raise TypeError("seen is a MappedBloomFilter, which is for reading: BloomFilter.load(path) gives one that takes keys")
    if not isinstance(seen, (Filter, type(None))):
        raise TypeError(f"seen is of type {type(seen).__name__}: give a filter such as ScalableBloomFilter(1_000_000, 1e-6)")


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
    is_own: bool = False,
) -> Any:
    """Returns the rows whose key is new, in a frame of the same kind. If `is_own` is true, nobody uses `seen` after an exception."""
    package, kind = _kind(frame)
    _check_seen(seen)
    if package == "duckdb":
        needed("pyarrow")
        check_package(frame)
        bloomline_rows = frame.to_arrow_table() if hasattr(frame, "to_arrow_table") else frame.fetch_arrow_table()
        bloomline_rows = dedup(bloomline_rows, on, n, p, nulls, seen, keep, progress, depth + 1)
        # DuckDB finds the variable by its name. The relation has the connection of the one that was given.
        return frame.query("bloomline_relation", "SELECT * FROM bloomline_rows")
    if kind == "LazyFrame":
        _names(frame, on, package)
        # By default Polars before 2 moves a later filter, limit or selection of columns before this step, and other rows would be kept.
        no_pushdown = {"predicate_pushdown": False, "projection_pushdown": False, "slice_pushdown": False}
        return frame.map_batches(_Collected(on, n, p, nulls, seen, keep), **no_pushdown)
    if kind in ("RecordBatchReader", "IterableDataset") or (package, kind) == ("pyarrow", "Dataset"):
        if keep == "last":
            raise ValueError(
                f"the {kind} is read once and in order, so keep='last' needs all rows: give reader.read_all(), dataset.to_table() or a"
                " Dataset of Hugging Face"
            )
        return (_examples if package == "datasets" else _stream)(frame, on, n, p, nulls, seen, progress)
    keys, whole = _columns(frame, on, package), on is None
    try:
        # Checked before rows are read or a key is added.
        if package != "datasets":
            _check_rows(frame, package)
    except NotImplementedError as error:
        raise TypeError(f"{package} does not choose rows of this frame: {error}; cast the column{_refused(frame, package)}") from error
    if seen is None:
        return _rows(frame, _distinct_rows(keys, nulls, whole, keep == "last"), package)
    order = slice(None, None, None if keep == "first" or len(frame) == 0 else -1)
    expected: list[Any] = []
    new = None

    def select(rows: Any) -> None:
        expected[:] = [rows, _rows(frame, rows[order], package)]

    by_position = keys.iloc if package == "pandas" else keys

    try:
        # The keys enter a filter of the caller once the result exists.
        before = None if is_own else select
        new = seen._add_rows(keys if order.step is None else by_position[order], nulls, whole, before)
        _check(seen, warn_if_full(seen, len(frame), depth=depth))
        # Another thread may have added keys, and a key of this frame may be a false positive of earlier ones.
        is_expected = bool(expected) and bool((new == expected[0]).all())
        return expected[1] if is_expected else _rows(frame, new[order], package)
    except BaseException as error:
        found = getattr(error, "new", None) if new is None else new
        if found is not None:
            error.new = found[order]  # type: ignore[attr-defined]
        raise


class _Collected:
    """The rows of a lazy frame whose key is new. Without a filter of the caller, each collection yields the same rows."""

    def __init__(self, on: On, n: int | None, p: float | None, nulls: Nulls, seen: Filter | None, keep: Keep) -> None:
        self.arguments, self.seen, self.keep = (on, n, p, nulls), seen, keep
        self.is_done = False

    def __call__(self, batch: Any) -> Any:
        if self.seen is None:
            return dedup(batch, *self.arguments, None, self.keep)
        if self.is_done:
            raise RuntimeError(
                "this lazy frame was collected before, so `seen` has its keys and none of its rows would be new: collect it once, and use the"
                " frame that collect() returned"
            )
        try:
            new = dedup(batch, *self.arguments, self.seen, self.keep)
        except BaseException as error:
            # A call that failed before it added a key may be repeated.
            self.is_done = bool(needed("numpy").any(getattr(error, "new", False)))
            raise
        self.is_done = True
        return new


def _names(frame: Any, on: On, package: str) -> list[Any] | None:
    """Returns the names, the indices or the expressions of the columns of the key; None for all columns."""
    if on is None:
        return None
    is_expression = package == "polars" and isinstance(on, needed("polars").Expr)
    # A tuple may be a name of pandas.
    is_label = package == "pandas" and isinstance(on, Hashable) and on in frame.columns
    if is_expression or is_label or isinstance(on, (str, int)):
        names = [on]
    elif isinstance(on, Iterable) and not isinstance(on, (bytes, Mapping)):
        names = list(on)
    else:
        raise TypeError(f"on is {on!r}: give the name of a column, or a list of names")
    if not names:
        raise ValueError("on names no column: leave it out for all columns")
    for name in names:
        if package == "polars":
            if not isinstance(name, (str, needed("polars").Expr)):
                raise TypeError(f"on has {name!r}, and columns of Polars have names: give a name, or an expression such as pl.col('url')")
            continue
        if isinstance(name, bool) or not isinstance(name, (str, int) if package == "pyarrow" else Hashable):
            raise TypeError(f"on has {name!r}, which is not a column: give names")
        columns = frame.columns if package == "pandas" else frame.schema.names
        if name not in (range(len(columns)) if package == "pyarrow" and isinstance(name, int) else columns):
            raise KeyError(f"on has {name!r}, and the first columns are {list(columns[:20])}")
    return names


def _columns(frame: Any, on: On, package: str) -> Any:
    """Returns the columns of the key, with a row for each row of the frame."""
    if package == "datasets":
        names = _names(frame.data, on, "pyarrow")
        columns = frame.column_names
        return table_of_dataset(
            frame if names is None else frame.select_columns([columns[name] if isinstance(name, int) else name for name in names])
        )
    names = _names(frame, on, package)
    if names is None:
        return frame
    if package == "pandas":
        return frame[names]
    if package == "polars":
        # Two rows, because an aggregate of a column would fit a frame of one row.
        probe = frame.clear(2)
        for name in names:
            if not isinstance(name, str) and probe.select(name).height != 2:
                raise _not_by_row(name)
    keys = frame.select(names)
    if package == "polars" and keys.height != frame.height:
        raise _not_by_row(", ".join(map(str, names)))
    return keys


def _not_by_row(expression: Any) -> TypeError:
    return TypeError(
        f"on has the expression {expression}, which does not have one value for each row: give columns, or compute one before, such as by"
        " with_columns(...)"
    )


def _stream(
    source: Any, on: On, n: int | None, p: float | None, nulls: Nulls, seen: Filter | None, progress: bool | None
) -> Any:
    """Returns a reader of the new rows of a reader or a data set, batch by batch."""
    reader = source.scanner().to_reader() if hasattr(source, "scanner") else source
    # A column that does not exist fails at the call.
    _columns(no_rows(reader.schema), on, "pyarrow")
    return needed("pyarrow").RecordBatchReader.from_batches(reader.schema, _new_rows(reader, on, n, p, nulls, seen, progress))


def no_rows(schema: Any) -> Any:
    """Returns a table without rows. `empty_table` does not make columns of all types."""
    return needed("pyarrow").Table.from_batches([], schema)


def _examples(
    dataset: Any, on: On, n: int | None, p: float | None, nulls: Nulls, seen: Filter | None, progress: bool | None
) -> Any:
    """Returns the new examples of an IterableDataset, which are read when it is iterated."""
    if dataset.features is not None:
        _columns(no_rows(dataset.features.arrow_schema), on, "pyarrow")
    return new_examples(dataset, functools.partial(_new_rows, on=on, n=n, p=p, nulls=nulls, seen=seen, progress=progress))


def _new_rows(
    batches: Iterable[Any], on: On, n: int | None, p: float | None, nulls: Nulls, seen: Filter | None, progress: bool | None
) -> Iterator[Any]:
    """Yields the new rows of each batch. Without a filter of the caller, the first batch meets an empty one."""
    known = ScalableBloomFilter(_FIRST if n is None else n, 1e-6 if p is None else p) if seen is None else seen
    rows = unique = 0
    started = time.monotonic()
    with Progress(progress) as shown:
        for batch in batches:
            new = dedup(batch, on, n, p, nulls, known, "first", is_own=seen is None)
            rows, unique = rows + batch.num_rows, unique + new.num_rows
            speed = rows / max(time.monotonic() - started, 1e-9)
            shown.show([f"{rows:,} rows", f"{unique:,} unique", f"{speed:,.0f} rows/s"])
            yield new
    # The checks for each batch skip a filter that is large beside the batch.
    _check(known, warn_if_full(known))


def _check_rows(frame: Any, package: str) -> None:
    """Selects a row, which fails if the package does not select rows of a column's type."""
    few = (frame.iloc if package == "pandas" else frame)[:2]
    _rows(few, needed("numpy").arange(len(few)) == 0, package)


def _refused(frame: Any, package: str) -> str:
    """Returns the name of the first column whose rows cannot be selected."""
    for name in frame.columns if package == "pandas" else frame.schema.names:
        try:
            _check_rows(frame[[name]] if package == "pandas" else frame.select([name]), package)
        except NotImplementedError:
            return f" {name!r}"
    return ""


def _rows(frame: Any, new: Any, package: str) -> Any:
    if package == "pyarrow":
        return frame.filter(needed("pyarrow").array(new))
    if package == "datasets":
        return frame.select(needed("numpy").flatnonzero(new))
    return frame[new] if package == "pandas" else frame.filter(new)


# The number of bytes that are read in a millisecond or two.
_FEW = 1 << 24


def warn_if_full(seen: Filter, rows: int | None = None, *, depth: int = 3) -> float:
    """Warns about a filter with far more keys than it is made for. Returns its rate, or 0 if it cannot rise or was not read.

    Args:
        rows: The rows that were added. A filter that takes long to read compared to them is not read.
        depth: The caller that the warning names.
    """
    n, p = seen.expected_keys, seen.false_positive_rate
    if not isinstance(seen, (BloomFilter, AtomicBloomFilter)) or n is None or p is None:
        return 0.0
    if rows is not None and seen.memory_bytes > max(_FEW, 1000 * rows):
        return 0.0
    rate = seen.current_fpr()
    # Chance alone raises the rate of n keys far less.
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
    """Converts a frame of pandas to a table of Arrow, without its index.

    Raises:
        TypeError: If objects of a column have several kinds that Arrow's conversion merges: texts and byte strings, missing members and
            nulls, and times of several types, of which it drops the time of day, the zone or nanoseconds. If they are sets.
    """
    pa = needed("pyarrow")
    errors = pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError
    try:
        names = pa.Table.from_pandas(frame.iloc[:0], preserve_index=False).column_names
    except (*errors, ValueError) as error:
        raise TypeError(f"the frame cannot be read as an Arrow table: {error}; rename its columns, or convert them") from error
    arrays = []
    for i, label in enumerate(frame.columns):
        column = frame.iloc[:, i]
        objects = column.cat.categories if hasattr(column, "cat") else column
        mixed = _mixed(objects.to_numpy()) if objects.dtype == object else None
        try:
            array = array_of_pandas(column)
        except (*errors, OverflowError, TypeError) as error:
            found = mixed or f"objects that cannot be read as an Arrow array: {error}; convert them, such as by .astype(str)"
            raise TypeError(f"column {label!r} has {found}") from error
        if mixed is not None:
            times = column.infer_objects()
            if times.dtype.kind not in "mM":
                raise TypeError(f"column {label!r} has {mixed}")
            array = pa.chunked_array([pa.Array.from_pandas(times)])
        arrays.append(array)
    return pa.Table.from_arrays(arrays, names)


# The number of objects that are converted in a millisecond or two. Ctrl-C is handled between slices.
_SLICE = 1 << 16


def array_of_pandas(column: Any) -> Any:
    """Converts a column of pandas to chunks of Arrow, because only chunks export a stream. Objects are converted slice by slice."""
    pa = needed("pyarrow")

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
_LISTS = list, tuple
# The number of objects whose types are checked together.
_FEW_OBJECTS = 1 << 10
# The end of the path of the set of a struct's members.
_MEMBERS = "members"
_INEXACT = "inexact"
# Arrow takes them as lists, and equal ones may differ in the order of their elements, which the process chooses.
_SETS = "sets"

FieldPath = tuple[Hashable, ...]


def _mixed(objects: Any) -> str | None:
    """Describes kinds of objects that Arrow's conversion would merge; None if objects have one kind at each path."""
    kinds: dict[FieldPath, Hashable] = {}
    for start in range(0, len(objects), _FEW_OBJECTS):
        for path, kind in _kinds(objects[start : start + _FEW_OBJECTS], ()):
            other = kinds.setdefault(path, kind)
            if kind == _SETS:
                return "sets, whose elements have no order: convert them to lists, such as by .map(sorted)"
            if other == kind != _INEXACT:
                continue
            if path[-1:] == (_MEMBERS,):
                return "dicts of which some lack a member: a missing member is not a null, so give all dicts the same members"
            if {other, kind}.isdisjoint(_KINDS):
                return "objects of several types of time, or of nanoseconds: convert it, such as by pandas.to_datetime"
            named = " and ".join(one if isinstance(one, str) and one in _KINDS else "times" for one in (other, kind))
            return f"objects of several kinds, {named}: convert them to one kind, such as by .astype(str)"
    return None


# Kinds that the type of an object determines. Floats may be NaN, which is a null. Beside other numbers, Arrow widens short floats, whose
# digits are then others.
_KINDS: dict[str, tuple[str, ...]] = {
    "16-bit floats": ("numpy.float16",),
    "32-bit floats": ("numpy.float32",),
    "booleans": ("builtins.bool", "numpy.bool", "numpy.bool_"),
    "floats": ("builtins.float", "numpy.floating"),
    "numbers": ("builtins.int", "numpy.integer", "decimal.Decimal", "_decimal.Decimal"),
    "texts": ("builtins.str",),
    "byte strings": ("builtins.bytes", "builtins.bytearray", "builtins.memoryview"),
    "UUIDs": ("uuid.UUID",),
    "nulls": ("builtins.NoneType", "NAType", "NaTType"),
}


@functools.lru_cache(maxsize=256)
def _kind_of(type_: type) -> str | None:
    """Returns the kind of all objects of a type; None if each object has to be checked."""
    for base in type_.__mro__:
        found = {base.__name__, f"{base.__module__}.{base.__name__}"}
        for kind, names in _KINDS.items():
            if not found.isdisjoint(names):
                return kind
    return None


def _kinds(objects: Any, path: FieldPath) -> Iterator[tuple[FieldPath, Hashable]]:
    """Yields the kinds of some objects and of their members, each with its path."""
    kinds = {one: _kind_of(one) for one in set(map(type, objects))}
    simple = set(kinds.values()) - {"nulls", "floats"}
    # Arrow refuses a number among texts, so floats among texts are nulls.
    if "floats" in kinds.values() and not (simple and simple <= {"texts", "byte strings", "UUIDs"}):
        floats = tuple(one for one, kind in kinds.items() if kind == "floats")
        if any(isinstance(value, floats) and value == value for value in objects):
            simple.add("numbers")
    yield from ((path, kind) for kind in simple if kind is not None)
    if None in simple:
        others = [value for value in objects if kinds[type(value)] is None]
        dicts = [value for value in others if isinstance(value, Mapping)]
        if dicts:
            yield from (((*path, _MEMBERS), frozenset(members)) for members in {tuple(value) for value in dicts})
            for name in dicts[0]:
                yield from _kinds([value[name] for value in dicts if name in value], (*path, name))
        yield from _kinds([member for value in others if isinstance(value, _LISTS) for member in value], (*path, None))
        for value in others:
            if not isinstance(value, (Mapping, *_LISTS)):
                yield from _kinds_of_other(value, path)


def _kinds_of_other(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, Hashable]]:
    """Yields the kind of a set or a time, or of an array's items."""
    np = needed("numpy")
    if isinstance(value, (set, frozenset)):
        yield path, _SETS
    elif isinstance(value, np.ndarray):
        if value.dtype == object:
            yield from _kinds(value, (*path, None))
        elif value.size:
            others = value.dtype if value.dtype.kind in "mM" else _kind_of(value.dtype.type)
            others = "numbers" if others == "floats" else others
            yield (*path, None), {"b": "booleans", "U": "texts", "S": "byte strings"}.get(value.dtype.kind, others)
    elif isinstance(value, (np.datetime64, np.timedelta64)):
        yield path, value.dtype
    elif getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):
        yield path, _INEXACT
    elif isinstance(value, datetime.datetime):
        yield path, "naive" if value.tzinfo is None else "aware"
    elif isinstance(value, datetime.time):
        yield path, "time" if value.tzinfo is None else _INEXACT
    else:
        found: Any = next((one for one in _TIMES if isinstance(value, one)), type(value))
        yield path, found


# Parts of fewer rows take longer to export than to copy.
_LEAST_PART = 1 << 12


def polars_for_arrow(frame: Any) -> list[Any]:
    """Casts a frame of Polars to types of Arrow with the same keys: integers of 128 bits to decimals, and nulls to booleans.

    Returns parts of one chunk, because Polars would copy several to one. If chunks are small, returns the whole frame.

    Raises:
        TypeError: If an integer has more than 38 digits.
    """
    pl = needed("polars")
    # Older versions lack these types.
    wide = [getattr(pl, name) for name in ("Int128", "UInt128") if hasattr(pl, name)]

    def arrow_type(kind: Any) -> Any:
        if kind in wide:
            return pl.Decimal(38, 0)
        if kind == pl.Null:
            return pl.Boolean
        if isinstance(kind, pl.List):
            return pl.List(arrow_type(kind.inner))
        if isinstance(kind, pl.Array):
            return pl.Array(arrow_type(kind.inner), kind.size)
        if isinstance(kind, pl.Struct):
            return pl.Struct({field.name: arrow_type(field.dtype) for field in kind.fields})
        return kind

    casts = {name: arrow_type(kind) for name, kind in getattr(frame, "schema", {}).items() if arrow_type(kind) != kind}
    try:
        frame = frame.cast(casts) if casts else frame
    except pl.exceptions.InvalidOperationError as error:
        raise TypeError(f"integers of more than 38 digits cannot be keys: {error}; cast the column to a string") from error
    columns = frame.get_columns() if hasattr(frame, "get_columns") else []
    ends = sorted({end for column in columns for end in itertools.accumulate(column.chunk_lengths())} - {0})
    if len(ends) < 2 or len(ends) * _LEAST_PART > len(frame):
        return [frame]
    return [frame[start:end] for start, end in itertools.pairwise([0, *ends])]
