"""The examples of the docstrings and of the pages run, and the types are right."""

import doctest
import importlib.util
import inspect
import pathlib
import subprocess
import sys

import pytest

import bloomline
from conftest import Server, long

HERE = pathlib.Path(__file__).parents[1]
# The section whose examples need a server, the last with examples.
ON_A_SERVER = "## One set for many machines"


def test_docstrings() -> None:
    found = [test for test in doctest.DocTestFinder().find(bloomline) if "redis://" not in test.docstring]
    assert run_examples(found) > 20


def test_docstrings_of_filters_on_a_server(redis: Server) -> None:
    found = [test for test in doctest.DocTestFinder().find(bloomline) if "redis://" in test.docstring]
    found.append(examples_of((HERE.parent / "docs/PYTHON.md").read_text().split(ON_A_SERVER)[1]))
    for example in (example for test in found for example in test.examples):
        example.source = example.source.replace("redis://127.0.0.1:6379", redis.url)
    assert run_examples(found) > 10


def examples_of(page: str) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(page, {}, "page", None, 0)


def run_examples(tests: list[doctest.DocTest]) -> int:
    runner = doctest.DocTestRunner()
    for test in tests:
        runner.run(test)
    results = runner.summarize()
    assert results.failed == 0
    return results.attempted


def test_everything_has_a_docstring() -> None:
    for made in (getattr(bloomline, name) for name in bloomline.__all__ if name != "__version__"):
        members = [made] + [member for key, member in vars(made).items() if not key.startswith("_")]
        for member in members:
            assert inspect.getdoc(member), member


@pytest.mark.parametrize("page", [HERE / "README.md", HERE.parent / "docs/PYTHON.md"], ids=lambda page: page.stem)
def test_pages(page: pathlib.Path) -> None:
    assert run_examples([examples_of(page.read_text().split(ON_A_SERVER)[0])]) > 5


# The spiders of test_scrapy.py do the same.
EXAMPLES = [pytest.param(path, marks=[long] if path.stem == "scrapy_spider" else [], id=path.stem) for path in sorted((HERE / "examples").glob("*.py"))]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples(example: pathlib.Path) -> None:
    subprocess.run([sys.executable, example], check=True, capture_output=True)


# Packages whose imports take longer than the rest of their recipes.
LARGE = [pytest.param(package, marks=long) for package in ("dask", "datafusion", "ray")]


@pytest.mark.parametrize("package", ["duckdb", "polars", *LARGE])
def test_recipes(package: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip(package)
    recipe = HERE / f"recipes/with_{package}.py"
    subprocess.run([sys.executable, recipe], cwd=tmp_path, check=True, capture_output=True)


def test_types(tmp_path: pathlib.Path) -> None:
    modules = ["scrapy.py", *(["spark.py"] if importlib.util.find_spec("pyspark") else [])]
    for arguments in (
        # With the types of the installed wheel.
        ["mypy", "--strict", HERE / "examples"],
        ["mypy", "--strict", "--ignore-missing-imports", HERE / "tests/typed.py"],
        ["mypy", "--strict", *(HERE / "package/bloomline" / module for module in modules)],
        ["mypy.stubtest", "bloomline._bloomline", "--allowlist", HERE / "stubtest-allow.txt"],
    ):
        subprocess.run([sys.executable, "-m", *arguments], cwd=tmp_path, check=True)
