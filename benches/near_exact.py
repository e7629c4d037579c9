#!/usr/bin/env python3
"""Near duplicates: `bloomline corpus --near 0.8` beside exact Jaccard, the formula of its bands, and three tools.

    pip install datasketch 'datatrove[processing]' orjson spacy
    pip install text-dedup    (in an environment of its own)
    benches/near_exact.py target/release/bloomline ~/.cargo/registry/src [PYTHON_WITH_TEXT_DEDUP]

The documents are those of near.py, with one copy of each original for the recall, so that no third document connects a
pair, and with three for the times. A cluster is precise if each member is similar to its first one, which is kept. The recall is that of
the pairs of an original and its copy, beside the mean of the formula at their similarities.

A tool's time is the user and system time of its process on one core, less that for ten documents: without the start of Python.
`templates` has documents of one template, most of which share a band.

datasketch gets its grams ready-made, and verifies nothing. Nor do datatrove, with its 14 bands of 8 rows, and text-dedup.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from near import SIMILARITY, edited, grams, originals

BANDS, ROWS = 9, 13

DATASKETCH = """
import json, sys, time
from datasketch import MinHash, MinHashLSH
documents = []
for line in open(sys.argv[1]):
    words = json.loads(line)["text"].split()
    documents.append({" ".join(words[i : i + 5]).encode() for i in range(len(words) - 4)})
start = time.process_time()
prototype, index = MinHash(num_perm=128), MinHashLSH(threshold=0.8, num_perm=128)
for i, document in enumerate(documents):
    signature = prototype.copy()
    signature.update_batch(list(document))
    index.query(signature)
    index.insert(i, signature)
print(time.process_time() - start)
"""

DATATROVE = """
import sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig
file, work = sys.argv[1:]
config = MinhashConfig(hash_config=HashConfig(precision=64), num_buckets=14, hashes_per_bucket=8, n_grams=5)
reader = lambda: JsonlReader(file.rpartition("/")[0], glob_pattern=file.rpartition("/")[2])
stages = [
    ([reader(), MinhashDedupSignature(f"{work}/signatures", config=config)], 1),
    ([MinhashDedupBuckets(f"{work}/signatures", f"{work}/buckets", config=config)], 14),
    ([MinhashDedupCluster(f"{work}/buckets", f"{work}/remove", config=config)], 1),
    ([reader(), MinhashDedupFilter(f"{work}/remove"), JsonlWriter(f"{work}/out", compression=None)], 1),
]
for number, (pipeline, tasks) in enumerate(stages):
    LocalPipelineExecutor(pipeline, tasks=tasks, workers=1, logging_dir=f"{work}/logs{number}").run()
"""


def write(path, texts):
    path.write_text("".join(json.dumps({"text": " ".join(words)}) + "\n" for words in texts))


def jaccard(a, b):
    return len(a & b) / len(a | b)


def run(command):
    """The seconds that a command takes, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = subprocess.run(["taskset", "-c", "0", *map(str, command)], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr[-2000:]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, told.stdout


def quality(bloomline, folder, texts):
    copies = [edited(words, random.uniform(0.3, 1)) for words in texts]
    order = list(range(2 * len(texts)))
    random.shuffle(order)
    all_texts = texts + copies
    write(folder / "pairs.jsonl", [all_texts[i] for i in order])
    command = [bloomline, "corpus", "-q", "--near", SIMILARITY, "--clusters", folder / "clusters", folder / "pairs.jsonl"]
    run([*command, "-o", folder / "kept"])
    documents = [grams(words) for words in all_texts]
    cluster, members, precise = {}, 0, 0
    for number, line in enumerate((folder / "clusters").read_text().splitlines()):
        these = [order[member["line"] - 1] for member in json.loads(line)["members"]]
        cluster.update((one, number) for one in these)
        members += len(these)
        precise += sum(
            jaccard(documents[one], documents[these[0]]) >= SIMILARITY for one in these
        )
    similar = [(i, jaccard(documents[i], documents[i + len(texts)])) for i in range(len(texts))]
    similar = [(i, s) for i, s in similar if s >= SIMILARITY]
    found = sum(i in cluster and cluster[i] == cluster.get(i + len(texts)) for i, _ in similar)
    formula = sum(1 - (1 - s**ROWS) ** BANDS for _, s in similar)
    print(
        f"{len(order)} documents, {len(similar)} similar pairs: precision {precise / members:.4f} of {members} members,"
        f" recall {found / len(similar):.4f}, by the formula {formula / len(similar):.4f}"
    )


def times(bloomline, folder, texts, other_python=None):
    texts = texts + [edited(words, random.uniform(0.3, 1)) for words in texts for _ in range(3)]
    random.shuffle(texts)
    write(folder / "all.jsonl", texts)
    write(folder / "few.jsonl", texts[:10])
    ours = [bloomline, "corpus", "-q", "-j", "1", "--near", SIMILARITY, "-o", folder / "out"]
    theirs = "--split train --column text --ngram 5 --min_length 0 --num_perm 128 --threshold 0.8 --num_proc 1".split()
    tools = {
        "bloomline --near": lambda file: run([*ours, file]),
        "bloomline, one reading": lambda file: run([*ours, "--checkpoint", "1h", "-s", tempfile.mktemp(dir=folder), "--force", file]),
        "bloomline --near --pairs": lambda file: run([*ours, "--pairs", folder / "told", file]),
        "datasketch MinHashLSH": lambda file: (float(run([sys.executable, "-c", DATASKETCH, file])[1]), ""),
        "datatrove 14 x 8": lambda file: run([sys.executable, "-c", DATATROVE, file, tempfile.mkdtemp(dir=folder)]),
    }
    if other_python:
        minhash = [other_python, "-m", "text_dedup.minhash", "--path", "json", *theirs, "--cache_dir", folder / "cache"]
        tools["text-dedup minhash"] = lambda file: run([*minhash, "--data_files", file, "--output", tempfile.mkdtemp(dir=folder)])
    size = (folder / "all.jsonl").stat().st_size
    print(f"{len(texts)} documents, {size / 1e6:.0f} MB")
    for name, tool in tools.items():
        rounds = 7 if name.startswith("bloomline") else 1
        seconds = min(tool(folder / "all.jsonl")[0] for _ in range(rounds)) - tool(folder / "few.jsonl")[0]
        print(f"{name:26} {seconds:8.3f} s {size / 1e6 / seconds:8.1f} MB/s")


def templates(bloomline, folder):
    """Documents of one template, of which a few words are others in each: the seconds for more and more of them."""

    def document(words, places):
        words = list(words)
        for place in places:
            words[place] = f"u{random.randrange(10**9)}"
        return words

    words = [f"t{random.randrange(10**9)}" for _ in range(300)]
    kinds = {
        "similar": lambda: range(100, 104),
        "one place": lambda: range(100, 136),
        "anywhere": lambda: [random.randrange(300) for _ in range(5)],
    }
    for name, places in kinds.items():
        for count in (1000, 2000, 4000, 8000, 16000):
            write(folder / "template.jsonl", [document(words, places()) for _ in range(count)])
            command = [bloomline, "corpus", "-j", "1", "--near", SIMILARITY, "-o", folder / "out"]
            print(f"{name:10} {count:6} documents {run([*command, folder / 'template.jsonl'])[0]:8.3f} s")


def main():
    bloomline, source, *other_python = [Path(path).absolute() for path in sys.argv[1:]]
    os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    random.seed(1)
    texts = list(originals([source]))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # Python finds no folder of this repository as a module there.
        templates(bloomline, Path(folder))
        quality(bloomline, Path(folder), texts)
        times(bloomline, Path(folder), texts, *other_python)


main()
