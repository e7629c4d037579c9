"""The command that the wheel installs."""

import os
import pathlib
import signal
import subprocess
import sys
import sysconfig
import time

import pytest

from bloomline import ScalableBloomFilter
from conftest import needs_unix

SCRIPT = pathlib.Path(sysconfig.get_path("scripts")) / "bloomline"


@pytest.mark.parametrize("command", [[SCRIPT], [sys.executable, "-m", "bloomline"]], ids=["script", "module"])
def test_the_command_removes_repeats_and_returns_its_status(command: list[str], tmp_path: pathlib.Path) -> None:
    # macOS refuses names that are not UTF-8.
    name = "a" if sys.platform == "darwin" else "a\udcff"
    (tmp_path / name).write_bytes(b"x\n\xff\nx\n")
    told = subprocess.run([*command, "dedup", name], cwd=tmp_path, capture_output=True)
    assert (told.returncode, told.stdout, told.stderr) == (0, b"x\n\xff\n", b"")
    told = subprocess.run([*command, "dedup", "none"], cwd=tmp_path, capture_output=True, text=True)
    assert (told.returncode, told.stdout) == (2, "") and told.stderr.startswith("bloomline: ")
    told = subprocess.run([*command, "dedup", "--help"], capture_output=True, text=True)
    assert (told.returncode, told.stderr) == (0, "") and "Usage: bloomline dedup" in told.stdout


@needs_unix
@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_with_all_output_in_its_state(ended_by: signal.Signals, tmp_path: pathlib.Path) -> None:
    child = subprocess.Popen(
        [SCRIPT, "dedup", "--quiet", "--state", "seen.bloom", "-o", "out.txt"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdin and child.stderr
    os.write(child.stdin.fileno(), b"a\nb\n")
    out = tmp_path / "out.txt"
    while not out.exists() or out.stat().st_size == 0:
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(ended_by)
    assert child.wait(300) == 128 + ended_by
    assert b"Traceback" not in child.stderr.read()
    # The state has all printed lines.
    assert out.read_bytes() == b"a\nb\n"
    assert len(ScalableBloomFilter.load(tmp_path / "seen.bloom")) == 2
