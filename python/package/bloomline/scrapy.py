"""Filters of duplicate requests for Scrapy: DupeFilter is kept in the process and its JOBDIR, RedisDupeFilter on a server.

A new page is reported as seen, and lost, at the rate BLOOMLINE_FALSE_POSITIVE_RATE, by default one in a million. The
statistics bloomline/… report how full the filter is and the expected number of lost pages.
"""

import logging
import re
import shutil
import sys
import time
from abc import abstractmethod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self
from urllib.parse import quote

from scrapy import signals
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.job import job_dir
from scrapy.utils.misc import load_object

from bloomline import BloomFilter, RedisBloomFilter, ScalableBloomFilter

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

__all__ = ["DupeFilter", "RedisDupeFilter"]

logger: logging.Logger = logging.getLogger(__name__)

FILTER = "requests.bloom"
RUNNING = "requests.bloom.running"
SCRAPYS = "requests.seen"
QUEUE = "requests.queue"
KILLED = "killed"
SCRAPY_REDIS = "scrapy_redis.dupefilter.RFPDupeFilter"
IMPORTED_AT_A_TIME = 4096
# The seed of a set with imported fingerprints. Sets of Scrapy's own fingerprints have other seeds.
IMPORTED_SEED = int.from_bytes(b"imported", "big")


class _DupeFilter(RFPDupeFilter):
    """A filter with Scrapy's fingerprints and log messages, and another set."""

    # What a crawl that begins again needs.
    _empty: str

    def __init__(self, crawler: "Crawler") -> None:
        settings = crawler.settings
        super().__init__(debug=settings.getbool("DUPEFILTER_DEBUG"), fingerprinter=crawler.request_fingerprinter)
        assert crawler.stats
        self._crawler = crawler
        self._stats = crawler.stats
        self._wanted_rate = settings.getfloat("BLOOMLINE_FALSE_POSITIVE_RATE", 1e-6)
        self._warned = False
        self._new = 0
        self._measure_after = 0
        self._rate = 0.0
        self._lost = 0.0

    @classmethod
    def from_crawler(cls, crawler: "Crawler") -> Self:
        return cls(crawler)

    def open(self) -> None:
        self._rate = self._figures()["false_positive_rate"]
        self._measure()

    def _count(self) -> None:
        """Counts a new key. Measures the filter as it grows, but seldom, because that reads all of it."""
        self._new += 1
        if self._new >= self._measure_after:
            self._measure()

    def _measure(self) -> None:
        """Sets Scrapy's statistics about the filter."""
        figures = self._figures()
        # The rate rose from the old to the present one while these keys were added.
        self._lost += self._new * (self._rate + figures["false_positive_rate"]) / 2
        self._rate = figures["false_positive_rate"]
        self._new = 0
        self._measure_after = max(1000, int(min(figures["keys"], 1e15)) // 20, figures["memory_bytes"] // 200)
        for name, value in {**figures, "expected_lost": self._lost}.items():
            self._stats.set_value(f"bloomline/{name}", value)
        if self._rate > 2 * self._wanted_rate and not self._warned:
            self._warned = True
            logger.warning(
                "The filter is too small for %.0f requests: new ones are lost at the rate %.2g, and "
                "BLOOMLINE_FALSE_POSITIVE_RATE is %.2g. Begin again with more BLOOMLINE_EXPECTED_KEYS and %s",
                figures["keys"],
                self._rate,
                self._wanted_rate,
                self._empty,
            )

    @abstractmethod
    def _figures(self) -> dict[str, Any]: ...


class DupeFilter(_DupeFilter):
    """A filter in this process, kept in JOBDIR: DUPEFILTER_CLASS = "bloomline.scrapy.DupeFilter".

    BLOOMLINE_EXPECTED_KEYS is the number of different requests to expect. By default the filter grows.
    BLOOMLINE_FALSE_POSITIVE_RATE is the maximum share of new pages that are lost, by default 0.000001.
    BLOOMLINE_SAVE_INTERVAL, in seconds, keeps the filter of a run with JOBDIR that is killed; see below.

    A run that is stopped (Ctrl-C once) saves the filter in JOBDIR/requests.bloom, and the next run continues with it,
    whatever its settings are. Fingerprints in JOBDIR/requests.seen, which Scrapy's own filter wrote, are added.

    A kill loses most of the pages that wait in Scrapy's queue in JOBDIR, although the filter has them. So after a kill the
    next run starts with an empty filter: pages are fetched twice, and none is lost. It moves the files of the killed run to
    JOBDIR/killed. With BLOOMLINE_SAVE_INTERVAL a run saves its filter at the first request after this many seconds. After a
    kill the next run continues with the last save and the rest of the queue, which is for crawls with a queue elsewhere. A
    warning in the log has the maximum number of pages that are fetched again.
    """

    _empty = "an empty JOBDIR"

    def __init__(self, crawler: "Crawler") -> None:
        super().__init__(crawler)
        settings = crawler.settings
        self._running: IO[bytes] | None = None
        self._interval = settings.getfloat("BLOOMLINE_SAVE_INTERVAL")
        self._save_at = 0.0
        jobdir = job_dir(settings)
        self._folder = Path(jobdir) if jobdir else None
        if self._interval and not self._folder:
            logger.warning("BLOOMLINE_SAVE_INTERVAL saves nothing, because this run has no folder for the filter: set JOBDIR")
        # Done before the scheduler opens the queue.
        unsaved = _left_by_a_kill(self._folder) if self._folder else None
        if self._folder and unsaved is not None:
            if self._interval:
                logger.warning(
                    "The last run in %s was killed: going on with its last save. At most %d pages are fetched again, and "
                    "those that waited in Scrapy's queue may be lost",
                    self._folder,
                    unsaved,
                )
            else:
                _set_aside(self._folder)
        self._filter = self._load(settings)

    def _load(self, settings: "BaseSettings") -> BloomFilter | ScalableBloomFilter:
        keys, rate = settings.getint("BLOOMLINE_EXPECTED_KEYS"), self._wanted_rate
        name = "scrapy request fingerprint"
        made = BloomFilter(keys, rate, key_name=name) if keys else ScalableBloomFilter(100_000, rate, key_name=name)
        if not self._folder:
            return made
        path = self._folder / FILTER
        if path.exists():
            made = _load(path)
            logger.info("Going on with %s: %r", path, made)
        if (self._folder / SCRAPYS).exists():
            made.update(_fingerprints(self._folder / SCRAPYS))
            logger.info("Added the fingerprints of %s", self._folder / SCRAPYS)
        return made

    def open(self) -> None:
        super().open()
        if self._folder:
            self._running = (self._folder / RUNNING).open("ab", buffering=0)
            _lock(self._running, self._folder)
        self._save_at = time.monotonic() + self._interval

    def request_seen(self, request: "Request") -> bool:
        if not self._filter.add(self.fingerprinter.fingerprint(request)):
            return True
        if self._running:
            self._running.write(b".")
        self._count()
        if self._interval and time.monotonic() >= self._save_at:
            self._save()
        return False

    def close(self, reason: str) -> None:
        self._measure()
        if self._folder and self._running:
            # The scheduler has closed its queue by now, so the saved filter and the queue are of one moment.
            self._save()
            (self._folder / RUNNING).unlink()
            self._running.close()

    def _save(self) -> None:
        if self._folder and self._running:
            self._filter.save(self._folder / FILTER)
            self._running.truncate(0)
        self._save_at = time.monotonic() + self._interval

    def _figures(self) -> dict[str, Any]:
        filter = self._filter
        figures = {"memory_bytes": filter.memory_bytes, "false_positive_rate": filter.current_fpr()}
        if isinstance(filter, BloomFilter):
            return figures | {"keys": filter.estimated_keys(), "fill_ratio": filter.fill_ratio()}
        return figures | {"keys": len(filter)}


class RedisDupeFilter(_DupeFilter):
    """One set for many spiders, on a Redis or Valkey server: DUPEFILTER_CLASS = "bloomline.scrapy.RedisDupeFilter".

    Of all spiders that find a request, one sends it. Works with the schedulers of Scrapy and of scrapy-redis.

    REDIS_URL is the address of the server. Alternatives are REDIS_HOST, REDIS_PORT, REDIS_DB, and in REDIS_PARAMS host, port, db,
    username, password, ssl, ssl_ca_certs, ssl_certfile, ssl_keyfile, socket_timeout and socket_connect_timeout.
    SCHEDULER_DUPEFILTER_KEY is the name of the set, by default "%(spider)s:dupefilter".
    BLOOMLINE_EXPECTED_KEYS and BLOOMLINE_FALSE_POSITIVE_RATE size it, and must be the same for all spiders. Without a number of
    keys the set grows, or the spider uses the set that is on the server.
    BLOOMLINE_FORGET_AFTER is the number of seconds after which a request is sent again, or up to a quarter later, and
    BLOOMLINE_EXPECTED_KEYS the number of requests in that time. By default no request is forgotten.
    BLOOMLINE_MIRROR = False saves memory: the spider keeps no copy of the set, and asks the server for each request.
    BLOOMLINE_RETRY_TIMEOUT is the number of seconds for which a request waits for a server that does not answer, by default 30.
    BLOOMLINE_WAIT_FOR_REPLICAS is the number of replicas of a server that must have a request before it is sent, by default 0. If
    others may take over too, requests are sent again then.
    It is sent after a second in any case; bloomline/unconfirmed counts these.
    BLOOMLINE_IMPORT_FROM = "scrapy_redis.dupefilter.RFPDupeFilter", or the path of a class derived from it, adds the fingerprints
    that this filter keeps in a Redis set under the same name, once. bloomline/imported counts them. Requests then get the
    fingerprints of that class, because Scrapy's own differ. All spiders of such a set need the setting, and end with a ValueError
    without it.

    Each request that this spider has not seen takes a round trip, and the spider waits meanwhile. If the answer is lost, the
    request is sent, although another spider may send it too: bloomline/uncertain counts these. If the server is unreachable,
    the spider is closed with the reason "bloomline_redis". It keeps all requests that it finds until then, because no other
    spider may have them. Requests that a spider has claimed and not yet sent are lost with it, so give each spider a JOBDIR,
    or the queue of scrapy-redis.

    The set remains on the server when the spiders end. RedisBloomFilter(url, name).delete() removes it, and so does
    scrapy-redis, unless SCHEDULER_PERSIST is set.
    """

    _empty = "an empty set: RedisBloomFilter(url, name).delete() removes this one"

    def __init__(self, crawler: "Crawler", *, is_cleared: bool = False) -> None:
        super().__init__(crawler)
        settings = crawler.settings
        assert crawler.spider
        pattern = settings.get("SCHEDULER_DUPEFILTER_KEY") or "%(spider)s:dupefilter"
        self._name = pattern % {"spider": crawler.spider.name}
        self._url, self._options = _address(settings)
        self._options["mirror"] = settings.getbool("BLOOMLINE_MIRROR", True)
        self._options["retry_timeout"] = settings.getfloat("BLOOMLINE_RETRY_TIMEOUT", 30.0)
        self._options["wait_for_replicas"] = settings.getint("BLOOMLINE_WAIT_FOR_REPLICAS")
        keys, seconds = settings.getint("BLOOMLINE_EXPECTED_KEYS"), settings.getfloat("BLOOMLINE_FORGET_AFTER")
        if seconds and not keys:
            raise ValueError("BLOOMLINE_FORGET_AFTER needs BLOOMLINE_EXPECTED_KEYS: the requests in that time")
        self._size: dict[str, Any] = {"false_positive_rate": self._wanted_rate}
        if keys:
            self._size |= {"expected_keys": keys, "forget_after": seconds or None}
        self._failed = False
        self._opened: RedisBloomFilter | None = None
        # The scheduler of scrapy-redis does not close a filter that it keeps.
        crawler.signals.connect(self._spider_closed, signals.spider_closed)
        path = settings.get("BLOOMLINE_IMPORT_FROM")
        self._old: Any = load_object(path).from_spider(crawler.spider) if path else None
        # A set that is cleared first may have another size.
        if is_cleared:
            return
        self._opened = self._open()
        if self._old:
            self._import()
        else:
            self._warn_of_old()

    @classmethod
    def from_spider(cls, spider: "Spider") -> Self:
        """Creates the filter for the scheduler of scrapy-redis."""
        return cls(spider.crawler, is_cleared=spider.crawler.settings.getbool("SCHEDULER_FLUSH_ON_START"))

    @property
    def _filter(self) -> RedisBloomFilter:
        """The set. It is created again if it is used after `clear`."""
        self._opened = self._opened or self._open()
        return self._opened

    def _open(self) -> RedisBloomFilter:
        """Opens or creates the set."""
        found = self._find()
        if found and (found.seed == IMPORTED_SEED) != bool(self._old):
            remedy = "set BLOOMLINE_IMPORT_FROM as its other spiders do, or another SCHEDULER_DUPEFILTER_KEY"
            if self._old:
                remedy = "remove BLOOMLINE_IMPORT_FROM, or the set: RedisBloomFilter(url, name).delete()"
            raise ValueError(f"the set {self._name} has other fingerprints, so this spider would fetch its pages again: {remedy}")
        if found and "expected_keys" not in self._size:
            return found
        seed = IMPORTED_SEED if self._old else 0
        return RedisBloomFilter(self._url, self._name, **self._size, seed=seed, **self._options)

    def _find(self) -> RedisBloomFilter | None:
        """The set as it is on the server, if there is one."""
        try:
            return RedisBloomFilter(self._url, self._name, **self._options)
        except ValueError as error:
            if "no filter" not in str(error):
                raise
            return None

    def request_seen(self, request: "Request") -> bool:
        if not self._failed:
            try:
                if not self._filter.add(self._fingerprint_of(request)):
                    return True
                self._count()
            except OSError as error:
                self._fail(error)
        return False

    def _fail(self, error: OSError) -> None:
        self._failed = True
        logger.critical("Closing the spider: %s", error)
        engine = self._crawler.engine
        assert engine and self._crawler.spider
        if hasattr(engine, "close_spider_async"):
            deferred_from_coro(engine.close_spider_async(reason="bloomline_redis"))
        else:  # Scrapy before 2.14
            engine.close_spider(self._crawler.spider, "bloomline_redis")

    def _spider_closed(self) -> None:
        # `clear` has set the statistics of the set that it has removed.
        if self._opened and not self._failed:
            self._measure()

    def clear(self) -> None:
        """Forget all requests, those of other spiders too. The scheduler of scrapy-redis calls it."""
        if self._opened:
            self._measure()
        if found := self._find():
            found.delete()
        self._opened = None
        if self._old:
            # The next run begins without the requests of the old set.
            self._old.server.set(self._import_state_key, "cleared")

    def _fingerprint_of(self, request: "Request") -> bytes:
        if self._old:
            return bytes.fromhex(self._old.request_fingerprint(request))
        return self.fingerprinter.fingerprint(request)

    @property
    def _import_state_key(self) -> str:
        """The key with the state of the import."""
        return f"{self._old.key}:imported to {self._name}"

    def _import(self) -> None:
        """Adds the members of the old set, unless an earlier run added all of them."""
        server, key = self._old.server, self._old.key
        # A cursor is valid until the server restarts, because the order of a set may then change.
        life = server.info("server")["run_id"]
        state, cursor, count, invalid = "", 0, 0, 0
        if saved := server.get(self._import_state_key):
            state, *rest = (saved.decode() if isinstance(saved, bytes) else saved).split()
            if state == "cleared" or state == "done" and self._filter.stats().estimated_keys > 0:
                self._stats.set_value("bloomline/imported", int(rest[0]) if rest else 0)
                return
            if state == life:
                cursor, count, invalid = map(int, rest)
        while True:
            cursor, members = server.sscan(key, cursor, count=IMPORTED_AT_A_TIME)
            fingerprints = [fingerprint for member in members if (fingerprint := _from_hex(member))]
            self._filter.update(fingerprints)
            count, invalid = count + len(fingerprints), invalid + len(members) - len(fingerprints)
            if not cursor:
                break
            server.set(self._import_state_key, f"{life} {cursor} {count} {invalid}")
        server.set(self._import_state_key, f"done {count}")
        self._stats.set_value("bloomline/imported", count)
        logger.info("Imported %d fingerprints of the set %s", count, key)
        if invalid:
            logger.warning("%d members of the set %s are not fingerprints in hexadecimal: they are left out", invalid, key)

    def _warn_of_old(self) -> None:
        """Warns if the filter of scrapy-redis has requests that this filter may lack."""
        try:
            old = load_object(SCRAPY_REDIS).from_spider(self._crawler.spider)
            count = old.server.scard(old.key)
        except Exception as error:
            # No warning without scrapy-redis, without the right to ask, or for a key of another type.
            logger.debug("Cannot look for a set of scrapy-redis: %s", error)
            return
        if count:
            logger.warning(
                "scrapy-redis's own filter has %d fingerprints in the set %s, and this filter does not know them: their pages are "
                'fetched again. To add them, remove this filter (RedisBloomFilter(url, name).delete()) and set BLOOMLINE_IMPORT_FROM = "%s"; '
                "or delete the set if it is of no use",
                count,
                old.key,
                SCRAPY_REDIS,
            )

    def _figures(self) -> dict[str, Any]:
        stats = self._filter.stats()
        return {
            "keys": stats.estimated_keys,
            "memory_bytes": stats.stored_bytes,
            "false_positive_rate": stats.expected_fpr,
            "fill_ratio": stats.fill_ratio,
            "uncertain": self._filter.uncertain,
            "unconfirmed": self._filter.unconfirmed,
        }


def _left_by_a_kill(folder: Path) -> int | None:
    """Returns the number of requests of killed runs after their last save; None if the last run ended."""
    try:
        with (folder / RUNNING).open("rb") as running:
            _lock(running, folder)
            # One byte per request.
            return (folder / RUNNING).stat().st_size
    except FileNotFoundError:
        return None


def _lock(running: IO[bytes], folder: Path) -> None:
    """Takes the lock that a run holds until it ends."""
    # On Windows a live run is taken for a killed one.
    if sys.platform != "win32":
        try:
            flock(running, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(f"another run uses {folder}: end it first, or give this one a JOBDIR of its own") from None


def _set_aside(folder: Path) -> None:
    """Moves the files of a killed run, so that the next run starts again."""
    killed = folder / KILLED
    shutil.rmtree(killed, ignore_errors=True)
    killed.mkdir()
    # RUNNING is last, so that a run which is killed here is found too.
    for name in FILTER, QUEUE, SCRAPYS, RUNNING:
        if (folder / name).exists():
            (folder / name).rename(killed / name)
    logger.warning(
        "The last run in %s was killed, and Scrapy's queue is not whole: beginning again, so that no page is lost. What it "
        "left is in %s. See BLOOMLINE_SAVE_INTERVAL",
        folder,
        killed,
    )


def _load(path: Path) -> BloomFilter | ScalableBloomFilter:
    try:
        return BloomFilter.load(path)
    except ValueError as error:
        if "ScalableBloomFilter" not in str(error):
            raise
    return ScalableBloomFilter.load(path)


def _from_hex(text: bytes | str) -> bytes:
    """Decodes hexadecimal digits. Returns no bytes for any other text."""
    try:
        return bytes.fromhex(text.decode() if isinstance(text, bytes) else text)
    except ValueError:
        return b""


def _fingerprints(path: Path) -> "Iterator[bytes]":
    """Reads the file of Scrapy's own filter: lengths of two bytes and fingerprints, or lines of hexadecimal digits.

    A crash may truncate a fingerprint, and a power cut may replace some by NULs. These are skipped, with a warning that counts them.
    """
    with path.open("rb") as file:
        # The first byte of a length is 0, so a run of NULs at the start fits both formats.
        start = b""
        while not start and (chunk := file.read(1 << 16)):
            start = chunk.lstrip(b"\0\r\n")[:8]
        file.seek(0)
        invalid = yield from _in_lines(file) if _from_hex(start) else _with_lengths(file)
    if invalid:
        logger.warning("%s is damaged, as by a crash, in %d places, which are skipped: their pages are fetched again", path, invalid)


def _in_lines(file: IO[bytes]) -> "Generator[bytes, None, int]":
    invalid = 0
    for line in file:
        parts = [part for part in line.removesuffix(b"\n").split(b"\0") if part]
        fingerprints = [fingerprint for part in parts if (fingerprint := _from_hex(part))]
        is_cut = not line.endswith(b"\n")
        if not is_cut:
            yield from fingerprints
        invalid += is_cut or b"\0" in line or len(fingerprints) < len(parts)
    return invalid


def _with_lengths(file: IO[bytes]) -> "Generator[bytes, None, int]":
    contents, at, prefix, invalid = file.read(), 0, b"", 0
    while at < len(contents):
        length = int.from_bytes(contents[at : at + 2], "big")
        end = at + 2 + length
        if 0 < length < 256 and end <= len(contents):
            prefix = prefix or contents[at : at + 2]
            yield contents[at + 2 : end]
            at = end
            continue
        invalid += 1
        if length:
            # The previous fingerprint was truncated, and includes the length of the next one. All have the same length.
            at = contents.find(prefix, at + 1) if prefix else -1
        else:
            after = re.compile(rb"[^\0]").search(contents, at)
            at = after.start() - 1 if after else -1
        if at < 0:
            break
    return invalid


def _address(settings: "BaseSettings") -> tuple[str, dict[str, Any]]:
    """Returns the server's URL, time-outs and certificates, from the settings of scrapy-redis."""
    params = settings.getdict("REDIS_PARAMS")
    params |= {name: value for name in ("url", "host", "port", "db") if (value := settings.get(f"REDIS_{name.upper()}"))}
    times = {"response_timeout": "socket_timeout", "connect_timeout": "socket_connect_timeout"}
    options: dict[str, Any] = {ours: float(params[theirs]) for ours, theirs in times.items() if params.get(theirs)}
    files = {"certificate_authority": "ssl_ca_certs", "client_certificate": "ssl_certfile", "client_key": "ssl_keyfile"}
    options |= {ours: params[theirs] for ours, theirs in files.items() if params.get(theirs)}
    if params.get("url"):
        return params["url"], options
    scheme = "rediss" if params.get("ssl") else "redis"
    user, password = (quote(str(params.get(name) or ""), safe="") for name in ("username", "password"))
    at = f"{user}:{password}@" if password else ""
    host, port, db = params.get("host", "localhost"), params.get("port", 6379), params.get("db", 0)
    return f"{scheme}://{at}{host}:{port}/{db}", options
