"""bloomline.scrapy beside Scrapy's own filter of duplicates and scrapy-redis's: memory, and time for each request.

    python -m venv crawler
    crawler/bin/pip install './python[scrapy]' scrapy-redis
    crawler/bin/python benches/dupefilters.py [FINGERPRINTS] [REQUESTS]

Each contender is a process of its own. Memory is what the process holds with so many fingerprints beyond what it held with none,
and its peak. The time "filter" is request_seen with fingerprints that are there, "whole" with Scrapy's fingerprint of a
request. The filters on a server are asked for REQUESTS, new ones and then the same again; redis-server is started here.
"""

import hashlib
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from scrapy import Request
from scrapy.settings import Settings
from scrapy.utils.request import RequestFingerprinter

from bloomline.scrapy import DupeFilter, RedisDupeFilter

RATE = 1e-6
CHUNK = 100_000


class Given:
    """Takes a fingerprint for a request."""

    def fingerprint(self, request: bytes) -> bytes:
        return request


def crawler(fingerprinter: Any, **settings: Any) -> Any:
    stats = SimpleNamespace(set_value=lambda name, value: None, inc_value=lambda name: None)
    spider = SimpleNamespace(name="bench")
    found = Settings({"BLOOMLINE_FALSE_POSITIVE_RATE": RATE, **settings})
    return SimpleNamespace(settings=found, stats=stats, spider=spider, request_fingerprinter=fingerprinter)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def nanoseconds(seen: Callable[[Any], bool], requests: list[Any]) -> tuple[float, int]:
    """For all requests, and how many were new."""
    new = 0
    started = time.perf_counter()
    for request in requests:
        new += not seen(request)
    return (time.perf_counter() - started) * 1e9, new


def of_fingerprints(seen: Callable[[Any], bool], numbers: range) -> tuple[float, int]:
    """For each of so many fingerprints, which are made before the clock runs, and how many were new."""
    total, new = 0.0, 0
    for start in range(0, len(numbers), CHUNK):
        chunk = [hashlib.sha1(number.to_bytes(8, "little")).digest() for number in numbers[start : start + CHUNK]]
        took, count = nanoseconds(seen, chunk)
        total += took
        new += count
    return total / len(numbers), new


def page(number: int) -> Request:
    return Request(f"https://www.example.org/catalogue/category-{number % 97}/page?id={number}&sort=price")


def here(kind: str, fingerprints: int) -> None:
    """One contender in this process."""
    from scrapy.dupefilters import RFPDupeFilter

    sized = {"BLOOMLINE_EXPECTED_KEYS": fingerprints} if kind == "sized" else {}
    make = RFPDupeFilter if kind == "scrapy" else DupeFilter
    empty = resident()
    filter = make.from_crawler(crawler(Given(), **sized))
    filter.open()
    new, count = of_fingerprints(filter.request_seen, range(fingerprints))
    memory = resident() - empty
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - empty
    old, _ = of_fingerprints(filter.request_seen, range(0, fingerprints, 10))
    requests = [page(number) for number in range(50_000)]
    filter.fingerprinter = RequestFingerprinter()
    whole, _ = nanoseconds(filter.request_seen, requests)
    print(
        f"| {kind} | {memory / 1e6:.0f} | {peak / 1e6:.0f} | {memory / fingerprints:.1f} | {new:.0f} | {old:.0f} | "
        f"{whole / 50_000 / 1e3:.1f} | {fingerprints - count} |"
    )


def shared(kind: str, url: str, count: int) -> None:
    """One contender on the server."""
    if kind == "scrapy-redis":
        import redis
        from scrapy_redis.dupefilter import RFPDupeFilter

        filter = RFPDupeFilter(redis.StrictRedis.from_url(url), "bench:scrapy-redis")
    else:
        settings = {"REDIS_URL": url, "SCHEDULER_DUPEFILTER_KEY": kind, "BLOOMLINE_EXPECTED_KEYS": 1_000_000}
        filter = RedisDupeFilter(crawler(RequestFingerprinter(), **settings, BLOOMLINE_MIRROR=kind == "mirror"))
    for number in range(count, count + 100):
        filter.request_seen(page(number))
    # Scrapy remembers the fingerprint of a request, so each is made twice.
    new, _ = nanoseconds(filter.request_seen, [page(number) for number in range(count)])
    old, _ = nanoseconds(filter.request_seen, [page(number) for number in range(count)])
    print(f"| {kind} | {new / count / 1e3:.0f} | {old / count / 1e3:.0f} |")


def main(fingerprints: int, requests: int) -> None:
    def one(*arguments: object) -> None:
        subprocess.run([sys.executable, __file__, *map(str, arguments)], check=True)

    print(f"{fingerprints} fingerprints\n\n"
          "| | MB | peak, MB | bytes each | filter, new, ns | filter, seen, ns | whole, µs | lost |\n"
          "|---|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    for kind in "scrapy", "sized", "growing":
        one("here", kind, fingerprints)
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if not program:
        return
    with socket.socket() as any_port, tempfile.TemporaryDirectory() as folder:
        any_port.bind(("127.0.0.1", 0))
        port = any_port.getsockname()[1]
        any_port.close()
        arguments = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
        server = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL)
        try:
            time.sleep(1)
            print(f"\n{requests} requests\n\n| | new, µs | seen, µs |\n|---|--:|--:|", flush=True)
            for kind in "scrapy-redis", "no mirror", "mirror":
                one("shared", kind, f"redis://127.0.0.1:{port}/0", requests)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    match sys.argv[1:]:
        case "here", kind, count:
            here(kind, int(count))
        case "shared", kind, url, count:
            shared(kind, url, int(count))
        case counts:
            main(*([int(count) for count in counts] + [10_000_000, 20_000][len(counts):]))
