"""Frames of Spark: rows without duplicates, filters of their keys, and rows that a filter has not seen.

It needs PySpark 3.5 or 4 and pyarrow, and this package on every executor. Keys are the same as in `Filter.add_rows`, so the command and
Rust can use filters that are built here, and the reverse.

A filter that takes keys belongs to one attempt of one task. So a retried task, a speculative task and a second action on a frame never
find keys of their own.
"""

import atexit
import contextlib
import functools
import itertools
import math
import os
import pathlib
import re
import shutil
import tempfile
import urllib.parse
import urllib.request
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark import SparkFiles
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas import functions as pandas_functions
from pyspark.sql.pandas.types import to_arrow_schema

from bloomline._bloomline import (
    BloomFilter,
    Filter,
    MappedBloomFilter,
    RedisBloomFilter,
    ScalableBloomFilter,
    _check_key_name,
    _name_of_key,
)
from bloomline._frames import Nulls, loses_too_many, warn_if_full

__all__ = ["Figures", "StreamingDedup", "build", "contains", "drop_duplicates", "drop_seen"]

On = str | Sequence[str] | None
Seen = Filter | str | os.PathLike[str]

# From PySpark 4.1 on a column can be computed from Arrow's arrays, so the other columns stay in the JVM.
_arrow_udf: Any = getattr(F, "arrow_udf", None)
_pandas_udf: Any = pandas_functions.pandas_udf

# The column of the key, if complete rows pass through Python.
_KEY = "__bloomline_key"
# The column of the number of the partition.
_PARTITION = "__bloomline_partition"

# A larger filter is sent to the executors as a file, and is mapped there once for all workers of a machine.
_BROADCAST = 100_000_000

# The initial number of keys for a frame with an unknown number of keys.
_FIRST = 1_000_000

# The number of blocks in a piece (128 KiB). Filters are merged piece by piece.
_PIECE = 1 << 11
# The maximum number of rows, or of pieces, that the JVM passes at a time.
_ROWS = 1000
# The number of bytes that a task merges.
_MERGED = 4_000_000

# Types whose values are keys: the types that Spark compares by value.
_SIMPLE = {
    "BinaryType", "BooleanType", "ByteType", "CharType", "DateType", "DayTimeIntervalType", "DecimalType", "DoubleType", "FloatType",
    "IntegerType", "LongType", "NullType", "ShortType", "StringType", "TimeType", "TimestampNTZType", "TimestampType", "VarcharType",
}  # fmt: skip


class Figures:
    """The counts of `drop_duplicates` for one frame, after an action has run.

    A partition counts once, by its last computation, so retries and second actions change nothing. Spark Connect has no such counters.

    Args:
        session: The session of the frame.

    >>> figures = Figures(session)
    >>> frame = session.createDataFrame([("a",), ("b",), ("a",)], ["url"])
    >>> drop_duplicates(frame, "url", figures=figures).count()
    2
    >>> figures.rows, figures.kept, figures.expected_lost < 1e-5
    (3, 2, True)
    """

    def __init__(self, session: SparkSession) -> None:
        self._partitions: Accumulator[dict[int, tuple[int, int, float]]] = session.sparkContext.accumulator({}, _Latest())

    @property
    def rows(self) -> int:
        """Rows that were read."""
        return sum(rows for rows, _, _ in self._partitions.value.values())

    @property
    def kept(self) -> int:
        """Rows that were kept."""
        return sum(kept for _, kept, _ in self._partitions.value.values())

    @property
    def expected_lost(self) -> float:
        """The expected number of rows that a false positive removed, from the rate of the filters at each kept row."""
        return sum(lost for _, _, lost in self._partitions.value.values())

    def _record(self, partition: int, rows: int, kept: int, lost: float) -> None:
        self._partitions.add({partition: (rows, kept, lost)})


class _Latest(AccumulatorParam[dict[int, tuple[int, int, float]]]):
    """Counts by partition. The last ones replace earlier ones."""

    def zero(self, value: dict[int, tuple[int, int, float]]) -> dict[int, tuple[int, int, float]]:
        return {}

    def addInPlace(
        self, value1: dict[int, tuple[int, int, float]], value2: dict[int, tuple[int, int, float]]
    ) -> dict[int, tuple[int, int, float]]:
        value1.update(value2)
        return value1


def drop_duplicates(
    df: DataFrame,
    on: On = None,
    n: int | None = None,
    p: float = 1e-6,
    *,
    nulls: Nulls = "equal",
    partitions: int | None = None,
    figures: Figures | None = None,
) -> DataFrame:
    """Keep one row of each key.

    As with Spark's own `dropDuplicates`, any one of equal rows is kept. A row is lost by mistake at the rate p at most. A shuffle moves
    rows with equal keys to one task, and each task has a filter for its own keys.

    Args:
        df: The frame.
        on: The columns of the key, with dots into structs; without them all columns.
        n: Distinct keys to plan for, if their number is known. The filters grow if there are more.
        p: The rate at which a row is lost by mistake.
        nulls: The treatment of rows whose key has a null: they are equal to each other, all are kept, all are skipped, or the job fails.
        partitions: The number of partitions of the result; by default Spark's `spark.sql.shuffle.partitions`.
        figures: Receives the counts, and the expected number of lost rows.

    Raises:
        TypeError: If a column has a type that Spark does not compare by value, or texts with a collation.

    >>> frame = session.createDataFrame([("a", 1), ("b", 2), ("a", 3)], ["url", "day"])
    >>> sorted(row.url for row in drop_duplicates(frame, on="url").collect())
    ['a', 'b']
    """
    _check_nulls(nulls)
    _check_sizes(n, p, partitions)
    if not isinstance(figures, Figures | None):
        raise TypeError(f"figures is {figures!r}: give Figures(session)")
    frame, names, key = _named(df, on)
    if df.isStreaming:
        raise TypeError("this frame is a stream: within its foreachBatch, StreamingDedup.batch takes one batch after another")
    columns = _columns(frame, names)
    if partitions is None:
        setting = str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
        # Some platforms set it to "auto".
        partitions = int(setting) if setting.isdigit() else 200
    # Keys fall into partitions at random: six standard deviations more than the mean. A filter grows if there are more.
    mean = (_FIRST if n is None else n) / partitions
    make = functools.partial(_Claims, math.ceil(mean + 6 * math.sqrt(mean)), p, nulls, figures)
    kept = _rows_that(frame.repartition(partitions, *columns), columns, key, make)
    return kept if frame is df else kept.toDF(*df.columns)


def build(
    df: DataFrame,
    on: On,
    n: int,
    p: float = 1e-6,
    *,
    path: str | os.PathLike[str] | None = None,
    nulls: Nulls = "equal",
    seed: int | None = None,
    partitions: int | None = None,
) -> BloomFilter | MappedBloomFilter:
    """Build a filter with the keys of all rows, with the same bits as on a single machine.

    Its key name is the name of the columns. Each core of the cluster makes a filter of the whole size. The executors merge the filters in
    pieces of 128 KiB, and the driver adds up the pieces. It holds one filter.

    Args:
        df: The frame.
        on: The columns of the key, with dots into structs; None for all.
        n: Distinct keys to plan for. If there are many more, a warning has the rate.
        p: The false-positive rate with n keys.
        path: A file of the driver for the filter, which is then mapped instead of kept in memory.
        nulls: The treatment of rows whose key has a null: "equal", "skip" or "fail".
        seed: The seed of the hash.
        partitions: The maximum number of filters. Fewer than the cores take less memory, and more time.

    Raises:
        TypeError: As `drop_duplicates`.

    >>> frame = session.createDataFrame([("a",), ("b",)], ["url"])
    >>> seen = build(frame, "url", n=1000)
    >>> "a" in seen, "c" in seen
    (True, False)
    """
    _check_nulls(nulls)
    if nulls == "keep":
        raise ValueError("nulls: a filter keeps no rows; give 'equal', 'skip' or 'fail'")
    _check_sizes(n, p, partitions)
    file = None if path is None else _local(path)
    frame, names, key = _named(df, on)
    session = frame.sparkSession
    keys = frame.select(_key(_columns(frame, names)).alias(_KEY))
    seen = BloomFilter(n, p, seed=seed, key_name=key.name)
    made = keys.coalesce(partitions or _cores(session)).mapInArrow(functools.partial(_pieces, key, n, p, nulls, seed), "piece long, blocks binary")
    with _conf(session, "spark.sql.execution.arrow.maxRecordsPerBatch", str(_ROWS)):
        merged = made.repartition(math.ceil(seen.memory_bytes / _MERGED), "piece").mapInArrow(_merged, made.schema)
        # The driver fetches one complete partition at a time. Not by a query, because Spark's scheduler would keep all results until its end.
        taken: Any = merged.rdd if _has_context(session) else merged
        for piece, blocks in taken.toLocalIterator(prefetchPartitions=True):
            if piece < 0:
                seen._unite_key_kinds(bytes(blocks[: -2 * piece]))
            else:
                seen._unite_blocks(piece * _PIECE, bytes(blocks))
    warn_if_full(seen)
    if file is None:
        return seen
    seen.save(file)
    del seen
    return BloomFilter.map(file)


def contains(seen: Seen, *columns: str | Column, nulls: Nulls = "equal") -> Column:
    """Return a column of booleans, true if a filter has the key of the row, for `filter`, `withColumn` and conditions of joins.

    The call reads the filter. A filter of up to 100 MB is sent to the executors as a broadcast. A larger one, and a file, is sent as a
    file, and all Python workers of a machine share its memory. `local:/path` is not sent: every machine must have that file, which is
    read when the action runs.

    Before PySpark 4.1 the columns pass through pandas, which changes some values. The tasks refuse these: floats, numbers with nulls,
    timestamps, arrays and structs. `drop_seen` takes all types in every version.

    Args:
        seen: A filter, or the path of its file. A filter may be saved under that path meanwhile, and nothing else may write to it.
        columns: The columns of the key, as the filter was built with. `alias` names a computed column.
        nulls: With "keep" the answer for a row with a null in its key is true, with "skip" it is false.

    Raises:
        ValueError: If the keys of the filter have the name of other columns.

    >>> from bloomline import BloomFilter
    >>> seen = BloomFilter(1000, 1e-6)
    >>> seen.update(["a"])
    >>> frame = session.createDataFrame([("a",), ("b",)], ["url"])
    >>> frame.filter(contains(seen, "url")).count()
    1
    """
    _check_nulls(nulls)
    if not columns:
        raise TypeError("contains needs the columns of the key: give their names after the filter")
    if wrong := [column for column in columns if not isinstance(column, str) and not hasattr(column, "alias")]:
        raise TypeError(f"{wrong[0]!r} is not a column: give names or columns")
    key = _KeyColumns([_label(_text(column)) for column in columns], False)
    return _contains(_shared(seen, key), [F.col(column) if isinstance(column, str) else column for column in columns], key, nulls)


def drop_seen(df: DataFrame, seen: Seen, on: On = None, *, nulls: Nulls = "equal") -> DataFrame:
    """Keep the rows whose key is not in a filter, such as of last month, a test set or a block list. Needs no shuffle.

    Args:
        df: The frame.
        seen: A filter, or the path of its file, as for `contains`. A new row is dropped by mistake at its false-positive rate.
        on: The columns of the key, with dots into structs; None for all.
        nulls: The treatment of rows whose key has a null: they are looked up, kept, skipped, or the job fails.

    Raises:
        TypeError: As `drop_duplicates`, and if the keys of the filter are values of another kind.
        ValueError: If the keys of the filter have the name of other columns.

    >>> from bloomline import BloomFilter
    >>> seen = BloomFilter(1000, 1e-6)
    >>> seen.update(["a"])
    >>> frame = session.createDataFrame([("a",), ("b",)], ["url"])
    >>> drop_seen(frame, seen, on="url").collect()
    [Row(url='b')]
    """
    _check_nulls(nulls)
    frame, names, key = _named(df, on)
    schema = to_arrow_schema(frame.select(*_columns(frame, names)).schema)
    return _drop_seen(df, _shared(seen, key, key.row_of(schema.types)), on, nulls)


class StreamingDedup:
    """Keeps the rows of a stream whose key no earlier batch had, for `foreachBatch`. A replayed batch yields the same rows.

    Before a batch returns its rows, its keys are saved in a file of this batch. The rows are new compared to the file of the previous
    batch. The files of the last two batches are kept.

    Args:
        path: A folder of the driver for the files, which must be as permanent as the checkpoint of the stream. The driver sends each file
            to the executors. With `local:/path`, a folder that all machines share, the executors map the file there.
        on: The columns of the key, with dots into structs; None for all.
        n: Distinct keys of the whole stream to plan for. If there are many more, a warning has the rate; with far more, a batch is refused.
        p: The rate at which a row is lost by mistake.
        nulls: As `drop_duplicates`.
        partitions: As `drop_duplicates`.

    >>> import tempfile
    >>> dedup = StreamingDedup(tempfile.mkdtemp(), on="url", n=1000)
    >>> first = session.createDataFrame([("a",), ("b",), ("a",)], ["url"])
    >>> sorted(row.url for row in dedup.batch(first, 0).collect())
    ['a', 'b']
    >>> dedup.batch(session.createDataFrame([("b",), ("c",)], ["url"]), 1).collect()
    [Row(url='c')]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        on: On = None,
        n: int = 100_000_000,
        p: float = 1e-6,
        *,
        nulls: Nulls = "equal",
        partitions: int | None = None,
    ) -> None:
        _check_nulls(nulls)
        _check_sizes(n, p, partitions)
        self._is_local = os.fspath(path).startswith("local:")
        self._folder = pathlib.Path(_local(path)).absolute()
        self._on, self._n, self._p, self._nulls, self._partitions = on, n, p, nulls, partitions
        # The release of resources of the previous batch.
        self._done: list[Callable[[], object]] = []

    def batch(self, df: DataFrame, batch_id: int) -> DataFrame:
        """Return the new rows of a batch. They are cached until the next batch, because their keys are saved first.

        Write them so that they replace earlier output of the same batch, such as to a folder of its own with the mode "overwrite": Spark
        runs an incomplete batch again.
        """
        for done in self._done:
            done()
        self._done.clear()
        # The keys of each state have the name of the columns.
        name = _named(df, self._on)[2].name
        self._folder.mkdir(parents=True, exist_ok=True)
        _hold(self._folder)
        states = {int(file.stem): file for file in self._folder.glob("*.bloom") if file.stem.isdecimal()}
        before = max((batch for batch in states if batch < batch_id), default=None)
        if before is None:
            if max(states, default=batch_id) > batch_id:
                found = ", ".join(map(str, sorted(states)))
                raise ValueError(
                    f"batch {batch_id} is older than those whose keys are in {self._folder}: {found}. Remove the folder with the"
                    " checkpoint of the stream, or go on with both"
                )
            if batch_id > 0:
                raise ValueError(
                    f"there are no keys of earlier batches in {self._folder}, and this is batch {batch_id}, so their rows would be kept again."
                    " Give the folder of these batches, or begin again with another checkpoint; pass every batch from 0 on, empty ones too"
                )
            seen = BloomFilter(self._n, self._p, key_name=name)
            new = df
        else:
            seen = BloomFilter.load(states[before])
            self._check(seen, name)
            if loses_too_many(seen, rate := seen.current_fpr()):
                raise ValueError(
                    f"n is {self._n}, and the stream, whose keys are in {self._folder}, has so many more keys that rows would be lost at a rate"
                    f" of {rate:.2g}: give a larger n"
                )
            new = _drop_seen(df, self._state(df.sparkSession, states[before]), self._on, self._sought)
        new = drop_duplicates(new, self._on, p=self._p, nulls=self._nulls, partitions=self._partitions).persist()
        self._done.append(new.unpersist)
        seen |= build(new, self._on, self._n, self._p, nulls="skip" if self._nulls == "keep" else self._nulls)
        warn_if_full(seen)
        seen.save(self._folder / f"{batch_id}.bloom")
        for batch, file in states.items():
            if batch not in (before, batch_id):
                file.unlink(missing_ok=True)
        return new

    def _check(self, seen: BloomFilter, name: str) -> None:
        for what, made, given in [
            ("n", seen.expected_keys, self._n),
            ("p", seen.false_positive_rate, self._p),
            ("on", seen.key_name, name),
        ]:
            if made != given:
                raise ValueError(
                    f"the keys in {self._folder} were saved with {what} = {made!r}, and this is {given!r}. Give the same, or start over with"
                    " another folder and another checkpoint"
                )

    @property
    def _sought(self) -> Nulls:
        """The treatment of nulls in the search: nulls that are skipped or fail are kept until `drop_duplicates`."""
        return "keep" if self._nulls != "equal" else "equal"

    def _state(self, session: SparkSession, file: pathlib.Path) -> "_Source":
        if self._is_local or _is_on_one_machine(session):
            return _File(str(file))
        if not _has_context(session):
            return _sent(session, str(file))
        source = _broadcast(session, BloomFilter.load(file))
        self._done.append(source.broadcast.destroy)
        return source


@functools.cache
def _hold(folder: pathlib.Path) -> int | None:
    """Keeps other processes out of a folder until this one ends, if the system and the disk have locks."""
    try:
        import fcntl
    except ImportError:
        return None
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        raise RuntimeError(f"another process has the stream with the states in {folder}: end it, or give another folder") from None
    except OSError:
        os.close(held)
        return None
    return held


# Keys


class _Keys(NamedTuple):
    """The keys of some rows, as Arrow's columns."""

    columns: pa.RecordBatch
    whole: bool

    def add_to(self, seen: Filter, nulls: Nulls) -> Any:
        return seen._add_rows(self.columns, nulls, self.whole)

    def found_in(self, seen: Filter, nulls: Nulls) -> Any:
        return seen._contains_rows(self.columns, nulls, self.whole)


class _KeyColumns(NamedTuple):
    """The names of the columns of a key, which are a part of it. A whole row of one column is another key than its value."""

    labels: list[str]
    whole: bool

    @property
    def name(self) -> str:
        return _name_of_key(self.labels, self.whole)

    def keys(self, struct: Any) -> _Keys:
        """Returns the keys of rows from the column that `_key` made."""
        return self._keys(struct.flatten())

    def keys_and_partition(self, struct: Any) -> tuple[_Keys, int]:
        """Returns the keys of rows, and the number of their partition, which is the last member."""
        *columns, partitions = struct.flatten()
        return self._keys(columns), partitions[0].as_py()

    def row_of(self, types: list[pa.DataType]) -> _Keys:
        """Returns a key of columns of these types, if they are simple, for checks of the kinds of keys. Others are null."""

        def value(kind: pa.DataType) -> pa.Array:
            for simple in (0, "", b""):
                with contextlib.suppress(pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
                    return pa.array([simple], kind)
            return pa.nulls(1, kind)

        return self._keys([value(kind) for kind in types])

    def _keys(self, columns: list[Any]) -> _Keys:
        rows = pa.RecordBatch.from_arrays(columns, names=self.labels)
        if len(rows) == 0 or any(pa.types.is_nested(column.type) for column in columns):
            # Spark writes no offsets for arrays without values, but Arrow requires one. A copy has it.
            rows = rows.take(pa.array(range(len(rows)), pa.int64()))
        return _Keys(rows, self.whole)


def _named(df: DataFrame, on: On) -> tuple[DataFrame, list[str], _KeyColumns]:
    """Returns the frame, and the columns of the key by their names for Spark and for the key. If all columns are the key and some share a
    name, the frame gets other names."""
    if not hasattr(df, "sparkSession"):
        kind = type(df)
        raise TypeError(f"df is a {kind.__name__} of {kind.__module__}, not of Spark: give session.createDataFrame(df), or use bloomline.dedup")
    if on is not None:
        names = [on] if isinstance(on, str) else list(on) if isinstance(on, Sequence) else [on]
        if wrong := [name for name in names if not isinstance(name, str)]:
            raise TypeError(f"on has {wrong[0]!r}: give the names of columns; withColumn names a computed one")
        names = list(dict.fromkeys(names))
        return df, names, _KeyColumns([_label(name, df.schema) for name in names], False)
    key = _KeyColumns(df.columns, True)
    if len(set(map(str.casefold, df.columns))) < len(df.columns):
        df = df.toDF(*(f"c{i}" for i in range(len(df.columns))))
    return df, ["`" + name.replace("`", "``") + "`" for name in df.columns], key


def _label(name: str, schema: T.StructType | None = None) -> str:
    """Returns a column's name in the key: without quotes, and with the case of the schema, which Spark ignores."""
    parts = [quoted.replace("``", "`") or plain for quoted, plain in re.findall("`((?:[^`]|``)*)`|([^`.]+)", name)]
    labels: list[str] = []
    kind: Any = schema
    # The first part may be the name of the frame.
    for first in (0, 1) if len(parts) > 1 else (0,):
        for part in parts[first:]:
            fields = {field.name: field for field in getattr(kind, "fields", [])}
            found = part if part in fields else next((name for name in fields if name.casefold() == part.casefold()), None)
            if found is None and not labels:
                break
            labels.append(found or part)
            kind = fields[found].dataType if found else None
        if labels:
            break
    return ".".join(labels or parts)


def _text(column: str | Column) -> str:
    """Returns the name of a column, or the text of its expression."""
    if isinstance(column, str):
        return column
    return str(column).removeprefix("Column<'").removesuffix("'>").rpartition(" AS ")[2]


def _columns(df: DataFrame, names: list[str]) -> list[Column]:
    if not names:
        raise ValueError("on names no column: give one or more")
    if any(name == "*" or name.endswith(".*") for name in names):
        raise ValueError("on takes names of columns, not patterns: leave it out for all columns, or name a struct as a whole")
    columns = [F.col(name) for name in names]
    for name, field in zip(names, df.select(*columns).schema.fields, strict=True):
        _check(field.dataType, name)
    return columns


def _check(kind: T.DataType, name: str) -> None:
    """Refuses types that Spark does not compare by value."""
    if isinstance(kind, T.StructType):
        for field in kind.fields:
            _check(field.dataType, f"{name}.{field.name}")
    elif isinstance(kind, T.ArrayType):
        _check(kind.elementType, name)
    elif isinstance(kind, T.UserDefinedType):
        _check(kind.sqlType(), name)
    elif type(kind).__name__ not in _SIMPLE:
        raise TypeError(f"column {name}: values of the type {kind.simpleString()} cannot be keys; choose or compute another column")
    elif getattr(kind, "collation", None) not in (None, "UTF8_BINARY"):
        raise TypeError(
            f"column {name}: texts that are compared by {kind.simpleString()} cannot be keys; cast them to string, or take collation_key of them"
        )


def _key(columns: list[Column]) -> Column:
    """Returns the columns as a struct. `_KeyColumns` has their names."""
    return F.struct(*(column.alias(str(i)) for i, column in enumerate(columns)))


# Tasks


class _Task(Protocol):
    """The processing of a partition's rows by one attempt of a task."""

    def new(self, keys: _Keys, partition: int) -> Any:
        """Returns an array of bool, true for rows to keep."""

    def end(self) -> None:
        """Called after the last rows."""


def _rows_that(df: DataFrame, columns: list[Column], key: _KeyColumns, make: Callable[[], _Task]) -> DataFrame:
    """Returns the rows that a task keeps. `make` makes a task for each attempt.

    The rows have the number of the partition, computed before other operators: a task may have several partitions after a `coalesce`, and
    partitions get other numbers in a `union`.
    """
    names = df.columns
    if _arrow_udf is not None:

        def ask(arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
            task = make()
            for keys in arrays:
                yield pa.array(task.new(*key.keys_and_partition(keys)))
            task.end()

        # Otherwise Spark might evaluate it twice, or only for rows that a later filter keeps.
        new = _arrow_udf(ask, "boolean").asNondeterministic()
        numbered = df.select("*", F.spark_partition_id().alias(_PARTITION))
        return numbered.filter(new(_key([*columns, F.col(_PARTITION)]))).drop(_PARTITION)

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = make()
        for batch in batches:
            *values, keys = batch.columns
            stay = pa.array(task.new(*key.keys_and_partition(keys)))
            yield pa.RecordBatch.from_arrays(values, names=batch.schema.names[:-1]).filter(stay)
        task.end()

    # PySpark's `mapInArrow` finds columns by their names, so each gets a simple and unique name.
    numbers = [f"c{i}" for i in range(len(names))]
    fields = zip(numbers, df.schema.fields, strict=True)
    schema = T.StructType([T.StructField(number, field.dataType, field.nullable, field.metadata) for number, field in fields])
    keyed = df.select("*", _key([*columns, F.spark_partition_id()]).alias(_KEY)).toDF(*numbers, _KEY)
    return keyed.mapInArrow(keep, schema).toDF(*names)


class _Claims:
    """Keeps rows whose key is the first in its partition."""

    def __init__(self, n: int, p: float, nulls: Nulls, figures: Figures | None) -> None:
        self.seen = ScalableBloomFilter(n, p, huge_pages=False)
        self.nulls, self.figures = nulls, figures
        self.partition: int | None = None
        self.rows, self.kept, self.lost = 0, 0, 0.0

    def new(self, keys: _Keys, partition: int) -> Any:
        new = keys.add_to(self.seen, self.nulls)
        kept = int(new.sum())
        self.partition = partition
        self.rows += len(new)
        self.kept += kept
        # At the rate after these rows, which is their maximum.
        self.lost += kept * self.seen.estimated_fpr()
        return new

    def end(self) -> None:
        if self.figures is not None and self.partition is not None:
            self.figures._record(self.partition, self.rows, self.kept, self.lost)


class _Unseen:
    """Keeps rows whose key a filter does not have."""

    def __init__(self, source: "_Source", nulls: Nulls) -> None:
        self.seen, self.nulls = source.filter(), nulls

    def new(self, keys: _Keys, partition: int) -> Any:
        return ~keys.found_in(self.seen, _INVERTED[self.nulls])

    def end(self) -> None:
        pass


# Rows that are kept are reported as not found, and skipped rows as found.
_INVERTED: dict[Nulls, Nulls] = {"equal": "equal", "keep": "skip", "skip": "keep", "fail": "fail"}


def _check_nulls(nulls: str) -> None:
    """Refuses an invalid value at the call, before a task does."""
    if nulls not in _INVERTED:
        raise ValueError(f"nulls is {nulls!r}: give 'equal', 'keep', 'skip' or 'fail'")


def _check_sizes(n: int | None, p: float, partitions: int | None) -> None:
    """Refuses invalid sizes at the call, before a task does."""
    for name, number in [("n", n), ("partitions", partitions)]:
        if number is not None and not hasattr(number, "__index__"):
            raise TypeError(f"{name} is {number!r}: give an int")
        if number is not None and number < 1:
            raise ValueError(f"{name} is {number}: give at least 1")
    # Refuses an invalid rate.
    BloomFilter(1, p)


# Merging


def _cores(session: SparkSession) -> int:
    with contextlib.suppress(Exception):
        return max(session.sparkContext.defaultParallelism, 1)
    # Spark Connect does not report it.
    return 16


def _pieces(
    key: _KeyColumns, n: int, p: float, nulls: Nulls, seed: int | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yields the filter of a task, piece by piece, or nothing without keys. The kinds of keys are a piece whose number is the negative number
    of their parts."""
    seen = BloomFilter(n, p, seed=seed)
    rows = 0
    for batch in batches:
        key.keys(batch.column(0)).add_to(seen, nulls)
        rows += batch.num_rows
    if rows == 0:
        return
    kinds = seen._key_kinds()
    # Padded to whole words, which are merged.
    pieces = [(-len(kinds) // 2, kinds + bytes(-len(kinds) % 8))] if kinds else []
    blocks = ((piece, seen._blocks(piece * _PIECE, _PIECE)) for piece in range(math.ceil(seen.memory_bytes / (64 * _PIECE))))
    for piece, data in itertools.chain(pieces, blocks):
        yield pa.record_batch({"piece": pa.array([piece], pa.int64()), "blocks": pa.array([data], pa.binary())})


def _merged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields each piece, merged from all tasks."""
    merged: dict[int, Any] = {}
    for batch in batches:
        for piece, blocks in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            buffer = blocks.as_buffer()
            words = pa.Array.from_buffers(pa.uint64(), buffer.size // 8, [None, buffer])
            united = merged.get(piece)
            merged[piece] = words if united is None else pa.compute.bit_wise_or(united, words)
    for piece, words in merged.items():
        blocks = words.buffers()[1].slice(words.offset * 8, len(words) * 8).to_pybytes()
        yield pa.record_batch({"piece": pa.array([piece], pa.int64()), "blocks": pa.array([blocks], pa.binary())})


@contextlib.contextmanager
def _conf(session: SparkSession, name: str, value: str) -> Iterator[None]:
    """Sets an option for queries that are planned in the context."""
    old = session.conf.get(name, None)
    session.conf.set(name, value)
    try:
        yield
    finally:
        if old is None:
            session.conf.unset(name)
        else:
            session.conf.set(name, old)


# Transfer of filters to the executors


class _Source(Protocol):
    """The source from which a worker reads a filter."""

    def filter(self) -> Filter: ...


class _File:
    """A file that every machine has under this path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def filter(self) -> Filter:
        seen = _open(self.path)
        if seen is None:
            raise FileNotFoundError(f"no filter {self.path!r} on this machine")
        return seen


class _SentFile:
    """A file that Spark sends to each machine."""

    def __init__(self, name: str) -> None:
        self.name = name

    def filter(self) -> Filter:
        return _File(SparkFiles.get(self.name)).filter()


class _Broadcast:
    """Bytes that Spark sends to each machine. A worker reads them once."""

    def __init__(self, broadcast: Any) -> None:
        self.broadcast = broadcast

    def filter(self) -> Filter:
        seen: Filter = self.broadcast.value
        return seen


def _open(path: str) -> Filter | None:
    """Maps a file, or loads one that cannot be mapped. None if the file does not exist."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return _opened(path, found.st_ino, found.st_mtime_ns, found.st_size)


@functools.lru_cache(maxsize=16)
def _opened(path: str, *version: int) -> Filter:
    """Opens a filter once for all tasks of a worker, which only read it."""
    try:
        return BloomFilter.map(path)
    except ValueError as error:
        try:
            return ScalableBloomFilter.load(path)
        except ValueError:
            raise error from None


def _is_on_one_machine(session: SparkSession) -> bool:
    try:
        master = session.sparkContext.master or ""
    except Exception:
        return False
    return master == "local" or master.startswith("local[")


def _shared(seen: Seen, key: _KeyColumns, row: _Keys | None = None) -> _Source:
    """Sends a filter to all executors. Refuses a filter whose keys have the name of other columns, or are of other kinds than a row."""

    def check(found: Filter) -> None:
        _check_key_name(key.labels, key.whole, found.key_name)
        if row is not None:
            row.found_in(found, "equal")

    if isinstance(seen, RedisBloomFilter):
        raise TypeError("a RedisBloomFilter is asked over the network by each task, again when one is retried: give its download()")
    session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    if not isinstance(seen, Filter):
        path = _local(seen)
        # Tasks refuse a file that is not on this machine.
        if (found := _open(path)) is not None:
            check(found)
        return _File(path) if os.fspath(seen).startswith("local:") else _sent(session, path)
    check(seen)
    if isinstance(seen, MappedBloomFilter):
        return _sent(session, seen.__reduce__()[1][0])
    if seen.memory_bytes <= _BROADCAST and _has_context(session):
        return _broadcast(session, seen)
    file = os.path.join(_folder(), f"{uuid.uuid4().hex}.bloom")
    seen.save(file)
    return _sent(session, file)


def _local(path: str | os.PathLike[str]) -> str:
    """Returns a path without `local:` or `file:`. Refuses the schemes of other file systems, which would be taken for folders here."""
    text = os.fspath(path)
    # A single letter is a drive of Windows.
    scheme, rest = found.groups() if (found := re.match("([A-Za-z][A-Za-z0-9+.-]+):(.*)", text, re.DOTALL)) else ("", text)
    if scheme == "file" and (url := urllib.parse.urlsplit(text)).netloc in ("", "localhost"):
        return urllib.request.url2pathname(url.path)
    if scheme not in ("", "local"):
        raise ValueError(
            f"the path {text!r} is on another file system: give a path of this machine, where that file system may be mounted (such as"
            " /dbfs or /Volumes), 'local:/path' if all machines have it, or './name' if the name has a colon"
        )
    return rest


def _has_context(session: SparkSession) -> bool:
    return hasattr(session, "_jsparkSession")


def _broadcast(session: SparkSession, seen: Filter) -> _Broadcast:
    return _Broadcast(session.sparkContext.broadcast(seen))


def _sent(session: SparkSession, path: str) -> _Source:
    """Sends the present version of a file, under a name of its own, because Spark accepts each name once."""
    path = os.path.abspath(path)
    # Checked here, before a task fails.
    if _open(path) is None:
        raise FileNotFoundError(f"there is no file {path!r}")
    name = f"{uuid.uuid4().hex}.bloom"
    link = os.path.join(_folder(), name)
    # Not a symbolic link: the action runs later, when another file may have this path, and Spark would send the target under its own name.
    try:
        os.link(path, link)
    except OSError:
        shutil.copy(path, link)
    if _is_on_one_machine(session):
        return _File(link)
    if _has_context(session):
        session.sparkContext.addFile(link)
    else:
        session.addArtifact(link, file=True)
    return _SentFile(name)


@functools.cache
def _folder() -> str:
    """Returns the folder of the files that executors fetch. It is removed when the driver ends."""
    folder = tempfile.mkdtemp(prefix="bloomline-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _drop_seen(df: DataFrame, source: _Source, on: On, nulls: Nulls) -> DataFrame:
    frame, names, key = _named(df, on)
    columns = _columns(frame, names)
    if _arrow_udf is not None:
        kept = frame.filter(~_contains(source, columns, key, _INVERTED[nulls]))
    else:
        kept = _rows_that(frame, columns, key, functools.partial(_Unseen, source, nulls))
    return kept if frame is df else kept.toDF(*df.columns)


def _contains(source: _Source, columns: list[Column], key: _KeyColumns, nulls: Nulls) -> Column:
    if _arrow_udf is not None:

        def contains_key(keys: pa.Array) -> pa.Array:
            return pa.array(key.keys(keys).found_in(source.filter(), nulls))

        column: Column = _arrow_udf(contains_key, "boolean")(_key(columns))
        return column

    import pandas as pd  # type: ignore[import-untyped]

    def contains_values(*series: pd.Series) -> pd.Series:
        keys = _Keys(pa.record_batch(list(map(_unchanged, series)), names=key.labels), key.whole)
        return pd.Series(keys.found_in(source.filter(), nulls))

    column = _pandas_udf(contains_values, "boolean")(*columns)
    return column


def _unchanged(series: Any) -> Any:
    """Returns the values of a series. Refuses types whose values pandas changes."""
    array = None
    # A struct is passed as a frame, which has no type.
    kind = getattr(series, "dtype", None)
    if kind is not None and kind.kind in "Obiu":
        with contextlib.suppress(pa.ArrowInvalid, pa.ArrowTypeError):
            array = pa.array(series, from_pandas=True)
    kinds = pa.types
    if array is None or not (
        kinds.is_integer(array.type)
        or kinds.is_boolean(array.type)
        or kinds.is_string(array.type)
        or kinds.is_large_string(array.type)
        or kinds.is_binary(array.type)
        or kinds.is_decimal(array.type)
        or kinds.is_date(array.type)
        or kinds.is_null(array.type)
    ):
        raise TypeError(
            f"pandas changes values such as these of the type {kind or 'struct'}. PySpark 4.1 hands them over as they are; before it, take"
            " drop_seen, or cast the column to a string or a decimal"
        )
    return array
