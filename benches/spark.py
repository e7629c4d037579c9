#!/usr/bin/env python3
"""Times `bloomline.spark` beside what Spark has for the same rows.

    pip install './python[spark]' numpy     # and Java 17
    benches/spark.py FOLDER                         # makes 4 GB of data there once; a shuffle takes as much
    benches/spark.py FOLDER --rows 2_500_000 --only drop_duplicates,dropDuplicates --rounds 3

A row has a key of 60 bytes like a URL, and a payload of 80 bytes of which LZ4 makes half. 84 % of the rows have a key of their own.
Half of the keys were seen before. All results go to Spark's sink `noop`, so each row is made.

Each side runs in a process of its own, with a fresh JVM (local[2], 6 GB of heap) which runs the same twice on a million rows first. The sides
take turns. What was measured is added to FOLDER/ROWS/results.jsonl, and medians are of all rounds there: `--rounds 0` prints them only.

CPU seconds are those of /proc/PID/stat (utime, stime, and cutime and cstime for the children that ended), less those before the
measured action: of the JVM, of the Python workers (all processes below the JVM), and of the driver. The peak is the sum of the
resident memory of the JVM and the workers, taken each 0.2 seconds; a page that two workers map counts twice. The driver's peak is its
VmHWM, less its resident memory before the action. Shuffled bytes are those that the status store of Spark has as written. Rows are counted
by a second action in a side's first round.
"""

import argparse
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

P = 1e-6
WARM = 1_000_000
FILES = 16
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


# Data


def make_data(folder, rows):
    """Writes rows/ and seen/, and facts.json with the exact results."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    if (folder / "facts.json").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)

    def mixed(values):
        """Random numbers that follow from `values`, by the steps of splitmix64."""
        values = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))

    digits = np.frombuffer(b"0123456789abcdef", np.uint8)

    def hex_of(numbers):
        """The 16 digits of each number."""
        octets = numbers.view(np.uint8).reshape(len(numbers), 8)
        return digits[np.stack([octets >> 4, octets & 15], axis=2).reshape(len(numbers), 16)]

    def texts(parts):
        count = max(len(part) for part in parts if isinstance(part, np.ndarray))
        literal = lambda part: np.broadcast_to(np.frombuffer(part, np.uint8), (count, len(part)))
        matrix = np.hstack([part if isinstance(part, np.ndarray) else literal(part) for part in parts])
        offsets = np.arange(count + 1, dtype=np.int32) * np.int32(matrix.shape[1])
        return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(matrix.tobytes()))

    def urls(pages):
        random = mixed(pages)
        return texts([b"https://www.site-", hex_of(random >> np.uint64(52))[:, 1:5], b".example/articles/", hex_of(random), b".html"])

    def payloads(ids):
        half = [hex_of(mixed(ids + (k << 40))) for k in (1, 2)] + [hex_of(mixed(ids + (3 << 40)))[:, :8]]
        return texts(half * 2)

    def write(name, make, numbers):
        (folder / name).mkdir(parents=True)
        for i, part in enumerate(np.array_split(np.arange(len(numbers)), FILES)):
            table = pa.table(make(part, numbers[part]))
            pq.write_table(table, folder / name / f"{i:02}.parquet", compression="snappy", use_dictionary=False, row_group_size=500_000)

    random = mixed(np.arange(rows) + (1 << 40))
    new = (random >> np.uint64(32)) >= np.uint64(0.16 * (1 << 32))
    new[0] = True
    count = np.cumsum(new)
    pages = np.where(new, count - 1, (random & np.uint64(0xFFFFFFFF)).astype(np.int64) % count)
    seen = np.arange(0, count[-1], 2)
    write("rows", lambda ids, pages: {"url": urls(pages), "payload": payloads(ids)}, pages)
    write("seen", lambda _, pages: {"url": urls(pages)}, seen)
    facts = {"rows": rows, "distinct": int(count[-1]), "seen": len(seen), "unseen": int(np.count_nonzero(pages % 2))}
    (folder / "facts.json").write_text(json.dumps(facts))


# Sides: each gives the frame whose rows are asked for, or None if it has made all that it makes


def read(data):
    return data.rows


def shuffle(data):
    return data.rows.repartition(int(data.session.conf.get("spark.sql.shuffle.partitions")), "url")


def sparks_own(data):
    return data.rows.dropDuplicates(["url"])


def drop_duplicates(data):
    from bloomline import spark as bs

    return bs.drop_duplicates(data.rows, "url", data.facts["distinct"], P)


def anti_join(data):
    data.session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    return data.rows.join(data.seen, "url", "left_anti")


def anti_join_broadcast(data):
    from pyspark.sql import functions as F

    return data.rows.join(F.broadcast(data.seen), "url", "left_anti")


def build(data):
    from bloomline import spark as bs

    bs.build(data.seen, "url", data.facts["seen"], P, path=data.folder / "seen.bloom")


def drop_seen(data):
    from bloomline import spark as bs

    return bs.drop_seen(data.rows, data.folder / "seen.bloom", "url")


def jvm_build(data):
    """Of hashes, as the expression that asks takes those only. The options allow so many keys, of which the default is 4 million."""
    data.session.conf.set("spark.sql.optimizer.runtime.bloomFilter.maxNumItems", "1000000000")
    data.session.conf.set("spark.sql.optimizer.runtime.bloomFilter.maxNumBits", "17179869176")
    made = data.seen.selectExpr("xxhash64(url) h")._jdf.stat().bloomFilter("h", data.facts["seen"], P)
    stream = data.session._jvm.java.io.FileOutputStream(str(data.folder / "seen.jvm"))
    made.writeTo(stream)
    stream.close()


def jvm_ask(data):
    """By the expression behind Spark's runtime filters, which no function of SQL or of PySpark gives."""
    jvm = data.session._jvm
    inside = jvm.org.apache.spark.sql.catalyst.expressions
    octets = jvm.java.nio.file.Files.readAllBytes(jvm.java.io.File(str(data.folder / "seen.jvm")).toPath())
    asked = data.rows.selectExpr("*", "xxhash64(url) h")
    column = asked._jdf.col("h")
    utils = jvm.org.apache.spark.sql.classic.ExpressionUtils
    literal = inside.Literal.create(octets, jvm.org.apache.spark.sql.types.DataTypes.BinaryType)
    found = inside.BloomFilterMightContain(literal, utils.expression(column))
    kept = asked._jdf.filter(utils.column(inside.Not(found)))
    return type(data.rows)(kept, data.session).drop("h")


class Side:
    """What it does, which of the facts its rows are, beside which sides it stands, and the file that it needs and who makes it."""

    def __init__(self, make, exact=None, bases=(), file=None):
        self.make, self.exact, self.bases, self.file = make, exact, bases, file


SIDES = {
    "read": Side(read),
    "shuffle": Side(shuffle),
    "dropDuplicates": Side(sparks_own, "distinct"),
    "drop_duplicates": Side(drop_duplicates, "distinct", ["dropDuplicates"]),
    "anti-join": Side(anti_join, "unseen"),
    "broadcast": Side(anti_join_broadcast, "unseen", ["anti-join"]),
    "build": Side(build),
    "drop_seen": Side(drop_seen, "unseen", ["anti-join", "broadcast"], ("seen.bloom", build)),
    "jvm-build": Side(jvm_build, None, ["build"]),
    "jvm-ask": Side(jvm_ask, "unseen", ["anti-join", "broadcast"], ("seen.jvm", jvm_build)),
}


# One run, in a process of its own


class Data:
    def __init__(self, session, folder):
        self.session, self.folder = session, folder
        self.facts = json.loads((folder / "facts.json").read_text())
        self.rows = session.read.parquet(str(folder / "rows"))
        self.seen = session.read.parquet(str(folder / "seen"))


def run_side(side, folder, warm, conf, is_counted):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    rows = json.loads((folder / "facts.json").read_text())["rows"]
    options = {
        "spark.driver.memory": "6g",
        "spark.driver.maxResultSize": "0",
        "spark.sql.broadcastTimeout": "3600",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": str(max(8, rows // 312_500)),
        **dict(option.split("=", 1) for option in conf),
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")

    def shuffled():
        time.sleep(1)
        return session.sparkContext._jsc.sc().statusStore().executorList(True).apply(0).totalShuffleWrite()

    def act(data):
        frame = side.make(data)
        if frame is not None:
            frame.write.format("noop").mode("overwrite").save()
        return frame

    for data in Data(session, warm), Data(session, folder):
        if side.file and not (data.folder / side.file[0]).exists():
            side.file[1](data)
    for _ in range(2):
        act(Data(session, warm))
    before = shuffled()
    print("ready", session.sparkContext._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
    sys.stdin.readline()
    frame = act(data)
    print("done", flush=True)
    sys.stdin.readline()
    result = {"shuffle": shuffled() - before}
    if is_counted and side.exact:
        result["kept"] = frame.count()
    print(json.dumps(result), flush=True)


def processes():
    """The parent, CPU seconds with children that ended, and resident bytes, by process."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found[int(name)] = int(fields[1]), sum(map(int, fields[11:15])) / TICK, int(fields[21]) * PAGE
    return found


class Usage:
    """Of a driver, its JVM and the Python workers below that."""

    def __init__(self, driver, jvm):
        found = processes()
        below = {jvm}
        while more := {pid for pid, (parent, _, _) in found.items() if parent in below} - below:
            below |= more
        tree = [found[pid] for pid in below if pid in found]
        # What the JVM has waited for is nobody else's, and is no work of its own.
        own = Path("/proc", str(jvm), "stat").read_text().rpartition(")")[2].split()
        self.jvm = sum(map(int, own[11:13])) / TICK
        self.workers = sum(cpu for _, cpu, _ in tree) - self.jvm
        self.driver = found[driver][1] - cpu_of_children(driver)
        self.memory = sum(memory for _, _, memory in tree)


def cpu_of_children(pid):
    return sum(map(int, Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[13:15])) / TICK


def status(pid, field):
    for line in Path("/proc", str(pid), "status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024


def measure(name, arguments, is_counted):
    command = [sys.executable, __file__, arguments.folder, "--rows", str(arguments.rows), "--side", name]
    command += [f"--conf={option}" for option in arguments.conf]
    with subprocess.Popen(
        command + ["--count"] * is_counted, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr, text=True
    ) as child:
        ready = child.stdout.readline().split()
        if not ready:
            return None
        jvm = int(ready[1])
        driver = child.pid
        Path("/proc", str(driver), "clear_refs").write_text("5")
        resident = status(driver, "VmRSS")
        before, start, peak = Usage(driver, jvm), time.monotonic(), 0
        print(file=child.stdin, flush=True)
        while not select.select([child.stdout], [], [], 0.2)[0]:
            peak = max(peak, Usage(driver, jvm).memory)
        if not child.stdout.readline():
            print(f"{name}: exit status {child.wait()}", file=sys.stderr)
            return None
        wall, after = time.monotonic() - start, Usage(driver, jvm)
        result = {
            "side": name,
            "conf": arguments.conf,
            "wall": wall,
            "load": os.getloadavg()[0],
            "peak": peak,
            "driver_peak": status(driver, "VmHWM") - resident,
            **{f"cpu_{part}": max(0.0, getattr(after, part) - getattr(before, part)) for part in ("jvm", "workers", "driver")},
        }
        print(file=child.stdin, flush=True)
        rest = child.stdout.readline()
        return {**result, **json.loads(rest)} if rest else None


# The report


def cpu(result):
    return result["cpu_jvm"] + result["cpu_workers"] + result["cpu_driver"]


def show(folder, conf):
    results = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    results = [result for result in results if result["conf"] == conf]
    facts = json.loads((folder / "facts.json").read_text())
    print(facts)
    of = lambda name: [result for result in results if result["side"] == name]
    print(
        f"{'':16}{'CPU s':>8}{'JVM':>8}{'workers':>8}{'driver':>7}{'wall s':>8}{'shuffle MB':>11}{'peak MB':>9}{'driver MB':>10}"
        f"{'kept':>10}{'lost':>7}  CPU, to"
    )
    for name, side in SIDES.items():
        runs = of(name)
        if not runs:
            continue
        middle = lambda value: statistics.median(map(value, runs))
        kept = [result["kept"] for result in runs if "kept" in result]
        lost = f"{kept[0]:>10}{facts[side.exact] - kept[0]:>7}" if kept else " " * 17
        against = ""
        for base in side.bases:
            ratios = [cpu(own) / cpu(other) for own, other in zip(runs, of(base))]
            against += f"  {statistics.median(ratios):.2f} {base}" if ratios else ""
        print(
            f"{name:16}{middle(cpu):8.1f}{middle(lambda r: r['cpu_jvm']):8.1f}{middle(lambda r: r['cpu_workers']):8.1f}"
            f"{middle(lambda r: r['cpu_driver']):7.1f}{middle(lambda r: r['wall']):8.1f}{middle(lambda r: r['shuffle']) / 1e6:11.0f}"
            f"{middle(lambda r: r['peak']) / 1e6:9.0f}{middle(lambda r: r['driver_peak']) / 1e6:10.0f}{lost}{against}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--only", metavar="NAMES", default=",".join(SIDES), help="of these, with commas: " + ", ".join(SIDES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--conf", action="append", default=[], metavar="OPTION=VALUE", help="for Spark, as spark.driver.memory=12g")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--count", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder, warm = (Path(arguments.folder, str(rows)).absolute() for rows in (arguments.rows, WARM))
    if arguments.side:
        return run_side(SIDES[arguments.side], folder, warm, arguments.conf, arguments.count)
    make_data(warm, WARM)
    make_data(folder, arguments.rows)
    for i in range(arguments.rounds):
        for name in arguments.only.split(","):
            result = measure(name, arguments, is_counted=i == 0)
            if result is None:
                print(f"{name}: failed", file=sys.stderr)
                continue
            print(json.dumps(result), file=sys.stderr, flush=True)
            with (folder / "results.jsonl").open("a") as file:
                print(json.dumps(result), file=file)
    show(folder, arguments.conf)


if __name__ == "__main__":
    main()
