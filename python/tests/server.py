"""Commands to a server of Redis, for tests and the programs that they start."""

import re
import socket


def ask(port: int, command: str) -> str:
    """The answer of a server to a command, followed by `+OK`."""
    with socket.create_connection(("127.0.0.1", port), timeout=300) as connection:
        connection.sendall(f"{command}\r\nQUIT\r\n".encode())
        return connection.makefile().read()


def calls_of(port: int, command: str) -> int:
    """The number of times that a server has executed a command."""
    found = re.search(rf"cmdstat_{command}:calls=(\d+)", ask(port, "INFO commandstats"))
    return int(found[1]) if found else 0


def awaits(port: int) -> bool:
    """True if a client of a server waits for an answer."""
    return bool(re.search(r" flags=[A-Zac-z]*b", ask(port, "CLIENT LIST")))
