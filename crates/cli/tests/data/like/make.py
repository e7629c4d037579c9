#!/usr/bin/env python3
"""Makes results.jsonl with the tools: what each of them removed from documents.jsonl. README.md says what is in them.

    make.py DCLM BFF DOLMA     # paths of the tools' binaries
"""
import gzip
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DOCUMENTS = os.path.join(HERE, "documents.jsonl")


def paragraphs(text):
    """[start, end] of each paragraph, in bytes: from its leading newline to before the next one."""
    data = text.encode()
    at = [0] + [i for i, byte in enumerate(data) if byte == 10] + [len(data)]
    return [list(pair) for pair in zip(at, at[1:])]


def cut(text, spans):
    data = text.encode()
    out, last = b"", 0
    for start, end in spans:
        out += data[last:start]
        last = end
    return (out + data[last:]).decode()


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def lines_of(path):
    if not os.path.exists(path):
        return []
    with gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file.read().split("\n") if line]


def numbered(docs):
    """The same documents with their number as id."""
    return "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(docs))


def dclm(tool, docs, megabytes, *options):
    """Spans as `--annotate` tells them; None for a document that is not in the output. `exact` has no spans."""
    with tempfile.TemporaryDirectory() as work:
        os.mkdir(f"{work}/in")
        with open(f"{work}/in/a.jsonl", "w") as out:
            out.write(numbered(docs))
        # 48 bits for each gram keep this rate.
        common = ("--inputs", f"{work}/in", "--expected-ngram-count", str(megabytes * 2**20 // 6), "--fp-rate", "1e-10", "-t", "1", "--no-progress-bar")
        run(tool, "bff", *common, "--output-directory", f"{work}/kept", *options)
        run(tool, "bff", *common, "--output-directory", f"{work}/notes", "--annotate", *options)
        kept = {d["id"]: d["text"] for d in lines_of(f"{work}/kept/a.jsonl")}
        notes = {d["id"]: d.get("bff_duplicate_spans") for d in lines_of(f"{work}/notes/a.jsonl")}
    out = []
    for i, text in enumerate(docs):
        spans = notes.get(i) or []
        assert i not in kept or kept[i] == cut(text, spans), (i, kept[i], spans)
        out.append(spans if i in kept else None)
    return out


def bff(tool, docs, megabytes, *options):
    with tempfile.TemporaryDirectory() as work:
        with gzip.open(f"{work}/a.jsonl.gz", "wt") as out:
            out.write(numbered(docs))
        results = []
        for note in ((), ("--annotate-only",)):
            os.mkdir(f"{work}/out{len(results)}")
            run(tool, "--bloom-filter-file", f"{work}/f{len(results)}", "--bloom-filter-size", str(megabytes * 2**20),
                "--expected-ngram-count", str(megabytes * 2**20 // 6), "-t", "1", *options, *note, "-o", f"{work}/out{len(results)}", f"{work}/a.jsonl.gz")
            results.append(lines_of(f"{work}/out{len(results)}/a.jsonl.gz"))
    kept, notes = results
    assert [d["id"] for d in kept] == list(range(len(docs)))
    for text, d, note in zip(docs, kept, notes):
        assert d["text"] == cut(text, note["bff_duplicate_spans"])
    return [note["bff_duplicate_spans"] for note in notes]


def dolma(tool, docs, megabytes, *options):
    """dolma's spans are characters from the start of a paragraph to after its newline: told as the paragraphs above."""
    with tempfile.TemporaryDirectory() as work:
        os.mkdir(f"{work}/documents")
        with open(f"{work}/documents/a.jsonl", "w") as out:
            out.write(numbered(docs))
        run(tool, "dedupe", "--documents", f"{work}/documents/*.jsonl", "--bloom_filter.file", f"{work}/filter",
            "--bloom_filter.size_in_bytes", str(megabytes * 2**20), "--no-bloom_filter.read_only", "--bloom_filter.estimated_doc_count",
            str(megabytes * 2**20 // 6), "--processes", "1", "--dedupe.name", "x", *options)
        spans = [d["attributes"].get("x") or [] for d in lines_of(f"{work}/attributes/x/a.jsonl")]
    assert len(spans) == len(docs)
    out = []
    for text, found in zip(docs, spans):
        if "--dedupe.documents.key" in options:
            out.append([[0, len(text.encode())]] if found else [])
            continue
        # Where dolma says that a paragraph begins: after the last newline of an ASCII text it counts one character less.
        starts, offset = [], 0
        for part in text.split("\n"):
            starts.append(offset)
            offset += len(part)
            offset += offset < len(text.encode()) - 1
        todo = [f[0] for f in found]
        windows = []
        for start, window in zip(starts, paragraphs(text)):
            if todo and todo[0] == start:
                windows.append(window)
                del todo[0]
        assert not todo, (text, starts, found)
        out.append(windows)
    return out


def c4(docs):
    """The rules of C4 (tensorflow_datasets/text/c4_utils.py) in plain Python: each line stays in one page, which is the first here."""
    page_of = {}
    for page, text in enumerate(docs):
        for row in text.split("\n"):
            page_of.setdefault(row.strip().lower(), page)
    out = []
    for page, text in enumerate(docs):
        kept, cut_rows, seen = [], [], set()
        for row, window in zip(text.split("\n"), paragraphs(text)):
            key = row.strip().lower()
            if page_of[key] != page or key in seen:
                cut_rows.append(window)
            else:
                kept.append(row)
                seen.add(key)
        out.append(cut_rows if "\n".join(kept).strip() else None)
    return out


def results(dclm_tool, bff_tool, dolma_tool):
    thirteen = ("--min-ngram-size", "13", "--max-ngram-size", "13")
    modes = {}
    for mode in ("paragraph", "document"):
        modes[f"dclm-{mode}-20"] = (dclm, dclm_tool, "--remove-type", mode)
        modes[f"dclm-{mode}-13"] = (dclm, dclm_tool, "--remove-type", mode, *thirteen)
        modes[f"dclm-{mode}-5-13-half"] = (dclm, dclm_tool, "--remove-type", mode, "--min-ngram-size", "5", "--max-ngram-size", "13", "--filtering-threshold", "0.5")
    modes["dclm-exact"] = (dclm, dclm_tool, "--remove-type", "exact")
    modes["bff-paragraph"] = (bff, bff_tool)
    modes["bff-document"] = (bff, bff_tool, "--whole-document")
    modes["bff-whole-paragraph"] = (bff, bff_tool, "--whole-paragraphs")
    modes["dolma-paragraph"] = (dolma, dolma_tool, "--dedupe.paragraphs.attribute_name", "x")
    modes["dolma-document"] = (dolma, dolma_tool, "--dedupe.documents.attribute_name", "x", "--dedupe.documents.key", "$.text")
    docs = [d["text"] for d in lines_of(DOCUMENTS)]
    modes["c4-line"] = (lambda _, docs, *__: c4(docs), None)
    with open(os.path.join(HERE, "results.jsonl"), "w") as out:
        for name, (function, tool, *options) in modes.items():
            found = function(tool, docs, 64, *options)
            assert found == function(tool, docs, 24, *options), f"{name}: another filter gave another result"
            out.write(json.dumps({"mode": name, "cut": found}, separators=(",", ":")) + "\n")
            print(f"{name:24} dropped {sum(s is None for s in found):4}  cut {sum(len(s or []) for s in found):4}")


if __name__ == "__main__":
    results(*sys.argv[1:])
