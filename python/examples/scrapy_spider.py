"""A spider that remembers its requests in a filter, stopped and resumed: each page is fetched once."""

import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response

PAGES = 200
fetched: list[str] = []


class Pages(scrapy.Spider):
    name = "pages"
    root: str
    custom_settings = {
        "DUPEFILTER_CLASS": "bloomline.scrapy.DupeFilter",
        "BLOOMLINE_EXPECTED_KEYS": 10_000,
        "BLOOMLINE_FALSE_POSITIVE_RATE": 1e-6,
        "DOWNLOAD_DELAY": 0,
        "LOG_LEVEL": "WARNING",
    }

    async def start(self) -> AsyncIterator[Any]:
        # start_urls are fetched by each run, for Scrapy does not filter them.
        yield scrapy.Request(self.root)

    def parse(self, response: Response) -> Iterator[scrapy.Request]:
        for path in response.text.split():
            yield scrapy.Request(response.urljoin(path))


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        fetched.append(self.path)
        page = int(self.path[1:])
        self.send_response(200)
        self.end_headers()
        self.wfile.write("\n".join(f"/{link % PAGES}" for link in (page + 1, page * 2, page * 3)).encode())

    def log_message(self, *_: Any) -> None:
        pass


def crawl(root: str, folder: str, pages: str) -> None:
    """Crawls until the site ends or so many pages are there."""
    process = CrawlerProcess({"JOBDIR": folder, "CLOSESPIDER_PAGECOUNT": int(pages)})
    process.crawl(Pages, root=root)
    process.start()


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_port}/0"
    with tempfile.TemporaryDirectory() as folder:
        for pages in "20", "0":
            subprocess.run([sys.executable, __file__, root, folder, pages], check=True)
            print(f"{len(fetched)} pages")
    assert len(fetched) == len(set(fetched)) == PAGES


if __name__ == "__main__":
    crawl(*sys.argv[1:]) if sys.argv[1:] else main()
