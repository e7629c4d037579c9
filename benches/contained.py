#!/usr/bin/env python3
"""Near duplicates with and without `--contained`: how many true pairs are found, and how much text is lost.

    benches/corpus.py FOLDER    # makes FOLDER/corpus.jsonl
    benches/contained.py target/release/bloomline FOLDER/corpus.jsonl [OTHER_BLOOMLINE]

From pages of the corpus, 4,000 documents of 60 to 400 words are made, each with an edited copy, a similarity of 0.5 to 1 apart.
2,000 documents are of 20 templates of 200 to 400 words, with 10 to 40 words of their own, from other pages. A pair is found if
one of it is removed. Lost grams are the distinct sequences of five or three words that no kept document has.

The last lines compare the containment by grams of five words with that by three, for pairs of an original and its copy.
"""

import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def grams(words, length=5):
    return {hash(gram) for gram in zip(*(words[i:] for i in range(length)))}


def edited(words, similarity):
    words = list(words)
    # An edit changes up to five of the n grams: (n - 5e) / (n + 5e) = similarity.
    for _ in range(int(len(words) * (1 - similarity) / (1 + similarity) / 5 + random.random())):
        at = random.randrange(len(words))
        words[at : at + random.randrange(2)] = [random.choice(words)] * random.randrange(2)
    return words


def pieces(path):
    """Pieces of pages of which less than a fifth occurred before."""
    seen = set()
    with open(path) as lines:
        for line in lines:
            words = re.findall("[a-z]+", json.loads(line)["text"].lower())
            at = 0
            while at + 400 < len(words):
                own = grams(words[at : at + 400])
                if 5 * len(own & seen) < len(own):
                    yield words[at : at + 400]
                seen |= own
                at += 400


def main():
    bloomline, corpus, *other = [Path(path).absolute() for path in sys.argv[1:]]
    random.seed(1)
    source = pieces(corpus)
    documents, pairs = [], []
    for _ in range(4000):
        words = next(source)[: random.randint(60, 400)]
        copy = edited(words, random.uniform(0.5, 1))
        pairs.append((len(documents), len(documents) + 1))
        documents += [words, copy]
    templates = len(documents)
    for _ in range(20):
        words = next(source)[: random.randint(200, 400)]
        for _ in range(5):
            own = next(source)
            for at in range(0, 400, 20):
                documents.append(words + own[at : at + random.randint(10, 20)])
    sets = {length: [grams(words, length) for words in documents] for length in (5, 3)}
    everything = {length: set().union(*own) for length, own in sets.items()}

    def jaccard(a, b):
        return len(sets[5][a] & sets[5][b]) / len(sets[5][a] | sets[5][b])

    true = [pair for pair in pairs if jaccard(*pair) >= 0.8]
    print(f"{len(documents)} documents, {len(true)} pairs of 0.8 and more")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "in.jsonl")
        path.write_text("".join(json.dumps({"id": i, "text": " ".join(words)}) + "\n" for i, words in enumerate(documents)))
        runs = [("before", [other[0], "--exact"])] if other else []
        runs += [(f"--contained {share}", [bloomline, "--contained", share, "--keep", "longest"]) for share in "0 0.8 0.9 0.95 1".split()]
        for name, (program, *options) in runs:
            command = [program, "corpus", "-q", "--near", "0.8", *options, path]
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            kept = {json.loads(line)["id"] for line in told.splitlines()}
            found = sum(a not in kept or b not in kept for a, b in true)
            gone = sum(i not in kept for i in range(templates, len(documents)))
            lost = [100 * len(every - set().union(*(sets[length][i] for i in kept))) / len(every) for length, every in everything.items()]
            print(
                f"{name:16} pairs found {found / len(true):.3f}, of templates removed {gone} of {len(documents) - templates},"
                f" grams lost: of five words {lost[0]:.2f} %, of three {lost[1]:.2f} %"
            )

    def containment(length, a, b):
        return len(sets[length][a] & sets[length][b]) / len(sets[length][a])

    both = [(containment(5, b, a), containment(3, b, a)) for a, b in true]
    print("median containment by five words {:.3f}, by three {:.3f}".format(*map(statistics.median, zip(*both))))
    for five in (0.8, 0.9, 0.95):
        best = max((sum((a >= five) == (b >= three / 1000) for a, b in both), three / 1000) for three in range(700, 1000, 5))
        print(f"--contained {five} by five words is as {best[1]} by three for {best[0] / len(both):.3f} of the pairs")


main()
