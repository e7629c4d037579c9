"""maturin, which builds the wheel; where Rust is missing, a message comes before anything is downloaded."""

import shutil
from typing import Any


def _tools(_: Any = None) -> list[str]:
    if not shutil.which("cargo"):
        raise SystemExit("bloomline is built with Rust, and there is no cargo on the PATH: install Rust (https://rustup.rs) first")
    return ["maturin>=1.9,<2"]


get_requires_for_build_wheel = get_requires_for_build_editable = get_requires_for_build_sdist = _tools


def __getattr__(hook: str) -> Any:
    import maturin

    return getattr(maturin, hook)
