"""The progress line of `bloomline.dedup`."""

import contextlib
import io
import os
import pathlib
import pty
import subprocess
import sys
import types
import unittest.mock
from typing import Any

import pytest

import bloomline
from bloomline import _files, _progress

pa = pytest.importorskip("pyarrow")

LINE = "####------  45 %  pass 1 of 2: reading"
# A command that prints this much progress, and ends.
SAYS = """
import sys
sys.stdin.read()
for part in "45 %", "46 %":
    print('{"progress":{"parts":["%s","pass 1 of 2: reading","%s"],"share":0.45}}' % (part, "x" * 200), file=sys.stderr)
print("bloomline: warning: a filter is full", file=sys.stderr)
print('{"unique":1}', file=sys.stderr)
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "_COMMAND", [sys.executable, "-c", SAYS])
    monkeypatch.setattr(_progress, "_LONG", 0)
    # The second line of progress is not drawn.
    monkeypatch.setattr(_progress, "_PERIOD", 1000)
    monkeypatch.setenv("TERM", "xterm")


def told(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, progress: bool | None) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.warns(UserWarning, match="^a filter is full$"):
        assert bloomline.dedup(__file__, output="out.txt", progress=progress) == {"unique": 1}
    return stream.getvalue()


def test_progress_is_shown_in_terminals_and_notebooks_or_on_request(says: None, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = f"\r{LINE}\r{' ' * len(LINE)}\r"
    assert told(monkeypatch, Terminal(), None) == told(monkeypatch, io.StringIO(), True) == shown
    for stream in io.StringIO(), Terminal():
        assert told(monkeypatch, stream, False) == ""
    assert told(monkeypatch, io.StringIO(), None) == ""
    notebook = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    assert told(monkeypatch, io.StringIO(), None) == shown
    # A shell of IPython in a terminal has no kernel.
    notebook.get_ipython = lambda: types.SimpleNamespace()
    assert told(monkeypatch, io.StringIO(), None) == ""
    monkeypatch.setenv("TERM", "dumb")
    assert told(monkeypatch, Terminal(), None) == ""


def test_a_closed_terminal_does_not_end_a_call(says: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for broken in OSError("gone"), ValueError("closed"):
        terminal, write = Terminal(), unittest.mock.Mock(side_effect=broken)
        monkeypatch.setattr(terminal, "write", write)
        monkeypatch.setattr(sys, "stderr", terminal)
        with pytest.warns(UserWarning, match="a filter is full"):
            assert bloomline.dedup(__file__, output="b.jsonl", progress=True) == {"unique": 1}
        assert write.call_count == 1


def test_a_short_call_shows_nothing(says: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "_LONG", 1000)
    assert told(monkeypatch, Terminal(), None) == ""


def test_readers_show_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "_PERIOD", 0)
    table = pa.table({"a": [number % 1500 for number in range(2000)]})
    for progress, stream in (True, Terminal()), (False, Terminal()), (None, io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        new: Any = bloomline.dedup(table.to_reader(max_chunksize=1000), progress=progress)
        assert new.read_all().num_rows == 1500
        lines = [line.strip().rpartition("  ")[0] for line in stream.getvalue().split("\r")]
        assert lines == (["", "1,000 rows  1,000 unique", "2,000 rows  1,500 unique", "", ""] if progress else [""])


@pytest.mark.skipif(sys.platform != "linux", reason="waits for the end of a terminal as Linux tells it")
def test_passes_and_bytes_are_shown_on_a_terminal(tmp_path: pathlib.Path) -> None:
    """Two passes over a file and a pipe, which ends when the line was shown."""
    (tmp_path / "in.txt").write_text("a\nb\na\n")
    os.mkfifo(tmp_path / "pipe")
    program = """
import sys
import bloomline
from bloomline import _progress
_progress._LONG = 0
print(bloomline.dedup(["in.txt", "pipe"], output="out.txt", keep="last")["unique"])
"""
    terminal, theirs = pty.openpty()
    with open(terminal, "rb", buffering=0) as screen:
        child = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            stderr=theirs,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(theirs)
        seen = b""
        with open(tmp_path / "pipe", "w") as pipe:
            pipe.write("b\nc\n")
            pipe.flush()
            while b"pass 1 of 2: reading" not in seen:
                seen += screen.read(1 << 16)
        # The end of a terminal is an error.
        with contextlib.suppress(OSError):
            while more := screen.read(1 << 16):
                seen += more
    assert child.communicate()[0] == "3\n" and child.returncode == 0
    assert seen.endswith(b"\r") and seen.split(b"\r")[-2].strip() == b""
    assert (tmp_path / "out.txt").read_text() == "a\nb\nc\n"
