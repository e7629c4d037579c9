"""Calls that type-check, and calls that fail at run time and do not. mypy --strict refuses an unused `type: ignore`."""

import pathlib
from typing import Any, assert_type

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

import bloomline
from bloomline import BloomFilter, ScalableBloomFilter

frame, lazy, relation = pl.DataFrame({"a": [1]}), pl.LazyFrame({"a": [1]}), duckdb.connect().table("log")


class Reader:
    """A reader of pyarrow, which has no types in some versions."""

    def read_next_batch(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


assert_type(bloomline.dedup("in.txt", output=pathlib.Path("out.txt")), dict[str, Any])
assert_type(bloomline.dedup(["in.txt"], "a", output_dir="out", options=["-j", "1"], keep="last"), dict[str, Any])
assert_type(bloomline.dedup(frame, on="a", seen=ScalableBloomFilter(1000, 1e-6)), pl.DataFrame)
assert_type(bloomline.dedup(lazy, on=["a", pl.col("a") + 1], keep="last"), pl.LazyFrame)
assert_type(bloomline.dedup(relation, on="a", keep="last"), duckdb.DuckDBPyRelation)
assert_type(bloomline.dedup(Reader(), on=0), Reader)
bloomline.dedup(pa.table({"a": [1]}), on=0)
bloomline.dedup(pa.table({"a": [1]}).to_reader(), on="a").read_all()
bloomline.dedup(ds.dataset("folder"), on="a").read_all()
BloomFilter(1000, 1e-6).add_rows(Reader())
BloomFilter(1000, 1e-6).add_rows(relation)
BloomFilter(1000, 1e-6).add_many(pl.Series([1]))

bloomline.dedup(5)  # type: ignore[call-overload]
bloomline.dedup({"a": [1]}, output=5)  # type: ignore[call-overload]
bloomline.dedup("in.txt", output="out.txt", options="--exact")  # type: ignore[call-overload]
bloomline.dedup("in.txt", output="out.txt", seen=BloomFilter(1000, 1e-6))  # type: ignore[call-overload]
bloomline.dedup("in.txt", output="out.txt", on=0)  # type: ignore[call-overload]
bloomline.dedup(frame, on=0)  # type: ignore[call-overload]
bloomline.dedup(frame, output="out.txt")  # type: ignore[arg-type]
bloomline.dedup(frame, seen={"a"})  # type: ignore[call-overload]
bloomline.dedup(frame, seen="seen.bloom")  # type: ignore[call-overload]
bloomline.dedup(frame, keep="any")  # type: ignore[call-overload]
bloomline.dedup(frame, n="10M")  # type: ignore[call-overload]
bloomline.dedup(Reader(), keep="last")  # type: ignore[call-overload]
BloomFilter(1000, 1e-6).add_rows(lazy)  # type: ignore[arg-type]
BloomFilter(1000, 1e-6).add_rows([1])  # type: ignore[arg-type]
