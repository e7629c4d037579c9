#!/usr/bin/env python3
"""Near duplicates: bloomline beside MinHashLSH and MinHashLSHBloom of datasketch, and all of them beside exact Jaccard.

    pip install 'datasketch[bloom]'
    cargo bench -p bloomline-benches --bench near --no-run
    benches/near.py target/release/deps/near-… ~/.cargo/registry/src

The text files of the folders give words. Of these are made 5,000 documents of 60 to 400 words, and three copies of each in
which words were replaced, inserted or removed, so that their similarity to the original is anything from 0.3 to 1. The
similarity is that of the sets of 5-grams. A document is alike if an earlier one that the tool kept has at least 0.8. All tools
get the same grams, permutations, similarity and rate of false positives for a document. datasketch gets the grams ready-made.
"""

import random
import re
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from datasketch import MinHash, MinHashLSH, MinHashLSHBloom

ORIGINALS, COPIES, NGRAM, SIMILARITY, RATE = 5000, 3, 5, 0.8, 1e-3


def originals(folders):
    files = sorted(path for folder in folders for path in Path(folder).rglob("*") if path.suffix in (".md", ".rs", ".txt"))
    random.shuffle(files)
    made = 0
    for file in files:
        words = re.findall("[a-z]+", file.read_text(errors="replace").lower())[:2000]
        while len(words) >= 60:
            length = random.randint(60, 400)
            yield words[:length]
            words = words[length:]
            made += 1
            if made == ORIGINALS:
                return


def edited(words, similarity):
    words = list(words)
    # An edit changes up to NGRAM of the n grams: (n - e) / (n + e) = similarity.
    edits = len(words) * (1 - similarity) / (1 + similarity) / NGRAM
    for _ in range(int(edits + random.random())):
        at = random.randrange(len(words))
        match random.randrange(3):
            case 0:
                words[at] = random.choice(words)
            case 1:
                words.insert(at, random.choice(words))
            case 2:
                del words[at]
    return words


def grams(words):
    return {" ".join(words[i : i + NGRAM]).encode() for i in range(len(words) - NGRAM + 1)}


def overlaps(documents):
    """For each document the earlier ones that share a gram, and their similarities."""
    posts, sizes = defaultdict(list), np.array([len(document) for document in documents])
    for i, document in enumerate(documents):
        lists = [posts[gram] for gram in document]
        others, both = np.unique(np.concatenate([np.array(found, dtype=np.int64) for found in lists]), return_counts=True)
        yield others, both / (sizes[i] + sizes[others] - both)
        for found in lists:
            found.append(i)


def score(similarities, found):
    """Recall, precision, and the documents that are alike; and the share found by similarity."""
    found = np.array(found)
    most = np.array([max(values[~found[others]], default=0.0) for others, values in similarities])
    alike = most >= SIMILARITY
    bins = [(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 0.95), (0.95, 1.01)]
    curve = " ".join(f"{found[(most >= a) & (most < b)].mean():.3f}" for a, b in bins)
    return (found & alike).sum() / alike.sum(), (found & alike).sum() / found.sum(), alike.sum(), curve


def signatures(documents, permutations):
    prototype = MinHash(num_perm=permutations)
    start = time.process_time()
    result = []
    for document in documents:
        signature = prototype.copy()
        signature.update_batch(list(document))
        result.append(signature)
    return result, (time.process_time() - start) / len(documents)


def claim_lsh(index, signatures):
    found = []
    for i, signature in enumerate(signatures):
        found.append(bool(index.query(signature)))
        if not found[-1]:
            index.insert(i, signature)
    return found


def claim_bloom(index, signatures):
    found = []
    for signature in signatures:
        found.append(bool(index.query(signature)))
        if not found[-1]:
            index.insert(signature)
    return found


def main():
    program, *folders = sys.argv[1:]
    warnings.simplefilter("ignore")
    random.seed(1)
    texts = list(originals(folders))
    texts += [edited(words, random.uniform(0.3, 1)) for words in texts for _ in range(COPIES)]
    random.shuffle(texts)
    documents = [grams(words) for words in texts]
    similarities = list(overlaps(documents))
    pairs = sum(int((values >= SIMILARITY).sum()) for _, values in similarities)
    size = sum(len(" ".join(words)) for words in texts)
    print(f"{len(texts)} documents, {np.mean([len(d) for d in documents]):.0f} grams and {size / len(texts):.0f} bytes each, {pairs} pairs alike")

    def report(name, signed, claimed, memory, found):
        recall, precision, alike, curve = score(similarities, found)
        print(
            f"{name:28} hash {signed * 1e6:8.1f} us claim {claimed * 1e6:7.2f} us {memory:>11,} bytes"
            f" flagged {sum(found)} alike {alike} recall {recall:.3f} precision {precision:.3f} | {curve}"
        )

    for permutations in (128, 256):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("".join(" ".join(words) + "\n" for words in texts))
            file.flush()
            command = [program, file.name, str(SIMILARITY), str(permutations), str(RATE)]
            figures, flags = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
        signed, claimed, memory, bands, rows = map(int, figures.split())
        print(f"{permutations} permutations, {bands} bands of {rows} rows")
        report("bloomline", signed / 1e9, claimed / 1e9, memory, [flag == "1" for flag in flags])

        sketches, signed = signatures(documents, permutations)
        index = MinHashLSH(threshold=SIMILARITY, num_perm=permutations)
        assert (index.b, index.r) == (bands, rows)
        start = time.process_time()
        found = claim_lsh(index, sketches)
        claimed = (time.process_time() - start) / len(texts)
        tracemalloc.start()
        kept = MinHashLSH(threshold=SIMILARITY, num_perm=permutations)
        before = tracemalloc.get_traced_memory()[0]
        claim_lsh(kept, sketches)
        memory = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        report("datasketch MinHashLSH", signed, claimed, memory, found)

        bloom = MinHashLSHBloom(
            threshold=SIMILARITY, num_perm=permutations, n=len(texts), fp=1 - (1 - RATE) ** (1 / bands)
        )
        start = time.process_time()
        found = claim_bloom(bloom, sketches)
        claimed = (time.process_time() - start) / len(texts)
        memory = sum(table.bloom_filter.num_bits // 8 for table in bloom.hashtables)
        report("datasketch MinHashLSHBloom", signed, claimed, memory, found)


if __name__ == "__main__":
    main()
