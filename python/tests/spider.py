"""A spider that follows all links of a site, in a process of its own: spider.py ROOT STATISTICS SETTINGS."""

import json
import pathlib
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response


class Links(scrapy.Spider):
    name = "links"
    root: str

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request(self.root)

    def parse(self, response: Response) -> Iterator[Any]:
        for link in response.text.split():
            yield scrapy.Request(response.urljoin(link))


class Named:
    """Tells the site who asks."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def from_crawler(cls, crawler: Any) -> Any:
        return cls(crawler.settings["RUN"])

    def process_request(self, request: Any, **_: Any) -> None:
        request.headers["Run"] = self.name


def main(root: str, statistics: str, settings: str) -> None:
    quick: dict[str, Any] = {
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "DOWNLOAD_DELAY": 0,
        # Longer than the site waits before it answers.
        "DOWNLOAD_TIMEOUT": 600,
        "DOWNLOADER_MIDDLEWARES": {Named: 0},
        "DOWNLOADER_MIDDLEWARES_BASE": {},
        "EXTENSIONS_BASE": {"scrapy.extensions.corestats.CoreStats": 0},
        "LOG_LEVEL": "INFO",
        "ROBOTSTXT_OBEY": False,
        "SPIDER_MIDDLEWARES_BASE": {},
    }
    process = CrawlerProcess({**quick, **json.loads(settings)})
    crawler = process.create_crawler(Links)
    process.crawl(crawler, root=root)
    process.start()
    assert crawler.stats
    pathlib.Path(statistics).write_text(json.dumps(crawler.stats.get_stats(), default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
