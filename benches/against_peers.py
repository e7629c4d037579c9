#!/usr/bin/env python3
"""The short tests of `against_short.py`, found by AI2's decon and by datatrove's n-gram decontamination.

    benches/against.py target/release/bloomline /tmp/against    # makes the folder
    benches/against_peers.py /tmp/against decon/target/release/decon    # with datatrove 0.9 and spaCy in the environment

decon runs with its default, and with the smallest items and steps that its options allow. datatrove takes n-grams of words from
the tests, without their answers, by spaCy's tokenizer of the language.
"""

import gzip
import json
import shutil
import sys
import time
from pathlib import Path

from against_short import CHANGES, ITEMS, SETS, WIDE, Planted, timed, told

DECON = {
    "decon": [],
    "decon, small": ["--ngram-size", "2", "--sample-every-m-tokens", "1", "--eval-min-token-length", "0"]
    + ["--eval-min-unique-word-count", "0", "--tokenizer", "uniseg"],
}
DATATROVE = {"en": "en", "de": "de", "fr": "fr", "ja": "ja", "zh": "zh", "code": "en"}


def kept(folder):
    for path in folder.rglob("*.jsonl*"):
        lines = gzip.open(path, "rt") if path.suffix == ".gz" else path.open()
        yield from (json.loads(line)["id"] for line in lines)


def decon(program, own, options, documents):
    for name in ("training", "evals", "report", "cleaned"):
        shutil.rmtree(own / name, ignore_errors=True)
    for name in ("training", "evals"):
        (own / name).mkdir()
    shutil.copy(own / "documents.jsonl", own / "training")
    items = [json.loads(line) for line in (own / "tests.jsonl").read_text().splitlines()]
    rows = [{"doc_id": i, "eval_key": "short", "question": item["text"]} | {k: item[k] for k in ("answer",) if k in item} for i, item in enumerate(items)]
    (own / "evals" / "short.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    folders = [x for name in ("training-dir", "evals-dir", "report-output-dir", "cleaned-output-dir") for x in (f"--{name}", str(own / name.split("-")[0]))]
    _, seconds = timed([program, "detect", *folders, "--worker-threads", "1", "--purify", *options])
    return set(range(documents)) - set(kept(own / "cleaned")), seconds


def datatrove(language, own, n, documents):
    """Its own functions for text, words and hashes, without its pipeline."""
    from datatrove.pipeline.decont.n_grams import NGramsDecontConfig
    from datatrove.utils.text import ngrams, simplify_text
    from datatrove.utils.word_tokenizers import load_word_tokenizer

    config = NGramsDecontConfig(n_grams=n)
    tokenizer = load_word_tokenizer(DATATROVE[language])
    def grams(text):
        return set(ngrams(tokenizer.word_tokenize(simplify_text(text, config.norm_config)), n))

    known = set().union(*(grams(json.loads(line)["text"]) for line in (own / "tests.jsonl").read_text().splitlines()))
    texts = [json.loads(line)["text"] for line in (own / "documents.jsonl").read_text().splitlines()]
    start = time.process_time()
    gone = {i for i, text in enumerate(texts) if not known.isdisjoint(grams(text))}
    return gone, time.process_time() - start


def main():
    folder, program = Path(sys.argv[1]), sys.argv[2]
    for of, rule in SETS.items():
        for language in rule.paths:
            wide = language in WIDE
            planted = Planted(folder / "root", language, of, *((6, 20) if wide else (5, 12)), ITEMS, list(CHANGES))
            own = folder / f"{language}-peers"
            planted.write(own)
            kilobytes = sum(len(text.encode()) for text, _, _ in planted.rows) / 1000
            for name, options in DECON.items():
                gone, seconds = decon(program, own, options, len(planted.rows))
                print(f"{language} {name:14} {told(planted.counts(gone))}; {1e6 * seconds / kilobytes:.1f} µs a kB", flush=True)
            for n in (12, 5):
                gone, seconds = datatrove(language, own, n, len(planted.rows))
                print(f"{language} datatrove, {n:2} {told(planted.counts(gone))}; {1e6 * seconds / kilobytes:.1f} µs a kB", flush=True)


if __name__ == "__main__":
    main()
