"""The form of written Parquet files: codecs, encodings, pages, indexes, metadata, and forms of old writers."""

import itertools
import math
import pathlib
import random
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import footer
from footer import DATA, DATA_V2, Struct, get, layout, patched
from tables import array, by_pyarrow, duckdb_connection, rows_of, stay
from trips import (
    assert_groups,
    assert_rows,
    assert_kept,
    bloomline,
    copy_to,
    forms,
    in_groups,
    refused,
    some_rows,
    write,
)


# Codecs that have other names in DuckDB and Polars.
NAMES = {"uncompressed": "none", "lz4_raw": "lz4"}


def write_pyarrow(path: pathlib.Path, table: pa.Table, codec: str) -> None:
    write(path, in_groups(table), compression=NAMES.get(codec, codec))


def write_duckdb(path: pathlib.Path, table: pa.Table, codec: str) -> None:
    copy_to(path, table, f", CODEC '{codec}', KV_METADATA {{made_by: 'a duck', empty: ''}}")


def write_polars(path: pathlib.Path, table: pa.Table, codec: str) -> None:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(path, compression=codec.removesuffix("_raw"), row_group_size=15, metadata={"made by": "a bear"})


WRITERS = {"pyarrow": write_pyarrow, "duckdb": write_duckdb, "polars": write_polars}


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "brotli", "lz4_raw", "zstd"])
@pytest.mark.parametrize("writer", WRITERS)
def test_codecs_of_each_writer_are_preserved(writer: str, codec: str, tmp_path: pathlib.Path) -> None:
    table, kept = some_rows()
    source = tmp_path / "in.parquet"
    WRITERS[writer](source, table, codec)
    groups = layout(source).groups
    assert len(groups) == 4 and {chunk.codec for group in groups for chunk in group.chunks} == {NAMES.get(codec, codec)}
    bloomline(tmp_path, "dedup", "--column", "id", source, "-o", "out.parquet")
    assert_kept([source], tmp_path / "out.parquet", kept)


@pytest.mark.parametrize(
    "kind, codec", [("zstd:9", "zstd"), ("gzip", "gzip"), ("gzip:1", "gzip"), ("lz4", "lz4"), ("none", "none")]
)
def test_another_codec_is_used_for_all_groups(kind: str, codec: str, tmp_path: pathlib.Path) -> None:
    table, kept = some_rows()
    source = write(tmp_path / "in.parquet", in_groups(table), compression="brotli")
    bloomline(tmp_path, "dedup", "--column", "id", "--compress", kind, source, "-o", "out.parquet")
    assert_rows([source], tmp_path / "out.parquet", kept)
    before, after = layout(source), layout(tmp_path / "out.parquet")
    assert after.metadata == before.metadata
    assert {chunk.codec for group in after.groups for chunk in group.chunks} == {codec}
    expected = {chunk.path: [form._replace(codec=codec) for form in forms(chunk)] for chunk in before.groups[0].chunks}
    assert all(chunk.form in expected[chunk.path] for group in after.groups for chunk in group.chunks)


ENCODINGS: dict[str, tuple[list[pa.DataType], list[str]]] = {
    "PLAIN": (
        [
            pa.int32(),
            pa.int64(),
            pa.float32(),
            pa.float64(),
            pa.string(),
            pa.binary(),
            pa.binary(3),
            pa.bool_(),
            pa.decimal128(9, 2),
        ],
        [],
    ),
    "DELTA_BINARY_PACKED": ([pa.int32(), pa.int64(), pa.uint8(), pa.timestamp("us"), pa.date32()], []),
    "DELTA_LENGTH_BYTE_ARRAY": ([pa.string(), pa.large_binary()], []),
    "DELTA_BYTE_ARRAY": ([pa.string(), pa.binary()], []),
    "BYTE_STREAM_SPLIT": ([pa.float32(), pa.float64(), pa.int32(), pa.int64()], []),
    "RLE": ([pa.bool_()], []),
    "DICTIONARY": ([pa.int32(), pa.float64(), pa.string(), pa.binary(3), pa.decimal128(9, 2)], []),
    # Each with the readers that cannot read it.
    "DELTA_BYTE_ARRAY of fixed size": ([pa.binary(3)], ["polars"]),
    "BYTE_STREAM_SPLIT of fixed size": ([pa.binary(3), pa.float16(), pa.decimal128(9, 2)], ["duckdb", "polars"]),
}


SOME: dict[str, list[Any]] = {
    "int32": [1, 2, 3],
    "int64": [1, 2, 3],
    "uint8": [1, 2, 255],
    "halffloat": [0.5, 1.5, math.nan],
    "float": [0.5, 1.5, math.nan],
    "double": [0.5, 1.5, math.nan],
    "string": ["abc", "abd", "x" * 50],
    "binary": [b"abc", b"abd", b"x" * 50],
    "large_binary": [b"abc", b"abd", b"x" * 50],
    "fixed_size_binary[3]": [b"abc", b"abd", b"\xff\0\0"],
    "bool": [True, False, True],
    "decimal128(9, 2)": [Decimal("1.00"), Decimal("1.01"), Decimal("-7.77")],
    "timestamp[us]": [1, 2, 1_793_500_000],
    "date32[day]": [1, 2, 20_000],
}


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings_and_page_versions_are_preserved(encoding: str, version: str, tmp_path: pathlib.Path) -> None:
    types, unread_by = ENCODINGS[encoding]
    encoding = encoding.split()[0]
    # A dictionary of fewer values saves nothing, and is left out.
    times = 20 if encoding == "DICTIONARY" else 1
    pattern = [picks * times for picks in [[0, 1, None, 2], [0, 1, 2], [0, None, 1, 2, 0], [2, 1, 0]]]
    ids = [
        [number + 100 * time for time in range(times) for number in numbers]
        for numbers in [[1, 2, 3, 4], [1, 2, 3], [1, 5, 2, 6, 7], [8, 9, 10]]
    ]
    groups = []
    for picks, numbers in zip(pattern, ids):
        columns = {
            f"c{i}": array([None if pick is None else SOME[str(type)][pick] for pick in picks], type)
            for i, type in enumerate(types)
        }
        # A list of the first type beside them, for the levels.
        first = [None if pick is None else [SOME[str(types[0])][pick], None] for pick in picks]
        groups.append(pa.table({"id": numbers, **columns, "list": pa.array(first, pa.list_(types[0]))}))
    names = [*(f"c{i}" for i in range(len(types))), "list.list.element"]
    if encoding == "DICTIONARY":
        options: dict[str, Any] = {"use_dictionary": names}
    else:
        options = {"use_dictionary": False, "column_encoding": {name: encoding for name in names}}
    source = write(tmp_path / "in.parquet", groups, data_page_version=version, **options)
    bloomline(tmp_path, "dedup", "--column", "id", source, "-o", "out.parquet")
    for path in [source, tmp_path / "out.parquet"]:
        for chunk in [chunk for group in layout(path).groups for chunk in group.chunks[1:]]:
            assert chunk.form.data == {(DATA_V2 if version == "2.0" else DATA, encoding)}
    assert_kept([source], tmp_path / "out.parquet", stay([(number,) for group in ids for number in group]), unread_by)
    # Each encoding is read as a key, too.
    for number, type in enumerate(types):
        bloomline(tmp_path, "dedup", "--column", f"c{number}", source, "-o", f"{number}.parquet")
        parts = [(None if pick is None else SOME[str(type)][pick],) for picks in pattern for pick in picks]
        assert_kept([source], tmp_path / f"{number}.parquet", stay(parts), unread_by)


def test_files_of_version_1_are_preserved(tmp_path: pathlib.Path) -> None:
    table, kept = some_rows()
    source = write(tmp_path / "in.parquet", in_groups(table), version="1.0", use_compliant_nested_type=False, store_schema=False)
    assert layout(source).metadata == []
    bloomline(tmp_path, "dedup", "--column", "id", source, "-o", "out.parquet")
    assert_kept([source], tmp_path / "out.parquet", kept)


@pytest.mark.parametrize(
    "options",
    ["PARQUET_VERSION V1", "PARQUET_VERSION V2", "FIELD_IDS {id: 7, text: 9, tags: {__duckdb_field_id: 10, element: 11}}"],
)
def test_files_of_duckdb_are_preserved(options: str, tmp_path: pathlib.Path) -> None:
    table, kept = some_rows()
    source = copy_to(tmp_path / "in.parquet", table, f", {options}")
    bloomline(tmp_path, "dedup", "--column", "id", source, "-o", "out.parquet")
    assert_kept([source], tmp_path / "out.parquet", kept)


@pytest.mark.parametrize("shape", ["array", "tuple", "repeated"])
def test_lists_of_old_writers_are_preserved(shape: str, tmp_path: pathlib.Path) -> None:
    """The same levels in a schema without the group in the middle, as the format's rules for old files have it."""
    type = pa.list_(pa.field("element", pa.int32(), False))
    values = [[1, 2], [], [3], [1, 2], [4, 5, 6], []]
    table = pa.table({"id": [1, 2, 2, 3, 4, 1], "l": values}, pa.schema([("id", pa.int64()), pa.field("l", type, False)]))
    path = write(tmp_path / "in.parquet", in_groups(table, 2), store_schema=False)

    def change(meta: Struct) -> None:
        elements = get(meta, 2)
        name = {"array": b"array", "tuple": b"l_tuple", "repeated": b"l"}[shape]
        element = elements.pop()
        elements.pop()
        element |= {3: (footer.I32, 2), 4: (footer.BINARY, name)}
        if shape == "repeated":
            elements.pop()
        elements.append(dict(sorted(element.items())))
        for group in get(meta, 4):
            path = [b"l"] if shape == "repeated" else [b"l", name]
            get(get(group, 1)[1], 3)[3] = (footer.LIST, (footer.BINARY, path))

    path.write_bytes(patched(path.read_bytes(), change))
    assert by_pyarrow(path).rows == rows_of(table)
    bloomline(tmp_path, "dedup", "--column", "id", path, "-o", "id.parquet")
    assert_kept([path], tmp_path / "id.parquet", [0, 1, 3, 4])
    bloomline(tmp_path, "dedup", "--column", "l", path, "-o", "l.parquet")
    assert_kept([path], tmp_path / "l.parquet", [0, 1, 2, 4])


def test_large_groups_of_several_pages_are_preserved(tmp_path: pathlib.Path) -> None:
    rows = 20_000
    random_ = random.Random(4)
    ids = [random_.randrange(rows) for _ in range(rows)]
    table = pa.table(
        {
            "id": ids,
            "text": [f"{number % 9000} {'x' * (number % 5)}" for number in range(rows)],
            "few": [f"{number % 5}" for number in range(rows)],
            "list": [[number] * (number % 3) if number % 7 else None for number in range(rows)],
        }
    )
    # The texts are too many for a dictionary, and the other values are not.
    options: dict[str, Any] = {"data_page_size": 4096, "dictionary_pagesize_limit": 8192, "write_page_index": True}
    source = write(tmp_path / "in.parquet", [table], **options)
    assert len(layout(source).groups[0].chunks[1].form.data) == 2
    bloomline(tmp_path, "dedup", "--exact", "--column", "id", source, "-o", "out.parquet")
    kept = stay([(number,) for number in ids])
    assert_rows([source], tmp_path / "out.parquet", kept)
    chunks = layout(tmp_path / "out.parquet").groups[0].chunks
    assert [chunk.path for chunk in chunks if chunk.form.data == {(DATA, "DICTIONARY")}] == ["few"]
    assert all(chunk.has_column_index and chunk.has_offset_index for chunk in chunks)
    bloomline(tmp_path, "dedup", "--exact", "--column", "few,list", source, "-o", "few.parquet")
    assert_rows([source], tmp_path / "few.parquet", stay(zip(table["few"].to_pylist(), table["list"].to_pylist())))


def test_intervals_are_copied_or_refused_by_name(tmp_path: pathlib.Path) -> None:
    columns = "id, CASE WHEN id = 1 THEN NULL ELSE INTERVAL '5 months 3 days 7 milliseconds' END AS old"
    source = copy_to(tmp_path / "in.parquet", pa.table({"id": [1, 2, 3, 3]}), "", columns, rows=2)
    told = refused(tmp_path, "dedup", "--column", "id", source, "-o", "out.parquet")
    assert "in.parquet" in told and 'row group 1, column "old"' in told and "interval" in told
    whole = copy_to(tmp_path / "whole.parquet", pa.table({"id": [1, 2, 3]}), "", columns, rows=2)
    bloomline(tmp_path, "dedup", "--column", "id", whole, whole, "-o", "copied.parquet")
    # Polars reads no intervals.
    assert_kept([whole], tmp_path / "copied.parquet", [0, 1, 2], ["polars"])
    told = refused(tmp_path, "dedup", "--column", "old", source, "-o", "out.parquet")
    assert "in.parquet" in told and "nterval" in told


@pytest.mark.parametrize("unit", ["list", "struct", "flat"])
def test_int96_is_copied_or_refused_by_name(unit: str, tmp_path: pathlib.Path) -> None:
    times = pa.array([1, 2, 3, 4], pa.timestamp("ns"))
    old: pa.Array = {
        "flat": lambda: times,
        "list": lambda: pa.array([[value] for value in times.to_pylist()], pa.list_(pa.timestamp("ns"))),
        "struct": lambda: pa.StructArray.from_arrays([times], ["inner"]),
    }[unit]()
    table = pa.table({"id": [1, 2, 3, 3], "old": old})
    path = {"flat": "old", "list": "old.list.element", "struct": "old.inner"}[unit]
    source = write(tmp_path / "in.parquet", in_groups(table, 2), use_deprecated_int96_timestamps=True)
    told = refused(tmp_path, "dedup", "--column", "id", source, "-o", "out.parquet")
    assert "in.parquet" in told and "INT96" in told and f'row group 1, column "{path}"' in told
    whole = write(tmp_path / "whole.parquet", in_groups(table.slice(0, 3), 2), use_deprecated_int96_timestamps=True)
    bloomline(tmp_path, "dedup", "--column", "id", whole, whole, "-o", "copied.parquet")
    assert_kept([whole], tmp_path / "copied.parquet", [0, 1, 2])


@pytest.mark.parametrize("groups", ["none", "empty"])
def test_files_without_rows_are_preserved(groups: str, tmp_path: pathlib.Path) -> None:
    table, _ = some_rows()
    table = table.replace_schema_metadata({"huggingface": '{"info": {}}'})
    with pq.ParquetWriter(tmp_path / "in.parquet", table.schema) as writer:
        if groups == "empty":
            writer.write_table(table.slice(0, 0))
    for command in ["dedup", "corpus"]:
        bloomline(tmp_path, command, "--column", "text", "in.parquet", "-o", f"{command}.parquet")
        assert_rows([tmp_path / "in.parquet"], tmp_path / f"{command}.parquet", [])
        after = layout(tmp_path / f"{command}.parquet")
        assert after.groups == [] and after.metadata == layout(tmp_path / "in.parquet").metadata


def test_a_file_without_remaining_rows_keeps_its_schema(tmp_path: pathlib.Path) -> None:
    table, _ = some_rows()
    source = write(tmp_path / "in.parquet", in_groups(table.slice(0, 15)))
    bloomline(tmp_path, "dedup", "--column", "id", "-s", "state", source, "-o", "first.parquet")
    bloomline(tmp_path, "dedup", "--column", "id", "-s", "state", source, "-o", "second.parquet")
    assert (tmp_path / "first.parquet").read_bytes()[-4:] == b"PAR1"
    assert_kept([source], tmp_path / "first.parquet", list(range(15)))
    assert_rows([source], tmp_path / "second.parquet", [])
    assert layout(tmp_path / "second.parquet").groups == []


def test_metadata_of_pandas_are_preserved(tmp_path: pathlib.Path) -> None:
    frame = pd.DataFrame(
        {
            "name": pd.Categorical(["a", "b", "a", "c"], ["a", "b", "c"], ordered=True),
            "when": pd.to_datetime(["2026-11-01", "2026-11-01", None, "2026-11-02"]).tz_localize("Europe/Berlin"),
            "number": pd.array([1, None, 1, 3], "Int16"),
        },
        index=pd.Index([10, 20, 30, 40], name="row"),
    )
    frame.attrs["source"] = "here"
    source = tmp_path / "in.parquet"
    frame.to_parquet(source)
    bloomline(tmp_path, "dedup", "--column", "name", source, "-o", "out.parquet")
    assert_kept([source], tmp_path / "out.parquet", [0, 1, 3])
    found = pd.read_parquet(tmp_path / "out.parquet")
    pd.testing.assert_frame_equal(found, frame.iloc[[0, 1, 3]])
    assert found.attrs == frame.attrs
    # The column of the index is a column like others.
    bloomline(tmp_path, "dedup", "--column", "row", source, source, "-o", "index.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "index.parquet"), frame)


def test_a_dictionary_offset_of_0_means_that_there_is_no_dictionary(tmp_path: pathlib.Path) -> None:
    table, kept = some_rows()
    path = write(tmp_path / "in.parquet", in_groups(table), use_dictionary=["text"])
    sound = path.read_bytes()

    def change(meta: Struct) -> None:
        for group in get(meta, 4):
            for column in get(group, 1):
                fields = get(column, 3)
                if 11 not in fields:
                    fields[11] = (footer.I64, 0)
                    column[3] = (footer.STRUCT, dict(sorted(fields.items())))

    path.write_bytes(patched(sound, change))
    bloomline(tmp_path, "dedup", "--column", "id", path, "-o", "out.parquet")
    assert_groups([path], tmp_path / "out.parquet", kept)
    # Polars does not read such files, so the output has no such offset.
    path.write_bytes(sound)
    assert_rows([path], tmp_path / "out.parquet", kept)


def indexed(tmp_path: pathlib.Path) -> tuple[pathlib.Path, list[int]]:
    table, kept = some_rows()
    by = [pq.SortingColumn(0, descending=False, nulls_first=True), pq.SortingColumn(2, descending=True)]
    path = write(
        tmp_path / "in.parquet",
        in_groups(table),
        write_page_index=True,
        write_page_checksum=True,
        bloom_filter_options={"id": {"ndv": 100, "fpp": 0.01}, "text": {"ndv": 100, "fpp": 0.01}},
        sorting_columns=by,
        max_rows_per_page=4,
    )
    return path, kept


def may_have(path: pathlib.Path, column: str, value: Any) -> list[bool]:
    """For each row group with a Bloom filter, whether it may have the value."""
    asked = "SELECT row_group_id, bloom_filter_excludes FROM parquet_bloom_probe(?, ?, ?) ORDER BY row_group_id"
    return [not excludes for _, excludes in duckdb_connection().execute(asked, [str(path), column, value]).fetchall()]


def test_indexes_bloom_filters_and_sorting_columns_are_preserved(tmp_path: pathlib.Path) -> None:
    source, kept = indexed(tmp_path)
    assert layout(source).groups[0].chunks[0].has_bloom_filter and len(layout(source).groups[0].sorting) == 2
    bloomline(tmp_path, "dedup", "--column", "id", source, "-o", "out.parquet")
    output = tmp_path / "out.parquet"
    assert_kept([source], output, kept)
    found = pq.read_table(output)
    ids, texts = found["id"].to_pylist(), found["text"].to_pylist()
    bounds = list(itertools.accumulate((group.rows for group in layout(output).groups), initial=0))
    for column, values in [("id", ids), ("text", texts)]:
        for value in set(values):
            may = may_have(output, column, value)
            assert all(may[group] for group, (start, end) in enumerate(itertools.pairwise(bounds)) if value in values[start:end])
            # Readers find the rows by the statistics of pages and groups.
            expected = values.count(value)
            assert pq.read_table(output, filters=[(column, "==", value)]).num_rows == expected
            assert pl.scan_parquet(output).filter(pl.col(column) == value).collect().height == expected
            asked = f"SELECT count(*) FROM read_parquet('{output}') WHERE {column} = ?"
            assert duckdb_connection().execute(asked, [value]).fetchall() == [(expected,)]
    absent = [not any(may_have(output, "id", value)) for value in range(1000, 1100)]
    assert sum(absent) > 80
    metadata = pq.ParquetFile(output).metadata
    for number, (start, end) in enumerate(itertools.pairwise(bounds)):
        # Not the statistics of floats, because pyarrow does not support the order that they are written with.
        for column in [0, 1, 3]:
            statistics = metadata.row_group(number).column(column).statistics
            values = [value for value in found.column(column).to_pylist()[start:end] if value is not None]
            assert (statistics.min, statistics.max) == (min(values), max(values))
            assert statistics.null_count == end - start - len(values)


def test_statistics_of_floats_are_read(tmp_path: pathlib.Path) -> None:
    """They have the order that all readers support, whether a row group is copied or written anew."""
    table = pa.table({"k": ["a", "b", "c", "c"], "f": [1.5, -2.0, 0.25, 7.0]})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=2)
    bloomline(tmp_path, "dedup", "--column", "k", "in.parquet", "-o", "out.parquet")
    groups = [pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(i).column(1).statistics for i in range(2)]
    assert [(group.min, group.max) for group in groups] == [(-2.0, 1.5), (0.25, 0.25)]
