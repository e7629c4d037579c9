"""A client of a filter on a Redis or Valkey server, written from crates/redis/PROTOCOL.md and docs/FORMAT.md alone:

    server.py PORT NAME contains|insert [BLOCKS PROBES]

It reads keys from its standard input, one a line, and prints 1 for each that the filter contains, or that was new; else 0. With
the numbers of blocks and probes, for which `bloomline plan --json` is asked, it makes the filter where there is none.
"""

import random
import socket
import sys
import time

from format import Refused, bits, check, golden_hash, make_secret, wyhash

SHARD = 262143  # blocks


class Client:
    def __init__(self, port, name, size=None):
        self.port, self.name, self.uncertain, self.marks = port, name, 0, {}
        self.connect()
        self.key = f"cbf:{{{name}:meta}}"
        self.line = self.ask([["GET", self.key]])[0]
        if self.line is None and size:
            blocks, probes = size
            line = (f"bloomline version=2 layout=words4 blocks={blocks} probes={probes} seed=0 golden={golden_hash(0)} "
                    f"shard={64 * SHARD} made={random.randrange(1, 2**30)}")
            # Another client may be first.
            self.line = self.ask([["SET", self.key, line, "NX"], ["GET", self.key]])[1]
        check(self.line is not None, "no such filter")
        first, *fields = self.line.decode().split(" ")
        meta = dict(field.split("=", 1) for field in fields)
        check(first == "bloomline" and meta["version"] == "2", "another version")
        check(meta["layout"] == "words4" and meta["shard"] == str(64 * SHARD), "another layout")
        self.blocks, self.probes, self.seed = (int(meta[field]) for field in ("blocks", "probes", "seed"))
        self.made = int(meta.get("made", 0))
        check(1 <= self.blocks < 2**57 and self.probes in (4, 8, 12, 16) and 0 <= self.seed < 2**64, "a bad value")
        check(0 <= self.made < 2**30, "a bad value")
        check(int(meta["golden"]) == golden_hash(self.seed), "another hash")
        self.secret = make_secret(self.seed)

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
        if rest.startswith((b"LOADING", b"BUSY", b"TRYAGAIN", b"CLUSTERDOWN")) and kind == b"-":
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
        """Runs until the connection holds. Whoever may not repeat a command looks to that in `run`."""
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

    def place(self, key):
        """The shard of a key, and its bits there."""
        block, pairs = bits(wyhash(key, self.seed, self.secret), self.blocks, self.probes)
        shard, start = block // SHARD, 64 * (block % SHARD)
        return shard, [8 * (start + 8 * word + bit // 8) + 7 - bit % 8 for word, bit in pairs]

    def command(self, place, *operation):
        shard, numbers = place
        words = ["BITFIELD", f"cbf:{{{self.name}:{shard}}}"]
        for number in numbers:
            words += [operation[0], "u1", number, *operation[1:]]
        return words

    def contains(self, keys):
        return [all(found) for found in self.ask([self.command(self.place(key), "GET") for key in keys])]

    def insert(self, keys):
        """Whether each key was new. One command sets all bits of a key, so only one of all clients is told that it was."""
        places = [self.place(key) for key in keys]
        for shard in {shard for shard, _ in places} - set(self.marks):
            self.mark(shard)
        commands, new, doubted = [self.command(place, "SET", 1) for place in places], [], 0

        def run():
            nonlocal doubted
            sent, doubted = doubted, len(commands)  # all that is sent from here on may be carried out unheard
            self.send(commands[len(new):])
            while len(new) < len(commands):
                lacking = not all(self.reply())
                # Bits that are set may be those of the claim whose answer was lost.
                uncertain = not lacking and len(new) < sent
                self.uncertain += uncertain
                new.append(lacking or uncertain)
        self.again(run)
        self.look({shard for shard, _ in places})
        return new

    def end(self, shard):
        """The number of bytes of a shard's blocks."""
        return 64 * min(SHARD, self.blocks - SHARD * shard)

    def mark(self, shard):
        bit, mark = 8 * self.end(shard) + 1, 2**62 + 2**32 * self.made + random.randrange(2**32)
        key = f"cbf:{{{self.name}:{shard}}}"
        words = ["BITFIELD", key, "OVERFLOW", "FAIL", "INCRBY", "u63", bit, mark, "GET", "u63", bit]
        self.marks[shard] = self.ask([words])[0][1]
        check(self.marks[shard] >> 32 == 2**30 + self.made, "a shard of another filter")

    def look(self, shards):
        """Whether the filter is still the same one."""
        reads = [["GETRANGE", f"cbf:{{{self.name}:{shard}}}", self.end(shard), self.end(shard) + 7] for shard in shards]
        *marks, line = self.ask(reads + [["GET", self.key]])
        check(line == self.line, "the filter is gone or another")
        same = all(int.from_bytes(mark, "big") == self.marks[shard] for shard, mark in zip(shards, marks))
        check(same, "the filter has lost a shard")


if __name__ == "__main__":
    _, port, name, call, *size = sys.argv
    keys = sys.stdin.buffer.read().splitlines()
    client = Client(int(port), name, [int(number) for number in size])
    for at in range(0, len(keys), 100):
        for answer in getattr(client, call)(keys[at:at + 100]):
            print(int(answer))
    if client.uncertain:
        print(f"{client.uncertain} may be another client's too", file=sys.stderr)
