"""The footer and the page headers of a Parquet file, read and written by the format's specification, without a library.

A struct of Thrift's compact protocol is a dict from the number of a field to its kind and its value. A list is its kind and a
Python list.
"""

import pathlib
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
Struct = dict[int, tuple[int, Any]]

CODECS = ["none", "snappy", "gzip", "lzo", "brotli", "lz4-of-hadoop", "zstd", "lz4"]
DATA, INDEX, DICTIONARY, DATA_V2 = range(4)
ENCODINGS = {
    0: "PLAIN",
    # The name of RLE_DICTIONARY in files of version 1.
    2: "DICTIONARY",
    3: "RLE",
    5: "DELTA_BINARY_PACKED",
    6: "DELTA_LENGTH_BYTE_ARRAY",
    7: "DELTA_BYTE_ARRAY",
    8: "DICTIONARY",
    9: "BYTE_STREAM_SPLIT",
}


class Reader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self) -> int:
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def taken(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind == BYTE:
            return self.byte()
        if kind in (I16, I32, I64):
            return self.signed()
        if kind == DOUBLE:
            return self.taken(8)
        if kind == BINARY:
            return self.taken(self.unsigned())
        if kind in (LIST, SET):
            head = self.byte()
            count = head >> 4 if head >> 4 < 15 else self.unsigned()
            # A boolean in a list is a byte.
            item = (lambda: self.byte() == TRUE) if head & 15 in (TRUE, FALSE) else (lambda: self.value(head & 15))
            return head & 15, [item() for _ in range(count)]
        assert kind == STRUCT, kind
        return self.struct()

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.signed()
            fields[number] = (head & 15, self.value(head & 15))
        return fields


def unsigned(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


def written(kind: int, value: Any) -> bytes:
    if kind in (TRUE, FALSE):
        return b""
    if kind == BYTE:
        return bytes([value])
    if kind in (I16, I32, I64):
        return unsigned(value << 1 if value >= 0 else (-value << 1) - 1)
    if kind == DOUBLE:
        return bytes(value)
    if kind == BINARY:
        return unsigned(len(value)) + bytes(value)
    if kind in (LIST, SET):
        item, items = value
        head = bytes([len(items) << 4 | item]) if len(items) < 15 else bytes([0xF0 | item]) + unsigned(len(items))
        if item in (TRUE, FALSE):
            return head + bytes(TRUE if one else FALSE for one in items)
        return head + b"".join(written(item, one) for one in items)
    assert kind == STRUCT, kind
    text, before = b"", 0
    for number, (field, inner) in value.items():
        if field in (TRUE, FALSE):
            field = TRUE if inner else FALSE
        step = number - before
        text += bytes([step << 4 | field]) if 0 < step < 16 else bytes([field]) + written(I16, number)
        text += written(field, inner)
        before = number
    return text + b"\0"


def get(fields: Struct, *path: int, default: Any = None) -> Any:
    """The value of a field, by its number and those of the structs around it. Of a list it is the Python list."""
    for number in path:
        if number not in fields:
            return default
        kind, value = fields[number]
        fields = value[1] if kind in (LIST, SET) else value
    return fields


def footer(data: bytes) -> Struct:
    assert data[:4] == data[-4:] == b"PAR1"
    return Reader(data, len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]).struct()


def patched(data: bytes, change: Callable[[Struct], None]) -> bytes:
    """The file with another footer."""
    meta = footer(data)
    change(meta)
    text = written(STRUCT, meta)
    return data[: len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]] + text + struct.pack("<I", len(text)) + b"PAR1"


class Page(NamedTuple):
    kind: int
    encoding: str
    # Where its values lie in the file.
    start: int
    end: int


class Form(NamedTuple):
    """The properties that a chunk keeps when it is written anew."""

    path: str
    codec: str
    has_dictionary: bool
    # The kinds of its data pages, and their encodings.
    data: frozenset[tuple[int, str]]


class Chunk(NamedTuple):
    """A column of a row group."""

    path: str
    codec: str
    pages: list[Page]
    # The chunk as it stands in the file.
    data: bytes
    has_statistics: bool
    has_column_index: bool
    has_offset_index: bool
    has_bloom_filter: bool

    @property
    def form(self) -> Form:
        data = frozenset((page.kind, page.encoding) for page in self.pages if page.kind in (DATA, DATA_V2))
        return Form(self.path, self.codec, any(page.kind == DICTIONARY for page in self.pages), data)


class Group(NamedTuple):
    rows: int
    sorting: list[tuple[int, bool, bool]]
    chunks: list[Chunk]


class Layout(NamedTuple):
    schema: bytes
    metadata: list[tuple[bytes, bytes | None]]
    groups: list[Group]


def pages(data: bytes, start: int, end: int) -> list[Page]:
    found = []
    while start < end:
        reader = Reader(data, start)
        header = reader.struct()
        kind = get(header, 1)
        encoding = get(header, {DATA: 5, DICTIONARY: 7, DATA_V2: 8}[kind], 4 if kind == DATA_V2 else 2)
        start = reader.at + get(header, 3)
        found.append(Page(kind, ENCODINGS[encoding], reader.at, start))
    assert start == end
    return found


def chunk(data: bytes, fields: Struct) -> Chunk:
    meta = get(fields, 3)
    # Old writers set the offset of a missing dictionary to 0.
    start = get(meta, 11) or get(meta, 9)
    end = start + get(meta, 7)
    return Chunk(
        path=".".join(name.decode() for name in get(meta, 3)),
        codec=CODECS[get(meta, 4)],
        pages=pages(data, start, end),
        data=data[start:end],
        has_statistics=12 in meta,
        has_column_index=6 in fields,
        has_offset_index=4 in fields,
        has_bloom_filter=14 in meta,
    )


def layout(path: pathlib.Path) -> Layout:
    data = path.read_bytes()
    meta = footer(data)
    kind, schema = meta[2]
    return Layout(
        schema=written(kind, schema),
        metadata=[(get(pair, 1), get(pair, 2)) for pair in get(meta, 5, default=[])],
        groups=[
            Group(
                rows=get(group, 3),
                sorting=[(get(by, 1), get(by, 2), get(by, 3)) for by in get(group, 4, default=[])],
                chunks=[chunk(data, one) for one in get(group, 1)],
            )
            for group in get(meta, 4)
        ],
    )
