"""A client of a filter on a Redis or Valkey server, written from docs/FORMAT.md alone: server.py PORT NAME contains|insert

It reads keys from its standard input, one a line, and prints 1 for each that the filter contains, or that was new; else 0.
"""

import socket
import sys

from format import Refused, bits, check, golden_hash, make_secret, wyhash

SHARD = 262143  # blocks


class Client:
    def __init__(self, port, name):
        self.stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb")
        self.name = name
        line = self.ask([["GET", f"cbf:{{{name}:meta}}"]])[0]
        check(line is not None, "no such filter")
        first, *fields = line.decode().split(" ")
        meta = dict(field.split("=", 1) for field in fields)
        check(first == "bloomline" and meta["version"] == "2", "another version")
        check(meta["layout"] == "words4" and meta["shard"] == str(64 * SHARD), "another layout")
        self.blocks, self.probes, self.seed = (int(meta[field]) for field in ("blocks", "probes", "seed"))
        check(1 <= self.blocks < 2**57 and self.probes in (4, 8, 12, 16) and 0 <= self.seed < 2**64, "a bad value")
        check(int(meta["golden"]) == golden_hash(self.seed), "another hash")
        self.secret = make_secret(self.seed)

    def ask(self, commands):
        """Sends all commands, and then reads all replies."""
        for words in commands:
            words = [str(word).encode() for word in words]
            self.stream.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        self.stream.flush()
        return [self.reply() for _ in commands]

    def reply(self):
        kind, rest = self.stream.read(1), self.stream.readline()[:-2]
        if kind == b"-":
            raise Refused(rest.decode())
        if kind == b"+":
            return rest
        number = int(rest)
        if kind == b"$":
            return self.stream.read(number + 2)[:-2] if number >= 0 else None
        return [self.reply() for _ in range(number)] if kind == b"*" else number

    def command(self, key, *operation):
        """The command that does the operation on each bit of the key. The reply has what the bits were."""
        block, pairs = bits(wyhash(key, self.seed, self.secret), self.blocks, self.probes)
        words = ["BITFIELD", f"cbf:{{{self.name}:{block // SHARD}}}"]
        for word, bit in pairs:
            number = 8 * (64 * (block % SHARD) + 8 * word + bit // 8) + 7 - bit % 8
            words += [operation[0], "u1", number, *operation[1:]]
        return words

    def contains(self, keys):
        return [all(found) for found in self.ask([self.command(key, "GET") for key in keys])]

    def insert(self, keys):
        """Whether each key was new. One command sets all bits of a key, so only one of all clients is told that it was."""
        return [not all(found) for found in self.ask([self.command(key, "SET", 1) for key in keys])]


if __name__ == "__main__":
    _, port, name, call = sys.argv
    keys = sys.stdin.buffer.read().splitlines()
    client = Client(int(port), name)
    for at in range(0, len(keys), 100):
        for answer in getattr(client, call)(keys[at:at + 100]):
            print(int(answer))
