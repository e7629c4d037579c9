"""If Rust is missing, an installation reports that before it downloads or builds anything."""

import importlib.metadata
import importlib.util
import pathlib
from types import ModuleType

import pytest

HOOKS = ["get_requires_for_build_wheel", "get_requires_for_build_editable", "get_requires_for_build_sdist"]


def backend() -> ModuleType:
    spec = importlib.util.spec_from_file_location("backend", pathlib.Path(__file__).parents[1] / "backend.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("hook", HOOKS)
def test_an_installation_asks_for_rust_first(hook: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="no cargo on the PATH: install Rust"):
        getattr(backend(), hook)(None)
    (tmp_path / "cargo").touch(0o755)
    assert [tool.split(">")[0] for tool in getattr(backend(), hook)()] == ["maturin"]


def test_the_wheel_has_the_licences_of_what_it_links() -> None:
    text = importlib.metadata.distribution("bloomline").read_text("licenses/LICENSE-DEPENDENCIES") or ""
    for package in "arrow-array", "pyo3", "redis", "rustls", "zstd-sys":
        assert f"\n  {package} " in text
    # Of libraries in C.
    assert "Meta Platforms, Inc." in text and "XZ Utils" in text
