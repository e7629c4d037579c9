"""Distinct rows of a frame in memory, in order: by bloomline.dedup, and by the package of the frame.

    python benches/frames.py [ROWS [ROUNDS]]

prints medians of seconds, of CPU seconds and of the peak memory beyond input and result. Each call has a process of its own, in turns. The
memory of a result is what a selection by a mask takes that is ready. Numbers are rows of two integers, texts are URLs; half of the rows at
50 % are repeats, and three of all at 0 %. Needs Linux (peaks are reset by /proc/self/clear_refs), polars, pandas and pyarrow.
"""

import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

ROWS = 3_000_000
SHARES = 0.0, 0.1, 0.5
PEERS = {"polars": "unique", "pandas": "drop_duplicates"}


def make(folder: pathlib.Path, values: str, repeats: float, rows: int) -> pathlib.Path:
    """Writes a frame and the mask of its distinct rows. Returns the path of the frame."""
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
    path = folder / f"{values}-{repeats}.arrow"
    frame.rechunk().write_ipc(path, compression="uncompressed", compat_level=pl.CompatLevel.oldest())
    np.save(path.with_suffix(".npy"), mask)
    return path


def status(name: str) -> int:
    """Returns a figure of this process in bytes."""
    found = re.search(rf"{name}:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


def measure(path: pathlib.Path, package: str, side: str) -> None:
    """Prints seconds, CPU seconds, the bytes by which the peak grows, and the difference in rows from those of the mask."""
    import numpy as np
    import polars as pl
    import pyarrow.feather

    mask = np.load(path.with_suffix(".npy"))
    table = pyarrow.feather.read_table(path, memory_map=False)
    # With the option, each column is converted to an array of its own, without a copy.
    frame: Any = table.to_pandas(split_blocks=True) if package == "pandas" else pl.from_arrow(table)
    del table
    calls: dict[str, Callable[[Any, Any], Any]] = {
        "result": lambda frame, mask: frame[mask] if package == "pandas" else frame.filter(mask),
        "unique": lambda frame, _: frame.unique(maintain_order=True),
        "drop_duplicates": lambda frame, _: frame.drop_duplicates(),
    }
    if side == "bloomline":
        import bloomline

        calls[side] = lambda frame, _: bloomline.dedup(frame)
    # What code and threads take is there before.
    calls[side](frame[:1000], mask[:1000])
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before, started, cpu = status("VmRSS"), time.perf_counter(), time.process_time()
    kept = calls[side](frame, mask)
    print(time.perf_counter() - started, time.process_time() - cpu, status("VmHWM") - before, len(kept) - int(mask.sum()))


def main() -> None:
    if len(sys.argv) > 3:
        return measure(pathlib.Path(sys.argv[1]), *sys.argv[2:])
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print(f"{rows} rows, medians of {rounds}\n| | | s | CPU s | MiB |\n|-|-|-:|-:|-:|")
    with tempfile.TemporaryDirectory() as folder:
        paths = [(values, share, make(pathlib.Path(folder), values, share, rows)) for values in ("numbers", "texts") for share in SHARES]
        for package, peer in PEERS.items():
            for values, share, path in paths:
                found: dict[str, list[list[float]]] = {side: [] for side in ["result", "bloomline", peer]}
                for _ in range(rounds):
                    for side, figures in found.items():
                        command = [sys.executable, __file__, str(path), package, side]
                        line = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
                        *measured, difference = map(float, line.split())
                        assert difference == 0, f"{side} keeps {difference:+.0f} rows"
                        figures.append(measured)
                medians = {side: [statistics.median(column) for column in zip(*figures)] for side, figures in found.items()}
                for side in "bloomline", peer:
                    seconds, cpu, peak = medians[side]
                    beyond = max(0.0, peak - medians["result"][2]) / 2**20
                    print(f"| {package}, {values}, {share:.0%} | {side} | {seconds:.2f} | {cpu:.2f} | {beyond:.0f} |", flush=True)


if __name__ == "__main__":
    main()
