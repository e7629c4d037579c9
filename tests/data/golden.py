"""Writes the .bloom files of this folder by format.py, without the library: golden.py FOLDER"""

import pathlib
import sys

from format import Filter, Rotating, Scalable, hash_sequence, hash_tuple


def hashes(filter):
    """Those of the function `hashes` in tests/suite/file/vectors.rs: byte strings, text, integers and pairs."""
    for i in range(100):
        yield filter.hash(f"key {i}".encode())
        yield filter.hash(b"long " * i)
        for length in 1, 2, 4, 8:
            yield filter.hash(bytes([i]) * length)
        yield filter.hash((i << 100 | 7).to_bytes(16, "little"))
        pair = filter.hash(str(i).encode()), filter.hash(bytes([i]))
        yield hash_tuple(pair, filter.seed, filter.secret)


def other_hashes(filter):
    """Those of the file's test in tests/suite/keys.rs: keys of the other types."""
    def of_tuple(*hashes):
        return hash_tuple(hashes, filter.seed, filter.secret)

    def of_sequence(*hashes):
        return hash_sequence(list(hashes), filter.seed, filter.secret)

    zero, one = filter.hash(b"\0"), filter.hash(b"\1")
    yield zero  # false
    yield one  # true
    yield zero  # None
    yield of_sequence()
    for i in range(100):
        byte, text = filter.hash(bytes([i])), filter.hash(str(i).encode())
        wide = [filter.hash((i + more).to_bytes(2, "little")) for more in range(3)]
        yield filter.hash((0x20AC + i).to_bytes(4, "little"))  # a character
        yield filter.hash(bytes([192, 0, 2, i]))
        yield filter.hash(bytes.fromhex("20010db8") + bytes(11) + bytes([i]))
        yield filter.hash(f"/größer//{i}".encode())  # a path
        yield of_tuple(*[byte] * 4)
        yield of_tuple(*[byte] * 11, text)
        yield of_sequence(*wide)
        yield of_sequence(*[text] * (i % 5))
        yield of_tuple(one, text)  # Some
        yield of_sequence(of_sequence(wide[0]), of_sequence(*wide[1:]))
        yield of_tuple(of_sequence(*wide[:2]), of_sequence(wide[2]))
        yield of_sequence(of_tuple(one, byte), zero)


def part(content):
    return len(content).to_bytes(8, "little") + content


# By hand, from the table "Keys of values".
VALUES = [
    b"text",
    b"550e8400-e29b-41d4-a716-446655440000",
    b"\xff0",
    b"\xffbbytes",
    b"\xffn1",
    b"\xffn12e2",
    b"\xffn-5e-2",
    b"\xffn0",
    b"\xffn1e999999999",
    b"\xffnnan",
    b"\xfff",
    b"\xfft",
    b"\xffd2078e1",
    b"\xffc255e2",
    b"\xffs170000000012e-2",
    b"\xffi17e8",
    b"\xffu5e-6",
    b"\xff[" + part(b"a") + part(b"\xffn1") + part(b"\xff0"),
    b"\xff{" + part(b"a") + part(b"\xffn1") + part(b"b") + part(b"text"),
    b"\xffm" + part(b"a") + part(b"\xffn1"),
]


def files():
    # All kinds of values but those of the library.
    values = Filter.new("words4", 20, 8, expected_keys=1000, rate=1e-6, key_name="v", key_kinds=[0x0FFF])
    for key in VALUES:
        values.insert(key)
    yield "values", values

    # Rows of two columns: texts and numbers.
    rows = Filter.new("words4", 20, 8, expected_keys=1000, rate=1e-6, key_name="day,url", key_kinds=[0x4004, 0x4001])
    rows.insert(b"\xff{" + part(b"day") + part(b"\xffn7") + part(b"url") + part(b"a"))
    rows.insert(b"\xff{" + part(b"day") + part(b"\xff0") + part(b"url") + part(b"b"))
    yield "rows", rows

    # As keys were before kinds were recorded: a text, and a number as JSON.
    earlier = Filter.new("words4", 20, 8, expected_keys=1000, rate=1e-6, key_name="/v of JSON lines")
    earlier.insert(b"text")
    earlier.insert(b"\xff1")
    yield "values1", earlier

    example = Filter.new("words4", 1, 8)
    example.insert(b"bloom")
    example.insert((42).to_bytes(4, "little"))
    yield "example", example

    for blocks, probes, seed in (10, 4, 0), (17, 8, 1), (25, 12, 0x0123456789ABCDEF), (33, 16, 2**64 - 1):
        filter = Filter.new("words4", blocks, probes, seed)
        for hash in hashes(filter):
            filter.insert_hash(hash)
        yield f"probes{probes}", filter

    keys = Filter.new("words4", 40, 8, 2)
    for hash in other_hashes(keys):
        keys.insert_hash(hash)
    yield "keys", keys

    fields = Filter.new("words4", 20, 8, expected_keys=1000, rate=0.01, key_name="url")
    for key in "https://example.org/", "https://example.com/", "https://example.net/":
        fields.insert(key.encode())
    yield "fields", fields

    scalable = Scalable(10, 0.01, 1)
    for key in range(50):
        scalable.insert(key.to_bytes(8, "little"))
    yield "series", scalable

    rotating = Rotating(20, 0.01, 3, 1, "line")
    for key in range(50):
        rotating.insert(key.to_bytes(8, "little"))
    yield "rotating", rotating


for name, filter in files():
    (pathlib.Path(sys.argv[1]) / f"{name}.bloom").write_bytes(filter.write())
