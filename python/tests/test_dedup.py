"""`bloomline.dedup`: the command, called from Python."""

import doctest
import gzip
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

import bloomline
from bloomline import _files
from conftest import needs_unix

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS: list[dict[str, Any]] = [
    {"page": {"url": url}, "day": day, "a/b": number}
    for number, (url, day) in enumerate([("x", 1), ("y", 1), ("x", 1), ("x", 2), (None, 1), (None, 1)])
]


@pytest.fixture
def table(tmp_path: pathlib.Path) -> pathlib.Path:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "in.parquet", row_group_size=2)
    return tmp_path / "in.parquet"


def numbers(path: pathlib.Path) -> list[int]:
    return [row["a/b"] for row in pq.read_table(path).to_pylist()]


def test_docstring() -> None:
    assert doctest.testmod(_files, extraglobs={"bloomline": bloomline}) == (0, 4)


@pytest.mark.parametrize(
    ("on", "kept"),
    [("page.url", [0, 1, 4]), (["page.url", "day"], [0, 1, 3, 4]), ("a/b", [0, 1, 2, 3, 4, 5]), (None, [0, 1, 2, 3, 4, 5])],
)
def test_rows_are_compared_by_the_given_columns(on: str | list[str] | None, kept: list[int], table: pathlib.Path, tmp_path: pathlib.Path) -> None:
    figures = bloomline.dedup(table, on=on, output=tmp_path / "out.parquet")
    assert (figures["lines"], figures["unique"], numbers(tmp_path / "out.parquet")) == (6, len(kept), kept)


def test_lines_of_json_and_tables_share_a_state(table: pathlib.Path, tmp_path: pathlib.Path) -> None:
    lines = tmp_path / "in.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in [*ROWS, {"page": {"url": "z"}}]))
    state, out = tmp_path / "seen.bloom", tmp_path / "out"
    assert bloomline.dedup([str(table)], on="page.url", output_dir=out, state=state, n=100, p=0.001, options=["-j", "1"])["unique"] == 3
    assert bloomline.dedup(lines, on="page.url", output_dir=out, state=state)["unique"] == 1
    assert numbers(out / "in.parquet") == [0, 1, 4]
    assert (out / "in.jsonl").read_text() == '{"page": {"url": "z"}}\n'


def test_nulls_are_kept_or_fail_in_place(table: pathlib.Path) -> None:
    assert bloomline.dedup(table, on="page.url", nulls="keep", in_place=True, options=["-j", "1"])["without_key"] == 2
    assert numbers(table) == [0, 1, 4, 5]
    with pytest.raises(RuntimeError, match="null in .*row 3"):
        bloomline.dedup(table, on="page.url", nulls="fail", in_place=True)
    assert numbers(table) == [0, 1, 4, 5]


@pytest.mark.parametrize(
    ("name", "text", "others"),
    [("a.csv", 'u,v\n1,"x,\ny"\n2,x\n1,z\n', 3), ("a.tsv", "u\tv\n1\tx\n2\tx\n1\tz\n", 2), ("a.CSV.gz", 'u,"v,w"\n1,x\n2,x\n1,z\n', 2)],
)
def test_files_of_csv_are_recognized_by_their_names(name: str, text: str, others: int, tmp_path: pathlib.Path) -> None:
    (tmp_path / "folder" / ".hidden").mkdir(parents=True)
    (tmp_path / "folder" / ".hidden" / "other.txt").touch()
    (tmp_path / "folder" / "_SUCCESS").touch()
    path = tmp_path / "folder" / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    rows = text.removesuffix("\n").rsplit("\n", 2)
    for inputs in (path, tmp_path / "folder", str(tmp_path / "*" / "a.*"), [str(path)]):
        for keep, kept in {None: rows[:-1], "first": rows[:-1], "last": [rows[0][: text.index("\n")], *rows[1:]]}.items():
            out = tmp_path / "out.csv"
            figures = bloomline.dedup(inputs, on="u", output=out, keep=keep)  # type: ignore[call-overload]
            assert figures["lines"] == 3 and out.read_text() == "\n".join(kept) + "\n"
    # Options may name further fields, or replace `on`.
    assert bloomline.dedup(path, output=tmp_path / "out", options=["-f", "2"])["unique"] == others
    assert bloomline.dedup(path, on="u", output_dir=tmp_path / "dir", keep="first")["unique"] == 2
    delimiter = ["-d", r"\t"] if name == "a.tsv" else []
    assert bloomline.dedup(path, output=tmp_path / "out", options=["--csv", "-f", "1", *delimiter])["lines"] == 4
    (tmp_path / "folder" / "b.txt").touch()
    for mixed in (tmp_path / "folder", [path, tmp_path / "folder" / "b.txt"]):
        with pytest.raises(ValueError, match="of CSV and others"):
            bloomline.dedup(mixed, on="u", output=tmp_path / "out")
    with pytest.raises(ValueError, match="by its number"):
        bloomline.dedup(path, on="v,w", output=tmp_path / "out")


def test_inputs_may_exceed_the_length_of_a_command_line(tmp_path: pathlib.Path) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    inputs = [f"{tmp_path}/{'./' * 40}{number % 7 * './'}in.txt" for number in range(25_000)]
    figures = bloomline.dedup((path for path in inputs), output=tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == "a\n" and figures["unique"] == 1


@needs_unix
def test_the_error_of_a_child_that_ends_early_is_raised(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    for program, said in {"raise SystemExit('no such library')": "no such library", "import os; os.kill(os.getpid(), 9)": "ended with -9"}.items():
        monkeypatch.setattr(_files, "_COMMAND", [sys.executable, "-c", program])
        with pytest.raises(RuntimeError, match=said):
            bloomline.dedup(tmp_path / "in.txt", output=tmp_path / "out.txt")


def test_wrong_arguments_are_refused(table: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match='no column "none"'):
        bloomline.dedup(table, on="none", output=tmp_path / "out.parquet")
    out = tmp_path / "out.parquet"
    none = tmp_path / "missing"
    for missing in {"inputs": none, "output": out}, {"output": none / "out"}, {"output": out, "state": none / "seen.bloom"}:
        with pytest.raises(FileNotFoundError) as raised:
            bloomline.dedup(**{"inputs": table} | missing)  # type: ignore[call-overload]
        assert raised.value.filename == str(none)
    kept = table.read_bytes()
    for nothing in ([], str(tmp_path / "*.none"), [table, tmp_path / "*.none"], "", [""]):
        with pytest.raises(ValueError, match=r"no inputs: the list is empty|no file matches '.*none'|inputs\[0\] is '', an empty path"):
            bloomline.dedup(nothing, output=table)
    assert table.read_bytes() == kept
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"inputs": ["a", "b", "a"]}, ValueError, r"inputs are paths .* give values as a frame"),
        ({"output": tmp_path}, IsADirectoryError, "Is a directory"),
        ({"output": 5}, TypeError, "output is of type int"),
        ({"output": ""}, ValueError, "output is ''"),
        ({"output": out, "seen": {"a"}}, ValueError, "seen is for frames"),
        ({"output": out, "options": "--exact"}, TypeError, "options is '--exact': give a list"),
        ({"output": out, "options": [1]}, TypeError, r"options is \[1\]"),
        ({"output": out, "options": ["--near", "0.8"]}, RuntimeError, r"'--near' found\n.*is an option of bloomline corpus"),
        ({"output": out, "keep": "last", "state": tmp_path / "s"}, ValueError, "keep is 'last' and a state"),
        ({"output": out, "keep": "any"}, ValueError, "keep is 'any'"),
        ({"output": out, "nulls": "none"}, ValueError, "nulls is 'none'"),
        ({"output": out, "n": -5}, ValueError, "n is -5"),
        ({"output": out, "p": "x"}, TypeError, "p is 'x'"),
        ({"output": out, "on": 0}, TypeError, r"on is \[0\]"),
    ]
    for arguments, error, message in wrong:
        with pytest.raises(error, match=message):
            bloomline.dedup(**{"inputs": table} | arguments)  # type: ignore[call-overload]
    assert not out.exists()
    for destinations in ({}, {"output": "a", "in_place": True}):
        with pytest.raises(ValueError, match="one of output"):
            bloomline.dedup(table, **destinations)  # type: ignore[call-overload]


def test_names_that_begin_with_a_hyphen_are_those_of_files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "-x.txt", "-":
        pathlib.Path(name).write_text("a\nb\na\n")
        assert bloomline.dedup(name, output="-y.txt", state="-s")["unique"] == 2
        assert pathlib.Path("-y.txt").read_text() == "a\nb\n" and pathlib.Path("-s").exists()
        assert bloomline.dedup([name], output_dir="-d")["unique"] == 2
        for written in "-s", "-y.txt":
            pathlib.Path(written).unlink()
    pathlib.Path("in.csv").write_text("-u,v\n1,1\n")
    with pytest.raises(ValueError, match="on is '-u': give a column with such a name by its number"):
        bloomline.dedup("in.csv", on="-u", output="out.csv")


INTERRUPTED = """
import os, signal, threading
import bloomline
def interrupt():
    # Nothing comes from the pipe, so the run does not end.
    pipe = open("pipe", "w")
    while not os.path.exists("out.jsonl") or not os.path.getsize("out.jsonl"):
        pass
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    threading.Event().wait()
threading.Thread(target=interrupt, daemon=True).start()
try:
    bloomline.dedup(["in.jsonl", "pipe"], on="a", output="out.jsonl", state="seen.bloom", options=["-j", "1"])
except KeyboardInterrupt as error:
    print(*error.__notes__)
"""


@needs_unix
def test_an_interrupted_run_leaves_no_output_that_looks_complete(tmp_path: pathlib.Path) -> None:
    """Ctrl-C reaches Python alone. The lines that are in the state are kept under another name, and a second run has the others."""
    count = 500_000
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "in.jsonl", "w") as lines:
        lines.writelines(f'{{"a": {number}}}\n' for number in range(count))
    (tmp_path / "out.jsonl.part").write_text("of an earlier run")
    told = subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout == f"the rows so far are in {os.path.realpath(tmp_path)}/out.jsonl.part1\n"
    assert not (tmp_path / "out.jsonl").exists() and (tmp_path / "out.jsonl.part").read_text() == "of an earlier run"
    bloomline.dedup(tmp_path / "in.jsonl", on="a", output=tmp_path / "out.jsonl", state=tmp_path / "seen.bloom")
    written = [line for name in ("out.jsonl.part1", "out.jsonl") for line in (tmp_path / name).read_text().splitlines()]
    # A few are lost at the rate of the filter; none is written twice.
    assert count - 50 < len(written) == len(set(written)) <= count


@needs_unix
def test_a_failed_run_leaves_no_output_that_looks_complete(tmp_path: pathlib.Path) -> None:
    (tmp_path / "in.jsonl").write_text("".join(f'{{"a": {number}}}\n' for number in range(100_000)) + "broken\n")
    (tmp_path / "old.jsonl").write_text("old")
    (tmp_path / "file.jsonl").touch()
    (tmp_path / "link.jsonl").symlink_to("file.jsonl")
    for output in "new.jsonl", "old.jsonl", "link.jsonl":
        with pytest.raises(RuntimeError, match="in.jsonl"):
            bloomline.dedup(tmp_path / "in.jsonl", on="a", output=tmp_path / output)
        part = tmp_path / output.replace("link", "file")
        assert not (tmp_path / output).exists() and part.with_name(f"{part.name}.part").exists()


def test_modules_among_the_data_are_not_run(tmp_path: pathlib.Path) -> None:
    """Files of the current folder and of a folder on the path, whose names are those of modules that the command imports."""
    for name in ["bloomline", "_bloomline", "signal", "importlib", "sitecustomize", "usercustomize", "encodings"]:
        for folder in [tmp_path, tmp_path / "folder"]:
            folder.mkdir(exist_ok=True)
            (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')")
    (tmp_path / "in.jsonl").write_text('{"a": 1}\n{"a": 1}\n')
    program = """
import os, sys
import bloomline
os.chdir(sys.argv[1])
os.environ["PYTHONPATH"] = "folder"
for name in ["out.jsonl", "more.jsonl"]:
    assert bloomline.dedup("in.jsonl", on="a", output=name)["dropped"] == 1
"""
    for options in [["-I"], ["-P"], []]:
        subprocess.run([sys.executable, *options, "-c", program, tmp_path], check=True)
    assert not (tmp_path / "run").exists()
