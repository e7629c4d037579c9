#!/usr/bin/env python3
"""Times commands that print each line once, and draws the chart of the README.

    tests/data/make-large.sh /tmp/large
    benches/dedup_chart.py measure /tmp/large > docs/plots/dedup.json    # 4 minutes
    benches/dedup_chart.py draw < docs/plots/dedup.json > docs/plots/dedup.svg

`measure` takes the commands that are on the PATH: GNU sort and awk (`gawk`), DuckDB's program, duplicut, anew, rling, xuniq, huniq,
ripuniq and runiq. Whole commands read from the page cache and write to memory. They take turns, and medians are printed."""

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from html import escape
from pathlib import Path

ROUNDS = 5
DUCKDB = (
    "set threads = 2; copy (select distinct line from read_csv('{file}', columns = {{'line': 'VARCHAR'}}, delim = '\\x01', "
    "quote = '', escape = '', header = false, auto_detect = false)) to 'out' (header false, quote '', delimiter '\\x01')"
)
# The name in the chart, the command, and true if its time is measured once, because it takes long.
COMMANDS = [
    ("bloomline dedup", "bloomline dedup {file} >out", False),
    ("bloomline dedup --exact", "bloomline dedup --exact {file} >out", False),
    ("duplicut", "duplicut {file} -o out", False),
    ("rling", "rling -t 2 {file} out", False),
    ("sort -u", "sort -u --parallel=2 {file} >out", False),
    ("DuckDB", 'duckdb -c "' + DUCKDB + '"', False),
    ("anew", "anew -q out <{file}", True),
    ("awk '!seen[$0]++'", "gawk '!seen[$0]++' {file} >out", True),
    ("bloomline dedup -p 0.01", "bloomline dedup -p 0.01 {file} >out", False),
    ("xuniq", "xuniq <{file} >out", False),
    ("ripuniq", "ripuniq <{file} >out", False),
    ("huniq", "huniq <{file} >out", False),
    ("runiq", "runiq {file} >out", False),
    ("runiq -f compact", "runiq -f compact {file} >out", True),
]
FILES = [("folders.txt", "many repeats"), ("paths.txt", "nearly all lines distinct")]
# The chart has those that the most people use, one for each way of doing it.
CHARTED = [name for name, _, _ in COMMANDS[:8]]


def run(command, folder):
    """Returns the seconds, CPU seconds and peak megabytes of a command. GNU time measures, because it is small itself."""
    measured = ["/usr/bin/time", "-f", "%U %S %M", "-o", "measured", "sh", "-c", "exec " + command]
    start = time.monotonic()
    done = subprocess.run(measured, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        sys.exit(f"{command}: {done.stderr.decode(errors='replace')}")
    user, system, kibibytes = Path(folder, "measured").read_text().split()
    return seconds, float(user) + float(system), float(kibibytes) * 1024 / 1e6


def count_lines(path):
    lines = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 24):
            lines += block.count(b"\n")
    return lines


def measure(source):
    os.environ["LC_ALL"] = "C"
    result = {"date": str(date.today()), "cores": os.cpu_count(), "cpu": cpu(), "files": []}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for file, kind in FILES:
            path = source / file
            size = path.stat().st_size
            runs = {}
            for turn in range(ROUNDS + 1):
                for name, command, once in COMMANDS:
                    if shutil.which(command.split()[0]) is None or once and turn > 1:
                        continue
                    out = Path(folder, "out")
                    out.unlink(missing_ok=True)
                    figures = run(command.format(file=path), folder)
                    # The first turn warms up.
                    if turn > 0:
                        runs.setdefault(name, []).append((*figures, count_lines(out)))
            medians = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in runs.items()}
            result["files"].append(
                {
                    "file": file,
                    "kind": kind,
                    "megabytes": round(size / 1e6),
                    "lines": count_lines(path),
                    "commands": [
                        {"name": name, "seconds": round(s, 3), "cpu": round(c, 3), "megabytes": round(m), "lines": int(n)}
                        for name, (s, c, m, n) in medians.items()
                    ],
                }
            )
    json.dump(result, sys.stdout, indent=1)
    print()


def cpu():
    names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return names[0] if names else platform.processor()


def draw(result):
    """Draws two bars for each command and file: seconds and memory."""
    width, row, top, left, bar = 860, 24, 78, 215, 190
    charts = [[c for c in f["commands"] if c["name"] in CHARTED] for f in result["files"]]
    height = sum(top + row * len(commands) + 10 for commands in charts) + 22
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="14">',
        "<title>Seconds and peak memory of commands that print each line once</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]

    def text(x, y, words, anchor="start", more=""):
        parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="#1b1b1b"{more}>{escape(words)}</text>')

    y = 0
    for file, commands in zip(result["files"], charts):
        distinct = max(command["lines"] for command in commands)
        title = f'{file["lines"]:,} lines ({file["megabytes"]} MB), {distinct:,} distinct: {file["kind"]}'
        text(16, y + 30, title, more=' font-weight="bold"')
        columns = [("seconds", left, lambda s: f"{s:.2f} s"), ("megabytes", left + bar + 130, lambda m: f"{m:,} MB")]
        text(columns[0][1], y + 60, "seconds")
        text(columns[1][1], y + 60, "peak memory")
        for i, command in enumerate(sorted(commands, key=lambda command: command["seconds"])):
            middle = y + top + row * i + 5
            ours = command["name"].startswith("bloomline")
            weight = ' font-weight="bold"' if ours else ""
            text(left - 10, middle, command["name"], "end", weight)
            for figure, x, write in columns:
                most = max(command[figure] for command in commands)
                length = max(2, bar * command[figure] / most)
                fill = "#c84e00" if ours else "#7a8a99"
                parts.append(f'<rect x="{x}" y="{middle - 13}" width="{length:.1f}" height="17" fill="{fill}"/>')
                text(round(x + length + 6, 1), middle, write(command[figure]), more=weight)
        y += top + row * len(commands) + 10
    when = f'Two cores of an {result["cpu"].replace("(R)", "")}, {result["date"]}; medians of {ROUNDS} runs in turns (anew, awk: one).'
    text(16, height - 12, when, more=' font-size="12"')
    print("\n".join(parts) + "\n</svg>")


if __name__ == "__main__":
    if sys.argv[1:] == ["draw"]:
        draw(json.load(sys.stdin))
    elif len(sys.argv) == 3 and sys.argv[1] == "measure":
        measure(Path(sys.argv[2]).resolve())
    else:
        sys.exit(__doc__)
