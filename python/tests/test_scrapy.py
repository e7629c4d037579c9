"""Real spiders on a site of this file: each page is fetched once, whether a crawl stops, resumes or is shared."""

import collections
import http.server
import json
import math
import multiprocessing
import multiprocessing.forkserver
import os
import pathlib
import random
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

import pytest

from bloomline import BloomFilter, RedisBloomFilter, ScalableBloomFilter
from conftest import Server

pytest.importorskip("scrapy")
from scrapy import Request  # noqa: E402
from scrapy.settings import Settings  # noqa: E402
from scrapy.utils.misc import load_object  # noqa: E402
from scrapy.utils.request import RequestFingerprinter  # noqa: E402
from scrapy.utils.test import get_crawler  # noqa: E402

from bloomline.scrapy import DupeFilter, RedisDupeFilter, _address, _fingerprints, _load  # noqa: E402
import spider  # noqa: E402

OURS: dict[str, Any] = {"DUPEFILTER_CLASS": "bloomline.scrapy.DupeFilter"}
# Spiders are forked from one process that has imported Scrapy, which takes longer than most crawls here.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["__main__", "spider"])
with pytest.MonkeyPatch.context() as patched:
    # Set before tests of other files start the process, which finds the module in this folder.
    patched.setenv("PYTHONPATH", str(pathlib.Path(__file__).parent))
    multiprocessing.forkserver.ensure_running()
SHARED: dict[str, Any] = {"DUPEFILTER_CLASS": "bloomline.scrapy.RedisDupeFilter", "BLOOMLINE_EXPECTED_KEYS": 10_000}


def links_of(page: int, pages: int) -> list[int]:
    """A tree that reaches all pages, and links back, across, and to the page itself, many of them twice.

    Pages beyond `pages` have no links to them. Crawls can begin there.
    """
    chance = random.Random(page)
    if page >= pages:
        return [chance.randrange(pages) for _ in range(300)]
    links = [2 * page + 1, 2 * page + 2, page // 2, page, page] + [chance.randrange(pages) for _ in range(4)]
    return [link for link in links if link < pages]


class Site:
    """The pages below `pages`, and the number of fetches of each."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.fetches: collections.Counter[int] = collections.Counter()
        # The number of fetches after which the site waits, except for pages beyond `pages`.
        self.limit = math.inf
        self.may_answer = threading.Condition()
        # Runs that were killed. Their requests may arrive later.
        self.gone: set[str] = set()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_GET(self) -> None:
                page = int(self.path[1:])
                with site.may_answer:
                    site.may_answer.wait_for(lambda: page >= pages or site.fetched < site.limit)
                    if self.headers["Run"] in site.gone:
                        self.close_connection = True
                        return
                    site.fetches.update([page])
                body = "\n".join(f"/{link}" for link in links_of(page, pages)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        class Threads(http.server.ThreadingHTTPServer):
            request_queue_size = 100

            def handle_error(self, *_: Any) -> None:
                """A spider that is killed resets its connections."""

        self.server = Threads(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, page: int) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/{page}"

    @property
    def fetched(self) -> int:
        return self.fetches.total()

    def let(self, fetches: float) -> None:
        """Answers this number of further fetches."""
        with self.may_answer:
            self.limit = self.fetched + fetches
            self.may_answer.notify_all()

    def check_once(self, *more: int) -> None:
        assert self.fetches.keys() == {*range(self.pages), *more}
        assert [page for page, fetches in self.fetches.items() if fetches > 1] == []


class Run:
    """A spider at work."""

    def __init__(self, site: Site, folder: pathlib.Path, start: int = 0, **settings: Any) -> None:
        self.site, self.before = site, site.fetched
        self.log, self.statistics = folder / f"log{time.monotonic_ns()}", folder / f"stats{time.monotonic_ns()}"
        root, self.name = site.url(start), str(time.monotonic_ns())
        settings["RUN"] = self.name
        self.log.touch()
        self.process = PROCESSES.Process(target=spider.main, args=(root, self.statistics, settings, self.log))
        self.process.start()

    def wait(self) -> Any:
        """The statistics at its end."""
        try:
            self.process.join(300)
        finally:
            self.process.kill()
        return json.loads(self.statistics.read_text()) if self.statistics.exists() else None

    def until(self, what: Callable[[], bool]) -> None:
        """Waits for a condition while the spider runs."""
        while not what():
            assert self.process.is_alive(), self.log.read_text()
            time.sleep(0.01)

    @classmethod
    def held(cls, site: Site, folder: pathlib.Path, fetches: int, **settings: Any) -> Self:
        """A run that waits for the site after this number of fetches."""
        site.let(fetches)
        run = cls(site, folder, **settings)
        run.until(lambda: site.fetched == run.before + fetches)
        return run

    def end(self, by: signal.Signals) -> Any:
        """Sends a signal while the spider waits for pages. Returns its statistics."""
        assert self.process.pid
        os.kill(self.process.pid, by)
        if by == signal.SIGKILL:
            self.process.join()
            self.site.gone.add(self.name)
        self.site.let(math.inf)
        return self.wait()


def interrupted(site: Site, folder: pathlib.Path, fetches: int, by: signal.Signals, **settings: Any) -> tuple[Run, Any]:
    """A run that got a signal after this number of fetches, and its statistics."""
    run = Run.held(site, folder, fetches, **settings)
    return run, run.end(by)


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    site = Site(request.param)
    yield site
    site.let(math.inf)
    site.server.shutdown()
    site.server.server_close()


def sites(pages: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("site", [pages], indirect=True, ids=str)


@sites(500)
def test_each_page_is_fetched_once(site: Site, tmp_path: pathlib.Path) -> None:
    stats = Run(site, tmp_path, **OURS).wait()
    site.check_once()
    assert stats["bloomline/keys"] == 500
    assert 0 < stats["bloomline/false_positive_rate"] <= 1e-6
    assert 0 <= stats["bloomline/expected_lost"] < 500 * 1e-6
    assert stats["bloomline/memory_bytes"] == ScalableBloomFilter(100_000, 1e-6).memory_bytes
    assert stats["dupefilter/filtered"] == sum(len(links_of(page, 500)) for page in range(500)) - 499


@sites(300)
def test_a_crawl_that_stops_twice_resumes_with_other_settings(site: Site, tmp_path: pathlib.Path) -> None:
    job = OURS | {"JOBDIR": str(tmp_path / "job")}
    _, stopped = interrupted(site, tmp_path, 80, signal.SIGINT, **job, BLOOMLINE_EXPECTED_KEYS=4000)
    assert stopped["finish_reason"] == "shutdown" and 0 < stopped["bloomline/fill_ratio"] < 0.5
    saved = BloomFilter.load(tmp_path / "job/requests.bloom")
    assert saved.expected_keys == 4000 and saved.key_name == "scrapy request fingerprint"
    assert sorted(path.name for path in (tmp_path / "job").iterdir()) == ["requests.bloom", "requests.queue"]
    # The filter keeps its size.
    _, stopped = interrupted(site, tmp_path, 80, signal.SIGINT, **job, BLOOMLINE_EXPECTED_KEYS=5)
    assert stopped["finish_reason"] == "shutdown"
    last = Run(site, tmp_path, **job, BLOOMLINE_SAVE_INTERVAL=0.1)
    stats = last.wait()
    assert stats["bloomline/memory_bytes"] == saved.memory_bytes
    assert "Going on with" in last.log.read_text()
    site.check_once()


@sites(200)
def test_a_killed_run_loses_nothing(site: Site, tmp_path: pathlib.Path) -> None:
    job = OURS | {"JOBDIR": str(tmp_path / "job")}
    # Kills within the first run and within a resumed one, with a run between them that stops properly.
    interrupted(site, tmp_path, 50, signal.SIGKILL, **job)
    interrupted(site, tmp_path, 50, signal.SIGINT, **job)
    assert (tmp_path / "job/killed/requests.queue").exists()
    interrupted(site, tmp_path, 50, signal.SIGKILL, **job)
    before = collections.Counter(site.fetches)
    last = Run(site, tmp_path, **job)
    last.wait()
    assert "beginning again" in last.log.read_text()
    assert site.fetches.keys() == set(range(200))
    assert (site.fetches - before).total() == 200


@sites(600)
def test_a_killed_run_resumes_from_its_last_save(site: Site, tmp_path: pathlib.Path) -> None:
    """Saved pages are not fetched again, and the others are. The crawl uses Twisted's own reactor."""
    reactor = {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"}
    # The run saves at almost every request, because no requests follow while it is held.
    job = OURS | reactor | {"JOBDIR": str(tmp_path / "job"), "BLOOMLINE_SAVE_INTERVAL": 0.001}
    path = tmp_path / "job/requests.bloom"
    # At this point it has not found all pages.
    run = Run.held(site, tmp_path, 60, **job)
    run.until(lambda: path.exists() and len(ScalableBloomFilter.load(path)) > 60)
    run.end(signal.SIGKILL)
    saved = ScalableBloomFilter.load(path)
    fingerprint = RequestFingerprinter().fingerprint
    unsaved = {page for page in range(600) if fingerprint(Request(site.url(page))) not in saved}
    before = collections.Counter(site.fetches)
    last = Run(site, tmp_path, start=max(unsaved), **job)
    last.wait()
    assert "Going on with" in last.log.read_text()
    again = (site.fetches - before).keys()
    assert max(unsaved) in again and again <= unsaved
    told = again_at_most(last)
    # Only pages that were fetched before count. More pages were requested, and waited when the run was killed.
    assert len(again & before.keys()) <= told <= len(unsaved)


def again_at_most(run: Run) -> int:
    told = re.findall(r"WARNING: .* was killed: .* At most (\d+) pages are fetched again", run.log.read_text())
    assert len(told) == 1, run.log.read_text()
    return int(told[0])


@sites(200)
def test_pages_that_are_fetched_again_are_counted_from_the_last_save(site: Site, tmp_path: pathlib.Path) -> None:
    """Runs that are killed without a save add to the number."""
    job = OURS | {"JOBDIR": str(tmp_path / "job")}
    interrupted(site, tmp_path, 60, signal.SIGKILL, **job)
    first = site.fetched
    second, _ = interrupted(site, tmp_path, 20, signal.SIGKILL, **job, BLOOMLINE_SAVE_INTERVAL=1e6)
    assert first <= again_at_most(second) <= 200
    fetched = site.fetched
    third, _ = interrupted(site, tmp_path, 10, signal.SIGINT, **job, BLOOMLINE_SAVE_INTERVAL=1e6)
    assert fetched <= again_at_most(third) <= 400
    fourth = Run(site, tmp_path, **job, BLOOMLINE_SAVE_INTERVAL=1e6)
    fourth.wait()
    assert "killed" not in fourth.log.read_text()


@sites(150)
def test_pages_that_scrapys_own_filter_saw_are_not_fetched_again(site: Site, tmp_path: pathlib.Path) -> None:
    job: dict[str, Any] = {"JOBDIR": str(tmp_path / "job")}
    interrupted(site, tmp_path, 40, signal.SIGINT, **job)
    interrupted(site, tmp_path, 40, signal.SIGINT, **job | OURS)
    Run(site, tmp_path, **job | OURS).wait()
    site.check_once()


@sites(100)
def test_a_folder_belongs_to_one_run(site: Site, tmp_path: pathlib.Path) -> None:
    job = OURS | {"JOBDIR": str(tmp_path / "job")}
    first = Run.held(site, tmp_path, 20, **job)
    second = Run(site, tmp_path, **job)
    second.wait()
    assert "another run uses" in second.log.read_text()
    site.let(math.inf)
    first.wait()
    site.check_once()


@sites(800)
def test_two_spiders_share_a_server(site: Site, tmp_path: pathlib.Path, redis: Server) -> None:
    shared = SHARED | {"REDIS_URL": redis.url}
    # Each spider has a queue of its own, and so a first page of its own. Other pages wait until both have claimed its links.
    site.let(0)
    both = [Run(site, tmp_path, 800, **shared), Run(site, tmp_path, 801, **shared, BLOOMLINE_MIRROR=False)]
    fingerprint = RequestFingerprinter().fingerprint
    links = {link for page in (800, 801) for link in links_of(page, 800)}
    prints = [fingerprint(Request(site.url(link))) for link in links]
    both[0].until(lambda: site.fetched == 2)
    seen = RedisBloomFilter(redis.url, "links:dupefilter")
    both[1].until(lambda: bool(seen.contains_many(prints).all()))
    site.let(math.inf)
    ended = [run.wait() for run in both]
    site.check_once(800, 801)
    assert sum(stats["response_received_count"] for stats in ended) == 802
    for stats in ended:
        assert stats["response_received_count"] > 100 and stats["bloomline/uncertain"] == 0
        assert stats["bloomline/memory_bytes"] == BloomFilter(10_000, 1e-6).memory_bytes
    assert seen.stats().estimated_keys == pytest.approx(802, rel=0.01)
    # A later spider gets no page.
    assert "response_received_count" not in Run(site, tmp_path, 800, **shared).wait()


@sites(3)
def test_requests_without_a_replica_are_counted(site: Site, tmp_path: pathlib.Path, redis: Server) -> None:
    stats = Run(site, tmp_path, **SHARED | {"REDIS_URL": redis.url, "BLOOMLINE_WAIT_FOR_REPLICAS": 1}).wait()
    assert stats["response_received_count"] == stats["bloomline/unconfirmed"] == 3


@sites(150)
def test_the_scheduler_of_scrapy_redis(site: Site, tmp_path: pathlib.Path, redis: Server) -> None:
    pytest.importorskip("scrapy_redis")
    shared = SHARED | {"REDIS_URL": redis.url, "SCHEDULER": "scrapy_redis.scheduler.Scheduler"}
    shared |= {"SCHEDULER_PERSIST": True, "SCHEDULER_DUPEFILTER_KEY": "set of %(spider)s"}
    interrupted(site, tmp_path, 50, signal.SIGINT, **shared)
    assert len(RedisBloomFilter(redis.url, "set of links").download()) > 50
    both = [Run(site, tmp_path, **shared, SCHEDULER_IDLE_BEFORE_CLOSE=1) for _ in range(2)]
    for run in both:
        run.wait()
    site.check_once()
    # A spider reports the set even if it finds nothing new.
    known = Run(site, tmp_path, **shared, SCHEDULER_IDLE_BEFORE_CLOSE=1).wait()
    assert known["bloomline/keys"] == pytest.approx(150, abs=2) and "response_received_count" not in known
    # The set may have another size after the scheduler has removed it, at the end of a spider or at the start of the next one.
    Run(site, tmp_path, **shared | {"SCHEDULER_PERSIST": False}).wait()
    assert redis.tell("DBSIZE") == ":0\n"
    for keys in 50_000, 100_000:
        again = shared | {"BLOOMLINE_EXPECTED_KEYS": keys, "SCHEDULER_FLUSH_ON_START": True}
        stats = Run(site, tmp_path, **again).wait()
        assert stats["bloomline/memory_bytes"] == BloomFilter(keys, 1e-6).memory_bytes
        assert stats["response_received_count"] == 150


@sites(150)
def test_the_set_of_scrapy_redis_is_imported(site: Site, tmp_path: pathlib.Path, redis: Server) -> None:
    client = pytest.importorskip("redis").from_url(redis.url)
    pytest.importorskip("scrapy_redis")
    theirs: dict[str, Any] = {"DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter", "REDIS_URL": redis.url}
    theirs |= {"SCHEDULER": "scrapy_redis.scheduler.Scheduler", "SCHEDULER_PERSIST": True, "SCHEDULER_IDLE_BEFORE_CLOSE": 1}
    interrupted(site, tmp_path, 50, signal.SIGINT, **theirs)
    old = client.scard("links:dupefilter")
    client.sadd("links:dupefilter", "no fingerprint")
    # Without the setting, the log states that the old set is not read.
    alone, _ = interrupted(site, tmp_path, 1, signal.SIGINT, **theirs | SHARED, SCHEDULER_QUEUE_KEY="another")
    told = re.search(r"own filter has (\d+) fingerprints in the set links:dupefilter", alone.log.read_text())
    assert told and int(told[1]) == old + 1
    refuse_fingerprints(site, tmp_path, theirs | SHARED | {"BLOOMLINE_IMPORT_FROM": theirs["DUPEFILTER_CLASS"]})
    RedisBloomFilter(redis.url, "links:dupefilter").delete()
    before = collections.Counter(site.fetches)
    ours = theirs | SHARED | {"BLOOMLINE_IMPORT_FROM": theirs["DUPEFILTER_CLASS"]}
    first, stats = interrupted(site, tmp_path, 20, signal.SIGINT, **ours)
    assert stats["bloomline/imported"] == old
    assert "1 members of the set links:dupefilter are not fingerprints" in first.log.read_text()
    # The scheduler keeps the filter and does not close it, but the figures are those of the end.
    assert stats["bloomline/keys"] == pytest.approx(RedisBloomFilter(redis.url, "links:dupefilter").stats().estimated_keys)
    assert stats["bloomline/keys"] > old
    for keys in SHARED["BLOOMLINE_EXPECTED_KEYS"], None:
        refuse_fingerprints(site, tmp_path, theirs | SHARED | {"BLOOMLINE_EXPECTED_KEYS": keys})
    # Later additions to the old set are not imported.
    client.sadd("links:dupefilter", "00" * 20)
    assert Run(site, tmp_path, **ours).wait()["bloomline/imported"] == old
    fetched = site.fetches - before
    assert site.fetches.keys() == set(range(150)) and [page for page, count in fetched.items() if count > 1] == []
    # A filter that was lost gets all of them again, and one that was cleared begins with none.
    RedisBloomFilter(redis.url, "links:dupefilter").delete()
    assert Run(site, tmp_path, **ours).wait()["bloomline/imported"] == old + 1
    Run(site, tmp_path, **ours | {"SCHEDULER_PERSIST": False}).wait()
    assert Run(site, tmp_path, **ours).wait()["bloomline/imported"] == 0


def refuse_fingerprints(site: Site, folder: pathlib.Path, settings: dict[str, Any]) -> None:
    """A spider with other fingerprints than the set would fetch all pages again."""
    before = site.fetched
    run = Run(site, folder, **settings)
    run.wait()
    log = run.log.read_text()
    assert "BLOOMLINE_IMPORT_FROM" in log.split("ValueError: ")[-1] and "AttributeError" not in log and site.fetched == before


def test_an_interrupted_import_continues(redis: Server) -> None:
    """It continues with the portion that was not added, if the server is the same."""
    client = pytest.importorskip("redis").from_url(redis.url)
    pytest.importorskip("scrapy_redis")
    prints = [i.to_bytes(20, "big") for i in range(20_000)]
    client.sadd("links:dupefilter", *(fingerprint.hex() for fingerprint in prints))
    settings = SHARED | {"REDIS_URL": redis.url, "BLOOMLINE_EXPECTED_KEYS": 30_000}
    settings["BLOOMLINE_IMPORT_FROM"] = "scrapy_redis.dupefilter.RFPDupeFilter"
    life = client.info("server")["run_id"]
    cursor, skipped = client.sscan("links:dupefilter", 0, count=5000)
    for server, expected in (life, 20_000 - len(skipped)), ("another", 20_000):
        client.set("links:dupefilter:imported to links:dupefilter", f"{server} {cursor} {len(skipped)} 0")
        crawler = get_crawler(spider.Links, settings)
        crawler.spider = spider.Links.from_crawler(crawler)
        crawler.stats = load_object(crawler.settings["STATS_CLASS"])(crawler)
        crawler.request_fingerprinter = RequestFingerprinter()
        RedisDupeFilter.from_crawler(crawler)
        assert crawler.stats.get_value("bloomline/imported") == 20_000
        seen = RedisBloomFilter(redis.url, "links:dupefilter")
        assert sum(fingerprint in seen for fingerprint in prints) == expected
        seen.delete()


@sites(150)
def test_an_unreachable_server_ends_the_crawl_which_resumes_later(site: Site, tmp_path: pathlib.Path, redis: Server) -> None:
    job = SHARED | {"JOBDIR": str(tmp_path / "job"), "BLOOMLINE_RETRY_TIMEOUT": 0.5}
    times: dict[str, Any] = {"REDIS_PARAMS": {"port": redis.port, "socket_timeout": 4, "socket_connect_timeout": 4}}
    run = Run.held(site, tmp_path, 50, **job, **times)
    os.kill(redis.process.pid, signal.SIGSTOP)
    site.let(math.inf)
    stats = run.wait()
    os.kill(redis.process.pid, signal.SIGCONT)
    assert stats["finish_reason"] == "bloomline_redis" and "no answer from" in run.log.read_text()
    assert len(site.fetches) < 150
    assert Run(site, tmp_path, **job, **times).wait()["finish_reason"] == "finished"
    assert site.fetches.keys() == set(range(150))


@sites(10)
def test_a_set_without_a_size_is_opened_or_grows(site: Site, tmp_path: pathlib.Path, redis: Server) -> None:
    """The existing set is opened, or a set that grows is made."""
    shared = SHARED | {"REDIS_URL": redis.url, "BLOOMLINE_EXPECTED_KEYS": None}
    refused = Run(site, tmp_path, **shared, BLOOMLINE_FORGET_AFTER=60)
    refused.wait()
    assert "needs BLOOMLINE_EXPECTED_KEYS" in refused.log.read_text() and site.fetched == 0
    RedisBloomFilter(redis.url, "other", 100, 1e-6)
    Run(site, tmp_path, **shared, SCHEDULER_DUPEFILTER_KEY="other").wait()
    site.check_once()
    Run(site, tmp_path, **shared).wait()
    grown = RedisBloomFilter(redis.url, "links:dupefilter")
    assert grown.size == {"false_positive_rate": 1e-6, "seed": 0} and grown.stats().estimated_keys > 5


@sites(10)
def test_a_set_may_forget(site: Site, tmp_path: pathlib.Path, redis: Server) -> None:
    Run(site, tmp_path, **SHARED, REDIS_URL=redis.url, BLOOMLINE_FORGET_AFTER=3600).wait()
    site.check_once()
    filter = RedisBloomFilter(redis.url, "links:dupefilter")
    assert filter.size["forget_after"] == 3600 and filter.stats().estimated_keys > 5


@sites(100)
def test_a_filter_that_is_too_small_is_reported(site: Site, tmp_path: pathlib.Path) -> None:
    small = Run(site, tmp_path, **OURS, BLOOMLINE_EXPECTED_KEYS=20, BLOOMLINE_FALSE_POSITIVE_RATE=1e-5)
    stats = small.wait()
    assert "too small for" in small.log.read_text() and stats["bloomline/false_positive_rate"] > 2e-5
    # Some pages arrived when the filter was still sparse.
    assert 0 < stats["bloomline/expected_lost"] < stats["bloomline/false_positive_rate"] * 100


def test_an_interval_without_a_folder_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    DupeFilter(get_crawler(settings_dict={"BLOOMLINE_SAVE_INTERVAL": 300}))
    assert "saves nothing" in caplog.text


def read_seen(path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> tuple[list[bytes], int]:
    """The fingerprints that are read, and the number of skipped parts in the warning."""
    caplog.clear()
    fingerprints = list(_fingerprints(path))
    warnings = [re.search(r"is damaged, as by a crash, in (\d+) places", message) for message in caplog.messages]
    return fingerprints, sum(int(match[1]) for match in warnings if match)


def test_files_of_scrapys_own_filter_are_read(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "requests.seen"
    prints = [bytes([i]) * 20 for i in range(48, 60)]
    records = [b"\0\x14" + fingerprint for fingerprint in prints]
    lines = [f"{fingerprint.hex()}\n".encode() for fingerprint in prints]
    path.write_bytes(b"".join(records) + b"\0\x14cut")
    assert read_seen(path, caplog) == (prints, 1)
    path.write_bytes(b"".join(lines) + b"3030")
    assert read_seen(path, caplog) == (prints, 1)
    path.write_bytes(b"")
    assert read_seen(path, caplog) == ([], 0)
    # After a crash the next run writes behind an incomplete record, or behind the NULs that a power cut left.
    for whole, newline in (records, b""), (lines, b"\n"):
        path.write_bytes(b"".join(whole))
        assert read_seen(path, caplog) == (prints, 0)
        for nuls in 1, 2, 3, 40, 4095:
            for cut in b"", whole[0][:15]:
                path.write_bytes(b"".join(whole[:4]) + cut + b"\0" * nuls + newline + b"".join(whole[4:]))
                fingerprints, skipped = read_seen(path, caplog)
                assert set(prints[:4]) <= set(fingerprints) and set(prints[5:]) <= set(fingerprints), (nuls, cut)
                assert 1 <= skipped <= 2
            path.write_bytes(b"\0" * nuls + newline + b"".join(whole))
            fingerprints, skipped = read_seen(path, caplog)
            assert set(prints[1:]) <= set(fingerprints) and skipped == 1, nuls
        path.write_bytes(b"".join(whole[:4]) + whole[0][:15] + b"".join(whole[4:]))
        fingerprints, skipped = read_seen(path, caplog)
        assert set(prints[:4]) <= set(fingerprints) and set(prints[6:]) <= set(fingerprints)
        assert skipped == 1


def test_a_damaged_filter_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "requests.bloom"
    for filter in BloomFilter(100, 0.01), ScalableBloomFilter(100, 0.01):
        filter.save(path)
        assert _load(path) == filter
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(ValueError):
            _load(path)


def test_addresses() -> None:
    for settings, url, options in (
        ({}, "redis://localhost:6379/0", {}),
        ({"REDIS_URL": "rediss://a:b@c:1/2", "REDIS_HOST": "x"}, "rediss://a:b@c:1/2", {}),
        ({"REDIS_HOST": "h", "REDIS_PORT": 7, "REDIS_DB": 3}, "redis://h:7/3", {}),
        (
            {"REDIS_PARAMS": {"host": "h", "password": "p@:/", "ssl": True, "ssl_ca_certs": "ca.pem", "socket_timeout": 3}},
            "rediss://:p%40%3A%2F@h:6379/0",
            {"response_timeout": 3.0, "certificate_authority": "ca.pem"},
        ),
        (
            {"REDIS_URL": "rediss://h", "REDIS_PARAMS": {"ssl_certfile": "c.pem", "ssl_keyfile": "k.pem"}},
            "rediss://h",
            {"client_certificate": "c.pem", "client_key": "k.pem"},
        ),
        ({"REDIS_PARAMS": {"username": "u", "password": "p"}}, "redis://u:p@localhost:6379/0", {}),
    ):
        assert _address(Settings(settings)) == (url, options)
