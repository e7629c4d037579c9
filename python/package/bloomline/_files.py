"""Duplicates in files, by the command `bloomline dedup`, and in frames."""

import contextlib
import errno
import glob
import itertools
import json
import operator
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Literal, overload

from bloomline import _bloomline, _frames
from bloomline._bloomline import Filter
from bloomline._frames import Dataset, Expression, Keep, Nulls, On, PandasFrame, PolarsFrame, Reader, Table
from bloomline._progress import Progress
from bloomline._urls import is_url, local_copies

Path = str | os.PathLike[str]
# A text would be a sequence of its characters.
Options = list[str] | tuple[str, ...]

# The command, from this package's own file. It imports nothing but Python's library: no file of the current folder, where data may have any
# name, and no other version of this package.
_PROGRAM = """
import importlib.util, signal, sys
spec = importlib.util.spec_from_file_location("_bloomline", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.exit(module._run_command_line(["bloomline", *sys.argv[2:]], True))
"""
# The signal at which the command ends in good order, and how to start it. Windows sends the signal to a group of processes.
if sys.platform == "win32":
    _END, _FLAGS = signal.CTRL_BREAK_EVENT, subprocess.CREATE_NEW_PROCESS_GROUP
else:
    _END, _FLAGS = signal.SIGTERM, 0
_COMMAND = [sys.executable, "-P", "-s", "-S", "-c", _PROGRAM, os.path.abspath(_bloomline.__file__)]


def _environment() -> dict[str, str]:
    """Returns the environment without Python's variables, as the option -I ignores them, except PYTHONHOME, where its library may be."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON") or name == "PYTHONHOME"}


@overload
def dedup(
    inputs: Path | Iterable[Path],
    on: str | Sequence[str] | None = None,
    *,
    output: Path | None = None,
    output_dir: Path | None = None,
    in_place: bool = False,
    n: int | None = None,
    p: float | None = None,
    state: Path | None = None,
    nulls: Nulls = "equal",
    keep: Keep | None = None,
    options: Options = (),
    progress: bool | None = None,
) -> dict[str, Any]: ...
@overload
def dedup(
    inputs: PolarsFrame,
    on: str | Expression | Sequence[str | Expression] | None = None,
    *,
    n: int | None = None,
    p: float | None = None,
    nulls: Nulls = "equal",
    keep: Keep | None = None,
    seen: Filter | None = None,
    progress: bool | None = None,
) -> PolarsFrame: ...
@overload
def dedup(
    inputs: PandasFrame,
    on: Hashable | Sequence[Hashable] = None,
    *,
    n: int | None = None,
    p: float | None = None,
    nulls: Nulls = "equal",
    keep: Keep | None = None,
    seen: Filter | None = None,
    progress: bool | None = None,
) -> PandasFrame: ...
@overload
def dedup(
    inputs: Table,
    on: str | int | Sequence[str | int] | None = None,
    *,
    n: int | None = None,
    p: float | None = None,
    nulls: Nulls = "equal",
    keep: Keep | None = None,
    seen: Filter | None = None,
    progress: bool | None = None,
) -> Table: ...
@overload
def dedup(
    inputs: Reader,
    on: str | int | Sequence[str | int] | None = None,
    *,
    n: int | None = None,
    p: float | None = None,
    nulls: Nulls = "equal",
    keep: Literal["first"] | None = None,
    seen: Filter | None = None,
    progress: bool | None = None,
) -> Reader: ...
@overload
def dedup(
    inputs: Dataset,
    on: str | int | Sequence[str | int] | None = None,
    *,
    n: int | None = None,
    p: float | None = None,
    nulls: Nulls = "equal",
    keep: Literal["first"] | None = None,
    seen: Filter | None = None,
    progress: bool | None = None,
) -> Any: ...

def dedup(
    inputs: Any,
    on: On = None,
    *,
    output: Path | None = None,
    output_dir: Path | None = None,
    in_place: bool = False,
    n: int | None = None,
    p: float | None = None,
    state: Path | None = None,
    nulls: Nulls = "equal",
    keep: Keep | None = None,
    options: Options = (),
    seen: Filter | None = None,
    progress: bool | None = None,
) -> Any:
    """Keep one row of each key, of a frame or of files.

    For a frame (pandas, Polars, also a lazy one, pyarrow, or a relation of DuckDB) the rows whose key is new are returned, in their order.
    Rows are compared, so none is lost. The filter `seen` keeps the keys for the next call, and loses rows at its rate; without it each
    call starts without keys. A RecordBatchReader or a Dataset of pyarrow is read batch by batch, with a filter: a RecordBatchReader of
    the new rows is returned. A relation is read at the call. A lazy frame yields
    the same rows each time that it is collected; with `seen` it can be collected once, and a second time is a RuntimeError.

    Of equal rows of files any one is kept, unless `keep` selects one.

    A Dataset of Hugging Face keeps its features and its format, and its rows are compared. An IterableDataset stays lazy: each iteration
    reads it with a filter that is empty at first, or with `seen`. One that is resumed (``load_state_dict``) reads it from the start, and
    needs `seen` as it was before the first row.

    For files the command ``bloomline dedup`` runs in a process of its own, and no row is read into Python. Inputs are files of Parquet,
    lines of JSON, CSV or plain lines, or folders of these. Files by URL, such as ``s3://bucket/*.jsonl``, are copied to and from a
    temporary folder by fsspec. If the command fails, no URL is written. If an upload fails, the local copy is kept, and a note of the
    exception has its path. The counts are returned. If the call fails after it began `output`, as by Ctrl-C, the rows so far are kept
    under another name that ends in .part and perhaps a number, which a note of the exception has; with ``--resume`` among the options,
    the output keeps its name.

    Args:
        inputs: A frame, or files, folders and URLs, read in this order.
        on: The columns of the key, for files with dots into structs. By default the whole row or line is the key, without an index that
            pandas recorded. The header names the columns of CSV. Numbers are labels in pandas and indices in pyarrow. Polars takes names,
            and expressions that have a value for each row.
        output: The file for the rows that are kept. Give this, `output_dir` or `in_place`. With `state`, it must not have rows of an
            earlier run.
        output_dir: A folder that gets a file for each input.
        in_place: True replaces each input by its rows that are kept.
        n: Distinct keys to plan for; by default the rows of the inputs. A filter grows if there are more.
        p: The rate at which a row is dropped by mistake; by default 1e-6. `n` and `p` have no effect on frames, whose rows are compared.
        state: A filter that keeps the keys for the next call. A file is locked, and a URL is not: of calls at the same time, the last
            upload remains, without the keys of the others.
        nulls: Treatment of rows whose key has a null.
        keep: The row of equal ones that is kept: "first" or "last". The default is the first for frames, and any one for files. "last" needs
            all rows, so it excludes `state`, readers and datasets.
        options: More options of the command, such as ``["--exact", "--in-order"]``, or ``["--keep", "max:/day"]`` for the row of each key
            with the highest value.
        seen: For frames: a filter that has the keys of earlier frames, and gets the keys of this one. With more keys than it is made for,
            rows are lost, and a warning has the rate. A `ScalableBloomFilter` grows. If it has a `key_name`, that is the name of the
            columns: `url`, or `day,url` for several, whose order makes no difference.
        progress: A line on standard error with the progress, for files, readers, datasets of pyarrow and streams: True shows it, False does
            not, and None shows it on a terminal or in a notebook if the call takes more than a second.

    Returns:
        The frame of the rows that are kept, or for files the figures of ``--stats=json``, such as ``lines``, ``unique`` and ``dropped``;
        rows count as lines.

    Raises:
        ValueError: If not exactly one of `output`, `output_dir` and `in_place` is given for files, or one of them for a frame; if no file
            is named, or a pattern matches none; if inputs are files of CSV and others; if an argument is out of range; if `seen` has the name of other columns; or if it
            got so many keys that its rate is a hundred times its own, or a half.
        OSError: If a file, or the folder of an output or of the state, does not exist or cannot be reached.
        KeyError: If a frame of pandas, pyarrow or DuckDB lacks a column of `on`; Polars raises its ColumnNotFoundError.
        ImportError: If a package that the frame needs is missing, or older than the least version.
        RuntimeError: If the command fails. The message is the command's.
        TypeError: If an argument is of another type; if a column of a frame has values that cannot be keys, or of other kinds than the keys of
            `seen`, such as texts and numbers; or if rows cannot be selected.

    The keys enter `seen` once the result exists. A later exception (KeyboardInterrupt, MemoryError, or the error of a full `seen`) has an
    array of bool in its attribute `new`: True for each row whose key was added to `seen`.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "in.jsonl").write_text('{"url": "a"}\\n{"url": "b"}\\n{"url": "a"}\\n')
    >>> bloomline.dedup(folder / "in.jsonl", on="url", output=folder / "out.jsonl")["dropped"]
    1
    """
    _frames.check_arguments(n, p, nulls, keep)
    destinations = (output is not None) + (output_dir is not None) + in_place
    if not isinstance(inputs, (str, os.PathLike)) and _frames.is_data(inputs):
        of_files = {"output": output, "output_dir": output_dir, "in_place": in_place or None, "state": state, "options": options or None}
        if unfit := [name for name, value in of_files.items() if value is not None]:
            raise ValueError(
                f"{unfit[0]} is for files, and a frame is returned, not written: give it only with on, n, p, nulls, keep and seen, which is a"
                " filter with the keys of earlier frames"
            )
        return _frames.dedup(inputs, on, n, p, nulls, seen, "first" if keep is None else keep, progress)
    paths = _paths(inputs)
    if destinations != 1:
        raise ValueError(
            "inputs are paths of files, so give one of output, output_dir and in_place; give values as a frame, such as"
            " pandas.DataFrame({'value': values})"
        )
    if seen is not None:
        raise ValueError("seen is for frames: for files give state, the path of a filter")
    if state is not None and keep == "last":
        raise ValueError("keep is 'last' and a state is given, which does not have the earlier rows: leave out one of them")
    if not isinstance(options, (list, tuple)) or not all(isinstance(option, str) for option in options):
        raise TypeError(f"options is {options!r}: give a list of texts, such as ['--exact', '--in-order']")
    if "--resume" in options and any(map(is_url, (output, output_dir, state))):
        raise ValueError("a run is resumed from its local files: with --resume, give paths for output, output_dir and state, not URLs")
    if in_place and any(map(is_url, paths)):
        raise ValueError("in_place replaces local files: give output or output_dir for inputs that are URLs")
    columns: list[Any] = [] if on is None else list(on) if isinstance(on, Iterable) and not isinstance(on, str) else [on]
    with local_copies(paths, output, output_dir, state, force="--force" in options) as local:
        for path in local.paths:
            os.stat(path)
        key = _key(columns, local.paths, options)
        # Fields of CSV are texts, and never null.
        has_nulls = nulls != "equal" or "--csv" not in [*key, *options]
        given = {
            "-n": None if n is None else str(operator.index(n)),
            "-p": None if p is None else str(float(p)),
            "-s": None if local.state is None else _file("state", local.state),
            "-o": None if local.output is None else _file("output", local.output),
            "--output-dir": None if local.output_dir is None else _path("output_dir", local.output_dir),
            "--nulls": nulls if has_nulls else None,
        }
        command = [*_COMMAND, "dedup", "--stats=json", *options, *key]
        for name, value in given.items():
            command += [] if value is None else [name, value]
        command += ["--in-place"] if in_place else []
        # One output, and inputs that are replaced, have the first in any case.
        command += ["--keep", "last"] if keep == "last" else ["--in-order"] if keep and output_dir is not None else []
        is_kept = "--resume" in options or is_url(output)
        with _unfinished(None if is_kept else given["-o"]), Progress(progress) as shown:
            code, messages = _run(command, local.paths, shown)
            *lines, last = map(local.named, messages or [""])
            figures: dict[str, Any] | None = None
            if code in (0, 1):
                with contextlib.suppress(ValueError):
                    figures = json.loads(last)
            if figures is None:
                # A tip may follow the error on a line of its own.
                while lines and not last.startswith("bloomline: "):
                    last = f"{lines.pop()}\n{last}"
                raise RuntimeError(last.removeprefix("bloomline: ") or f"the command ended with {code}")
    for line in lines:
        warnings.warn(line.removeprefix("bloomline: ").removeprefix("warning: "), stacklevel=2)
    return figures


@contextlib.contextmanager
def _unfinished(output: str | None) -> Iterator[None]:
    """Renames an output that a failed run began, so that it does not look complete. With a state, it has rows that no later run writes."""
    # A link would leave the file under its name.
    output = output and os.path.realpath(output)

    def version() -> object:
        with contextlib.suppress(OSError):
            found = os.stat(output or "")
            return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None
        return None

    before = version()
    try:
        yield
    except BaseException as error:
        if output is not None and version() not in (before, None):
            parts = (f"{output}.part{number or ''}" for number in itertools.count())
            part = next(path for path in parts if not os.path.lexists(path))
            os.rename(output, part)
            error.add_note(f"the rows so far are in {part}")
        raise


# The beginning of a line with the progress of the command.
_PROGRESS = b'{"progress":'


def _run(command: Sequence[str], paths: Sequence[str], shown: Progress) -> tuple[int, list[str]]:
    """Runs the command with these inputs. Returns its exit code, and the lines of its standard error."""
    # Not as arguments, whose length the system limits. No path has the byte 0.
    names = b"".join(os.fsencode(path) + b"\0" for path in paths)
    with subprocess.Popen(
        [*command, "--files-from=-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(), creationflags=_FLAGS
    ) as child:
        assert child.stdin is not None and child.stderr is not None

        def feed(pipe: IO[bytes] = child.stdin) -> None:
            with contextlib.suppress(BrokenPipeError), pipe:
                pipe.write(names)

        threading.Thread(target=feed, daemon=True).start()
        messages = []
        try:
            for line in child.stderr:
                if line.startswith(_PROGRESS):
                    shown.show(**json.loads(line)["progress"])
                else:
                    messages.append(os.fsdecode(line).rstrip("\n"))
        except BaseException:
            # The command ignores Ctrl-C, which may have reached this process alone, and ends in good order. A second Ctrl-C ends it at once.
            # On Windows, a process without a console cannot send the signal.
            with contextlib.suppress(OSError):
                try:
                    child.send_signal(_END)
                    child.stderr.read()
                    child.wait()
                finally:
                    child.kill()
            raise
    return child.returncode, messages


def _path(argument: str, path: Any) -> str:
    """Returns a path as text. The command would read a hyphen at its start as that of an option, or as a standard stream."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{argument} is of type {type(path).__name__}: give a path")
    name = os.fsdecode(path)
    if not name or "\0" in name:
        raise ValueError(f"{argument} is {name!r}, an empty path or one with a NUL byte: give the name of a file")
    return os.path.join(".", name) if name.startswith("-") else name


def _file(argument: str, path: Any) -> str:
    """Returns the path of a file to write, whose folder exists."""
    name = _path(argument, path)
    os.stat(os.path.dirname(name) or ".")
    if os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    return name


def _paths(inputs: Any) -> list[str]:
    """Returns the named files and folders. The matches of a pattern are sorted."""
    listed = [inputs] if isinstance(inputs, (str, os.PathLike)) else inputs
    if isinstance(listed, (bytes, Mapping)) or not isinstance(listed, Iterable):
        raise TypeError(f"inputs are of type {type(inputs).__name__}, neither a frame nor files: give a path, a list of paths or a frame")
    paths = []
    for number, path in enumerate(listed):
        if not isinstance(path, (str, os.PathLike)):
            name = type(path).__name__
            raise TypeError(f"inputs[{number}] is of type {name}, not a path: give files, or rows as a frame, such as pandas.DataFrame(rows)")
        name = _path(f"inputs[{number}]", path)
        is_pattern = glob.has_magic(name) and not os.path.lexists(name) and not is_url(path)
        matches = sorted(glob.glob(name, recursive=True)) if is_pattern else [name]
        if not matches:
            raise ValueError(f"no file matches {name!r}: correct the pattern, or leave it out")
        paths += matches
    if not paths:
        raise ValueError("no inputs: the list is empty")
    return paths


# The endings of compressed files. The name before the ending has the format.
_COMPRESSED = re.compile(r"\.(gz|bz2|xz|zst|lz4)$", re.IGNORECASE)


def _form(path: str) -> str:
    """Returns "csv" or "tsv" by the name of a file, or of all files in a folder; "" for others."""
    if os.path.isdir(path):
        forms = set()
        for folder, folders, names in os.walk(path):
            folders[:] = (name for name in folders if not name.startswith("."))
            # Spark writes files such as _SUCCESS beside the files with rows.
            forms |= {_form(os.path.join(folder, name)) for name in names if not name.startswith((".", "_"))}
        if len(forms) > 1:
            raise ValueError(f"{path} has files of CSV and others: choose with options=['--glob', '*.csv', '--csv', '--header']")
        return forms.pop() if forms else ""
    ending = os.path.splitext(_COMPRESSED.sub("", path))[1].lower()
    return ending[1:] if ending in (".csv", ".tsv") else ""


def _key(columns: Sequence[Any], paths: Sequence[str], options: Sequence[str]) -> list[str]:
    """Returns the options for the key, and for CSV unless other options select the format."""
    if not all(isinstance(column, str) for column in columns):
        raise TypeError(f"on is {list(columns)!r}: columns of files have names")
    form, flags = "csv" if "--csv" in options else "", []
    if not any(option.startswith(("--csv", "--glob", "-g")) for option in options):
        forms = {_form(path) for path in paths}
        if len(forms) > 1:
            raise ValueError("inputs are files of CSV and others: give each kind by itself")
        (form,) = forms
        flags = {"csv": ["--csv", "--header"], "tsv": ["--csv", "--header", "-d", r"\t"]}.get(form, [])
    if not form:
        pointers = ("".join("/" + name.replace("~", "~0").replace("/", "~1") for name in column.split(".")) for column in columns)
        return [option for pointer in pointers for option in ("--json-pointer", pointer)]
    for column in columns:
        if "," in column or re.fullmatch(r"-.*|[0-9-]*", column, re.DOTALL):
            raise ValueError(f"on is {column!r}: give a column with such a name by its number, such as the second by options=['-f', '2']")
    return flags + [option for column in columns for option in ("-f", column)]
