"""Reads and writes bloomline's files. This module is written from docs/FORMAT.md alone, and shares no code with the Rust library.

The functions `mum`, `bits`, `positions`, `make_secret`, `wyhash`, `hash_tuple`, `hash_sequence` and `golden_hash` are on the page
itself: the module runs the Python that stands there. The module needs `xxhash` (Debian: python3-xxhash). Run as a program, it does the jobs that it reads from
its standard input, one line of JSON each (see `work`).
"""

import decimal
import functools
import json
import math
import pathlib
import re
import struct
import sys
import unicodedata

import xxhash

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/FORMAT.md"
exec("".join(re.findall("```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)))
make_secret, golden_hash = functools.cache(make_secret), functools.cache(golden_hash)

FILTER, SCALABLE, ROTATING = b"\x89BLOOM\r\n", b"\x89BLSER\r\n", b"\x89BLROT\r\n"
LAYOUTS = {  # number: name, probes, bits of a unit
    1: ("words4", (4, 8, 12, 16), 512),
    2: ("classic", range(1, 33), 1),
    3: ("counting", (4, 8, 16), 1024),
    4: ("split block", (8,), 256),
    5: ("register", range(2, 11), 64),
    6: ("words4x2", (8, 16, 24, 32), 512),
}
NUMBERS = {name: number for number, (name, _, _) in LAYOUTS.items()}


class Refused(Exception):
    """A file that no writer of this format has written, or a filter that the format does not know."""


def check(sound, reason):
    if not sound:
        raise Refused(reason)


def xxh3(data):
    return xxhash.xxh3_64_intdigest(data).to_bytes(8, "little")


def is_rate(rate):
    return 0 < rate < 1  # and not NaN


def is_name(value):
    try:
        return all(unicodedata.category(char) != "Cc" for char in value.decode())
    except UnicodeDecodeError:
        return False


def check_header(data, at, magic):
    """The checks that all kinds of file begin with, in the order of the page."""
    header = data[at:at + 64]
    check(header[:8] not in {FILTER, SCALABLE, ROTATING} - {magic}, "another kind of file")
    check(magic.startswith(header[:8]), "not a file of bloomline")
    check(len(header) == 64, "truncated")
    check(xxh3(header[:56]) == header[56:], "damaged header")
    version = int.from_bytes(header[8:12], "little")
    check(version <= 2, "newer version")
    check(version >= 2, "older version")
    return header


def write_fields(fields):
    body = b"".join(struct.pack("<HH", tag, len(value)) + value for tag, value in sorted(fields.items()))
    if not body:
        return b""
    body = body.ljust(-(len(body) + 8) % 64 + len(body), b"\0")
    return body + xxh3(body)


def read_fields(data):
    if not data:
        return {}
    body, fields, at, last = data[:-8], {}, 0, 0
    check(xxh3(body) == data[-8:], "damaged header")
    while at + 2 <= len(body) and any(body[at:at + 2]):
        tag, length = struct.unpack("<HH", body[at:at + 4].ljust(4, b"\0"))
        value = body[at + 4:at + 4 + length]
        check(tag > last and at + 4 + length <= len(body), "bad tag")
        check(tag < 0x8000 or tag == 0x8001, "bad tag")
        if tag == 1:
            check(length == 8 and any(value), "bad expected keys")
        elif tag == 2:
            check(length == 8 and is_rate(*struct.unpack("<d", value)), "bad rate")
        elif tag == 3:
            check(1 <= length <= 1024 and is_name(value), "bad key name")
        elif tag == 4:
            check(length == 0, "bad closed")
        elif tag == 5:
            check(length == 16, "bad age")
        elif tag == 0x8001:
            check(length % 2 == 0 and 2 <= length <= 2048, "bad key kinds")
        if tag <= 5 or tag == 0x8001:
            fields[tag] = value
        at, last = at + 4 + length, tag
    check(not any(body[at:]), "bad padding")
    check(at > 0 and len(data) == -(-(at + 8) // 64) * 64, "bad fields")
    return fields


class Filter:
    def __init__(self, layout, units, probes, seed=0, fields={}):
        _, allowed, self.unit_bits = LAYOUTS[NUMBERS[layout]]
        check(probes in allowed, "bad probes")
        self.block_count = -(-units * self.unit_bits // 512)
        check(1 <= self.block_count < 2**57, "bad blocks")
        if layout == "split block":
            check(units <= 2**32, "bad units")
            check(seed == 0, "bad seed")
        self.layout, self.units, self.probes, self.seed, self.fields = layout, units, probes, seed, dict(fields)
        self.secret, self.data = make_secret(seed), None

    @classmethod
    def new(cls, *arguments, expected_keys=None, rate=None, key_name=None, key_kinds=(), **named):
        new = cls(*arguments, **named)
        new.data = bytearray(64 * new.block_count)
        if expected_keys is not None:
            new.fields[1] = struct.pack("<Q", expected_keys)
        if rate is not None:
            new.fields[2] = struct.pack("<d", rate)
        if key_name is not None:
            new.fields[3] = key_name.encode()
        if key_kinds:
            new.fields[0x8001] = struct.pack(f"<{len(key_kinds)}H", *key_kinds)
        return new

    def hash(self, key):
        return xxhash.xxh64_intdigest(key, 0) if self.layout == "split block" else wyhash(key, self.seed, self.secret)

    def positions(self, hash):
        if self.layout != "words4":
            return positions(self.layout, hash, self.units, self.probes)
        block, pairs = bits(hash, self.block_count, self.probes)
        return [512 * block + 64 * word + bit for word, bit in pairs]

    def contains_hash(self, hash):
        if self.layout == "counting":
            return all(self.data[position // 2] >> position % 2 * 4 & 15 for position in self.positions(hash))
        return all(self.data[position // 8] >> position % 8 & 1 for position in self.positions(hash))

    def insert_hash(self, hash):
        new = not self.contains_hash(hash)
        for position in self.positions(hash):
            if self.layout != "counting":
                self.data[position // 8] |= 1 << position % 8
            elif self.data[position // 2] >> position % 2 * 4 & 15 < 15:
                self.data[position // 2] += 1 << position % 2 * 4
        return new

    def contains(self, key):
        return self.contains_hash(self.hash(key))

    def insert(self, key):
        return self.insert_hash(self.hash(key))

    def fold(self):
        """The filter of half as many blocks."""
        check(self.layout == "words4" and self.block_count % 2 == 0, "this filter does not fold")
        half = Filter.new("words4", self.units // 2, self.probes, self.seed, self.fields)
        half.fields.pop(1, None)
        keys = most_keys(half.block_count, half.probes, *struct.unpack("<d", half.fields[2])) if 2 in half.fields else 0
        if keys > 0:
            half.fields[1] = struct.pack("<Q", keys)
        for at in range(0, len(self.data), 128):
            union = (one | two for one, two in zip(self.data[at:at + 64], self.data[at + 64:at + 128]))
            half.data[at // 2:at // 2 + 64] = bytes(union)
        return half

    def write(self):
        fields = write_fields(self.fields)
        units = 0 if self.layout == "words4" else self.units
        numbers = NUMBERS[self.layout], self.probes, self.block_count, self.seed, golden_hash(self.seed), units, len(fields), 0
        header = struct.pack("<8sIHHQQQQII", FILTER, 2, *numbers)
        ones = int.from_bytes(self.data, "little").bit_count().to_bytes(8, "little")
        return header + xxh3(header) + fields + self.data + ones + xxh3(self.data + ones)

    @classmethod
    def read(cls, data, at=0):
        """The filter that begins at this byte of the data, and the byte where it ends."""
        header = check_header(data, at, FILTER)
        layout, probes, blocks, seed, golden, units, length, reserved = struct.unpack("<HHQQQQII", header[12:56])
        check(layout in LAYOUTS, "bad layout")
        check(length % 64 == 0 and length <= 65536, "bad fields")
        check(reserved == 0, "bad reserved")
        name = LAYOUTS[layout][0]
        if name == "words4":
            check(units == 0, "bad units")
        read = cls(name, blocks if name == "words4" else units, probes, seed)
        check(read.block_count == blocks, "bad blocks")
        check(golden == golden_hash(seed), "other hash")
        start, end = at + 64 + length, at + 64 + length + 64 * blocks
        check(end + 16 <= len(data), "truncated")
        read.fields = read_fields(data[at + 64:start])
        read.data, ones = bytearray(data[start:end]), data[end:end + 8]
        check(xxh3(read.data + ones) == data[end + 8:end + 16], "damaged body")
        value = int.from_bytes(read.data, "little")
        check(int.from_bytes(ones, "little") == value.bit_count(), "damaged body")
        check(value >> read.units * read.unit_bits == 0, "bad units")
        return read, end + 16


def rate_of(keys, blocks, probes):
    """The false-positive rate of `words4`, from docs/FPR.md."""
    per_word, stirling = probes // 4, [[], [1], [1, 1], [1, 3, 1], [1, 7, 6, 1]][probes // 4]

    def errs(load):
        missed = [((1 + (1 - r / 64)**per_word) / 2)**load for r in range(per_word + 1)]
        return sum(
            sets * math.perm(64, d) / 64**per_word * sum((-1)**r * math.comb(d, r) * missed[r] for r in range(d + 1))
            for d, sets in enumerate(stirling, 1))**4

    def weight(load):
        ways = math.lgamma(keys + 1) - math.lgamma(load + 1) - math.lgamma(keys - load + 1)
        return math.exp(ways - load * math.log(blocks) + (keys - load) * math.log1p(-1 / blocks))

    shared = keys / 2**64
    if blocks == 1:
        return errs(keys) + shared
    mean, width = keys // blocks, 40 * math.isqrt(keys // blocks + 1) + 40
    return sum(weight(load) * errs(load) for load in range(max(0, mean - width), min(keys, mean + width) + 1)) + shared


def least(fits):
    """The least number from 1 on that fits. All above it fit too."""
    low, high = 0, 1
    while not fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def size_for(keys, rate):
    """The fewest blocks that keep a rate, and their probes."""
    return min((least(lambda blocks: rate_of(keys, blocks, probes) <= rate), probes) for probes in (4, 8, 12, 16))


def most_keys(blocks, probes, rate):
    """The most keys with which a filter keeps a rate."""
    return least(lambda keys: rate_of(keys, blocks, probes) > rate) - 1


class Scalable:
    def __init__(self, first, rate, seed=0, key_name=None):
        self.first, self.rate, self.seed, self.key_name = first, rate, seed, key_name
        self.stages, self.last, self.merged = [], 0, 0
        self.grow()

    def limits(self, stage):
        """The keys that a stage takes, and at which rate."""
        if stage < self.merged:
            fields = self.stages[stage].fields
            check(1 in fields and 2 in fields, "bad fields")
            return struct.unpack("<Q", fields[1])[0], struct.unpack("<d", fields[2])[0]
        rate = self.rate / 8
        for _ in range(stage - self.merged):
            rate *= 7 / 8
        return self.first << stage - self.merged, rate

    def grow(self):
        keys, rate = self.limits(len(self.stages))
        blocks, probes = size_for(keys, rate)
        fields = {"expected_keys": keys, "rate": rate, "key_name": self.key_name}
        self.stages.append(Filter.new("words4", blocks, probes, self.seed, **fields))

    def contains(self, key):
        return any(stage.contains(key) for stage in self.stages)

    def insert(self, key):
        if self.contains(key):
            return False
        if self.last == self.limits(len(self.stages) - 1)[0]:
            self.grow()
            self.last = 0
        self.last += 1
        return self.stages[-1].insert(key)

    def write(self):
        stages = b"".join(stage.write() for stage in self.stages)
        numbers = 2, len(self.stages), self.rate, self.first, self.last, 64 + len(stages), self.merged << 32
        header = struct.pack("<8sIIdQQQQ", SCALABLE, *numbers)
        return header + xxh3(header) + stages

    @classmethod
    def read(cls, data, at=0):
        header = check_header(data, at, SCALABLE)
        read = cls.__new__(cls)
        count, read.rate, read.first, read.last, length, reserved, read.merged = struct.unpack("<IdQQQII", header[12:56])
        check(read.merged < 256, "bad merged")
        check(1 <= count - read.merged <= 64, "bad stages")
        check(is_rate(read.rate), "bad rate")
        check(read.first >= 1, "bad first")
        check((count - read.merged > 1) <= read.last <= read.limits(count - 1)[0], "bad last")
        check(reserved == 0, "bad reserved")
        check(at + length <= len(data), "truncated")
        read.stages, end = [], at + 64
        for number in range(count):
            stage, end = Filter.read(data[:at + length], end)
            read.stages.append(stage)
            keys, rate = read.limits(number)
            check(stage.layout == "words4", "bad layout")
            check(number == 0 or stage.seed == read.stages[0].seed, "bad seed")
            check(rate_of(keys, stage.block_count, stage.probes) <= rate * (1 + 1e-9), "bad blocks")
        check(end == at + length, "bad length")
        read.seed, read.key_name = read.stages[0].seed, read.stages[-1].fields.get(3, b"").decode() or None
        return read, end


class Rotating:
    def __init__(self, window, rate, generations=2, seed=0, key_name=None, rotate_when_full=True):
        self.window, self.rate, self.asked, self.rotates = window, rate, generations, rotate_when_full
        self.last, (keys, rate) = 0, self.limits()
        blocks, probes = size_for(keys, rate)
        fields = {"expected_keys": keys, "rate": rate, "key_name": key_name}
        self.generations = [Filter.new("words4", blocks, probes, seed, **fields) for _ in range(generations)]

    def limits(self):
        """The keys that a generation takes, and at which rate."""
        # Rounded after each step, but not by the mathematics of this machine, which may round the last bit another way.
        with decimal.localcontext(prec=50):
            keep = float((1 - decimal.Decimal(self.rate)).ln()) / self.asked
            rate = float(1 - decimal.Decimal(keep).exp())
        return -(-self.window // (self.asked - 1)), rate / (1 + rate)

    def contains(self, key):
        return any(generation.contains(key) for generation in self.generations)

    def insert(self, key):
        if self.generations[-1].contains(key):
            return False
        full = self.last == self.limits()[0]
        if full and self.rotates:
            oldest = self.generations.pop(0)
            self.generations.append(Filter.new("words4", oldest.units, oldest.probes, oldest.seed, oldest.fields))
            self.last, full = 0, False
        self.last += not full
        new = not self.contains(key)
        self.generations[-1].insert(key)
        return new

    def write(self):
        generations = b"".join(generation.write() for generation in self.generations)
        numbers = 2, self.asked, self.rate, self.window, self.last, 64 + len(generations), not self.rotates, 0
        header = struct.pack("<8sIIdQQQII", ROTATING, *numbers)
        return header + xxh3(header) + generations

    @classmethod
    def read(cls, data, at=0):
        header = check_header(data, at, ROTATING)
        read = cls.__new__(cls)
        read.asked, read.rate, read.window, read.last, length, when_full, reserved = struct.unpack("<IdQQQII", header[12:56])
        check(when_full <= 1, "bad when full")
        check(is_rate(read.rate), "bad rate")
        check(read.window >= 1, "bad window")
        check(2 <= read.asked <= 64, "bad generations")
        keys, rate = read.limits()
        check(read.last <= keys, "bad last")
        check(reserved == 0, "bad reserved")
        check(at + length <= len(data), "truncated")
        read.rotates, read.generations, end = not when_full, [], at + 64
        for _ in range(read.asked):
            generation, end = Filter.read(data[:at + length], end)
            read.generations.append(generation)
            first = read.generations[0]
            check(generation.layout == "words4", "bad layout")
            check(generation.seed == first.seed, "bad seed")
            check((generation.block_count, generation.probes) == (first.block_count, first.probes), "bad blocks")
            check(generation.fields == first.fields, "bad fields")
            check(rate_of(keys, generation.block_count, generation.probes) <= rate * (1 + 1e-9), "bad blocks")
        check(end == at + length, "bad length")
        return read, end


def read(data):
    """The filter of a whole file, of any kind."""
    found, end = {b"S": Scalable, b"R": Rotating}.get(data[3:4], Filter).read(data)
    check(end == len(data), "too long")
    return found


def work(job):
    """Reads or makes a filter, inserts and folds, as far as the job asks for it, and tells about the filter. Keys and files are
    in hexadecimal. The rate is text, since readers of JSON may round."""
    keys = lambda name: map(bytes.fromhex, job.get(name, []))
    if "read" in job:
        filter = read(bytes.fromhex(job["read"]))
    elif "filter" in job:
        filter = Filter.new(**job["filter"])
    else:
        filter = Scalable(**job["scalable"]) if "scalable" in job else Rotating(**job["rotating"])
    new = [filter.insert(key) for key in keys("insert")]
    for _ in range(job.get("fold", 0)):
        filter = filter.fold()
    part = filter.stages[-1] if isinstance(filter, Scalable) else filter.generations[-1] if isinstance(filter, Rotating) else filter
    fields = part.fields
    return {
        "new": new,
        "contains": [filter.contains(key) for key in keys("contains")],
        "expected_keys": int.from_bytes(fields[1], "little") if 1 in fields else None,
        "rate": repr(*struct.unpack("<d", fields[2])) if 2 in fields else None,
        "key_name": fields[3].decode() if 3 in fields else None,
        "file": filter.write().hex(),
    }


if __name__ == "__main__":
    for line in sys.stdin:
        try:
            print(json.dumps(work(json.loads(line))), flush=True)
        except Refused as reason:
            print(json.dumps({"refused": str(reason)}), flush=True)
