"""Groups of equal documents: the command beside a model, with random documents."""

import json
import pathlib
import tempfile
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import examples
from trips import bloomline

Document = dict[str, Any]

SCORES = st.one_of(
    st.integers(-3, 3),
    st.floats(-3, 3, width=16),
    st.sampled_from([2**53, 2**53 + 1, 1e16, None, False, True, [1]]),
    st.sampled_from(["", "7", "2026-11-01", "2026-11-01T10:00:00Z", "2026-11-01T10:00:00.5Z", "2026-11-01T11:00:00.2+01:00", "2026-11-02", "é"]),
)
DOCUMENTS = st.lists(
    st.fixed_dictionaries(
        {"text": st.sampled_from(["a", "b", "c", "中文", "ไทย", "עברית", "a\u0301", "👩‍🚀\n", " a"])},
        optional={"score": SCORES, "source": st.sampled_from(["books", "web", "é", 1])},
    ),
    max_size=20,
)


Rank = tuple[int, Any]


def by_score(sign: int) -> Callable[[Document], Rank]:
    def rank(document: Document) -> Rank:
        match document.get("score"):
            # Truth values are integers too.
            case int() | float() as number:
                return (0, sign * number)
            case str(text):
                if "T" in text:
                    text = datetime.fromisoformat(text).astimezone(timezone.utc).replace(tzinfo=None).isoformat()
                # A text that begins another is less.
                return (1, [sign * byte for byte in text.encode()] + [-sign])
        return (2, 0)

    return rank


def by_source(document: Document) -> Rank:
    order = ["é", "books"]
    return (0, order.index(document["source"])) if document.get("source") in order else (1, 0)


CHOICES: dict[str, Callable[[Document], Rank]] = {
    "first": lambda _: (0, 0),
    "last": lambda document: (0, -document["id"]),
    "max:/score": by_score(-1),
    "min:score": by_score(1),
    "order:/source=é,books": by_source,
}


@pytest.mark.parametrize("keep", CHOICES)
@settings(max_examples=examples(12))
@given(files=st.lists(DOCUMENTS, min_size=1, max_size=3), counted=st.booleans(), options=st.sampled_from(["", "-n 1 -p 0.5"]))
def test_the_best_document_of_a_group_is_kept(keep: str, files: list[list[Document]], counted: bool, options: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        positions: list[tuple[str, int]] = []
        documents: list[Document] = []
        for number, file in enumerate(files):
            with open(folder / f"{number}.jsonl", "w") as lines:
                for line, document in enumerate(file, 1):
                    document["id"] = len(documents)
                    documents.append(document)
                    positions.append((f"{number}.jsonl", line))
                    lines.write(json.dumps(document, ensure_ascii=bool(line % 2)) + "\n")
        groups: dict[str, list[Document]] = {}
        for document in documents:
            groups.setdefault(document["text"], []).append(document)
        best = {text: min(group, key=CHOICES[keep]) for text, group in groups.items()}

        def told(document: Document) -> Document:
            file, line = positions[document["id"]]
            return {"file": file, "line": line, "id": document["id"]}

        arguments = f"--by document --ngram 0 --keep {keep} --pairs pairs --clusters clusters --id /id -q {options}".split()
        arguments += ["--count"] if counted else []
        inputs = [f"{number}.jsonl" for number in range(len(files))]
        output = bloomline(folder, "corpus", *arguments, *inputs).stdout
        kept = [document for document in documents if best[document["text"]] is document]
        if counted:
            kept = [{**document, "count": len(groups[document["text"]])} for document in kept]
        assert [json.loads(line) for line in output.splitlines()] == kept

        def reported(report: str) -> list[Document]:
            return [json.loads(line) for line in (folder / report).read_text().splitlines()]

        gone = [document for document in documents if best[document["text"]] is not document]
        assert reported("pairs") == [{**told(document), "kept": told(best[document["text"]])} for document in gone]
        several = [(best[text], group) for text, group in groups.items() if len(group) > 1]
        several.sort(key=lambda pair: pair[0]["id"])
        clusters = []
        for number, (stays, group) in enumerate(several, 1):
            members = [stays, *(document for document in group if document is not stays)]
            clusters.append({"cluster": number, "size": len(group), "members": [told(member) for member in members]})
        assert reported("clusters") == clusters
