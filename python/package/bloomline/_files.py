"""Duplicates in files, by the command `bloomline dedup`, and in frames."""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar, overload

from bloomline import _bloomline, _frames
from bloomline._bloomline import Filter
from bloomline._frames import Nulls

Path = str | os.PathLike[str]
Frame = TypeVar("Frame")

# The command, from this package's own file. Nothing else is imported but Python's library: no file of the current folder, in which data may
# have any name, and no other version of this package.
_PROGRAM = """
import importlib.util, signal, sys
spec = importlib.util.spec_from_file_location("_bloomline", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
sys.exit(module._run_command_line(["bloomline", *sys.argv[2:]]))
"""
_COMMAND = [sys.executable, "-P", "-s", "-S", "-c", _PROGRAM, os.path.abspath(_bloomline.__file__)]


def _environment() -> dict[str, str]:
    """Without the variables that make Python import or print more. As with the option -I, but for PYTHONHOME, where its library may be."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON") or name == "PYTHONHOME"}


@overload
def dedup(
    inputs: Path | Sequence[Path],
    on: str | Sequence[str] | None = None,
    *,
    output: Path | None = None,
    output_dir: Path | None = None,
    in_place: bool = False,
    n: int | None = None,
    p: float | None = None,
    state: Path | None = None,
    nulls: Nulls = "equal",
    options: Sequence[str] = (),
) -> dict[str, Any]: ...
@overload
def dedup(
    inputs: Frame,
    on: str | Sequence[str] | None = None,
    *,
    n: int | None = None,
    p: float | None = None,
    nulls: Nulls = "equal",
    seen: Filter | None = None,
) -> Frame: ...

def dedup(
    inputs: Any,
    on: str | Sequence[str] | None = None,
    *,
    output: Path | None = None,
    output_dir: Path | None = None,
    in_place: bool = False,
    n: int | None = None,
    p: float | None = None,
    state: Path | None = None,
    nulls: Nulls = "equal",
    options: Sequence[str] = (),
    seen: Filter | None = None,
) -> Any:
    """Keep one row of each key: of a frame, which is returned, or of files, into others.

    Of a frame (pandas, Polars, also a lazy one, or pyarrow) the rows whose key is new are returned, in their order. The filter `seen`
    remembers the keys for the next call; without it each call begins anew.

    Of files any one of the equal rows stays; with the option ``--in-order`` the first.

    With files the work is that of the command ``bloomline dedup``, in a process of its own: no row comes into Python. Inputs are files
    of Parquet, lines of JSON or plain lines, or folders of these. What was counted is returned.

    Args:
        inputs: A frame, or files and folders, read in this order.
        on: The columns of the key, of files with dots into structs; without them the whole row or line is the key.
        output: The file for what stays. Give this, `output_dir` or `in_place`.
        output_dir: A folder that gets a file for each input.
        in_place: Each input is replaced by what stays of it.
        n: Distinct keys to plan for; by default the rows of the inputs. A filter grows if more come.
        p: The rate at which a row is dropped by mistake; by default 1e-6.
        state: A filter that remembers the keys for the next call.
        nulls: What becomes of rows whose key has a null.
        options: More options of the command, such as ``["--exact", "--in-order"]``.
        seen: Of frames: a filter that has the keys of earlier ones, and gets those of this one. A warning tells if it has far more keys
            than it is made for, which costs rows; a `ScalableBloomFilter` grows.

    Returns:
        The frame of the rows that stay, or of files the figures of ``--stats=json``, such as ``lines``, ``unique`` and ``dropped``;
        rows count as lines.

    Raises:
        ValueError: If not exactly one of `output`, `output_dir` and `in_place` is given for files, or one of them for a frame.
        RuntimeError: If the command fails. The message is the command's.
        TypeError: If a column of a frame has values that are no keys, or rows cannot be chosen, before `seen` gets any key. An exception
            that comes later (KeyboardInterrupt, MemoryError) has an array of bool in its attribute `new`: the rows that are True there are
            those whose keys `seen` got.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "in.jsonl").write_text('{"url": "a"}\\n{"url": "b"}\\n{"url": "a"}\\n')
    >>> bloomline.dedup(folder / "in.jsonl", on="url", output=folder / "out.jsonl")["dropped"]
    1
    """
    places = (output is not None) + (output_dir is not None) + in_place
    if _frames.is_frame(inputs):
        if places or state is not None or options:
            raise ValueError("a frame is returned and not written: give it with on, n, p, nulls and seen alone")
        return _frames.dedup(inputs, on, n, p, nulls, seen)
    if places != 1 or seen is not None:
        raise ValueError("give one of output, output_dir and in_place, and a state in the place of seen")
    paths = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    if not paths:
        raise ValueError("no inputs: the list of files and folders is empty")
    given = {"-n": n, "-p": p, "-s": state, "-o": output, "--output-dir": output_dir, "--nulls": nulls}
    command = [*_COMMAND, "dedup", "--stats=json", *options]
    for name, value in given.items():
        command += [] if value is None else [name, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    command += ["--in-place"] if in_place else []
    for column in [on] if isinstance(on, str) else on or ():
        names = (name.replace("~", "~0").replace("/", "~1") for name in column.split("."))
        command += ["--json-pointer", "".join(f"/{name}" for name in names)]
    command += ["--", *(os.fspath(path) for path in paths)]
    told = subprocess.run(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="surrogateescape", env=_environment()
    )
    *lines, last = told.stderr.splitlines() or [""]
    if told.returncode > 1 or told.returncode < 0:
        raise RuntimeError(last.removeprefix("bloomline: ") or f"the command ended with {told.returncode}")
    for line in lines:
        warnings.warn(line.removeprefix("bloomline: ").removeprefix("warning: "), stacklevel=2)
    figures: dict[str, Any] = json.loads(last)
    return figures
