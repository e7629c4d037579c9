#!/usr/bin/env python3
"""Prints what becomes of lines that several processes share on a server while things go wrong: a table in Markdown.

    benches/chaos.py [--server valkey-server] [--lines 200000] [BLOOMLINE [SCENARIO...]]

BLOOMLINE is the command (target/release/bloomline). It needs redis-server or valkey-server, starts its own, and takes
ten minutes. Each process reads all lines, each from elsewhere on. A process that fails is started again, for the lines
that are left. Lost: lines that no process printed. Twice: lines printed beyond the first time. Uncertain: what the
processes said may come twice, and with --redis-wait what too few replicas had in time. Failed: how many ended with an
error, and the first that one said.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

SIZE = "-n 5000000 -p 1e-9".split()  # four shards, and no false positives
PROCESSES = 4


class Server:
    def __init__(self, folder, *options, program=None):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            # A node of a cluster needs one 10,000 above, too.
            self.port = 10000 + free.getsockname()[1] % 10000
        self.folder, self.options, self.program = folder / str(self.port), options, program or [arguments.server]
        self.folder.mkdir()
        self.start()

    def start(self):
        line = [*self.program, "--port", str(self.port), *self.options]
        if "--sentinel" not in self.options:
            line += ["--save", "", "--repl-diskless-sync-delay", "0"]
        log = open(self.folder / "log", "a")
        self.process = subprocess.Popen(line, cwd=self.folder, stdout=log, stderr=log)
        until(lambda: self.tell("PING") == "PONG")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()

    def tell(self, line):
        """The answer to a command: its one line, or the text after it."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 30) as connection:
            stream = connection.makefile("rwb")
            stream.write(line.encode() + b"\r\n")
            stream.flush()
            first = stream.readline().decode().strip()
            return stream.read(int(first[1:])).decode() if first.startswith("$") and first != "$-1" else first[1:]

    def claims(self):
        info = self.tell("INFO commandstats") or ""
        counts = [line for line in info.splitlines() if line.startswith("cmdstat_bitfield:")]
        return int(counts[0].split("calls=")[1].split(",")[0]) if counts else 0

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("it never happened")
        time.sleep(0.02)


class Crowd:
    """Processes that share the lines, and none of which is left in the end."""

    def __init__(self, folder, url, options=(), times=1, size=SIZE):
        self.folder, self.url, self.lines, self.options = folder, url, times * arguments.lines, options
        self.outputs, self.uncertain, self.unconfirmed, self.failures = [], 0, 0, []
        self.running = [self.run(i, size) for i in range(PROCESSES)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.signal(signal.SIGKILL)

    def line(self, i):
        return f"https://example.org/{i}\n"

    def run(self, i, size=SIZE):
        source = self.folder / f"in{i}"
        if not source.exists():
            start = self.lines // PROCESSES * (i % PROCESSES)
            source.write_text("".join(self.line((start + k) % self.lines) for k in range(self.lines)))
        output = self.folder / f"out{len(self.outputs)}"
        self.outputs.append(output)
        bloomline = arguments.older if arguments.older and i % 2 else arguments.bloomline
        command = [bloomline, "dedup", "--redis", self.url, "--name", "set", *size, "--no-mirror", "--stats=json",
                   "--chunk-size", "16384", *self.options, str(source)]
        return i, subprocess.Popen(command, stdout=open(output, "wb"), stderr=subprocess.PIPE, text=True)

    def delete(self):
        subprocess.run([arguments.bloomline, "redis", "delete", "--redis", self.url, "--name", "set"], check=True)

    def finish(self, again=True, size=SIZE):
        """Waits for the end of all, and starts those that failed again."""
        while self.running:
            i, process = self.running[0]
            said = process.communicate()[1].splitlines()
            del self.running[0]
            for line in said:
                if line.startswith("{"):
                    figures = json.loads(line)
                    self.uncertain += figures.get("uncertain") or 0
                    self.unconfirmed += figures.get("unconfirmed") or 0
                elif "lines may have been printed by another process" in line and not said[-1].startswith("{"):
                    self.uncertain += int(line.split("up to ")[1].split()[0])
            if process.returncode not in (0, -signal.SIGKILL):
                errors = [line for line in said if line.startswith("bloomline: ") and "warning" not in line]
                self.failures += [error[11:] for error in errors[-1:]]
            if process.returncode != 0 and again and len(self.outputs) < 50:
                time.sleep(0.2)
                self.running.append(self.run(i, size))

    def row(self, name):
        printed = collections.Counter()
        for output in self.outputs:
            with open(output) as lines:
                printed.update(lines)
        lost = sum(self.line(i) not in printed for i in range(self.lines))
        twice = sum(printed.values()) - len(printed)
        told = f"{self.uncertain:,}" + (f" and {self.unconfirmed:,}" if "--redis-wait" in self.options else "")
        failed = f"{len(self.failures)}: {self.failures[0][:70]}" if self.failures else "0"
        print(f"| {name} | {PROCESSES} | {self.lines:,} | {lost:,} | {twice:,} | {told} | {failed} |", flush=True)

    def await_claims(self, servers, share):
        until(lambda: sum(server.claims() for server in servers) >= self.lines * share
              or all(process.poll() is not None for _, process in self.running))

    def signal(self, name):
        for _, process in self.running:
            if process.poll() is None:
                process.send_signal(name)


def one(name, *options, begin=SIZE, size=None):
    """A scenario with one server. Processes that are started again have another size, if one is given."""
    def wrap(disturb):
        def scenario(folder):
            server = Server(folder, *options)
            try:
                with Crowd(folder, server.url, size=begin) as crowd:
                    crowd.await_claims([server], 0.1)
                    disturb(server, crowd)
                    crowd.finish(size=size or begin)
                    crowd.row(name)
            finally:
                server.end()
        SCENARIOS[disturb.__name__] = scenario
        return disturb
    return wrap


SCENARIOS = {}


@one("nothing goes wrong")
def calm(server, crowd):
    pass


@one("two clients are killed and started again")
def kills(server, crowd):
    for _, process in crowd.running[:2]:
        process.kill()


@one("all connections are cut, ten times")
def cuts(server, crowd):
    for _ in range(10):
        server.tell("CLIENT KILL TYPE normal")
        time.sleep(0.15)


@one("the server halts, three times for a second")
def halts(server, crowd):
    for _ in range(3):
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        server.process.send_signal(signal.SIGCONT)
        time.sleep(0.3)


@one("the server halts for 12 s, longer than answers may take")
def long_halt(server, crowd):
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(12)
    server.process.send_signal(signal.SIGCONT)


@one("a script keeps the server busy for 7 s", "--lua-time-limit", "100")
def busy(server, crowd):
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b'EVAL "while true do end" 0\r\n')
        time.sleep(7)
        server.tell("SCRIPT KILL")


@one("the server is killed and comes back with its file", "--appendonly", "yes", "--appendfsync", "always")
def crash(server, crowd):
    server.kill()
    time.sleep(0.5)
    server.start()


@one("the server is killed and comes back empty")
def empty(server, crowd):
    server.kill()
    time.sleep(0.5)
    server.start()


@one("`FLUSHALL`")
def flush(server, crowd):
    server.tell("FLUSHALL")


OTHER = "-n 9000000 -p 1e-9".split()


@one("`FLUSHALL`, and a newcomer with another `-n`", size=OTHER)
def newcomer(server, crowd):
    server.tell("FLUSHALL")
    crowd.running.append(crowd.run(PROCESSES, OTHER))


@one("`bloomline redis delete`, and a newcomer with another `-n`", size=OTHER)
def delete(server, crowd):
    crowd.delete()
    crowd.running.append(crowd.run(PROCESSES, OTHER))


@one("the server evicts the description; all begin again after `bloomline redis delete`")
def evict(server, crowd):
    server.tell("DEL cbf:{set:meta}")
    crowd.finish(again=False)
    crowd.delete()
    crowd.running += [crowd.run(i) for i in range(PROCESSES)]


@one("the server evicts a shard")
def evict_shard(server, crowd):
    server.tell("DEL cbf:{set:1}")


@one("the clients are stopped and go on, ten times")
def stops(server, crowd):
    for _ in range(10):
        crowd.signal(signal.SIGSTOP)
        time.sleep(0.1)
        crowd.signal(signal.SIGCONT)
        time.sleep(0.1)


@one("the clients are stopped for 12 s and go on")
def long_stop(server, crowd):
    crowd.signal(signal.SIGSTOP)
    time.sleep(12)
    crowd.signal(signal.SIGCONT)


@one("SIGINT while the server halts; all are started again")
def interrupt(server, crowd):
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    crowd.signal(signal.SIGINT)
    began = time.monotonic()
    while any(process.poll() is None for _, process in crowd.running) and time.monotonic() < began + 60:
        time.sleep(0.05)
    crowd.failures.append(f"ended {time.monotonic() - began:.1f} s after the signal")
    server.process.send_signal(signal.SIGCONT)


GROWS = "-p 1e-9".split()


def grow(server):
    """A stage is sealed before it is full. Whoever finds that opens the next."""
    stages = int(server.tell("HLEN cbf:{set:stages}") or 0)
    server.tell(f"SETBIT cbf:{{set:{max(stages, 1) - 1}.0}} 0 1")


@one("a set that grows five times", begin=GROWS)
def grows(server, crowd):
    for share in range(2, 7):
        grow(server)
        crowd.await_claims([server], share / 10)


@one("a set that grows, while all connections are cut, ten times", begin=GROWS)
def grows_and_cuts(server, crowd):
    for _ in range(10):
        server.tell("CLIENT KILL TYPE normal")
        grow(server)
        time.sleep(0.15)


@one("a set that grows, and two clients are killed and started again", begin=GROWS)
def grows_and_kills(server, crowd):
    grow(server)
    for _, process in crowd.running[:2]:
        process.kill()


@one("a set that grows; the server is killed and comes back with its file", "--appendonly", "yes", "--appendfsync", "always",
     begin=GROWS)
def grows_and_crash(server, crowd):
    for _ in range(3):
        grow(server)
        server.kill()
        server.start()
        time.sleep(0.5)


@one("a set that grows; the server forgets a stage", begin=GROWS)
def grows_and_evicts(server, crowd):
    grow(server)
    crowd.await_claims([server], 0.3)
    server.tell("DEL cbf:{set:0.0}")


@one("a set that grows; the list of stages is removed", begin=GROWS)
def grows_and_loses_list(server, crowd):
    grow(server)
    crowd.await_claims([server], 0.3)
    server.tell("DEL cbf:{set:stages}")


@one("a set that grows; the list loses its last stage", begin=GROWS)
def grows_and_loses_stage(server, crowd):
    grow(server)
    crowd.await_claims([server], 0.3)
    server.tell("HDEL cbf:{set:stages} 1")


@one("a set that grows; the server is killed and comes back with a snapshot from before", begin=GROWS)
def grows_and_snapshot(server, crowd):
    server.tell("SAVE")
    grow(server)
    crowd.await_claims([server], 0.3)
    server.kill()
    server.start()


FORGETS = [*SIZE, "--forget-after", "60s"]


@one("a window for a fifth of the lines, all of which come at once", begin="-n 20000 -p 1e-6 --forget-after 30d".split())
def forgets_at_once(server, crowd):
    pass


@one("a set that forgets; clients are stopped over the end of a generation", begin=FORGETS)
def forgets_and_stops(server, crowd):
    crowd.signal(signal.SIGSTOP)
    time.sleep(16)
    crowd.signal(signal.SIGCONT)


@one("a set that forgets; the server halts over the end of a generation", begin=FORGETS)
def forgets_and_halts(server, crowd):
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(16)
    server.process.send_signal(signal.SIGCONT)


def sentinels(name, take_over, more=()):
    def scenario(folder):
        kept = ["--appendonly", "yes", "--appendfsync", "always"]
        primary = Server(folder, *kept)
        replica = Server(folder, *kept, "--replicaof", "127.0.0.1", str(primary.port))
        watching = []
        try:
            until(lambda: "link_status:up" in replica.tell("INFO replication"))
            for i in range(3):
                file = folder / f"sentinel{i}"
                file.write_text(f"sentinel monitor main 127.0.0.1 {primary.port} 2\n"
                                "sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 10000\n")
                watching.append(Server(folder, "--sentinel", program=[arguments.server, str(file)]))
            until(lambda: all("slaves=1,sentinels=3" in server.tell("INFO sentinel") for server in watching))
            url = "redis+sentinel://" + ",".join(f"127.0.0.1:{server.port}" for server in watching) + "/main"
            with Crowd(folder, url, more, times=3) as crowd:
                crowd.await_claims([primary], 0.1)
                take_over(primary, replica)
                crowd.finish()
                crowd.row(name)
        finally:
            for server in [*watching, replica, primary]:
                server.end()
    SCENARIOS["sentinels_" + take_over.__name__ + "_with_wait" * bool(more)] = scenario


def killed(primary, replica):
    primary.kill()
    until(lambda: "role:master" in replica.tell("INFO replication"))
    primary.start()


def cut_off(primary, replica):
    replica.process.send_signal(signal.SIGSTOP)
    primary.tell("CLIENT KILL TYPE replica")
    time.sleep(0.3)
    primary.kill()
    replica.process.send_signal(signal.SIGCONT)
    until(lambda: "role:master" in replica.tell("INFO replication"))
    primary.start()


sentinels("Sentinels: the primary dies", killed)
sentinels("Sentinels: the primary dies, cut off from its replica before", cut_off)
sentinels("the same with `--redis-wait 1`", cut_off, ["--redis-wait", "1"])


def encrypted(folder):
    line = ("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out cert.pem -subj /CN=bloomline "
            "-addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=CA:FALSE")
    subprocess.run(line.split(), cwd=folder, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    files = [word for name in ("cert", "key", "ca-cert") for word in (f"--tls-{name}-file", folder / f"{name[-4:].strip('-')}.pem")]
    server = Server(folder, "--tls-port", str(port), "--tls-auth-clients", "no", *map(str, files))
    try:
        with Crowd(folder, f"rediss://127.0.0.1:{port}", ["--redis-ca", str(folder / "cert.pem")]) as crowd:
            crowd.await_claims([server], 0.1)
            cuts(server, crowd)
            long_halt(server, crowd)
            crowd.finish()
            crowd.row("TLS: all connections are cut, ten times, and the server halts for 12 s")
    finally:
        server.end()


SCENARIOS["encrypted"] = encrypted


def cluster(name, take_over, more=(), times=1):
    def scenario(folder):
        options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]
        nodes = [Server(folder, *options) for _ in range(6)]
        ids = [node.tell("CLUSTER MYID") for node in nodes]
        try:
            for i, node in enumerate(nodes):
                node.tell(f"CLUSTER SET-CONFIG-EPOCH {i + 1}")
                if i < 3:
                    slots = " ".join(map(str, range(16384 * i // 3, 16384 * (i + 1) // 3)))
                    node.tell(f"CLUSTER ADDSLOTS {slots}")
                node.tell(f"CLUSTER MEET 127.0.0.1 {nodes[0].port}")
            until(lambda: all("cluster_known_nodes:6\r" in node.tell("CLUSTER INFO") for node in nodes))
            for i in range(3):
                until(lambda: nodes[3 + i].tell(f"CLUSTER REPLICATE {ids[i]}") == "OK")
            until(lambda: all("cluster_state:ok" in node.tell("CLUSTER INFO") for node in nodes))
            until(lambda: all("link_status:up" in node.tell("INFO replication") for node in nodes[3:]))
            with Crowd(folder, ",".join(node.url for node in nodes), more, times) as crowd:
                crowd.await_claims(nodes[:3], 0.1)
                take_over(nodes)
                crowd.finish()
                crowd.row(name)
        finally:
            for node in nodes:
                node.end()
    SCENARIOS[take_over.__name__ + "_with_wait" * bool(more)] = scenario


def failover(nodes):
    for node in nodes[3:]:
        node.tell("CLUSTER FAILOVER")
        time.sleep(1)


def dead_master(nodes):
    slot = int(nodes[0].tell("CLUSTER KEYSLOT cbf:{set:0}"))
    nodes[slot * 3 // 16384].kill()


def dead_masters(nodes):
    slot = int(nodes[0].tell("CLUSTER KEYSLOT cbf:{set:0}"))
    pair = nodes[slot * 3 // 16384::3]
    for turn in range(4):
        master, replica = pair[turn % 2], pair[1 - turn % 2]
        # Clients have found it.
        before = master.claims()
        until(lambda: master.claims() > before + 2000)
        # What it answers from here on, its replica never hears of.
        replica.process.send_signal(signal.SIGSTOP)
        master.tell("CLIENT KILL TYPE replica")
        time.sleep(0.3)
        master.kill()
        replica.process.send_signal(signal.SIGCONT)
        until(lambda: "role:master" in (replica.tell("INFO replication") or ""))
        master.start()
        until(lambda: "link_status:up" in (master.tell("INFO replication") or ""))


cluster("cluster of 3: each replica takes over when told to", failover)
cluster("cluster of 3: a master dies, its replica takes over", dead_master)
cluster("cluster of 3: four masters die, each cut off from its replica before", dead_masters, times=20)
cluster("the same with `--redis-wait 1`", dead_masters, ["--redis-wait", "1"], times=20)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default=shutil.which("redis-server") or shutil.which("valkey-server"))
    parser.add_argument("--older", type=os.path.abspath, help="a command of an earlier version, for every other process")
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("bloomline", nargs="?", default="target/release/bloomline")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO")
    arguments = parser.parse_args()
    arguments.bloomline = os.path.abspath(arguments.bloomline)
    version = subprocess.run([arguments.server, "--version"], capture_output=True, text=True).stdout
    print(f"{' '.join(version.split()[:3])}\n")
    print("| what happens | processes | lines | lost | twice | uncertain | failed |\n|---|---:|---:|---:|---:|---:|---|", flush=True)
    for name in arguments.scenarios or SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            SCENARIOS[name](pathlib.Path(folder))
