"""Distinct rows of a frame in memory, in order: by bloomline.dedup, and by the package of the frame.

    python benches/frames.py [ROWS [ROUNDS]]

prints medians of seconds and CPU seconds, and the peak memory beyond input and result, of each call in a process of its own, in turns. The
memory of the result is the peak of a selection by a mask that is ready. Numbers are rows of two integers, texts are URLs. Needs Linux (peaks
are reset through /proc), polars, pandas and pyarrow.
"""

import pathlib
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

ROWS = 3_000_000
SHARES = 0.0, 0.1, 0.5
SIDES = {"polars": ["bloomline", "unique"], "pandas": ["bloomline", "drop_duplicates"]}


def status(name: str) -> int:
    """Returns a figure of this process in bytes."""
    found = re.search(rf"{name}:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


def frame_and_mask(package: str, values: str, repeats: float, rows: int) -> tuple[Any, Any]:
    """Returns a frame, and the mask of its distinct rows."""
    import numpy as np
    import polars as pl

    dice = np.random.default_rng(1)
    distinct = rows - max(round(repeats * rows), 3)
    ids = dice.permutation(np.concatenate([np.arange(distinct), dice.integers(0, distinct, rows - distinct)]))
    mask = np.zeros(rows, bool)
    mask[np.unique(ids, return_index=True)[1]] = True
    frame = pl.DataFrame({"user": ids * 7919, "page": ids % 1000})
    if values == "texts":
        user, page = pl.col("user").hash(1).cast(pl.String), pl.col("page").cast(pl.String)
        frame = frame.select(url=pl.lit("https://example.org/") + page + "/" + user + ".html")
    return (frame.to_pandas() if package == "pandas" else frame.rechunk()), mask


def measure(package: str, values: str, repeats: float, rows: int, side: str) -> None:
    """Prints seconds, CPU seconds, the bytes by which the peak grows, and the rows that are kept."""
    frame, mask = frame_and_mask(package, values, repeats, rows)
    calls: dict[str, Callable[[Any], Any]] = {
        "result": lambda frame: frame.filter(mask) if package == "polars" else frame[mask],
        "unique": lambda frame: frame.unique(maintain_order=True),
        "drop_duplicates": lambda frame: frame.drop_duplicates(),
    }
    if side == "bloomline":
        import bloomline

        calls[side] = bloomline.dedup
    if side != "result":
        calls[side](frame[:1000])
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before, started, cpu = status("VmRSS"), time.perf_counter(), time.process_time()
    kept = calls[side](frame)
    print(time.perf_counter() - started, time.process_time() - cpu, status("VmHWM") - before, len(kept), int(mask.sum()))


def main() -> None:
    if len(sys.argv) > 3:
        package, values, repeats, rows, side = sys.argv[1:]
        return measure(package, values, float(repeats), int(rows), side)
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print(f"{rows} rows, medians of {rounds}\n| frame, values, repeats | call | s | CPU s | MiB beyond input and result |\n|-|-|-:|-:|-:|")
    for package, sides in SIDES.items():
        for values in "numbers", "texts":
            for repeats in SHARES:
                found: dict[str, list[list[float]]] = {side: [] for side in ["result", *sides]}
                for _ in range(rounds):
                    for side in found:
                        command = [sys.executable, __file__, package, values, str(repeats), str(rows), side]
                        line = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                        *figures, kept, distinct = map(float, line.split())
                        assert kept == distinct, f"{side} keeps {kept} rows of {distinct}"
                        found[side].append(figures)
                medians = {side: [statistics.median(column) for column in zip(*figures)] for side, figures in found.items()}
                for side in sides:
                    seconds, cpu, peak = medians[side]
                    beyond = (peak - medians["result"][2]) / 2**20
                    print(f"| {package}, {values}, {repeats:.0%} | {side} | {seconds:.2f} | {cpu:.2f} | {beyond:.0f} |", flush=True)


if __name__ == "__main__":
    main()
