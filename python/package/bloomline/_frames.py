"""Duplicates in frames and tables: pandas, Polars, pyarrow."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal

from bloomline._bloomline import BloomFilter, Filter

Nulls = Literal["equal", "keep", "skip", "fail"]


def is_frame(data: object) -> bool:
    """Whether it has rows that can be read."""
    return hasattr(data, "__arrow_c_stream__") or _is_lazy(data)


def _is_lazy(data: object) -> bool:
    return type(data).__name__ == "LazyFrame" and _package(data) == "polars"


def _package(data: object) -> str:
    return type(data).__module__.split(".")[0]


def dedup(
    frame: Any, on: str | Sequence[str] | None, n: int | None, p: float | None, nulls: Nulls, seen: Filter | None
) -> Any:
    """The rows whose key is new, in a frame of the same kind."""
    if _is_lazy(frame):
        # Whoever collects it twice gets the same rows twice: each time has a filter of its own. Polars before 2 moves a later filter, a limit
        # and a choice of columns before it unless it is told not to, and other rows would stay.
        stays_here = {"predicate_pushdown": False, "projection_pushdown": False, "slice_pushdown": False}
        return frame.map_batches(lambda batch: dedup(batch, on, n, p, nulls, seen), **stays_here)
    package = _package(frame)
    if package not in ("pandas", "polars", "pyarrow"):
        what = f"a {type(frame).__name__} of {package} is no frame that is known here"
        raise TypeError(f"{what}: give one of pandas, Polars or pyarrow")
    columns = [on] if isinstance(on, str) else on
    keys = frame if columns is None else frame[list(columns)] if package == "pandas" else frame.select(list(columns))
    if seen is None:
        seen = BloomFilter(n or max(len(frame), 1), 1e-6 if p is None else p)
    new = seen.add_rows(keys, nulls=nulls)
    if package == "pyarrow":
        return frame.filter(import_module("pyarrow").array(new))
    return frame[new] if package == "pandas" else frame.filter(new)
