"""maturin, which builds the wheel; where Rust is missing, a message comes before anything is downloaded."""

import json
import pathlib
import re
import shutil
import subprocess
from typing import Any

HERE = pathlib.Path(__file__).parent
LICENSES = HERE / "LICENSE-DEPENDENCIES"


def _tools(_: Any = None) -> list[str]:
    if not shutil.which("cargo"):
        raise SystemExit("bloomline is built with Rust, and there is no cargo on the PATH: install Rust (https://rustup.rs) first")
    return ["maturin>=1.9,<2"]


get_requires_for_build_wheel = get_requires_for_build_editable = get_requires_for_build_sdist = _tools


def _cargo(*arguments: str) -> str:
    return subprocess.check_output(["cargo", *arguments, "--manifest-path", HERE / "Cargo.toml"], text=True)


def write_licenses() -> None:
    """Writes the licences of the packages that the wheel links, which belong into the wheel. A release wrote them before."""
    lock = next((folder / "Cargo.lock" for folder in (HERE, HERE.parent) if (folder / "Cargo.lock").exists()), None)
    if LICENSES.exists() and (lock is None or LICENSES.stat().st_mtime >= lock.stat().st_mtime):
        return
    tree = _cargo("tree", "--package=bloomline-python", "--edges=normal,no-proc-macro", "--prefix=none")
    linked = set(re.findall(r"^(\S+) v(\S+)", tree, re.MULTILINE))
    packages: dict[str, list[str]] = {}
    for package in json.loads(_cargo("metadata", "--format-version=1"))["packages"]:
        if (package["name"], package["version"]) not in linked or package["source"] is None:
            continue
        # The sources of libraries in C are in folders of their packages.
        files = sorted(pathlib.Path(package["manifest_path"]).parent.rglob("*"))
        found = (file for file in files if re.match(r"(?i)(un)?licen[cs]e|copying|notice", file.name) and file.is_file())
        texts = [file.read_text("utf-8", "replace") for file in found]
        for text in texts or [f"{package['license']}, by {', '.join(package['authors'])}"]:
            packages.setdefault(text.strip(), []).append(f"  {package['name']} {package['version']} ({package['license']})")
    parts = (f"{'=' * 80}\n" + "\n".join(names) + f"\n{'-' * 80}\n{text}\n" for text, names in packages.items())
    LICENSES.write_text("bloomline contains these packages of others, each before its licence.\n\n" + "\n".join(parts), "utf-8")


def __getattr__(hook: str) -> Any:
    import maturin

    if hook in ("prepare_metadata_for_build_wheel", "build_wheel"):
        write_licenses()
    return getattr(maturin, hook)
