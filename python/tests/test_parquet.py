"""Keys and rows of Parquet files, as pyarrow, DuckDB and Polars read them, beside a dict of the keys of the rows that they wrote."""

import itertools
import pathlib
import random
from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import examples
from footer import layout
from tables import KINDS, READERS, Kind, array, rows_of, stay
from trips import (
    assert_begun,
    assert_rows,
    assert_kept,
    bloomline,
    copy_to,
    forms,
    in_groups,
    nested_table,
    refused,
    some_rows,
    write,
)


def arranged(values: Sequence[Any]) -> list[list[Any]]:
    """Groups whose rows are all, not, partly and all kept, if nulls are equal."""
    first, *rest = values
    fresh = rest[3:]
    groups = [[first, None], [first, None, first, None], [None, *rest[:1], first, *rest[:3], *rest[:1], None], fresh]
    return [group for group in groups if group]


def numbered(groups: Sequence[Sequence[Any]], kind: Kind) -> list[pa.Table]:
    """Tables with the key, a number for each row, and the key's values in another order."""
    number = itertools.count()
    return [
        pa.table(
            {
                "key": kind.array(values),
                "n": pa.array([next(number) for _ in values], pa.int64()),
                "same": kind.array(values[::-1]),
            }
        )
        for values in groups
    ]


# Extension types whose values mean more than they store.
NO_KEYS = ["opaque", "tensor"]


@pytest.mark.parametrize("name", KINDS)
def test_a_column_of_each_type_is_a_key(name: str, tmp_path: pathlib.Path) -> None:
    kind = KINDS[name]
    groups = arranged(kind.values)
    source = write(tmp_path / "in.parquet", numbered(groups, kind))
    values = [(value,) for group in groups for value in group]
    for nulls in ["equal", "keep", "skip"]:
        if name in NO_KEYS:
            assert "cannot be keys" in refused(tmp_path, "dedup", "--column", "key", source, "-o", "out.parquet")
            break
        output = tmp_path / f"{nulls}.parquet"
        bloomline(tmp_path, "dedup", "-q", "--column", "key", "--nulls", nulls, source, "-o", output)
        assert_kept([source], output, stay(values, nulls=nulls), kind.unread_by)
    # The column of the type is copied, and is not the key.
    bloomline(tmp_path, "dedup", "--column", "n", source, source, "-o", "twice.parquet")
    assert_kept([source], tmp_path / "twice.parquet", list(range(len(values))), kind.unread_by)


@pytest.mark.parametrize("name", [name for name in KINDS if name not in NO_KEYS])
def test_a_row_with_each_type_is_a_key(name: str, tmp_path: pathlib.Path) -> None:
    kind = KINDS[name]
    groups = arranged(kind.values)
    tables = [pa.table({"a": kind.array(values), "b": kind.array(values[::-1])}) for values in groups]
    source = write(tmp_path / "in.parquet", tables)
    bloomline(tmp_path, "dedup", source, "-o", "out.parquet")
    rows = [pair for values in groups for pair in zip(values, values[::-1])]
    assert_kept([source], tmp_path / "out.parquet", stay(rows), kind.unread_by)


def test_a_file_of_fastparquet_without_rows(tmp_path: pathlib.Path) -> None:
    """The file has no element type for its empty list of row groups."""
    write(tmp_path / "in.parquet", [pa.table({"key": ["a", "a"]})])
    pq.ParquetWriter(tmp_path / "empty.parquet", pa.schema({"key": pa.string()})).close()
    whole = (tmp_path / "empty.parquet").read_bytes()
    # The field after that with the number of rows, 0.
    assert whole.count(b"\x16\x00\x19\x0c") == 1
    (tmp_path / "empty.parquet").write_bytes(whole.replace(b"\x16\x00\x19\x0c", b"\x16\x00\x19\x00"))
    bloomline(tmp_path, "dedup", "--column", "key", "empty.parquet", "in.parquet", "-o", "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["key"].to_pylist() == ["a"]
    bloomline(tmp_path, "dedup", "empty.parquet", "-o", "none.parquet")
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


DUCKDB = {
    "timetz": "timetz '01:02:03+02'",
    "hugeint": "1::HUGEINT",
    "enum": "'x'::ENUM ('x', 'y')",
    "uuid": "'00000000-0000-0000-0000-000000000001'::UUID",
    "json": "'{\"a\": 1}'::JSON",
    "decimal32": "1.5::DECIMAL(9, 1)",
    "decimal64": "1.5::DECIMAL(18, 1)",
    "array": "[1, 2]::INTEGER[2]",
    "map": "MAP {'a': [1]}",
    "union": "union_value(a := 1)",
    "variant": "[1, 2]::VARIANT",
    "geometry": "'POINT(1 1)'::GEOMETRY",
}


@pytest.mark.parametrize("name", DUCKDB)
def test_types_of_duckdb_are_preserved(name: str, tmp_path: pathlib.Path) -> None:
    ids = [1, 2, 1, 2, 3, 2, 4, 5]
    # DuckDB writes values below a null array, which pyarrow does not read.
    value = DUCKDB[name] if name == "array" else f"CASE WHEN n % 3 = 0 THEN NULL ELSE {DUCKDB[name]} END"
    table = pa.table({"n": range(len(ids)), "id": ids})
    source = copy_to(tmp_path / "in.parquet", table, "", f"id, {value} AS value", rows=2)
    assert len(layout(source).groups) == 4
    bloomline(tmp_path, "dedup", "--column", "id", source, "-o", "out.parquet")
    unread_by = ["polars"] if name == "variant" else []
    assert_kept([source], tmp_path / "out.parquet", stay([(number,) for number in ids]), unread_by)


def test_columns_without_nulls_are_preserved(tmp_path: pathlib.Path) -> None:
    inner = pa.struct([pa.field("a", pa.int32(), False), pa.field("b", pa.string())])
    fields = {
        "id": pa.int64(),
        "text": pa.string(),
        "list": pa.list_(pa.field("element", pa.int32(), False)),
        "struct": inner,
        "structs": pa.list_(pa.field("element", inner, False)),
    }
    values = {
        "id": [1, 2, 2, 3, 1, 2],
        "text": ["", "a", "", "b", "a", "c"],
        "list": [[], [1, 2], [], [3], [1], [4]],
        "struct": [{"a": number % 2, "b": None if number == 2 else "x"} for number in range(6)],
        "structs": [[{"a": 1, "b": None}] * number for number in range(6)],
    }
    schema = pa.schema([pa.field(name, type, False) for name, type in fields.items()])
    source = write(tmp_path / "in.parquet", in_groups(pa.table(values, schema), 2))
    for column in fields:
        bloomline(tmp_path, "dedup", "--column", column, source, "-o", f"{column}.parquet")
        assert_kept([source], tmp_path / f"{column}.parquet", stay([(value,) for value in values[column]]))


def test_types_of_polars_are_preserved(tmp_path: pathlib.Path) -> None:
    ids = [1, 2, 1, 2, 1, 3, 4, 5]
    frame = pl.DataFrame(
        {
            "id": ids,
            "categorical": pl.Series(["a", "b", None, "a"] * 2, dtype=pl.Categorical),
            "enum": pl.Series(["a", "b", None, "a"] * 2, dtype=pl.Enum(["b", "a"])),
            "duration": pl.Series([1, 2, None, 3] * 2, dtype=pl.Duration("us")),
            "time": pl.Series([1000, 2000, None, 3000] * 2, dtype=pl.Time),
            "array": pl.Series([[1, 2], None, [3, None], [5, 6]] * 2, dtype=pl.Array(pl.Int8, 2)),
            "decimal": pl.Series([1, 2, None, 3] * 2, dtype=pl.Decimal(20, 3)),
            "zoned": pl.Series([1000, 2000, None, 3000] * 2, dtype=pl.Datetime("ns", "Europe/Berlin")),
            "struct": pl.Series([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 2, "b": None}] * 2),
            "null": pl.Series([None] * 8, dtype=pl.Null),
        }
    )
    source = tmp_path / "in.parquet"
    frame.write_parquet(source, row_group_size=2)
    for column in frame.columns:
        bloomline(tmp_path, "dedup", "--column", column, source, "-o", f"{column}.parquet")
        parts = [(value,) for value in frame[column].to_list()]
        assert_kept([source], tmp_path / f"{column}.parquet", stay(parts))


NESTED: dict[str, list[list[Any]]] = {
    "s.x": [[1, 1, None, None, 2, 1]],
    "s.y.z": [["a", "b", None, None, None, "a"]],
    "s.y": [[{"z": "a"}, {"z": "b"}, None, None, {"z": None}, {"z": "a"}]],
    "s.x,s.y.z": [[1, 1, None, None, 2, 1], ["a", "b", None, None, None, "a"]],
    "s.y.z,s.x": [["a", "b", None, None, None, "a"], [1, 1, None, None, 2, 1]],
    "behind": [[{"v": 1}, {"v": 2}, None, None, {"v": 3}, {"v": 1}]],
    "behind.v": [[1, 2, None, None, 3, 1]],
    "dictionary": [["one", "one", None, None, "zero", None]],
    "dictionary,behind.v": [["one", "one", None, None, "zero", None], [1, 2, None, None, 3, 1]],
}


@pytest.mark.parametrize("columns", NESTED)
def test_nested_and_several_columns_are_keys(columns: str, tmp_path: pathlib.Path) -> None:
    table = nested_table()
    source = write(tmp_path / "in.parquet", in_groups(table, 3))
    for nulls in ["equal", "keep", "skip"]:
        bloomline(tmp_path, "dedup", "-q", "--column", columns, "--nulls", nulls, source, "-o", f"{nulls}.parquet")
        assert_kept([source], tmp_path / f"{nulls}.parquet", stay(zip(*NESTED[columns]), nulls=nulls))
    told = refused(tmp_path, "dedup", "--column", columns, "--nulls", "fail", source, "-o", "fail.parquet")
    assert "in.parquet" in told and "null" in told
    parts = list(zip(*NESTED[columns]))
    before = next(number for number, values in enumerate(parts) if None in values)
    assert_begun(table, tmp_path / "fail.parquet", stay(parts[:before]))


def test_a_pointer_names_a_column(tmp_path: pathlib.Path) -> None:
    source = write(tmp_path / "in.parquet", in_groups(nested_table(), 3))
    for pointer, column in [("/s/y/z", "s.y.z"), ("/n", "n"), ("/s", "s")]:
        bloomline(tmp_path, "dedup", "--json-pointer", pointer, source, "-o", "pointer.parquet", "--force")
        bloomline(tmp_path, "dedup", "--column", column, source, "-o", "column.parquet", "--force")
        assert (tmp_path / "pointer.parquet").read_bytes() == (tmp_path / "column.parquet").read_bytes()


def test_nulls_are_refused_on_request(tmp_path: pathlib.Path) -> None:
    table = pa.table({"k": ["a", "b", "a", "c"], "j": [1, 2, 3, None], "n": range(4)})
    source = write(tmp_path / "in.parquet", in_groups(table, 2))
    bloomline(tmp_path, "dedup", "--column", "k", "--nulls", "fail", source, "-o", "out.parquet")
    assert_kept([source], tmp_path / "out.parquet", [0, 1, 3])
    told = refused(tmp_path, "dedup", "--column", "k,j", "--nulls", "fail", source, "-o", "none.parquet")
    assert "in.parquet" in told and "null" in told


def test_a_name_with_a_dot_takes_precedence_over_a_path(tmp_path: pathlib.Path) -> None:
    table = pa.table({"a": pa.array([{"b": 1}, {"b": 2}, {"b": 3}]), "a.b": ["x", "x", "y"]})
    source = write(tmp_path / "in.parquet", [table])
    bloomline(tmp_path, "dedup", "--column", "a.b", source, "-o", "out.parquet")
    assert_kept([source], tmp_path / "out.parquet", [0, 2])


def test_two_columns_with_one_name_are_copied_but_cannot_be_keys(tmp_path: pathlib.Path) -> None:
    table = pa.table([[1, 2, 1, 3], ["a", "b", "c", "d"], [4, 5, 6, 4]], names=["id", "x", "x"])
    source = write(tmp_path / "in.parquet", in_groups(table, 2))
    bloomline(tmp_path, "dedup", "--column", "id", source, "-o", "out.parquet")
    # Polars refuses such files.
    assert_kept([source], tmp_path / "out.parquet", [0, 1, 3], ["polars"])
    told = refused(tmp_path, "dedup", "--column", "x", source, "-o", "x.parquet")
    assert '"x"' in told and "in.parquet" in told


def test_columns_of_nulls_are_preserved(tmp_path: pathlib.Path) -> None:
    types = {
        "i": pa.int32(),
        "s": pa.string(),
        "n": pa.null(),
        "l": pa.list_(pa.string()),
        "d": pa.dictionary(pa.int8(), pa.string()),
        "t": pa.struct([("a", pa.int8())]),
    }
    table = pa.table({"id": [1, 2, 2, 3, 1, 2], **{name: pa.nulls(6, type) for name, type in types.items()}})
    source = write(tmp_path / "in.parquet", in_groups(table, 2))
    bloomline(tmp_path, "dedup", "--column", "id", source, "-o", "out.parquet")
    assert_kept([source], tmp_path / "out.parquet", [0, 1, 3])
    for name in types:
        for nulls, kept in [("equal", [0]), ("keep", list(range(6))), ("skip", [])]:
            bloomline(tmp_path, "dedup", "-q", "--column", name, "--nulls", nulls, source, "-o", "out.parquet", "--force")
            assert_rows([source], tmp_path / "out.parquet", kept)


def test_counts_and_notes_are_columns(tmp_path: pathlib.Path) -> None:
    table, kept = some_rows()
    source = write(tmp_path / "in.parquet", in_groups(table))
    ids = table["id"].to_pylist()
    bloomline(tmp_path, "dedup", "--column", "id", "-c", source, "-o", "count.parquet")
    bloomline(tmp_path, "dedup", "--column", "id", "--annotate", source, "-o", "note.parquet")
    expected = {
        "count": table.take(kept).append_column("count", pa.array([ids.count(ids[number]) for number in kept], pa.int64())),
        "note": table.append_column("bloomline", pa.array(["new" if number in kept else "dup" for number in range(len(ids))])),
    }
    for name, rows in expected.items():
        found = pq.read_table(tmp_path / f"{name}.parquet")
        assert found.column_names == rows.column_names and rows_of(found) == rows_of(rows)
        assert found.schema.field(-1).type == rows.schema.field(-1).type
        for read in READERS.values():
            assert len(read(tmp_path / f"{name}.parquet").rows) == rows.num_rows
    # The other columns have the form that they had.
    for before, after in zip(layout(source).groups, layout(tmp_path / "note.parquet").groups):
        assert all(new.form in forms(old) for old, new in zip(before.chunks, after.chunks[:-1], strict=True))


# The options for the kept rows.
WHICH: dict[str, list[str]] = {
    "first": [],
    "last": ["--keep", "last"],
    "unique": ["--unique"],
    "repeated": ["--repeated"],
    "invert": ["-v"],
}


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("nulls", ["equal", "keep", "skip"])
def test_options_choose_which_rows_are_kept(which: str, nulls: str, tmp_path: pathlib.Path) -> None:
    values = ["a", None, "b", "a", "c", None, "d", "b", "e", "f", "g", None, "h", "i", "a", "a"]
    table = pa.table({"k": pa.array(values), "n": range(len(values))})
    sources = [
        write(tmp_path / f"{i}.parquet", in_groups(part, 3)) for i, part in enumerate([table.slice(0, 10), table.slice(10)])
    ]
    kept = stay([(value,) for value in values], which, nulls)
    command = ["dedup", "-q", "--column", "k", "--nulls", nulls, *WHICH[which], *sources]
    bloomline(tmp_path, *command, "-o", "out.parquet")
    assert_kept(sources, tmp_path / "out.parquet", kept)
    # The number is the same whichever row is kept.
    if which != "last":
        assert bloomline(tmp_path, *command, "--total").stdout == f"{len(kept)}\n".encode()
    if which == "first":
        bloomline(tmp_path, *command, "--exact", "-o", "exact.parquet")
        assert (tmp_path / "exact.parquet").read_bytes() == (tmp_path / "out.parquet").read_bytes()
        bloomline(tmp_path, *command, "-o", "again.parquet", "--dupes", "dupes.parquet")
        assert_kept(sources, tmp_path / "again.parquet", kept)
        repeats = [number for number in stay([(value,) for value in values], "invert", nulls) if number not in kept]
        assert_kept(sources, tmp_path / "dupes.parquet", repeats)


def leaves() -> dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]]:
    """Types whose values are random."""
    leaves: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
        "bool": (pa.bool_(), st.booleans()),
        "float16": (pa.float16(), st.floats(width=16)),
        "float32": (pa.float32(), st.floats(width=32)),
        "float64": (pa.float64(), st.floats()),
        "fixed": (pa.binary(4), st.binary(min_size=4, max_size=4)),
        "date32": (pa.date32(), st.integers(-30_000, 30_000)),
        "time32": (pa.time32("ms"), st.integers(0, 86_399_999)),
        "time64": (pa.time64("us"), st.integers(0, 86_399_999_999)),
        "decimal128": (pa.decimal128(20, 3), st.decimals(-(10**16), 10**16, places=3)),
        "decimal32": (pa.decimal32(7, 2), st.decimals(-(10**4), 10**4, places=2)),
    }
    for integer in [pa.int8(), pa.int16(), pa.int32(), pa.int64()]:
        leaves[str(integer)] = (integer, st.integers(-(1 << integer.bit_width - 1), (1 << integer.bit_width - 1) - 1))
    for integer in [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]:
        leaves[str(integer)] = (integer, st.integers(0, (1 << integer.bit_width) - 1))
    for text in [pa.string(), pa.large_string(), pa.string_view()]:
        leaves[str(text)] = (text, st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
    for binary in [pa.binary(), pa.large_binary(), pa.binary_view()]:
        leaves[str(binary)] = (binary, st.binary(max_size=20))
    for unit, zone in [("ms", None), ("us", "UTC"), ("ns", None), ("us", "America/Lima")]:
        leaves[f"timestamp {unit} {zone}"] = (pa.timestamp(unit, zone), st.integers(-(10**12), 10**12))
    return leaves


LEAVES = leaves()


# pyarrow does not write the other types in nested columns, or DuckDB does not read them there.
INNER = [leaf for name, leaf in LEAVES.items() if name != "float16" and "view" not in name]


@st.composite
def nested(draw: st.DrawFn, depth: int = 2) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    shape = draw(st.sampled_from(["leaf", "list", "struct", "map"])) if depth else "leaf"
    if shape == "leaf":
        return draw(st.sampled_from(INNER))
    type, values = draw(nested(depth - 1))
    inner = st.none() | values
    if shape == "list":
        return draw(st.sampled_from([pa.list_, pa.large_list]))(type), st.lists(inner, max_size=3)
    if shape == "map":
        return pa.map_(pa.string(), type), st.dictionaries(st.text("ab", max_size=2), inner, max_size=2).map(
            lambda entries: list(entries.items())
        )
    other, others = draw(nested(depth - 1))
    return pa.struct([("a", type), ("b", other)]), st.fixed_dictionaries({"a": inner, "b": st.none() | others})


def dictionaries() -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    index = st.sampled_from([pa.int8(), pa.int16(), pa.int32()])
    return index.map(lambda index: (pa.dictionary(index, pa.string()), LEAVES["string"][1]))


@st.composite
def random_tables(draw: st.DrawFn) -> tuple[pa.Table, list[list[Any]]]:
    """A table, and the values of each column."""
    rows = draw(st.integers(0, 40))
    columns, all_values = [], []
    for _ in range(draw(st.integers(1, 4))):
        type, one = draw(st.one_of(st.sampled_from(list(LEAVES.values())), dictionaries(), nested()))
        # Few values, so that they repeat.
        pool = draw(st.lists(one, min_size=1, max_size=5)) + [None] * draw(st.integers(0, 1))
        seed = draw(st.integers(0, 1 << 32))
        values = random.Random(seed).choices(pool, k=rows)
        columns.append(array(values, type))
        all_values.append(values)
    return pa.table(columns, names=[f"c{number}" for number in range(len(columns))]), all_values


@settings(max_examples=examples(30))
@given(data=st.data())
def test_random_tables_match_the_model(data: st.DataObject, tmp_path: pathlib.Path) -> None:
    table, values = data.draw(random_tables())
    codec = data.draw(st.sampled_from(["none", "snappy", "gzip", "brotli", "lz4", "zstd"]))
    version = data.draw(st.sampled_from(["1.0", "2.0"]))
    dictionary = data.draw(st.booleans())
    cuts = sorted(data.draw(st.lists(st.integers(0, table.num_rows), max_size=2)))
    sources = []
    for number, (start, end) in enumerate(itertools.pairwise([0, *cuts, table.num_rows])):
        part = table.slice(start, end - start)
        groups = in_groups(part, data.draw(st.integers(1, 12))) or [part]
        sources.append(
            write(tmp_path / f"{number}.parquet", groups, compression=codec, data_page_version=version, use_dictionary=dictionary)
        )
    picked = data.draw(st.lists(st.sampled_from(range(len(values))), unique=True))
    which = data.draw(st.sampled_from(["first", *WHICH]))
    options = [*WHICH[which]]
    nulls = "equal"
    if picked:
        nulls = data.draw(st.sampled_from(["equal", "keep", "skip"]))
        options += ["--column", ",".join(f"c{number}" for number in picked), "--nulls", nulls]
    if which == "first" and data.draw(st.booleans()):
        options += ["--exact"]
    kept = stay(list(zip(*(values[number] for number in picked or range(len(values))))), which, nulls)
    # So many keys are expected that there is no false positive.
    bloomline(tmp_path, "dedup", "-q", "-n", "100k", *options, *sources, "-o", "out.parquet", "--force")
    assert_kept(sources, tmp_path / "out.parquet", kept)
