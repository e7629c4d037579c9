"""`corpus --against` beside a plain model: the remaining text of documents, and the reported overlaps."""

import json
import pathlib
import re
import tempfile
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conftest import examples
from test_forms import formed
from trips import bloomline, write

# Each is one word for UAX #29, or none by default.
WORDS = ["alpha", "бета", "غاما", "日", "한국어", "カタカナ", "ก", "e\u0301t\u00e9", "👩\u200d👩\u200d👧", "🇩🇪", "7"]
WORDS += ["Alpha", "Бета", "al\u200bpha", "alpha!", "«бета»", "ｶﾀｶﾅ", "\u2014", "8"]
FORMS = {
    "": frozenset({"nfkc", "case", "ignorable", "symbols", "katakana", "space"}),
    "none": frozenset[str](),
    "text": frozenset({"nfkc", "case", "digits", "punctuation", "ignorable", "space"}),
    "case,symbols": frozenset({"case", "symbols"}),
}

line = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
text = st.lists(line, min_size=1, max_size=4).map("\n".join)
texts = st.lists(text, min_size=1, max_size=12)
rules = st.fixed_dictionaries(
    {
        "by": st.sampled_from(["document", "paragraph"]),
        "ngram": st.sampled_from([0, 2, 3, 4]),
        "min_ngram": st.integers(1, 2),
        "threshold": st.sampled_from([0, 0.3, 0.6]),
        "form": st.sampled_from(sorted(FORMS)),
    }
)


def units(text: str, rule: dict[str, Any]) -> list[str]:
    """Each unit but the first begins with its newline."""
    if rule["by"] == "document":
        return [text]
    first, *rest = text.split("\n")
    return [first, *("\n" + line for line in rest)]


def words_of(unit: str, rule: dict[str, Any]) -> list[str]:
    """UAX #29 divides these words only at punctuation, at emoji, and at a zero-width space."""
    text = formed(unit, FORMS[rule["form"]] - {"space"})
    return re.findall(r"👩\u200d👩\u200d👧|[!«»—👩👧\u200b]|[^\s!«»—👩👧\u200b]+", text)


def grams(unit: str, rule: dict[str, Any]) -> list[tuple[str, str]]:
    """The grams of a unit, each with the text that is reported for it, without white space."""
    words, ngram = words_of(unit, rule), rule["ngram"]
    if ngram == 0:
        unit = unit.removeprefix("\n") if rule["by"] == "paragraph" else unit
        text = formed(unit, FORMS[rule["form"]])
        return [(text, "".join(unit.split()))] if text.strip() else []
    ends = range(ngram, len(words) + 1) if len(words) >= ngram else [len(words)] if len(words) >= rule["min_ngram"] else []
    return [(" ".join(words[max(end - ngram, 0) : end]), "".join(words[max(end - ngram, 0) : end])) for end in ends]


def phrases_of(tests: Sequence[str], rule: dict[str, Any]) -> set[str]:
    """The units of tests that have fewer words than a gram."""
    all_units = [unit for item in tests for unit in units(item, rule)]
    return {gram for unit in all_units if len(words_of(unit, rule)) < rule["ngram"] for gram, _ in grams(unit, rule)}


def grams_of(unit: str, rule: dict[str, Any], phrases: set[str]) -> list[str]:
    """The grams of a unit of a document, and the phrases within it. With so few documents, no phrase has a word changed."""
    words = words_of(unit, rule)
    own = [gram for gram, _ in grams(unit, rule)] if rule["ngram"] == 0 or len(words) >= rule["ngram"] else []
    return own + [phrase for phrase in sorted(phrases) if f" {phrase} " in f" {' '.join(words)} "]


def left(text: str, known: set[str], rule: dict[str, Any], phrases: set[str]) -> str | None:
    """The remaining text of a document."""

    def goes(unit: str) -> bool:
        all_of_it = grams_of(unit, rule, phrases)
        found = sum(gram in known for gram in all_of_it)
        return found > 0 if rule["ngram"] == 0 else bool(all_of_it) and found / len(all_of_it) > rule["threshold"]

    all_units = units(text, rule)
    gone = [goes(unit) for unit in all_units]
    if any(gone) and all(cut or not unit.strip() for unit, cut in zip(all_units, gone)):
        return None
    rest = ""
    for unit, cut in zip(all_units, gone):
        if cut or gone[0] and not rest and not unit.strip():
            continue
        rest += unit.removeprefix("\n") if gone[0] and not rest else unit
    return rest


def report(tests: Sequence[str], train: Sequence[str], rule: dict[str, Any], name: str, ids: bool) -> list[dict[str, Any]]:
    def at(file: str, number: int, base: int) -> dict[str, Any]:
        return {"file": file, "line": number + 1, **({"id": base + number} if ids else {})}

    def told(number: int, item: str) -> dict[str, Any]:
        own: dict[str, str] = {}
        for unit in units(item, rule):
            for gram, text in grams(unit, rule):
                own.setdefault(gram, text)
        documents, found = [], set()
        phrases = phrases_of(tests, rule)
        for other, text in enumerate(train):
            has = {gram for unit in units(text, rule) for gram in grams_of(unit, rule, phrases)}
            both = [gram for gram in own if gram in has]
            if both:
                documents.append({**at(name, other, 0), "found": len(both), "grams": [own[gram] for gram in both]})
                found.update(both)
        short = rule["ngram"] > 0 and all(len(words_of(unit, rule)) < rule["ngram"] for unit in units(item, rule))
        note = {"short": True} if short else {}
        return {**at("tests", number, 100), "grams": len(own), "found": len(found), **note, "documents": documents}

    return [told(number, item) for number, item in enumerate(tests)]


def lines(texts: Sequence[str], base: int) -> str:
    rows = ({"id": base + number, "text": text} for number, text in enumerate(texts))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@settings(max_examples=examples(40))
@given(texts, texts, rules, st.booleans(), st.sampled_from(["one", "folder", "table"]), st.integers(1, 200))
@example(["\nalpha"], ["\nalpha"], {"by": "document", "ngram": 0, "min_ngram": 1, "threshold": 0, "form": "none"}, False, "one", 1)
def test_overlaps_with_tests_are_removed_and_reported(
    tests: list[str], train: list[str], rule: dict[str, Any], ids: bool, form: str, chunk: int
) -> None:
    phrases = phrases_of(tests, rule)
    known = {gram for item in tests for unit in units(item, rule) for gram, _ in grams(unit, rule)}
    options = ["--by", rule["by"], "--ngram", rule["ngram"], "--chunk-size", chunk, "-j", 2, *(["--id", "/id"] if ids else [])]
    options += ["--normalize", rule["form"]] if rule["form"] else []
    if rule["ngram"] > 0:
        options += ["--min-ngram", rule["min_ngram"], "--threshold", rule["threshold"]]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "tests").write_text(lines(tests, 100), encoding="utf-8")
        name = "train.parquet" if form == "table" else "train"
        if form == "table":
            write(folder / name, [pa.table({"id": range(len(train)), "text": train})])
        else:
            (folder / name).write_text(lines(train, 0), encoding="utf-8")
        output = ["--output-dir", "out"] if form == "folder" else ["-o", "out.parquet" if form == "table" else "out"]
        bloomline(folder, "corpus", "-q", "--against", "tests", *options, name, *output, "--report", "report")
        expected = [(number, rest) for number, text in enumerate(train) if (rest := left(text, known, rule, phrases)) is not None]
        if form == "table":
            found = [(row["id"], row["text"]) for row in pq.read_table(folder / "out.parquet").to_pylist()]
        else:
            path = folder / "out" / "train" if form == "folder" else folder / "out"
            rows = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
            found = [(row["id"], row["text"]) for row in rows]
        assert found == expected
        told = [json.loads(item) for item in (folder / "report").read_text(encoding="utf-8").splitlines()]
        for item, text in zip(told, tests, strict=True):
            text = text if rule["ngram"] == 0 else formed(text, FORMS[rule["form"]] - {"space"})
            text = " ".join(text.split()) if "symbols" in FORMS[rule["form"]] and rule["ngram"] > 0 else text
            for document in item["documents"]:
                # As the item has them, in its form.
                assert all(gram in text for gram in document["grams"])
                document["grams"] = ["".join(gram.split()) for gram in document["grams"]]
                # Words stand apart in it, also those that touch in the text.
                context = re.sub(r"[\s\[\]]", "", document.pop("context", ""))
                assert rule["ngram"] == 0 or any(gram in context for gram in document["grams"])
        assert told == report(tests, train, rule, name, ids)


def test_overlaps_of_many_files_are_reported_in_order(tmp_path: pathlib.Path) -> None:
    item = "one two three four five six seven eight nine ten eleven twelve thirteen"
    (tmp_path / "tests" / "b").mkdir(parents=True)
    (tmp_path / "train").mkdir()
    (tmp_path / "tests" / "a.jsonl").write_text(lines([item, "another " + item], 0), encoding="utf-8")
    write(tmp_path / "tests" / "b" / "c.parquet", [pa.table({"text": [item.upper()]})])
    for number in range(20):
        texts = [f"{number} {item} {number}", "nothing", f"{item.title()} {number}"]
        (tmp_path / "train" / f"{number:02}.jsonl").write_text(lines(texts, 0), encoding="utf-8")
    options = ["--against", "tests/a.jsonl", "--against", "tests/b", "--normalize", "case", "train", "--output-dir", "out"]
    bloomline(tmp_path, "corpus", *options, "--report", "report.jsonl", "-j", 4)
    rows = [json.loads(row) for row in (tmp_path / "report.jsonl").read_text().splitlines()]
    assert [(row["file"], row["line"]) for row in rows] == [("tests/a.jsonl", 1), ("tests/a.jsonl", 2), ("tests/b/c.parquet", 1)]
    positions = [(f"train/{number:02}.jsonl", line) for number in range(20) for line in (1, 3)]
    for row in rows:
        assert [(document["file"], document["line"]) for document in row["documents"]] == positions
        assert all(document["grams"] == [item] for document in row["documents"])
    assert [path.read_text() for path in sorted((tmp_path / "out").iterdir())] == [lines(["nothing"], 1)] * 20
