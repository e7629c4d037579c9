"""Runs of the command on Parquet files: checks of the rows of an output, and of their form."""

import os
import pathlib
import subprocess
import sysconfig
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import footer
from footer import Chunk, Layout, layout
from tables import READERS, by_pyarrow, rows_of, stay

# Another build of the command, so that the tests need no wheel.
COMMAND = os.environ.get("BLOOMLINE_COMMAND") or pathlib.Path(sysconfig.get_path("scripts")) / "bloomline"


def bloomline(folder: pathlib.Path, *arguments: Any, code: int = 0, **options: Any) -> Any:
    told = subprocess.run([COMMAND, *map(str, arguments)], cwd=folder, capture_output=True, **options)
    assert told.returncode == code, (arguments, told.returncode, told.stderr.decode())
    if code == 0:
        assert told.stderr == b"", told.stderr.decode()
    return told


def refused(folder: pathlib.Path, *arguments: Any) -> str:
    """The error of the command."""
    told = bloomline(folder, *arguments, code=2).stderr.decode()
    assert "panicked" not in told and told.startswith("bloomline: "), told
    return str(told)


def is_whole(path: pathlib.Path) -> bool:
    """True if the file looks complete."""
    return path.exists() and path.read_bytes()[-4:] == b"PAR1"


def write(path: pathlib.Path, groups: Sequence[pa.Table], **options: Any) -> pathlib.Path:
    """Writes each table as a row group."""
    with pq.ParquetWriter(path, groups[0].schema, **options) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=max(group.num_rows, 1))
    return path


def assert_begun(table: pa.Table, output: pathlib.Path, kept: list[int]) -> None:
    """Checks that an output does not exist, or has the first kept rows, as they were before an error."""
    if is_whole(output):
        rows, found = rows_of(table), by_pyarrow(output).rows
        assert found == [rows[number] for number in kept[: len(found)]]


def elements(read: Layout) -> list[dict[int, Any]]:
    """The elements of the schema. An old type stands for its logical type, which not all writers write."""
    items = footer.Reader(read.schema).value(footer.LIST)[1]
    return [{number: value for number, value in item.items() if number != 6 or 10 not in item} for item in items[1:]]


def assert_rows(inputs: Sequence[pathlib.Path], output: pathlib.Path, kept: list[int], unread_by: Sequence[str] = ()) -> None:
    """Checks that each reader finds the kept rows of the inputs, in order, with the same schema."""
    for name, read in READERS.items():
        if name in unread_by:
            continue
        before, after = [read(path) for path in inputs], read(output)
        rows = [row for one in before for row in one.rows]
        assert after.rows == [rows[number] for number in kept], name
        assert after.schema == before[0].schema, name


def forms(chunk: Chunk) -> list[tuple[Any, ...]]:
    """The forms in which a chunk may be written anew: as it was, or without a dictionary, which saves little for so few values."""
    plain = frozenset((kind, "PLAIN") for kind, _ in chunk.form.data)
    return [chunk.form, *([chunk.form._replace(has_dictionary=False, data=plain)] if chunk.form.has_dictionary else [])]


MARKS = ["has_statistics", "has_column_index", "has_offset_index", "has_bloom_filter"]


def assert_groups(inputs: Sequence[pathlib.Path], output: pathlib.Path, kept: list[int]) -> None:
    """Checks that whole groups are copied, and that others are written in their form."""
    before, after = [layout(path) for path in inputs], layout(output)
    assert elements(after) == elements(before[0])
    assert after.metadata == before[0].metadata
    numbers = set(kept)
    start, expected = 0, []
    for group in [group for one in before for group in one.groups]:
        stays = len(numbers.intersection(range(start, start + group.rows)))
        start += group.rows
        if stays:
            expected.append((group, stays))
    assert [group.rows for group in after.groups] == [stays for _, stays in expected]
    for (was, stays), is_now in zip(expected, after.groups):
        assert is_now.sorting == was.sorting
        is_copied = stays == was.rows
        for old, new in zip(was.chunks, is_now.chunks, strict=True):
            assert new.form in forms(old)
            assert not is_copied or new.data == old.data
            for mark in MARKS:
                has, had = getattr(new, mark), getattr(old, mark)
                assert has == had if is_copied else has >= had, mark


def assert_kept(inputs: Sequence[pathlib.Path], output: pathlib.Path, kept: list[int], unread_by: Sequence[str] = ()) -> None:
    assert_rows(inputs, output, kept, unread_by)
    assert_groups(inputs, output, kept)


def some_rows() -> tuple[pa.Table, list[int]]:
    """A table with four row groups of 15 rows: all rows of the first are kept, no row of the second, and some of the others."""
    ids = [*range(15), *range(15), *(number // 2 + 15 for number in range(30))]
    table = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": [f"text {number % 7} {'ä' * (number % 3)}" for number in range(60)],
            "score": [None if number % 11 == 0 else number / 8 for number in range(60)],
            "is_new": [None if number % 13 == 0 else number % 2 == 0 for number in range(60)],
            "tags": [None if number % 5 == 0 else ["a", None, "b"][: number % 4] for number in range(60)],
        }
    )
    return table, stay([(number,) for number in ids])


def in_groups(table: pa.Table, rows: int = 15) -> list[pa.Table]:
    return [table.slice(start, rows) for start in range(0, table.num_rows, rows)]


def copy_to(path: pathlib.Path, table: pa.Table, options: str, columns: str = "*", rows: int = 15) -> pathlib.Path:
    """Writes a table with DuckDB, in groups of `rows` rows."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    # DuckDB makes groups of fewer than 2048 rows if its source yields so few at a time.
    connection.register(
        "source", pa.Table.from_batches([batch for part in in_groups(table, rows) for batch in part.to_batches()])
    )
    connection.execute(f"COPY (SELECT {columns} FROM source) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {rows}{options})")
    return path


def nested_table() -> pa.Table:
    inner = [
        {"x": 1, "y": {"z": "a"}},
        {"x": 1, "y": {"z": "b"}},
        None,
        {"x": None, "y": None},
        {"x": 2, "y": {"z": None}},
        {"x": 1, "y": {"z": "a"}},
    ]
    type = pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))])
    # Null slots have a value, which is not a key.
    behind = pa.StructArray.from_arrays(
        [pa.array([1, 2, 1, 2, 3, 1])], ["v"], mask=pa.array([False, False, True, True, False, False])
    )
    dictionary = pa.DictionaryArray.from_arrays(pa.array([1, 1, None, None, 0, None], pa.int32()), pa.array(["zero", "one"]))
    return pa.table({"s": pa.array(inner, type), "behind": behind, "dictionary": dictionary, "n": range(6)})
