"""Frames of every package, with the least versions that are read, and with the newest."""

import pathlib
import subprocess
import sys
import tomllib
from typing import Any

import pytest

import bloomline
from bloomline import BloomFilter, ScalableBloomFilter, _frames

np = pytest.importorskip("numpy")
duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

ROWS: dict[str, list[Any]] = {"url": ["a", "b", "a", None, None], "day": [1, 1, 2, 2, 3], "tags": [[1], [2], [1], None, []]}
FIRST, LAST = [1, 1, 2], [1, 2, 3]
FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "pyarrow": pa.table,
    "pyarrow, batch": lambda rows: pa.table(rows).to_batches()[0],
    "pyarrow, reader": lambda rows: pa.table(rows).to_reader(),
    "pyarrow, dataset": lambda rows: ds.dataset(pa.table(rows)),
    "duckdb": lambda rows: duckdb.from_arrow(pa.table(rows)),
}


def days(frame: Any) -> list[int]:
    """The days of a frame, and the end of a lazy one or a reader."""
    for method in "collect", "read_all", "to_arrow_table":
        frame = getattr(frame, method)() if hasattr(frame, method) else frame
    return [int(day) for day in (frame.column("day").to_pylist() if hasattr(frame, "column") else frame["day"].to_list())]


def test_the_extras_have_the_least_versions() -> None:
    project = tomllib.loads((pathlib.Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for name, least in _frames.LEAST.items():
        assert f"{name}>={'.'.join(map(str, least))}" in extras[name]


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_frames_of_each_package_are_read(make: Any) -> None:
    assert days(bloomline.dedup(make(ROWS), on="url")) == FIRST
    assert days(bloomline.dedup(make(ROWS), on=["url", "tags"])) == [1, 1, 2, 3]
    assert days(bloomline.dedup(make(ROWS), on="url", nulls="keep")) == [1, 1, 2, 3]
    assert days(bloomline.dedup(make(ROWS))) == ROWS["day"]
    seen = ScalableBloomFilter(1000, 1e-9)
    assert [days(bloomline.dedup(make(ROWS), on="url", seen=seen)) for _ in range(2)] == [FIRST, []]
    if type(make(ROWS)).__name__ not in ("RecordBatchReader", "InMemoryDataset"):
        assert days(bloomline.dedup(make(ROWS), on="url", keep="last")) == LAST


@pytest.mark.parametrize("make", [make for name, make in FRAMES.items() if name not in ("polars, lazy", "pyarrow, dataset")])
def test_rows_of_each_package_are_keys(make: Any) -> None:
    assert BloomFilter(1000, 1e-9).add_rows(make({"url": ROWS["url"]})).tolist() == [True, True, False, True, False]
    assert BloomFilter(1000, 1e-9).add_many(make({"url": ["a", "b", "a"]})).tolist() == [True, True, False]


@pytest.mark.parametrize("make", [pd.Series, pl.Series, pa.array, lambda values: pa.chunked_array([values[:1], values[1:]]), np.array])
@pytest.mark.parametrize("values", [["a", "b", "a"], [1, 2, 1], [True, False, True]], ids=repr)
def test_columns_of_each_package_are_keys(make: Any, values: list[Any]) -> None:
    assert BloomFilter(1000, 1e-9).add_many(make(values)).tolist() == [True, True, False]


def test_types_of_polars_are_converted_or_refused() -> None:
    for values in pl.Series([None, None]), pl.Series(["x", "x"], dtype=pl.Categorical), pl.Series([[None], [None]]):
        assert len(bloomline.dedup(pl.DataFrame({"a": values}))) == 1
    objects = pl.Series("a", [object()], dtype=pl.Object)
    for ask in lambda: bloomline.dedup(pl.DataFrame([objects])), lambda: BloomFilter(1000, 1e-9).add_many(objects):
        with pytest.raises(TypeError, match="column \"a\" has Polars' type Object"):
            ask()


def test_a_relation_of_duckdb_is_a_frame() -> None:
    connection = duckdb.connect()
    log = connection.sql("SELECT * FROM (VALUES ('a', 1), ('b', 1), ('a', 2)) log(url, day) ORDER BY day")
    for keep, rows in {"first": [("a", 1), ("b", 1)], "last": [("b", 1), ("a", 2)]}.items():
        kept: Any = bloomline.dedup(log, on="url", keep=keep)  # type: ignore[call-overload]
        assert kept.fetchall() == rows
    # The relation has the connection of the other.
    assert connection.sql("SELECT count(*) FROM kept JOIN log USING (url)").fetchall() == [(3,)]
    seen = ScalableBloomFilter(1000, 1e-9)
    assert [len(bloomline.dedup(log, on="url", seen=seen).fetchall()) for _ in range(2)] == [2, 0]
    assert seen.contains_rows(pa.table({"url": ["a", "c"]})).tolist() == [True, False]
    # DuckDB exports other values: 10:00, -1, and bytes.
    for value in "'10:00+01'::TIMETZ", f"{2**128 - 1}::UHUGEINT", "'101'::BIT":
        for column in value, f"[{value}]", f"{{'t': {value}}}":
            changed = connection.sql(f"SELECT {column} AS v")
            for ask in bloomline.dedup, seen.add_rows:
                with pytest.raises(TypeError, match="column 'v' has the type .*cast it to VARCHAR"):
                    ask(changed)  # type: ignore[operator]


def test_frames_of_pandas_have_any_index() -> None:
    rows = {"a": [1, 2, 1, 3]}
    for index in ([3.5, 1.0, 2.5, 0.5], [0.0, 1.0, 2.0, 3.0], list("wxyz"), pd.date_range("2026-11-27", periods=4), [7, 7, 7, 7]):
        frame = pd.DataFrame(rows, index=index)
        assert bloomline.dedup(frame, on="a")["a"].tolist() == [1, 2, 3]
        kept = bloomline.dedup(frame, on="a", keep="last")
        pd.testing.assert_frame_equal(kept, frame.iloc[[1, 2, 3]])


@pytest.mark.parametrize("name", ["numpy", "pandas", "polars", "pyarrow"])
def test_packages_that_are_missing_or_too_old_are_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame: Any = (pl.DataFrame if name in ("numpy", "polars") else pd.DataFrame)({"a": [1]})
    remedy = rf"pip install '{name}>={'.'.join(map(str, _frames.LEAST[name]))}'"
    _frames.needed.cache_clear()
    try:
        monkeypatch.setattr(sys.modules[name], "__version__", "0.9.1")
        with pytest.raises(ImportError, match=rf"{name} is of version 0\.9\.1, .*{remedy}"):
            bloomline.dedup(frame)
        _frames.needed.cache_clear()
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ModuleNotFoundError, match=rf"{name} is not installed, .*{remedy}"):
            bloomline.dedup(frame)
    finally:
        _frames.needed.cache_clear()


def test_update_alone_needs_no_numpy() -> None:
    program = """
import sys
sys.modules["numpy"] = None
from bloomline import BloomFilter
seen = BloomFilter(1000, 1e-6)
seen.update(["a"])
assert "a" in seen
try:
    seen.contains_many(["a"])
except ModuleNotFoundError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "contains_many" in told and "pip install numpy" in told
