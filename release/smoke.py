"""What a stranger does first with an installed wheel. `python release/smoke.py`"""

import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import metadata, version
from pathlib import Path

import bloomline
from bloomline import AtomicBloomFilter, BloomFilter

assert bloomline.__version__ == version("bloomline")
assert metadata("bloomline")["License-Expression"] == "MIT OR Apache-2.0"

seen = BloomFilter(1_000_000, 0.01)
assert seen.add("a") and not seen.add("a")
assert "a" in seen and "b" not in seen
seen.update(range(100_000))
assert all(key in seen for key in range(100_000))

# Every version of Python, with a GIL or without, has the same bits.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "seen.bloom")
    seen.save(path)
    assert BloomFilter.load(path) == seen

shared = AtomicBloomFilter(1000, 1e-6)
assert shared.add((1, "pair")) and (1, "pair") in shared

for command in [[Path(sysconfig.get_path("scripts"), "bloomline")], [sys.executable, "-m", "bloomline"]]:
    answer = subprocess.run([*command, "dedup"], input=b"b\na\nb\n", capture_output=True, check=True)
    assert answer.stdout == b"b\na\n", answer

gil = getattr(sys, "_is_gil_enabled", lambda: True)()
# To import the module does not bring the GIL back.
assert gil != bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
print(f"Python {sys.version.split()[0]}, {'with' if gil else 'without'} the GIL: the wheel works")
