"""Hugging Face datasets: a filter answers for each batch of rows."""

import datasets

from bloomline import BloomFilter


def main() -> None:
    datasets.disable_progress_bars()
    rows = datasets.Dataset.from_dict({"url": [f"u{i % 700}" for i in range(2000)], "day": list(range(2000))})

    # In one process. With num_proc each process has a filter of its own, and rows stay twice that two of them have.
    # A result that comes from the cache fills no filter, so it is computed.
    seen = BloomFilter(len(rows), 1e-6)
    unique = rows.filter(lambda urls: seen.add_many(urls).tolist(), input_columns="url", batched=True, load_from_cache_file=False)
    assert unique["url"] == [f"u{i}" for i in range(700)]

    # A stream, with the same filter: what it has seen does not come again.
    more = datasets.Dataset.from_dict({"url": ["u1", "v1", "v1"]}).to_iterable_dataset()
    new = more.filter(lambda urls: seen.add_many(urls).tolist(), input_columns="url", batched=True)
    assert [row["url"] for row in new] == ["v1"]

    # A filter that is only read serves any number of processes.
    old = rows.filter(lambda urls: seen.contains_many(urls).tolist(), input_columns="url", batched=True, num_proc=2)
    assert len(old) == len(rows)


if __name__ == "__main__":
    main()
