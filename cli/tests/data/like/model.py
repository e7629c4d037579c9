#!/usr/bin/env python3
"""The rules of `bloomline corpus` once more, slowly: sets in the place of filters, and the package uniseg for the tokens.

    pip install uniseg==0.10.1
    model.py            # compares its result with each line of results.jsonl, and fails where they differ
"""
import json
import os
import sys
from dataclasses import dataclass

import uniseg.wordbreak

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass
class Rules:
    document: bool = False  # the unit is the document, not its paragraphs
    ngram: int = 13  # tokens of a gram; 0: the exact text is the unit's only gram
    min_ngram: int = 13  # a unit of fewer tokens than a gram, but of these at least, is one gram
    threshold: float = 0.8
    at_least: bool = False  # a share on the threshold is a duplicate
    claim_grams: bool = False  # each gram is inserted as it is read; units of fewer than two grams are compared as exact text
    drop_document: bool = False  # the document goes if the share over all its grams passes the threshold
    trim: bool = False
    ignore_case: bool = False
    keep_empty: bool = False


WHITE_SPACE = set("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {chr(c) for c in range(0x2000, 0x200B)}


def blank(text):
    return all(c in WHITE_SPACE for c in text)


def tokens(text):
    # A line feed always ends a word, so that the lines may be told apart before.
    return [word for line in text.split("\n") for word in uniseg.wordbreak.words(line) if not blank(word)]


def units(text, rules):
    """The bounds of the units, in characters. A text of nothing has no paragraph."""
    if not text and not rules.document:
        return []
    at = [] if rules.document else [i for i, c in enumerate(text) if c == "\n"]
    at = [0] + at + [len(text)]
    return list(zip(at, at[1:]))


def exact(text, rules):
    """The text as it is compared: a paragraph's own newline is no part of it."""
    if not rules.document:
        text = text.removeprefix("\n")
    if rules.trim:
        text = text.strip("".join(WHITE_SPACE))
    return "text", text.lower() if rules.ignore_case else text


def grams(text, rules):
    if rules.ngram == 0:
        return [exact(text, rules)]
    words = tokens(text)
    if len(words) >= rules.ngram:
        return [tuple(words[i : i + rules.ngram]) for i in range(len(words) - rules.ngram + 1)]
    return [tuple(words)] if len(words) >= rules.min_ngram and not rules.claim_grams else []


def passes(found, count, rules):
    return count > 0 and (found / count >= rules.threshold if rules.at_least else found / count > rules.threshold)


def process(text, seen, rules):
    """Bounds of what is cut, in bytes; None if the document goes."""
    cut, kept, all_found, all_count = [], "", 0, 0
    for start, end in units(text, rules):
        found = grams(text[start:end], rules)
        count, hits = len(found), 0
        if rules.claim_grams and rules.ngram > 0:
            for gram in found:
                hits += gram in seen
                seen.add(gram)
            if count < 2:
                whole = exact(text[start:end], rules)
                count, hits = 1, int(whole in seen)
                seen.add(whole)
        else:
            hits = sum(gram in seen for gram in found)
        all_found, all_count = all_found + hits, all_count + count
        if passes(hits, count, rules):
            cut.append([len(text[:start].encode()), len(text[:end].encode())])
        else:
            kept += text[start:end]
            seen.update(found)
    if rules.drop_document and passes(all_found, all_count, rules):
        return None
    return cut if rules.keep_empty or not blank(kept) else None


MODES = {
    "dclm-paragraph-20": Rules(ngram=20, min_ngram=20),
    "dclm-paragraph-13": Rules(),
    "dclm-paragraph-5-13-half": Rules(min_ngram=5, threshold=0.5),
    "dclm-document-20": Rules(document=True, ngram=20, min_ngram=20),
    "dclm-document-13": Rules(document=True),
    "dclm-document-5-13-half": Rules(document=True, min_ngram=5, threshold=0.5),
    "dclm-old-both-20": Rules(ngram=20, min_ngram=20, drop_document=True),
    "dclm-old-both-13": Rules(drop_document=True),
    "dclm-old-both-5-13-half": Rules(min_ngram=5, threshold=0.5, drop_document=True),
    "dclm-exact": Rules(document=True, ngram=0),
    "bff-paragraph": Rules(min_ngram=5, keep_empty=True),
    "bff-document": Rules(document=True, min_ngram=5, keep_empty=True),
    "bff-whole-paragraph": Rules(ngram=10**9, min_ngram=5, keep_empty=True),
    "dolma-paragraph": Rules(ngram=0, keep_empty=True),
    "dolma-ngram-13-0.8": Rules(at_least=True, claim_grams=True, keep_empty=True),
    "dolma-ngram-5-0.5": Rules(ngram=5, threshold=0.5, at_least=True, claim_grams=True, keep_empty=True),
    "dolma-ngram-13-1.0": Rules(threshold=1.0, at_least=True, claim_grams=True, keep_empty=True),
    "dolma-document": Rules(document=True, ngram=0, keep_empty=True),
    "c4-line": Rules(ngram=0, trim=True, ignore_case=True),
}


def lines(name):
    with open(os.path.join(HERE, name + ".jsonl"), encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def main():
    docs = [d["text"] for d in lines("documents")]
    failed = 0
    results = lines("results")
    assert [r["mode"] for r in results] == list(MODES)
    for name, rules in MODES.items():
        seen, expected = set(), results.pop(0)["cut"]
        assert len(expected) == len(docs)
        wrong = 0
        for i, (text, theirs) in enumerate(zip(docs, expected)):
            ours = process(text, seen, rules)
            if ours != theirs:
                wrong += 1
                if wrong <= 3:
                    print(f"{name} document {i}: {ours} here, {theirs} there: {text!r}")
        print(f"{name:24} {len(docs)} documents, {wrong} differ")
        failed += wrong
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
