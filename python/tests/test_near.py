"""Near duplicates, beside a model: each document is compared with the better ones that stay and share a band with it."""

import json
import pathlib
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import examples
from spec import bands_of, grams_of
from trips import bloomline

# Bands and rows of datasketch, as in crates/text/tests/near.rs.
SIMILARITIES = {0.5: (25, 5), 0.7: (14, 9), 0.8: (9, 13), 0.9: (5, 25)}


def some_texts() -> list[str]:
    """A few texts, some of which differ by a few words. Bands take long to compute, so there are few texts."""
    choice = random.Random(36)
    words = ["a", "word", "слово", "ünï", "كلمة", *(f"w{i}" for i in range(200)), "averyveryverylongword"]
    texts: list[list[str]] = [[], ["a"], ["a", "word"], ["word", "a"], ["a"] * 9, ["a"] * 12]
    for _ in range(8):
        base = choice.choices(words, k=choice.randint(8, 24))
        texts.append(base)
        for _ in range(3):
            start, end = choice.randint(0, 1), len(base) - choice.randint(0, 2)
            texts.append(base[start:end] + choice.choices(words, k=choice.randint(0, 3)))
        other = list(base)
        other[choice.randrange(len(base))] = "other"
        texts.append(other)
    return [" ".join(text) for text in texts]


TEXTS = some_texts()


def jaccard(a: str, b: str) -> float:
    one, two = grams_of(a), grams_of(b)
    return len(one & two) / len(one | two)


def contained(a: str, b: str) -> float:
    one, two = grams_of(a), grams_of(b)
    return len(one & two) / len(one)


class Model(NamedTuple):
    #: The document because of which each document is removed, or itself if it is kept, or -1 if an earlier run had one of its bands.
    kept: list[int]

    def stay(self) -> list[int]:
        return [number for number, kept in enumerate(self.kept) if kept == number]

    def without_copies(self, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Documents as --keep-empty leaves them: removed documents are kept without their texts."""
        return [document if kept == number else {**document, "text": ""} for number, (document, kept) in enumerate(zip(documents, self.kept))]

    def clusters(self) -> list[list[int]]:
        """The clusters of two documents or more, the kept document first."""
        members = [[number, *(i for i, kept in enumerate(self.kept) if kept == number and i != number)] for number in self.stay()]
        return [cluster for cluster in members if len(cluster) > 1]


def model(
    texts: list[str], similarity: float, best: Callable[[int], Any] = lambda number: 0, known: list[str] = [], share: float = 0.0
) -> Model:
    """The first of several equally good documents is the best."""
    bands = [bands_of(text, *SIMILARITIES[similarity]) for text in texts]
    had = frozenset[int]().union(*(bands_of(text, *SIMILARITIES[similarity]) for text in known))
    kept = list(range(len(texts)))
    survivors: list[int] = []
    for i in sorted(kept, key=lambda j: (best(j), j)):

        def removes(j: int, text: str = texts[i], own: frozenset[int] = bands[i]) -> bool:
            return bool(own & bands[j]) and jaccard(text, texts[j]) >= similarity and contained(text, texts[j]) >= share

        kept[i] = -1 if bands[i] & had else next(filter(removes, survivors), i)
        if kept[i] == i:
            survivors.append(i)
    return Model(kept)


def write_lines(path: pathlib.Path, documents: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents))


def lines_of(path: pathlib.Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


KEEPS: dict[str, Callable[[dict[str, Any], int], Any]] = {
    "first": lambda document, number: 0,
    "last": lambda document, number: -number,
    "longest": lambda document, number: -len(document["text"].encode()),
    "max:/score": lambda document, number: -document["score"] if "score" in document else 1000,
    "min:/score": lambda document, number: document.get("score", 1000),
    "order:/source=b,a": lambda document, number: {"b": 0, "a": 1}.get(document.get("source", ""), 2),
}

documents = st.lists(
    st.fixed_dictionaries(
        {"text": st.sampled_from(TEXTS)},
        optional={"score": st.integers(-3, 3), "source": st.sampled_from(["a", "b", "c"])},
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=examples(30))
@given(
    documents=documents,
    cuts=st.lists(st.integers(0, 40), max_size=2),
    similarity=st.sampled_from(list(SIMILARITIES)),
    keep=st.sampled_from(list(KEEPS)),
    share=st.sampled_from([0.0, 0.9, 1.0]),
    count=st.booleans(),
    threads=st.sampled_from([1, 3]),
)
def test_clusters_pairs_and_counts_match_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    documents: list[dict[str, Any]],
    cuts: list[int],
    similarity: float,
    keep: str,
    share: float,
    count: bool,
    threads: int,
) -> None:
    folder = tmp_path_factory.mktemp("near")
    for number, document in enumerate(documents):
        document["id"] = number
    bounds = [0, *sorted(min(cut, len(documents)) for cut in cuts), len(documents)]
    names = [f"{i}.jsonl" for i in range(len(bounds) - 1)]
    where = []
    for name, start, end in zip(names, bounds, bounds[1:]):
        write_lines(folder / name, documents[start:end])
        where += [{"file": name, "line": line + 1} for line in range(end - start)]
    reports = ["--pairs", "pairs", "--clusters", "clusters", "--keep", keep, *(["--count"] if count else [])]
    bloomline(folder, "corpus", "-q", "--keep-empty", "--near", similarity, "--contained", share, *reports, "-j", threads, *names, "-o", "kept")

    texts = [document["text"] for document in documents]
    found = model(texts, similarity, lambda number: KEEPS[keep](documents[number], number), share=share)
    assert lines_of(folder / "kept") == [
        {**document, **({"count": found.kept.count(number)} if count else {})}
        for number, document in enumerate(found.without_copies(documents))
    ]
    assert lines_of(folder / "pairs") == [
        {
            **where[number],
            "kept": where[kept],
            "similarity": float(f"{jaccard(texts[number], texts[kept]):.4f}"),
            "contained": float(f"{contained(texts[number], texts[kept]):.4f}"),
        }
        for number, kept in enumerate(found.kept)
        if kept != number
    ]
    assert lines_of(folder / "clusters") == [
        {"cluster": i + 1, "size": len(cluster), "members": [where[number] for number in cluster]}
        for i, cluster in enumerate(found.clusters())
    ]


@settings(max_examples=examples(12))
@given(first=documents, second=documents, similarity=st.sampled_from(list(SIMILARITIES)))
def test_documents_that_share_a_band_with_an_earlier_run_are_removed(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[dict[str, Any]],
    second: list[dict[str, Any]],
    similarity: float,
) -> None:
    folder = tmp_path_factory.mktemp("near")
    options = ["corpus", "-q", "--keep-empty", "--near", similarity, "-p", "1e-9", "-s", "seen", "--pairs", "pairs"]
    for documents, known in [(first, []), (second, [document["text"] for document in first])]:
        write_lines(folder / "in.jsonl", documents)
        (folder / "kept").unlink(missing_ok=True)
        (folder / "pairs").unlink(missing_ok=True)
        bloomline(folder, *options, "in.jsonl", "-o", "kept")
        found = model([document["text"] for document in documents], similarity, known=known)
        assert lines_of(folder / "kept") == found.without_copies(documents)
        expected = [(number + 1, kept + 1 if kept >= 0 else None) for number, kept in enumerate(found.kept) if kept != number]
        assert [(pair["line"], pair["kept"] and pair["kept"]["line"]) for pair in lines_of(folder / "pairs")] == expected


@settings(max_examples=examples(12))
@given(documents=documents, rows=st.integers(1, 20), similarity=st.sampled_from(list(SIMILARITIES)))
def test_rows_are_decided_like_lines(
    tmp_path_factory: pytest.TempPathFactory, documents: list[dict[str, Any]], rows: int, similarity: float
) -> None:
    folder = tmp_path_factory.mktemp("near")
    texts = [document["text"] for document in documents]
    scores = [document.get("score") for document in documents]
    table = pa.table({"text": pa.array(texts, pa.string()), "score": pa.array(scores, pa.int64())})
    pq.write_table(table, folder / "in.parquet", row_group_size=rows)
    options = ["--near", similarity, "--keep", "max:score", "--count", "--clusters", "clusters", "--column", "text"]
    bloomline(folder, "corpus", "-q", "--keep-empty", *options, "in.parquet", "-o", "out.parquet")
    found = model(texts, similarity, lambda number: KEEPS["max:/score"](documents[number], number))
    kept = pq.read_table(folder / "out.parquet")
    texts = [document["text"] for document in found.without_copies(documents)]
    assert kept.select(["text", "score"]) == table.set_column(0, "text", pa.array(texts, pa.string()))
    assert kept["count"].to_pylist() == [found.kept.count(number) for number in range(len(texts))]
    assert [[member["line"] - 1 for member in cluster["members"]] for cluster in lines_of(folder / "clusters")] == found.clusters()
