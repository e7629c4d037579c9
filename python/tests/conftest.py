"""The number of random cases that all tests try, and a Redis or Valkey server for the tests that need one."""

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Nightly runs set it. They try more cases, and other ones each time, chosen by pytest's option --hypothesis-seed.
IS_LONG = os.environ.get("BLOOMLINE_LONG_TESTS") == "1"
long = pytest.mark.skipif(not IS_LONG, reason="takes long: set BLOOMLINE_LONG_TESTS=1")
# All other runs try the same cases, so that their result depends on the code alone. There is no deadline, because machines may be busy.
settings.register_profile("bloomline", deadline=None, derandomize=not IS_LONG, database=None, suppress_health_check=list(HealthCheck))
settings.load_profile("bloomline")


def examples(everyday: int) -> int:
    """The number of random cases."""
    return 10 * everyday if IS_LONG else everyday


needs_unix = pytest.mark.skipif(sys.platform == "win32", reason="signals, pipes or links of Unix")
# These need terminals, forks or limits of memory.
NEED_UNIX = ["doors", "processes", "progress", "redis", "scrapy", "spark"]
collect_ignore = [f"test_{name}.py" for name in NEED_UNIX] if sys.platform == "win32" else []

PORTS = itertools.count(os.getpid() * 97)
# UDP sockets that reserve the ports of the same numbers for this process.
TAKEN: list[socket.socket] = []


def free_port() -> int:
    """A port without a listener, which the system gives to no client and other tests to no server."""
    for number in PORTS:
        port = 30_000 + number % 2_700
        taken = socket.socket(type=socket.SOCK_DGRAM)
        with socket.socket() as one, contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", port))
            one.bind(("127.0.0.1", port))
            TAKEN.append(taken)
            return port
        taken.close()
    raise AssertionError


class Server:
    """A server in a folder of its own. It can be stopped and started again."""

    def __init__(self, program: str, folder: str, *options: str) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.arguments = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", *options]
        self.folder = folder
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.arguments, cwd=self.folder, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 300
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if self.tell("PING").startswith(("+PONG", "-NOAUTH")):
                    return
            except OSError:
                time.sleep(0.01)
        raise AssertionError("the server does not start")

    def tell(self, command: str) -> str:
        """The first line of the server's answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=300) as connection:
            connection.sendall(command.encode() + b"\r\n")
            return connection.makefile().readline()

    def pass_time(self, name: str, seconds: int) -> None:
        """Makes the generations of a filter that forgets older by these seconds."""
        older = "redis.call('HSET',KEYS[1],f,(redis.call('HGET',KEYS[1],f):gsub('opened=(%d+)',function(o) return 'opened='..o-ARGV[1] end)))"
        script = f"for _,f in ipairs(redis.call('HKEYS',KEYS[1])) do {older} end return {{ok='done'}}"
        assert self.tell(f'EVAL "{script}" 1 cbf:{{{name}:stages}} {seconds}') == "+done\n"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def redis() -> Iterator[Server]:
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if not program:
        assert os.environ.get("BLOOMLINE_REQUIRE_REDIS") != "1", "no redis-server"
        pytest.skip("no redis-server")
    with tempfile.TemporaryDirectory() as folder:
        server = Server(program, folder)
        yield server
        server.stop()
