"""A Redis or Valkey server of the tests' own, which is gone with them."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator

import pytest


def free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])


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
        for _ in range(1000):
            try:
                if self.tell("PING").startswith(("+PONG", "-NOAUTH")):
                    return
            except OSError:
                time.sleep(0.01)
        raise AssertionError("the server does not start")

    def tell(self, command: str) -> str:
        """The first line that the server answers with."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(command.encode() + b"\r\n")
            return connection.makefile().readline()

    def info(self) -> str:
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(b"INFO\r\nQUIT\r\n")
            return connection.makefile().read()

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
