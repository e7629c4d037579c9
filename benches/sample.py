#!/usr/bin/env python3
"""Sampled grams: what `corpus --sample` decides otherwise, what it saves, and how a run grows with its text.

    benches/corpus.py /tmp/large && benches/sample.py languages /tmp/large  # as root on Debian 12, after `apt-get update`
    benches/sample.py decisions target/release/bloomline /tmp/large/corpus.jsonl /tmp/large/{de,fr,es,ja,zh}.jsonl
    benches/sample.py new-units target/release/bloomline
    benches/sample.py scale target/release/bloomline /tmp/large/corpus.jsonl /tmp/scale 1 3 10  # GB

`languages` makes texts of manuals in five languages. `decisions` compares the bytes that a run cuts with those of a run without
false positives; the memory is that of a filter whose expected wrong removals are those of all grams at 0.01. `new-units` counts
removed units of random words beside the binomial formula. `scale` repeats a corpus with other letters, so that no gram of 13 words
occurs in two repetitions, and runs the stages of docs/CORPUS.md, from zstd to nowhere; then a run is killed and resumed. 10 GB take
4 GB of disk.
"""
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from math import comb
from pathlib import Path

import corpus

LANGUAGES = {"de": "de", "fr": "fr", "es": "es", "ja": "ja", "zh": "zh-cn"}
MANUALS = ("libreoffice-help", "gimp-help", "debian-reference")
LETTERS = "aghjklmpqvwyz"
SAMPLES = (4, 16, 32, 64)


def languages(folder):
    for language, suffix in LANGUAGES.items():
        corpus.PACKAGES = [f"{manual}-{suffix}" for manual in MANUALS]
        (folder / "debs").mkdir(parents=True, exist_ok=True)
        with open(folder / f"{language}.jsonl", "w") as out:
            for _, _, key, path in sorted(corpus.pages(folder)):
                if path.suffix in (".html", ".htm"):
                    parts = corpus.of_html(corpus.decoded(path.read_bytes()))
                    # Five words, or ten characters of three bytes.
                    text = "\n".join(part for part in parts if part.count(" ") >= 4 or len(part.encode()) - len(part) >= 20)
                    if len(text) >= 200:
                        out.write(json.dumps({"id": key, "text": text}, ensure_ascii=False) + "\n")


def run(arguments, **options):
    """Returns the statistics of a run, its CPU seconds and its largest memory in bytes."""
    before = time.monotonic()
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, **options)
    messages = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(messages)
    figures = json.loads(messages.splitlines()[-1]) if messages else {}
    return figures | {"cpu": usage.ru_utime + usage.ru_stime, "rss": usage.ru_maxrss * 1024, "wall": time.monotonic() - before}


def cuts(bloomline, file, options):
    """Returns the bytes of each document that are cut, as a set of spans, with the figures of the run."""
    with tempfile.TemporaryDirectory() as folder:
        out, state = f"{folder}/out", f"{folder}/state"
        command = [bloomline, "corpus", "--stats=json", "--annotate", "-q", "-j1", "-o", out, "--state", state, *options, file]
        figures = run(command)
        info = json.loads(subprocess.check_output([bloomline, "info", "--json", state]))
        with open(out) as lines:
            spans = [[(start, end) for start, end, _ in json.loads(line)["bloomline"]["spans"]] for line in lines]
    return spans, figures | {"keys": info["estimated_keys"]}


def length(spans):
    return sum(end - start for document in spans for start, end in document)


def only_in(some, others):
    return sum(end - start for ours, theirs in zip(some, others) for start, end in set(ours) - set(theirs))


def memory(bloomline, keys, rate):
    plan = subprocess.check_output([bloomline, "plan", "--json", "-n", str(max(1, round(keys))), "-p", str(rate)])
    return json.loads(plan)[0]["memory_bytes"]


def decisions(bloomline, *files):
    for file in files:
        ngram = ["--ngram", "30"] if Path(file).stem in ("ja", "zh") else []
        for unit in ([], ["--by", "document"]):
            truth, exact = cuts(bloomline, file, [*unit, *ngram, "-p", "1e-9"])
            total = exact["text_bytes"]
            _, full = cuts(bloomline, file, [*unit, *ngram])
            full_size = memory(bloomline, full["keys"], 0.01)
            print(f"\n{Path(file).stem}, by {unit[-1] if unit else 'paragraph'}: {total / 1e6:.1f} MB, cut {100 * length(truth) / total:.2f} %")
            print("  sample     keys  cut, %  wrongly, %  missed, %   rate  memory   CPU")
            for sample in (1, *SAMPLES):
                spans, figures = cuts(bloomline, file, [*unit, *ngram, "--sample", str(sample)])
                # Wrong removals are in proportion to the rate. Less than one is none.
                wrong, most = (max(each["expected_wrongly_removed"], 1) for each in (figures, full))
                rate = min(0.01, 0.01 * most / wrong)
                size = memory(bloomline, figures["keys"], rate)
                print(
                    f"  1 of {sample:2} {full['keys'] / figures['keys']:6.2f}⁻¹ {100 * length(spans) / total:7.2f}"
                    f" {100 * only_in(spans, truth) / total:11.3f} {100 * only_in(truth, spans) / total:10.3f}"
                    f" {rate:6.4f} {full_size / size:6.2f}⁻¹ {figures['cpu'] / full['cpu']:5.2f}",
                    flush=True,
                )


def binomial(count, chance):
    return [comb(count, i) * chance**i * (1 - chance) ** (count - i) for i in range(count + 1)]


def removal_rate(sample, grams, rate):
    removed = lambda n: sum(p for found, p in enumerate(binomial(n, rate)) if n and found / n > 0.8)
    if sample == 1:
        return removed(grams)
    first, second = binomial(grams // 2, 1 / sample), binomial(grams - grams // 2, 1 / sample)
    rates = [removed(n) for n in range(grams + 1)]
    return sum(
        a * b * rates[min(max(i, 1), grams // 2) + max(j, 1)] for i, a in enumerate(first) for j, b in enumerate(second)
    )


def units(grams, count, seed):
    words = random.Random(seed)
    for _ in range(count):
        text = " ".join(f"{words.getrandbits(40):x}" for _ in range(grams + 12))
        yield json.dumps({"text": text}) + "\n"


def new_units(bloomline, rate=0.1, count=20_000):
    print(f"removed of new units: by the formula at 0.01, at {rate}, and counted at {rate}")
    with tempfile.TemporaryDirectory() as folder:
        for sample in (1, *SAMPLES):
            state, text = f"{folder}/{sample}", f"{folder}/text"
            Path(text).write_text("".join(units(200, 4_000, 0)))
            command = [bloomline, "corpus", "-q", "--by", "document", "--sample", str(sample), "-o", "/dev/null", "--state"]
            info = lambda state: json.loads(subprocess.check_output([bloomline, "info", "--json", state]))
            subprocess.run([*command, f"{state}-count", text], check=True)
            keys = str(round(info(f"{state}-count")["estimated_keys"]))
            subprocess.run([*command, state, "-n", keys, "-p", str(rate), "--when-full", "warn", text], check=True)
            actual = info(state)["fpr"]
            for grams in (1, 13, 20, 50, 200):
                Path(text).write_text("".join(units(grams, count, grams)))
                frozen = [bloomline, "corpus", "--stats=json", "-q", "--by", "document", "--frozen", "--state", state, "-o", "/dev/null"]
                removed = run([*frozen, text])["duplicate_units"]
                print(
                    f"  1 of {sample:2}, {grams:3} grams: {removal_rate(sample, grams, 0.01):.1e}"
                    f" {removal_rate(sample, grams, actual):.2e} {removed / count:.2e} (rate {actual:.3f})",
                    flush=True,
                )


def generate(source, target, size):
    """Repeats a corpus up to so many bytes, each time with other letters, and compresses it. Escapes and names of members keep theirs."""
    size, text, made, number = int(size), Path(source).read_bytes(), 0, 0
    with subprocess.Popen(["zstd", "-q", "-1", "-f", "-o", target], stdin=subprocess.PIPE) as compressor, compressor.stdin as out:
        while made < size:
            shuffled = list(LETTERS)
            random.Random(number).shuffle(shuffled)
            lower = "".join(shuffled)
            table = bytes.maketrans((LETTERS + LETTERS.upper()).encode(), (lower + lower.upper()).encode())
            # The last repetition ends with a whole line.
            part = text[: text.find(b"\n", size - made) + 1] if made + len(text) > size else text
            made, number = made + out.write(part.translate(table)), number + 1


STAGES = {
    "equal documents": ["--by", "document", "--ngram", "0"],
    "near duplicates": ["--near", "0.8"],
    "paragraphs": [],
    "sampled paragraphs": ["--sample", "16"],
    "tests": ["--against", "TESTS"],
}


def scale(bloomline, source, folder, *sizes):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tests, text = folder / "tests.jsonl", folder / "text.jsonl.zst"
    with open(source) as lines:
        paragraphs = [paragraph for line, _ in zip(lines, range(200)) for paragraph in json.loads(line)["text"].split("\n")]
    tests.write_text("".join(json.dumps({"text": text}) + "\n" for text in paragraphs if len(text) > 200)[:10**6].rsplit("\n", 1)[0] + "\n")
    names = os.environ.get("STAGES", ",".join(STAGES)).split(",")
    for size in map(float, sizes):
        # Linux counts the largest memory of a parent for its children, so another process holds the text.
        subprocess.run([sys.executable, __file__, "generate", source, text, str(int(size * 1e9))], check=True)
        for name in names:
            options = [str(tests) if option == "TESTS" else option for option in STAGES[name]]
            figures = run([bloomline, "corpus", "--stats=json", "-q", "-o", "/dev/null", *options, text])
            print(
                f"{size:5} GB  {name:20} CPU {figures['cpu']:7.1f} s ({figures['cpu'] / size:6.1f} a GB)  wall {figures['wall']:6.0f} s"
                f"  filter {figures['memory_bytes'] / 1e6:8.1f} MB  RSS {figures['rss'] / 1e6:8.1f} MB  disk {figures.get('disk_bytes', 0) / 1e6:8.1f} MB",
                flush=True,
            )
    kill_and_resume(bloomline, folder, text)
    for path in (text, tests):
        path.unlink()


def kill_and_resume(bloomline, folder, text):
    """Kills a run in the middle, resumes it, and compares its output with that of a run that was not interrupted."""
    digests = []
    for is_killed in (False, True):
        state, out = folder / "state", folder / "out.zst"
        command = [bloomline, "corpus", "-q", "--sample", "16", "--state", state, "--resume", "--checkpoint", "30s", "-o", out, text]
        runs = 1
        if is_killed:
            process = subprocess.Popen(command)
            while process.poll() is None and (not out.exists() or out.stat().st_size < text.stat().st_size / 4):
                time.sleep(0.2)
            process.send_signal(signal.SIGKILL)
            process.wait()
            runs = 2
        subprocess.run(command, check=True)
        # The frames of a resumed output differ, and its lines do not.
        with subprocess.Popen(["zstd", "-dc", out], stdout=subprocess.PIPE) as lines:
            digests.append(hashlib.file_digest(lines.stdout, "md5").hexdigest())
        print(f"{runs} run(s): {out.stat().st_size} bytes, {digests[-1]}", flush=True)
        for path in folder.glob("state*"):
            path.unlink()
        out.unlink()
    print("killed and resumed:", "the same output" if digests[0] == digests[1] else "ANOTHER output")


if __name__ == "__main__":
    mode, *arguments = sys.argv[1:]
    if mode == "languages":
        languages(Path(arguments[0]))
    else:
        {"decisions": decisions, "generate": generate, "new-units": new_units, "scale": scale}[mode](*arguments)
