"""One filter, mapped by many processes: links that a crawl has not seen."""

import tempfile
from multiprocessing import Pool
from pathlib import Path

from bloomline import BloomFilter, MappedBloomFilter

seen: MappedBloomFilter


def open_filter(path: Path) -> None:
    global seen
    seen = BloomFilter.map(path)


def is_new(url: str) -> bool:
    return url not in seen


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seen.bloom"
        crawled = BloomFilter(1000, 1e-6)
        crawled.update(["https://example.org/", "https://example.org/a"])
        crawled.save(path)
        with Pool(2, open_filter, [path]) as pool:
            answers = pool.map(is_new, ["https://example.org/a", "https://example.org/b"])
        assert answers == [False, True]
        print(answers)


if __name__ == "__main__":
    main()
