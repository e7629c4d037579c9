"""Parquet files and options that are refused, and the messages of the command."""

import base64
import pathlib
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet.encryption as encryption
import pytest

from footer import layout
from tables import stay
from trips import assert_begun, bloomline, in_groups, is_whole, nested_table, refused, some_rows, write


def test_unknown_columns_are_refused_and_the_known_ones_named(tmp_path: pathlib.Path) -> None:
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


def test_a_damaged_file_is_refused(tmp_path: pathlib.Path) -> None:
    """The damage itself is tested with the command."""
    table, _ = some_rows()
    path = write(tmp_path / "in.parquet", in_groups(table))
    page = layout(path).groups[2].chunks[0].pages[0]
    data = bytearray(path.read_bytes())
    data[page.start : page.end] = b"\xff" * (page.end - page.start)
    path.write_bytes(data)
    told = refused(tmp_path, "dedup", "--column", "id", path, "-o", "out.parquet")
    assert "in.parquet" in told and 'row group 2, column "id"' in told
    assert_begun(table, tmp_path / "out.parquet", stay([(value,) for value in table["id"].to_pylist()[:30]]))
