"""A spider that follows all links of a site, for a process of its own.

This module imports the modules that Scrapy itself would import in each of these processes, except a reactor, which each process installs.
"""

import contextlib
import gc
import json
import os
import pathlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
import scrapy.core.downloader.handlers.http11  # noqa: F401
import scrapy.core.engine  # noqa: F401
import scrapy.squeues  # noqa: F401
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response

import bloomline.scrapy  # noqa: F401

with contextlib.suppress(ImportError):
    import scrapy_redis.dupefilter
    import scrapy_redis.scheduler  # noqa: F401


class Links(scrapy.Spider):
    name = "links"
    root: str

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request(self.root)

    def parse(self, response: Response) -> Iterator[Any]:
        for link in response.text.split():
            yield scrapy.Request(response.urljoin(link))


class Named:
    """Sends the name of the run to the site, and waits longer than the site takes to answer. Without Scrapy's own middlewares, the
    setting DOWNLOAD_TIMEOUT has no effect.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def from_crawler(cls, crawler: Any) -> Any:
        return cls(crawler.settings["RUN"])

    def process_request(self, request: Any, **_: Any) -> None:
        request.headers["Run"] = self.name
        request.meta["download_timeout"] = 600


def main(root: str, statistics: pathlib.Path, settings: dict[str, Any], log: pathlib.Path) -> None:
    """Writes the statistics at the end, and the log during the crawl."""
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), 2)
    crawl(root, statistics, settings)
    # Twisted logs an unhandled error when the error is collected. A forked process ends without a collection.
    gc.collect()


def crawl(root: str, statistics: pathlib.Path, settings: dict[str, Any]) -> None:
    quick: dict[str, Any] = {
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "DOWNLOAD_DELAY": 0,
        "DOWNLOADER_MIDDLEWARES": {Named: 0},
        "DOWNLOADER_MIDDLEWARES_BASE": {},
        "EXTENSIONS_BASE": {"scrapy.extensions.corestats.CoreStats": 0},
        "LOG_LEVEL": "INFO",
        "ROBOTSTXT_OBEY": False,
        "SPIDER_MIDDLEWARES_BASE": {},
    }
    process = CrawlerProcess({**quick, **settings})
    crawler = process.create_crawler(Links)
    process.crawl(crawler, root=root)
    process.start()
    assert crawler.stats
    statistics.write_text(json.dumps(crawler.stats.get_stats(), default=str))
