"""Writes the .bloom files of this folder by format.py, without the library: golden.py FOLDER"""

import pathlib
import sys

from format import Filter, Scalable, wyhash


def hashes(filter):
    """Those of the function `hashes` in tests/file.rs: keys of every type."""
    for i in range(100):
        yield filter.hash(f"key {i}".encode())
        yield filter.hash(b"long " * i)
        for length in 1, 2, 4, 8:
            yield filter.hash(bytes([i]) * length)
        yield filter.hash((i << 100 | 7).to_bytes(16, "little"))
        pair = filter.hash(str(i).encode()), filter.hash(bytes([i]))
        yield wyhash(b"".join(hash.to_bytes(8, "little") for hash in pair), filter.seed, filter.secret)


def files():
    example = Filter.new("words4", 1, 8)
    example.insert(b"bloom")
    example.insert((42).to_bytes(4, "little"))
    yield "example", example

    for blocks, probes, seed in (10, 4, 0), (17, 8, 1), (25, 12, 0x0123456789ABCDEF), (33, 16, 2**64 - 1):
        filter = Filter.new("words4", blocks, probes, seed)
        for hash in hashes(filter):
            filter.insert_hash(hash)
        yield f"probes{probes}", filter

    fields = Filter.new("words4", 20, 8, expected_keys=1000, rate=0.01, key_name="url")
    for key in "https://example.org/", "https://example.com/", "https://example.net/":
        fields.insert(key.encode())
    yield "fields", fields

    series = Scalable(10, 0.01, 1)
    for key in range(50):
        series.insert(key.to_bytes(8, "little"))
    yield "series", series


for name, filter in files():
    (pathlib.Path(sys.argv[1]) / f"{name}.bloom").write_bytes(filter.write())
