"""A client of a filter on one Redis or Valkey server, written from crates/redis/PROTOCOL.md and docs/FORMAT.md alone, with the standard
library of Python:

    server.py PORT NAME contains|insert [KEYS RATE [WINDOW GENERATIONS]]
    server.py sizes

It reads keys from its standard input, one a line, and prints 1 for each that the filter contains, or that was new; else 0. With the
number of keys and the rate, it makes the filter where there is none: one of a fixed size, a window of these seconds, or with WINDOW 0
and GENERATIONS 0 one that grows. `sizes` computes the table of PROTOCOL.

The functions `plan`, `expected_rate` and `estimated_keys` are on the page itself: the client runs the Python that stands there.
"""

import pathlib
import random
import re
import socket
import sys
import time

from format import Refused, bits, check, golden_hash, make_secret, wyhash

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "crates/redis/PROTOCOL.md").read_text(encoding="utf-8")
exec("".join(re.findall("```python\n(.*?)```", PAGE, re.DOTALL)))

SHARD = 262143  # blocks
MARK = 2**63 - 1  # a mark without the seal
WAIT = (b"LOADING", b"BUSY", b"TRYAGAIN", b"CLUSTERDOWN", b"MASTERDOWN", b"NOREPLICAS", b"READONLY")


class Connection:
    def __init__(self, port):
        self.port = port
        self.connect()

    def connect(self):
        self.stream = socket.create_connection(("127.0.0.1", self.port), 10).makefile("rwb")

    def send(self, commands):
        for words in commands:
            words = [str(word).encode() if not isinstance(word, bytes) else word for word in words]
            self.stream.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        self.stream.flush()

    def reply(self):
        line = self.whole(self.stream.readline())
        kind, rest = line[:1], line[1:]
        if kind == b"-" and rest.startswith(WAIT):
            raise ConnectionError(rest.decode())
        if kind == b"-":
            raise Refused(rest.decode())
        if kind == b"+":
            return rest
        number = int(rest)
        if kind == b"$":
            return self.whole(self.stream.read(number + 2), number) if number >= 0 else None
        return [self.reply() for _ in range(number)] if kind == b"*" else number

    def whole(self, text, length=0):
        """A text without the end of its line. Without that it is the beginning of an answer that was cut."""
        if len(text) < length + 2 or not text.endswith(b"\r\n"):
            raise ConnectionError("the connection is closed")
        return text[:-2]

    def again(self, run):
        """Runs until the connection holds."""
        while True:
            try:
                return run()
            except (OSError, ValueError):
                time.sleep(0.05)
                try:
                    self.connect()
                except OSError:
                    pass

    def ask(self, commands):
        """Sends all commands, and then reads all replies. For commands that may be repeated."""
        def run():
            self.send(commands)
            return [self.reply() for _ in commands]
        return self.again(run)

    def ask_once(self, commands):
        """Returns each reply, and True if an earlier one may have been lost."""
        replies, doubted = [], 0

        def run():
            nonlocal doubted
            sent, doubted = doubted, len(commands)  # all that is sent from here on may be carried out unheard
            self.send(commands[len(replies):])
            while len(replies) < len(commands):
                replies.append((self.reply(), len(replies) < sent))
        self.again(run)
        return replies


class Shards:
    """The shards of a filter of one size, or of a stage."""

    def __init__(self, filter, blocks, probes, made, stage=None, opened=0, keys=0):
        check(1 <= blocks < 2**57 and probes in (4, 8, 12, 16) and 0 <= made < 2**30, "a bad value")
        check(blocks <= 2**20 * SHARD, "a filter that is too large")
        self.filter, self.blocks, self.probes, self.made = filter, blocks, probes, made
        self.number, self.opened, self.keys = stage, opened, keys
        self.first, self.count = 0 if stage is None else 8, -(-blocks // SHARD)
        self.marks = {}
        self.held = self.left = self.used = self.unsampled = 0  # permits, and claims since the last sample

    def name(self, shard):
        return self.filter.key(shard if self.number is None else f"{self.number}.{shard}")

    def length(self, shard):
        """The number of bytes of a shard's blocks."""
        return 64 * min(SHARD, self.blocks - SHARD * shard)

    def place(self, key):
        """The shard of a key, and its bits there."""
        block, pairs = bits(wyhash(key, self.filter.seed, self.filter.secret), self.blocks, self.probes)
        shard, start = block // SHARD, self.first + 64 * (block % SHARD)
        return shard, [8 * (start + 8 * word + bit // 8) + 7 - bit % 8 for word, bit in pairs]

    def command(self, key, *operation):
        shard, numbers = self.place(key)
        words = ["BITFIELD", self.name(shard)]
        for number in numbers:
            words += [operation[0], "u1", number, *operation[1:]]
        return words

    def queries(self, keys):
        return [self.command(key, "GET") for key in keys]

    def claims(self, keys):
        return [self.command(key, "SET", 1) + ["GET", "i64", 0] * bool(self.first) for key in keys]

    def read_mark(self, shard):
        start = 0 if self.first else self.length(shard)
        return ["GETRANGE", self.name(shard), start, start + 7]

    def marking(self, shard, *operation):
        bit = 1 if self.first else 8 * self.length(shard) + 1
        mark = 2**62 + 2**32 * self.made + random.randrange(2**32)
        return ["BITFIELD", self.name(shard), "OVERFLOW", "FAIL", "INCRBY", "u63", bit, mark, *operation, "GET", "u63", bit]

    def mark(self, shard):
        self.filter.check_description(self)
        last = 8 * (self.first + self.length(shard) + (8 if shard == 0 else 0)) - 1
        commands = [self.marking(shard, *(["INCRBY", "u1", last, 0] if self.first else []))] + self.expiry(shard)
        self.marks[shard] = self.filter.ask(commands)[0][-1]
        check(self.is_ours(self.marks[shard]), "a shard of another filter")

    def seal(self):
        """Seals all shards. Returns False if one has another mark."""
        commands = [self.marking(shard, "SET", "u1", 0, 1) for shard in range(self.count)]
        marks = [answer[-1] for answer in self.filter.ask(commands + self.expiry(*range(self.count)))[:self.count]]
        return all(self.is_ours(mark) and self.marks.get(shard, mark) == mark for shard, mark in enumerate(marks))

    def is_ours(self, mark):
        return mark >> 32 == 2**30 + self.made

    def expiry(self, *shards):
        return [["EXPIREAT", self.name(shard), self.filter.expiry(self.opened)] for shard in shards if self.filter.window]


class Filter:
    def __init__(self, port, name, request=()):
        self.connection, self.name, self.uncertain, self.loaded = Connection(port), name, 0, 0
        self.ask, self.window, self.stages = self.connection.ask, 0, []
        self.line = self.ask([["GET", self.key("meta")]])[0]
        if self.line is None and request:
            self.create(request)
        check(self.line is not None, "no such filter")
        first, *fields = self.line.decode().split(" ")
        meta = dict(field.split("=", 1) for field in fields)
        check(first == "bloomline" and meta["version"] in ("2", "3"), "another version")
        check(meta["layout"] == "words4" and meta["shard"] == str(64 * SHARD), "another layout")
        self.seed, self.made = int(meta["seed"]), int(meta.get("made", 0))
        check(0 <= self.seed < 2**64 and 0 <= self.made < 2**30, "a bad value")
        check(int(meta["golden"]) == golden_hash(self.seed), "another hash")
        self.secret = make_secret(self.seed)
        self.is_staged = meta["version"] == "3"
        if not self.is_staged:
            self.stages = [Shards(self, int(meta["blocks"]), int(meta["probes"]), self.made)]
            return
        self.keys, self.rate = int(meta["keys"]), float(meta["rate"])
        self.window, self.generations = int(meta["window"]), int(meta["generations"])
        check(self.keys >= 1 and 0 < self.rate < 1 and self.generations <= 64, "a bad value")
        check((self.window > 0) == (self.generations > 0), "a bad value")
        self.period = -(-self.window // self.generations) if self.window else 0
        self.load()
        if not self.stages:
            self.open_stage(0)
        self.restore()

    def key(self, part):
        return f"cbf:{{{self.name}:{part}}}"

    def create(self, request):
        version, size = 3, "keys={} rate={} window={} generations={}"
        if len(request) == 2:
            version, size, request = 2, "blocks={} probes={}", plan(int(request[0]), float(request[1]))
        size = size.format(*request)
        length, mark, stages = self.ask([["STRLEN", self.key(0)], ["GETRANGE", self.key(0), -8, -1], ["HLEN", self.key("stages")]])
        read, set_first = ["GET", self.key("meta")], not (length % 64 == 8 and mark[0] >> 6 == 1 or stages)
        line = (f"bloomline version={version} layout=words4 {size} seed=0 golden={golden_hash(0)} shard={64 * SHARD} "
                f"made={random.randrange(1, 2**30)}")
        # Another client may be first.
        self.line = self.ask([["SET", self.key("meta"), line, "NX"], read] if set_first else [read])[-1]
        check(self.line is not None, "remains of a filter")
        asked, found = (re.findall(r"\b(blocks|probes|keys|rate|window|generations)=(\S+)", text) for text in (size, self.line.decode()))
        check([(field, float(value)) for field, value in asked] == [(field, float(value)) for field, value in found], "other parameters")

    def check_description(self, *stages):
        """Checks that the filter is still the same one, and that these stages are listed."""
        listed = [["HEXISTS", self.key("stages"), stage.number] for stage in stages if self.is_staged]
        line, *is_listed = self.ask([["GET", self.key("meta")]] + listed)
        check(line == self.line, "the filter is gone or another")
        check(is_listed in ([], [1]), "the list is lost")

    # Stages.

    def plan_stage(self, number):
        """The blocks, the probes and the keys of a stage, and the keys for which it is sized."""
        if self.window == 0:
            keys = self.keys << number
            return *plan(keys, self.stage_rate(number)), keys
        ends = [stage.opened for stage in self.stages[1:]] + [self.time]
        rest, full = self.rate, 0
        for stage, end in zip(self.stages, ends):
            if self.is_queried(stage):
                rest -= expected_rate(self.permits(stage.keys), stage.blocks, stage.probes)
                full += stage.keys if end < stage.opened + self.period else 0
        keys = max(-(-self.keys // self.generations), full // self.generations, 32768)
        return *plan(self.permits(keys), max(rest, self.rate / 2**20) / (self.generations + 2)), keys

    def stage_rate(self, number):
        rate = self.rate / 8
        for _ in range(number):
            rate *= 7 / 8
        return rate

    def permits(self, keys):
        return keys + keys // 16 if self.window else keys

    def is_queried(self, stage):
        return self.window == 0 or self.time < stage.opened + (self.generations + 1) * self.period + 2

    def expiry(self, opened):
        return min(opened + (self.generations + 2) * self.period + 2, (2**63 - 1) // 1000)

    def stage_made(self, number, blocks, probes):
        parts = b"".join(part.to_bytes(8, "little") for part in (self.made, number, blocks, probes))
        return wyhash(parts, 0, make_secret(0)) >> 34 or 1

    def load(self):
        """Reads the list."""
        self.loaded = time.monotonic()
        fields, now = self.ask([["HGETALL", self.key("stages")], ["TIME"]])
        self.time, known, stages = int(now[0]), {stage.number: stage for stage in self.stages}, []
        for number, line in sorted((int(number), line.decode()) for number, line in zip(fields[::2], fields[1::2])):
            values = dict(field.split("=", 1) for field in line.split(" "))
            blocks, probes, keys, made, opened = (int(values[field]) for field in ("blocks", "probes", "keys", "made", "opened"))
            stage = Shards(self, blocks, probes, made, number, opened, keys)
            if not self.is_queried(stage) and number < max(map(int, fields[::2])):
                continue
            rate = self.rate / (self.generations + 2) if self.window else self.stage_rate(number)
            check(expected_rate(keys, blocks, probes) <= rate * 9 / 8, "a stage that does not keep its rate")
            check(self.window or blocks <= plan(self.keys << number, rate)[0] * 9 / 8 + 1, "a stage that is too large")
            check(number not in known or known[number].made == made, "another filter")
            stages.append(known.get(number, stage))
        numbers = {stage.number for stage in stages}
        check(all(stage.number in numbers or not self.is_queried(stage) for stage in self.stages), "the list is lost")
        self.stages = stages

    def advance(self, last):
        """Seals a stage, and opens the next one unless another client did."""
        for _ in range(2):
            self.load()
            if self.stages[-1].number > last.number:
                return
            if self.window and self.time >= self.expiry(last.opened) or last.seal():
                return self.open_stage(last.number + 1)
        raise Refused("a stage is lost")

    def open_stage(self, number):
        blocks, probes, keys = self.plan_stage(number)
        stage = Shards(self, blocks, probes, self.stage_made(number, blocks, probes), number)
        marks = self.ask([stage.read_mark(shard) for shard in range(stage.count)])
        left = [shard for shard, mark in enumerate(marks) if mark and not stage.is_ours(int.from_bytes(mark, "big") & MARK)]
        if not (left and self.ask([["HEXISTS", self.key("stages"), number]])[0]):
            if left:
                self.ask([["UNLINK", stage.name(shard)] for shard in left])
            line = f"blocks={blocks} probes={probes} keys={keys} made={stage.made} opened={self.time if self.window else 0}"
            self.ask([["HSETNX", self.key("stages"), number, line]])
        before = self.stages
        self.load()
        check(self.stages and self.stages[-1].number >= number, "the list is lost")
        for old in before:
            if not self.is_queried(old) and old.number < number:
                self.ask([["UNLINK", old.name(shard)] for shard in range(old.count)] + [["HDEL", self.key("stages"), old.number]])

    def restore(self):
        """Lists stages of a filter that grows again, if the list was lost."""
        while self.window == 0:
            listed, last = {stage.number for stage in self.stages}, self.stages[-1].number
            for number in set(range(last)) - listed:
                blocks, probes, keys = self.plan_stage(number)
                line = f"blocks={blocks} probes={probes} keys={keys} made={self.stage_made(number, blocks, probes)} opened=0"
                self.ask([["HSETNX", self.key("stages"), number, line]])
            self.load()
            blocks, probes, _ = self.plan_stage(last + 1)
            following = Shards(self, blocks, probes, self.stage_made(last + 1, blocks, probes), last + 1)
            mark = self.ask([following.read_mark(0)])[0]
            if not following.is_ours(int.from_bytes(mark, "big") & MARK):
                return
            self.advance(self.stages[-1])

    def refresh(self):
        """Reads the list of a window once a second, and opens the next stage if it is due."""
        if self.window and time.monotonic() - self.loaded >= 1:
            self.load()
        if self.window and self.time >= self.stages[-1].opened + self.period:
            self.advance(self.stages[-1])

    # Keys.

    def contains(self, keys):
        found, after = [False] * len(keys), -1
        while True:
            stages = [stage for stage in self.stages if not self.is_staged or stage.number > after]
            for stage in stages:
                for at, answer in enumerate(self.ask(stage.queries(keys))):
                    found[at] |= all(answer)
            if not self.is_staged or not self.ask([["HEXISTS", self.key("stages"), self.stages[-1].number + 1]])[0]:
                return found
            after = self.stages[-1].number
            self.load()

    def insert(self, keys):
        """True for each key that was new to this client."""
        if not self.is_staged:
            return self.insert_into(self.stages[0], keys)
        new = []
        while len(new) < len(keys):
            self.refresh()
            new += self.insert_part(keys[len(new):len(new) + self.part()])
        return new

    def insert_into(self, stage, keys):
        """Inserts keys into a filter of one size."""
        shards = {stage.place(key)[0] for key in keys}
        for shard in shards - set(stage.marks):
            stage.mark(shard)
        new = []
        for answer, doubted in self.connection.ask_once(stage.claims(keys)):
            self.uncertain += doubted and all(answer)
            new.append(doubted or not all(answer))
        self.check_description(stage)
        marks = self.ask([stage.read_mark(shard) for shard in shards])
        check(all(int.from_bytes(mark, "big") == stage.marks[shard] for shard, mark in zip(shards, marks)), "the filter has lost a shard")
        return new

    def insert_part(self, keys):
        new, after = dict.fromkeys(keys), -1
        pending = list(new)
        while pending:
            last = self.stages[-1]
            for stage in [stage for stage in self.stages[:-1] if stage.number > after]:
                for key, answer in zip(pending, self.ask(stage.queries(pending))):
                    new[key] = False if all(answer) else None
                pending = [key for key in pending if new[key] is None]
            if not pending:
                break
            for shard in ({last.place(key)[0] for key in pending} | {0}) - set(last.marks):
                last.mark(shard)
            if not self.take_permits(last, len(pending)):
                self.advance(last)
                continue
            late, lost, after = [], False, last.number
            for key, (answer, doubted) in zip(pending, self.connection.ask_once(last.claims(pending))):
                *old, sealed_mark = answer
                lost |= sealed_mark & MARK != last.marks[last.place(key)[0]]
                if sealed_mark < 0 and not all(old):
                    late.append(key)
                else:
                    new[key] = doubted or not all(old)
                    self.uncertain += doubted and all(old)
            seen = sum(new[key] is False for key in pending)
            last.held += seen
            last.used += len(pending) - seen
            last.unsampled += len(pending) - seen
            self.check_description(*([] if self.window else [last]))
            if self.window or lost:
                self.load()
                if last not in self.stages:
                    late = pending
                elif lost:
                    raise Refused("a stage is lost")
                elif self.time >= last.opened + self.period + 2:
                    late += [key for key in pending if new[key]]
            pending = late
            for key in late:
                new[key] = None
            if late and self.stages[-1] is last:
                self.advance(last)
        self.give_permits_back(self.stages[-1])
        return [bool(new.pop(key, False)) for key in keys]  # of equal keys, only the first is new

    # Permits.

    def part(self):
        last = self.stages[-1]
        return max(1, min(max(last.left // 64, last.keys // 512, 16), last.keys // 16, 4096))

    def take(self, stage, count):
        return ["BITFIELD", stage.name(0), "INCRBY", "i64", 8 * (8 + stage.length(0)), count, "GET", "i64", 0]

    def take_permits(self, stage, count):
        """Takes permits for keys. Returns False if the stage is full."""
        if stage.held < count:
            sample = []
            if stage.used == 0 or stage.unsampled >= min(1024, stage.keys // 16):
                shard = random.randrange(stage.count)
                blocks = stage.length(shard) // 64
                sampled = min(blocks, 1024)
                start = 8 + 64 * random.randrange(blocks - sampled + 1)
                sample = [["BITCOUNT", stage.name(shard), start, start + 64 * sampled - 1]]
            more = count - stage.held
            (taken, sealed_mark), *counted = self.ask([self.take(stage, more)] + sample + stage.expiry(0))
            if sealed_mark != stage.marks[0] or taken > self.permits(stage.keys):
                return False
            if sample:
                stage.unsampled = 0
                if estimated_keys(counted[0], 512 * sampled, stage.blocks, stage.probes) >= stage.keys:
                    return False
            stage.held, stage.left = stage.held + more, self.permits(stage.keys) - taken
        stage.held -= count
        return True

    def give_permits_back(self, stage):
        surplus = stage.held - min(stage.used, 1024, self.part())
        if surplus > 0:
            stage.held -= surplus
            self.ask([self.take(stage, -surplus)] + stage.expiry(0))


def sizes():
    """Computes the table of PROTOCOL."""
    head, _, *rows = re.search(r"^\| keys \|.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)[0].strip().split("\n")
    rates = head.split("|")[2:-1]
    for row in rows:
        keys, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        for rate, cell in zip(rates, cells, strict=True):
            check("{} × {}".format(*plan(int(keys), float(rate))) == cell, f"{keys} keys at {rate}: {cell}")
            print(keys, rate, cell)


if __name__ == "__main__":
    if sys.argv[1:] == ["sizes"]:
        sys.exit(sizes())
    _, port, name, call, *request = sys.argv
    keys = sys.stdin.buffer.read().splitlines()
    client = Filter(int(port), name, request)
    for at in range(0, len(keys), 100):
        for answer in getattr(client, call)(keys[at:at + 100]):
            print(int(answer))
    if client.uncertain:
        print(f"{client.uncertain} may be another client's too", file=sys.stderr)
