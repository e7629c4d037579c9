"""One key at every door: values of each kind, by each writer, through each door, beside the rules.

`python test_doors.py --counts` prints how many cells of the table are equal, different, changed by their writer or refused, and how
many are wrong: `--whole` tries the nightly ones, and `--first 20` shows some that are wrong.
"""

import argparse
import os
import pathlib
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pandas")
pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

import doors
import spark_session
from conftest import IS_LONG
from doors import NULL, SORTS, WAYS, Cell, Kind, Pair, Rule, Source, Table, Value, by_kinds, number, rule, text
from tables import duckdb_connection

FORMAT = pathlib.Path(__file__).parents[2] / "docs/FORMAT.md"
SEED = 1


def everything(folder: pathlib.Path, is_whole: bool) -> list[Source]:
    found = doors.sources(folder)
    missing = spark_session.missing()
    assert not (is_whole and missing and os.environ.get("BLOOMLINE_REQUIRE_SPARK") == "1"), missing
    if is_whole and not missing:
        (folder / "spark").mkdir()
        found += doors.sources_of_spark(folder / "spark")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("doors")


@pytest.fixture(scope="module")
def found(folder: pathlib.Path) -> list[Source]:
    return everything(folder, IS_LONG)


@pytest.fixture(scope="module")
def table(folder: pathlib.Path) -> Iterator[Table]:
    table = Table(folder)
    yield table
    table.close()


def test_two_values_are_equal_only_if_their_kinds_are() -> None:
    for one in Kind:
        for other in Kind:
            assert rule(one, other) == rule(other, one)
            assert (rule(one, other) == Rule.BY_VALUE) == (one == other and one not in (Kind.NULL, Kind.OTHER))


@pytest.mark.parametrize("name", SORTS)
def test_the_reader_finds_the_intended_values(name: str) -> None:
    sort = SORTS[name]
    if isinstance(sort.column, pa.Array):
        found = doors.of_arrow(sort.column)
        # Values that cannot be keys are compared by their kind alone.
        assert [one.kind if one.kind == Kind.OTHER else one for one in found] == [
            one.kind if one.kind == Kind.OTHER else one for one in sort.meanings
        ]
    elif isinstance(sort.column, list):
        assert list(map(doors.of_object, sort.column)) == sort.meanings


def test_numbers_are_their_digits() -> None:
    for same in ["1", "1.0", "1e0", "1.00"], ["0", "-0.0", "0e5"], ["1200", "12e2", "1.2E+3"]:
        assert len({number(Decimal(one)) for one in same}) == 1
    assert number("1e999999") != number("1e999998")


# Values that writers change, by hand: to another value, or to another spelling.
CHANGED: list[tuple[str, str, str, int, Value]] = [
    ("float32", "pandas", "json", 2, number("0.1000000015")),
    ("float32", "duckdb", "json", 2, number("0.10000000149011612")),
    ("float64", "pandas", "json", 3, number("0.3")),
    ("float64 special", "polars", "json", 0, NULL),
    ("float64 special", "pandas", "csv", 0, text("")),
    ("int64 and null", "pandas", "csv", 0, text("1.0")),
    ("timestamp us", "pandas", "json", 0, number("1767225600000")),
    ("timestamp us", "pandas iso", "json", 0, text("2026-01-01T00:00:00.000")),
    ("timestamp us", "duckdb", "csv", 0, text("2026-01-01 00:00:00")),
    ("timestamp us", "polars", "csv", 0, text("2026-01-01T00:00:00.000000")),
    ("timestamp us UTC", "duckdb", "json", 0, text("2026-01-01 00:00:00+00")),
    ("decimal128", "polars", "json", 0, text("1.0000000000")),
    ("decimal128", "duckdb", "json", 0, number("1")),
    ("duration ms", "pandas", "json", 0, number("5000")),
    ("binary of text", "pandas", "csv", 0, text("b'a'")),
]


@pytest.mark.parametrize(("name", "writer", "format", "row", "value"), CHANGED)
def test_writers_change_values(found: list[Source], name: str, writer: str, format: str, row: int, value: Value) -> None:
    [source] = [one for one in found if (one.sort.name, one.writer, one.format) == (name, writer, format)]
    assert source.read[row] == value


def test_all_kinds_writers_and_doors_are_tried(found: list[Source]) -> None:
    pairs = doors.sample(found, SEED)
    tried = {(one, other) for pair in pairs for one in pair.old.kinds for other in pair.new.kinds}
    assert {one for source in found for one in source.kinds} | {Kind.NULL} == set(Kind)
    assert {(one, other) for one in Kind for other in Kind if Kind.NULL not in (one, other)} <= tried
    assert {pair.way for pair in pairs} == set(WAYS)
    written = {(source.writer, source.format) for source in found}
    assert set(doors.WRITERS) | {(frame, "frame") for frame in ("pandas", "pandas arrow", "polars", "pyarrow")} <= written
    for side in [pair.old for pair in pairs], [pair.new for pair in pairs]:
        assert {one for one in written if one[0] != "by hand"} <= {(source.writer, source.format) for source in side}
    assert {(pair.remedy, pair.way.name) for pair in pairs if pair.remedy} >= {(Rule.NUMBER, "not-in"), (Rule.TIME, "dedup -s")}
    # A column of only nulls comes after each kind, and before it.
    nulls = [pair for pair in pairs if not pair.old.kinds or not pair.new.kinds]
    assert all(any(kinds in (pair.old.kinds, pair.new.kinds) for pair in nulls) for kinds in by_kinds(found))


def tried(table: Table, found: list[Source], is_whole: bool) -> Iterator[tuple[Pair | Source, Cell]]:
    yield from table.fill_all(found)
    yield from table.ask_all((doors.whole if is_whole else doors.sample)(found, SEED))


def troubles(cells: list[tuple[Pair | Source, Cell]]) -> list[str]:
    """An example of each sort of wrong cells."""
    groups: dict[object, str] = {}
    for asked, cell in cells:
        if cell.trouble:
            kinds = (asked.old.kinds, asked.new.kinds, asked.way, asked.remedy) if isinstance(asked, Pair) else asked.kinds
            groups.setdefault((kinds, *(label for label in doors.WRONG if cell.labels[label])), cell.trouble)
    return list(groups.values())


def test_every_cell_follows_the_rules(table: Table, found: list[Source]) -> None:
    cells = list(tried(table, found, IS_LONG))
    counts: Counter[str] = sum((cell.labels for _, cell in cells), Counter())
    wrong = troubles(cells)
    assert not wrong, f"{dict(counts)}; one of each sort:\n" + "\n".join(wrong[:20])
    assert all(counts[label] > 100 for label in ("equal", "different", "changed by its writer", "refused"))


def test_the_page_lists_the_rules() -> None:
    assert doors.table_of_rules() in FORMAT.read_text(encoding="utf-8")


@pytest.mark.parametrize("engine", doors.DUCKDB, ids=lambda engine: engine.question)
def test_duckdb_compares_differently(engine: doors.Engine) -> None:
    assert duckdb_connection().execute(f"SELECT {engine.question}").fetchall() == [(engine.answer,)]


def test_equality_of_duckdb_is_not_transitive() -> None:
    for question in doors.EQUAL_TO_DUCKDB:
        assert duckdb_connection().execute(f"SELECT {question}").fetchall() == [(True,)]


def print_counts(is_whole: bool, first: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        found = everything(pathlib.Path(name), is_whole)
        table = Table(pathlib.Path(name))
        start = time.monotonic()
        cells = list(tried(table, found, is_whole))
        took = time.monotonic() - start
        table.close()
    counts: Counter[str] = sum((cell.labels for _, cell in cells), Counter())
    print(f"{counts.total()} cells of {len(cells)} pairs of columns, {len(found)} columns, in {took:.0f} s")
    for label in "equal", "different", "changed by its writer", "refused", *doors.WRONG:
        print(f"{label:24}{counts[label]:8}")
    by_way: dict[str, Counter[str]] = {}
    for asked, cell in cells:
        way = asked.way.name if isinstance(asked, Pair) else "a column alone"
        way += f", {asked.remedy}" if isinstance(asked, Pair) and asked.remedy else ""
        by_way.setdefault(re.sub("refused, ", "", way), Counter()).update(label for label in cell.labels.elements() if label in doors.WRONG)
    for way, wrong in by_way.items():
        print(f"wrong by {way}: {dict(wrong)}")
    for trouble in troubles(cells)[:first]:
        print(trouble)


def main() -> None:
    arguments: Any = argparse.ArgumentParser(description="Prints how many cells of the table of doors are right.")
    arguments.add_argument("--counts", action="store_true", required=True)
    arguments.add_argument("--whole", action="store_true", help="the cells of every night")
    arguments.add_argument("--first", type=int, default=0, help="how many wrong columns are shown")
    # The name that earlier builds give to a key of one column.
    arguments.add_argument("--key-name", default=doors.KEY_NAME)
    given = arguments.parse_args()
    doors.KEY_NAME = given.key_name
    print_counts(given.whole, given.first)


if __name__ == "__main__":
    main()
