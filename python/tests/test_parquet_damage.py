"""What is refused of Parquet files, and what the command says of it."""

import base64
import pathlib
import random
import struct
import subprocess
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as encryption
import pytest

import footer
from footer import Layout, Struct, get, layout, patched
from tables import stay
from trips import COMMAND, assert_begun, bloomline, in_groups, is_whole, nested_table, refused, some_rows, write


def test_unknown_columns_are_refused_with_those_there_are(tmp_path: pathlib.Path) -> None:
    source = write(tmp_path / "in.parquet", [nested_table()])
    for column in ["none", "s.none", "n.x", "N", "n,none", ""]:
        told = refused(tmp_path, "dedup", "--column", column, source, "-o", "out.parquet")
        if column:
            assert "in.parquet" in told and (column.split(",")[-1] in told), told
            assert all(name in told for name in ["dictionary", "behind"]), told
    assert not is_whole(tmp_path / "out.parquet")


@pytest.mark.parametrize("options", [["-f1"], ["-d,", "-f1"], ["--csv"]], ids=lambda options: options[0])
def test_options_for_lines_are_refused(options: list[str], tmp_path: pathlib.Path) -> None:
    table, _ = some_rows()
    write(tmp_path / "in.parquet", in_groups(table))
    told = refused(tmp_path, "dedup", *options, "in.parquet", "-o", "out.parquet")
    assert "in.parquet" in told or options[0] in told
    assert not is_whole(tmp_path / "out.parquet")


class Kms(encryption.KmsClient):  # type: ignore[misc]
    def __init__(self, _: Any) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, wrapped: bytes, _: str) -> bytes:
        return base64.b64decode(wrapped)


def encrypted(path: pathlib.Path, plaintext_footer: bool) -> None:
    configuration = encryption.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["secret"]}, plaintext_footer=plaintext_footer
    )
    properties = encryption.CryptoFactory(Kms).file_encryption_properties(encryption.KmsConnectionConfig(), configuration)
    table = pa.table({"id": [1, 2, 1, 2], "secret": ["a", "b", "c", "d"]})
    write(path, in_groups(table, 2), encryption_properties=properties)


def encrypted_by_duckdb(path: pathlib.Path) -> None:
    connection = duckdb.connect()
    connection.execute("SET force_mbedtls_unsafe = 'true'; PRAGMA add_parquet_key('key', '0123456789112345')")
    connection.execute(f"COPY (SELECT 1 AS id) TO '{path}' (FORMAT parquet, ENCRYPTION_CONFIG {{footer_key: 'key'}})")


@pytest.mark.parametrize(
    "writer, magic",
    [
        (lambda path: encrypted(path, True), b"PAR1"),
        (lambda path: encrypted(path, False), b"PARE"),
        (encrypted_by_duckdb, b"PARE"),
    ],
    ids=["columns", "footer", "duckdb"],
)
def test_encrypted_files_are_refused(writer: Callable[[pathlib.Path], None], magic: bytes, tmp_path: pathlib.Path) -> None:
    writer(tmp_path / "in.parquet")
    assert (tmp_path / "in.parquet").read_bytes()[-4:] == magic
    for command in ["dedup", "check", "build", "corpus"]:
        more = {"check": ["-s", "state"], "build": ["-o", "f.bloom"], "corpus": ["--column", "secret"]}.get(
            command, ["-o", "out.parquet"]
        )
        if command == "check":
            bloomline(tmp_path, "build", "--column", "id", "-o", "state", input=b'{"id":1}\n')
        column = [] if command == "corpus" else ["--column", "id"]
        told = refused(tmp_path, command, *column, *more, "in.parquet")
        assert "in.parquet" in told and "encrypted" in told
    assert not is_whole(tmp_path / "out.parquet")


def damaged_file(tmp_path: pathlib.Path) -> tuple[pathlib.Path, Layout]:
    table, _ = some_rows()
    table = table.append_column("n", pa.array(range(table.num_rows)))
    path = write(tmp_path / "in.parquet", in_groups(table), compression="gzip", use_dictionary=False)
    return path, layout(path)


@pytest.mark.parametrize("column", ["id", "text", "tags.list.element"])
@pytest.mark.parametrize("group", [0, 2])
def test_damage_is_refused_by_file_group_and_column(column: str, group: int, tmp_path: pathlib.Path) -> None:
    path, read = damaged_file(tmp_path)
    table = pq.read_table(path)
    chunk = next(chunk for chunk in read.groups[group].chunks if chunk.path == column)
    page = chunk.pages[0]
    data = bytearray(path.read_bytes())
    data[page.start : page.end] = b"\xff" * (page.end - page.start)
    path.write_bytes(data)
    whole_key = {"id": "id", "text": "text", "tags.list.element": "tags"}[column]
    # As a part of the key, and where it is none, but the group is written anew.
    for keys in [[whole_key, f"n,{whole_key}"], [whole_key, f"n,{whole_key}", "id"]][group == 2]:
        told = refused(tmp_path, "dedup", "--column", keys, path, "-o", "out.parquet")
        place = f'row group {group}, column "{column.split(".")[0]}'
        assert "in.parquet" in told and place in told, told
        parts = list(zip(*(table[name].to_pylist() for name in keys.split(","))))
        assert_begun(table, tmp_path / "out.parquet", stay(parts[: 15 * group]))


def test_cut_files_are_refused(tmp_path: pathlib.Path) -> None:
    path, _ = damaged_file(tmp_path)
    data = path.read_bytes()
    size = struct.unpack("<I", data[-8:-4])[0]
    for cut in [data[:-1], data[:-4], data[:-9], data[: len(data) // 2], data[: -size - 8], data[:12], data[:8], data[:4]]:
        path.write_bytes(cut)
        told = refused(tmp_path, "dedup", "--column", "id", path, "-o", "out.parquet")
        assert "in.parquet" in told
        assert not is_whole(tmp_path / "out.parquet")
    for wrong in [
        data[:-8] + struct.pack("<I", 0xFFFFFFFF) + b"PAR1",
        data[:-8] + struct.pack("<I", len(data)) + b"PAR1",
        data[:-8] + struct.pack("<I", 0) + b"PAR1",
        data[:-8] + struct.pack("<I", size - 7) + b"PAR1",
        # What is cut out of the middle, too.
        data[:40] + data[60:],
        data[:4] + data[len(data) // 3 :],
        b"PAR1PAR1",
        b"PAR1" + b"\0" * 4 + b"PAR1",
    ]:
        path.write_bytes(wrong)
        told = refused(tmp_path, "dedup", "--column", "id", path, "-o", "out.parquet")
        assert "in.parquet" in told
        assert not is_whole(tmp_path / "out.parquet")


def rows_in_group(rows: int) -> Callable[[Struct], None]:
    return lambda meta: get(meta, 4)[0].update({3: (footer.I64, rows)})


def of_column(number: int, field: int, value: int) -> Callable[[Struct], None]:
    """Sets a field of a column of the last row group."""
    return lambda meta: get(get(get(meta, 4)[3], 1)[number], 3).update({field: (footer.I64 if field > 4 else footer.I32, value)})


def of_schema(element: int, field: int, value: int) -> Callable[[Struct], None]:
    return lambda meta: get(meta, 2)[element].update({field: (footer.I32, value)})


LIES = {
    "rows": rows_in_group(99),
    "negative rows": rows_in_group(-1),
    "no columns": lambda meta: get(meta, 4)[1].update({1: (footer.LIST, (footer.STRUCT, []))}),
    "place": of_column(0, 9, 1 << 40),
    "negative place": of_column(0, 9, -1),
    "size": of_column(0, 7, 1 << 60),
    "negative size": of_column(0, 7, -5),
    "codec": of_column(1, 4, 77),
    "lzo": of_column(1, 4, 3),
    "type": of_schema(1, 1, 6),
    "children": of_schema(0, 5, 1 << 30),
}


@pytest.mark.parametrize("lie", LIES)
def test_footers_that_lie_are_refused(lie: str, tmp_path: pathlib.Path) -> None:
    path, _ = damaged_file(tmp_path)
    table = pq.read_table(path)
    path.write_bytes(patched(path.read_bytes(), LIES[lie]))
    told = refused(tmp_path, "dedup", "--column", "id,text", path, "-o", "out.parquet")
    assert "in.parquet" in told
    parts = list(zip(table["id"].to_pylist(), table["text"].to_pylist()))
    assert_begun(table, tmp_path / "out.parquet", stay(parts)[:-1])


def test_flipped_bits_never_break_the_command(tmp_path: pathlib.Path) -> None:
    table, _ = some_rows()
    random_ = random.Random(1)
    for number in range(60):
        options = {
            "compression": random_.choice(["none", "snappy", "zstd", "lz4"]),
            "data_page_version": random_.choice(["1.0", "2.0"]),
        }
        path = write(tmp_path / "in.parquet", in_groups(table), use_dictionary=random_.random() < 0.5, **options)
        data = bytearray(path.read_bytes())
        size = struct.unpack("<I", data[-8:-4])[0]
        # Every other time in the footer.
        start = len(data) - 8 - size if number % 2 else 4
        for _ in range(random_.choice([1, 2, 8])):
            data[random_.randrange(start, len(data) - 8)] ^= 1 << random_.randrange(8)
        path.write_bytes(data)
        told = subprocess.run(
            [COMMAND, "dedup", "--column", "id,tags", path, "-o", "out.parquet", "--force"],
            cwd=tmp_path,
            capture_output=True,
            timeout=20,
        )
        assert told.returncode in (0, 2) and b"panicked" not in told.stderr, (number, told.stderr.decode())
        if told.returncode == 2:
            assert b"in.parquet" in told.stderr, (number, told.stderr.decode())
