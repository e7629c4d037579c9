"""Parquet files in runs: several files, folders, states that lines share, files in place, and a corpus."""

import json
import pathlib
import random
import subprocess
from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from footer import layout
from tables import READERS, array, by_pyarrow, json_lines, stay
from trips import (
    COMMAND,
    assert_kept,
    bloomline,
    copy_to,
    elements,
    in_groups,
    refused,
    some_rows,
    write,
)


def test_several_files_become_one(tmp_path: pathlib.Path) -> None:
    table, kept = some_rows()
    parts = [table.slice(0, 20), table.slice(20, 0), table.slice(20, 25), table.slice(45)]
    sources = [write(tmp_path / f"{number}.parquet", in_groups(part) or [part]) for number, part in enumerate(parts)]
    bloomline(tmp_path, "dedup", "--column", "id", *sources, "-o", "out.parquet")
    assert_kept(sources, tmp_path / "out.parquet", kept)
    with open(tmp_path / "file.parquet", "wb") as output:
        subprocess.run([COMMAND, "dedup", "--column", "id", *sources], stdout=output, check=True)
    piped = bloomline(tmp_path, "dedup", "--column", "id", *sources).stdout
    assert (tmp_path / "file.parquet").read_bytes() == piped == (tmp_path / "out.parquet").read_bytes()


def test_files_with_other_schemas_do_not_become_one(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "a.parquet", [pa.table({"k": ["a", "b"]})])
    others = {
        "type": pa.table({"k": [1, 2]}),
        "more": pa.table({"k": ["c"], "j": [1]}),
        "name": pa.table({"j": ["c"]}),
    }
    # Whole rows have to have the same columns.
    remedies = {"type": "schema", "more": "--column", "name": "--column"}
    for name, other in others.items():
        write(tmp_path / f"{name}.parquet", [other])
        told = refused(tmp_path, "dedup", "a.parquet", f"{name}.parquet", "-o", "out.parquet")
        assert f"{name}.parquet" in told and remedies[name] in told
    (tmp_path / "lines.jsonl").write_text('{"k":"a"}\n')
    for order in [["a.parquet", "lines.jsonl"], ["lines.jsonl", "a.parquet"]]:
        told = refused(tmp_path, "dedup", "--column", "k", *order, "-o", "out.parquet")
        assert "a.parquet" in told or "lines.jsonl" in told


@pytest.mark.parametrize("order", [["--in-order"], []], ids=["in-order", "side-by-side"])
def test_a_folder_may_have_files_of_any_schema_and_lines(order: list[str], tmp_path: pathlib.Path) -> None:
    crawl = tmp_path / "crawl"
    crawl.mkdir()
    tables = {
        "a": pa.table({"k": pa.array(["x", "y", None, "x"]), "n": [1, 2, 3, 4]}),
        "b": pa.table({"other": [1.5, 2.5, 3.5], "k": pa.array(["z", "x", "z"], pa.large_string())}),
        "c": pa.table({"k": pa.array(["y", "w", "1"], pa.dictionary(pa.int8(), pa.string()))}),
        "d": pa.table({"k": pa.array(["1", None, "2"], pa.string_view())}),
        "e": pa.table({"k": pa.array([b"w", b"v", b"\xff"], pa.binary())}),
    }
    for name, table in tables.items():
        write(crawl / f"{name}.parquet", in_groups(table, 2))
    lines = pa.table({"k": ["v", "u", "x"]})
    (crawl / "f.jsonl").write_bytes(json_lines(lines) + b'{"k":2}\n{"k":3}\n{"k":null}\n')
    forms = ["--column", "k", "--normalize", "text"]
    bloomline(tmp_path, "dedup", *forms, "--output-dir", "out", *order, "--manifest", "m.jsonl", "crawl")
    found: list[Any] = []
    for name, table in tables.items():
        before, after = by_pyarrow(crawl / f"{name}.parquet"), by_pyarrow(tmp_path / f"out/{name}.parquet")
        assert after.schema == before.schema
        rows = iter(before.rows)
        assert all(row in rows for row in after.rows), "in the order of the input"
        values = pq.read_table(tmp_path / f"out/{name}.parquet")["k"].to_pylist()
        found += [value.encode() if isinstance(value, str) else value for value in values]
    lines_out = [json.loads(line)["k"] for line in (tmp_path / "out/f.jsonl").read_text().splitlines()]
    found += [value.encode() if isinstance(value, str) else value for value in lines_out]
    expected = [b"x", b"y", None, b"z", b"w", b"1", b"2", b"v", b"\xff", b"u", 2, 3]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    if order:
        assert list(map(repr, found)) == list(map(repr, expected))
    manifest = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert len(manifest) == 6
    for entry in manifest:
        if entry["output"].endswith(".parquet"):
            groups = layout(tmp_path / entry["output"]).groups
            assert entry["groups_copied"] + entry["groups_written"] == len(groups) <= entry["groups"]


def test_shards_of_a_hub_keep_their_names_and_metadata(tmp_path: pathlib.Path) -> None:
    info = {
        "info": {
            "features": {"text": {"dtype": "string", "_type": "Value"}, "label": {"names": ["no", "yes"], "_type": "ClassLabel"}}
        }
    }
    folder = tmp_path / "data"
    folder.mkdir()
    names = [f"train-{number:05}-of-00004.parquet" for number in range(4)]
    # Nothing of the third is left.
    shards = [["a", "b"], ["b", "c", "d"], ["a", "c"], ["e"]]
    for name, texts in zip(names, shards):
        table = pa.table({"text": texts, "label": pa.array([len(texts)] * len(texts))})
        write(folder / name, in_groups(table.replace_schema_metadata({"huggingface": json.dumps(info)}), 1000))
    bloomline(tmp_path, "dedup", "--column", "text", "--output-dir", "out", "--in-order", "--manifest", "m.jsonl", "data")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    for name, kept in zip(names, [[0, 1], [1, 2], [], [0]]):
        assert_kept([folder / name], tmp_path / "out" / name, kept)
        assert json.loads(pq.read_schema(tmp_path / "out" / name).metadata[b"huggingface"]) == info
    manifest = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert [(one["groups"], one["groups_copied"], one["groups_written"]) for one in manifest] == [
        (1, 1, 0),
        (1, 0, 1),
        (1, 0, 0),
        (1, 1, 0),
    ]


def hive_pyarrow(folder: pathlib.Path, table: pa.Table) -> None:
    pq.write_to_dataset(table, folder, partition_cols=["day"], basename_template="part-{i}.parquet")


def hive_duckdb(folder: pathlib.Path, table: pa.Table) -> None:
    copy_to(folder, table, ", PARTITION_BY (day)")


def hive_polars(folder: pathlib.Path, table: pa.Table) -> None:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(folder, partition_by="day", mkdir=True)


@pytest.mark.parametrize("writer", [hive_pyarrow, hive_duckdb, hive_polars], ids=["pyarrow", "duckdb", "polars"])
def test_the_column_of_a_folder_is_part_of_the_key(
    writer: Callable[[pathlib.Path, pa.Table], None], tmp_path: pathlib.Path
) -> None:
    days = ["2026-11-01"] * 4 + ["2026-11-02"] * 4
    ids = [1, 2, 2, 3, 1, 1, 2, 4]
    table = pa.table({"day": days, "id": ids, "n": range(8)})
    lake = tmp_path / "lake"
    lake.mkdir()
    writer(lake / "t", table)
    for columns, parts in [("day,id", zip(days, ids)), ("id", zip(ids)), ("day", zip(days))]:
        bloomline(tmp_path, "dedup", "--column", columns, "--output-dir", f"out-{columns}", "--in-order", "lake")
        kept = sorted(table["n"].to_pylist()[number] for number in stay(parts))
        files = sorted((tmp_path / f"out-{columns}").rglob("*.parquet"))
        assert len(files) == 2 and [file.parent.name for file in files] == ["day=2026-11-01", "day=2026-11-02"]
        assert sorted(number for file in files for number in pq.ParquetFile(file).read()["n"].to_pylist()) == kept
        for file in files:
            before = next((lake / file.relative_to(tmp_path / f"out-{columns}")).parent.glob("*.parquet"))
            assert elements(layout(file)) == elements(layout(before)), "the folder's column is none of the file"
    # Readers that support such folders find the column.
    found = pl.read_parquet(tmp_path / "out-day,id/**/*.parquet", hive_partitioning=True)
    assert len(found) == 6 and set(map(str, found["day"].to_list())) == set(days)
    # The folder is a part of the given name of the file.
    bloomline(tmp_path, "dedup", "--column", "day,id", *sorted(lake.rglob("*.parquet")), "-o", "one.parquet")
    assert sorted(pq.read_table(tmp_path / "one.parquet")["n"].to_pylist()) == sorted(stay(zip(days, ids)))


def test_a_column_of_the_file_takes_precedence_over_one_of_its_folder(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "day=1/hour=2"
    folder.mkdir(parents=True)
    source = write(folder / "in.parquet", [pa.table({"day": ["1", "2", "1"], "id": [1, 1, 2]})])
    for columns, kept in [("day", [0, 1]), ("hour", [0]), ("hour,id", [0, 2]), ("hour,day", [0, 1])]:
        bloomline(tmp_path, "dedup", "--column", columns, source, "-o", f"{columns}.parquet")
        assert_kept([source], tmp_path / f"{columns}.parquet", kept)


SHARED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (pa.string(), ["a", "", 'quote " back \\ slash / \n \x01 \x7f', "ä \U0001f600", "1", "null", "x" * 100]),
    "view": (pa.string_view(), ["a", "", "x" * 100]),
    "dictionary": (pa.dictionary(pa.int32(), pa.large_string()), ["a", "", "x" * 100]),
    "int8": (pa.int8(), [0, -128, 127]),
    "uint64": (pa.uint64(), [0, 2**64 - 1, 2**63]),
    "int64": (pa.int64(), [0, -(2**63), 2**63 - 1]),
    "bool": (pa.bool_(), [True, False]),
    "double": (pa.float64(), [0.5, -1.25, 0.1, 123456.75]),
    "float": (pa.float32(), [0.5, -1.25, 123456.75]),
    "list": (pa.list_(pa.int32()), [[], [1], [1, None, 2]]),
    "strings": (pa.large_list(pa.string()), [[], ['a"b', "\n\t\x02", "ä\U0001f600/"], [None, ""]]),
    "struct": (
        pa.struct([("b", pa.bool_()), ("a", pa.struct([("x", pa.float64())]))]),
        [{"b": True, "a": {"x": 1.5}}, {"b": None, "a": None}],
    ),
    "list<struct>": (pa.list_(pa.struct([("k", pa.string())])), [[{"k": "v"}, {"k": None}], [None]]),
}


@pytest.mark.parametrize("nullable", [True, False], ids=["null", "no-null"])
@pytest.mark.parametrize("name", SHARED)
def test_lines_of_json_and_parquet_share_a_state(name: str, nullable: bool, tmp_path: pathlib.Path) -> None:
    type, values = SHARED[name]
    values = values + [None] * nullable
    table = pa.table({"k": array(values, type), "n": range(len(values))})
    source = write(tmp_path / "in.parquet", in_groups(table, 2))
    compact = [json.dumps({"n": 0, "k": value}, ensure_ascii=False, separators=(",", ":")) for value in values]
    (tmp_path / "in.jsonl").write_text("".join(line + "\n" for line in compact), encoding="utf-8")
    # Parquet first, by one option, and then lines by the other. Only rows that Parquet lacks are kept.
    bloomline(tmp_path, "dedup", "--column", "k", "-s", "a.bloom", source, "-o", "a.parquet")
    other = '{"k":"another"}'
    lines = "".join(line + "\n" for line in [*compact, other])
    told = bloomline(tmp_path, "dedup", "--json-pointer", "/k", "-s", "a.bloom", input=lines.encode()).stdout
    assert told.decode() == other + "\n"
    # Half of the lines first, and then Parquet.
    half = "".join(line + "\n" for line in compact[::2]).encode()
    bloomline(tmp_path, "dedup", "--column", "k", "-s", "b.bloom", input=half)
    bloomline(tmp_path, "dedup", "--json-pointer", "/k", "-s", "b.bloom", source, "-o", "b.parquet")
    assert_kept([source], tmp_path / "b.parquet", list(range(len(values)))[1::2])


def test_several_columns_share_a_state_with_lines(tmp_path: pathlib.Path) -> None:
    rows = [("a", 1), ("a", 2), (None, 1), ("a", None), ("a\x01", 1)]
    table = pa.table(
        {
            "s": pa.array([{"x": text} for text, _ in rows], pa.struct([("x", pa.string())])),
            "i": pa.array([number for _, number in rows], pa.uint8()),
        }
    )
    source = write(tmp_path / "in.parquet", [table])
    lines = json_lines(table)
    two = lines.splitlines(True)[1] + lines.splitlines(True)[3]
    bloomline(tmp_path, "dedup", "--json-pointer", "/s/x", "--json-pointer", "/i", "-s", "a.bloom", input=two)
    bloomline(tmp_path, "dedup", "--column", "s.x,i", "-s", "a.bloom", source, "-o", "out.parquet")
    assert_kept([source], tmp_path / "out.parquet", [0, 2, 4])
    assert bloomline(tmp_path, "dedup", "--column", "s.x,i", "-s", "a.bloom", input=lines).stdout == b""
    # The order of the columns makes no difference.
    assert bloomline(tmp_path, "dedup", "--column", "i,s.x", "-s", "a.bloom", "--total", source).stdout == b"0\n"
    told = refused(tmp_path, "dedup", "--column", "i", "-s", "a.bloom", source, "-o", "other.parquet")
    assert "a.bloom" in told


def test_filters_in_files_serve_lines_and_parquet(tmp_path: pathlib.Path) -> None:
    old = write(tmp_path / "old.parquet", in_groups(pa.table({"k": ["a", "b", "c", None, "b"]}), 2))
    values = ["b", "x", "c", None, "y", "b"]
    new = write(tmp_path / "new.parquet", in_groups(pa.table({"n": range(6), "k": pa.array(values, pa.large_string())}), 2))
    known = [number for number, value in enumerate(values) if value in ["a", "b", "c", None]]
    unknown = [number for number in range(6) if number not in known]
    lines = b'{"k":"b"}\n{"k":"z"}\n{"k":"c"}\n'
    bloomline(tmp_path, "build", "--column", "k", "-o", "old.bloom", old)
    (tmp_path / "known.parquet").write_bytes(bloomline(tmp_path, "check", "--column", "k", "-s", "old.bloom", new).stdout)
    assert_kept([new], tmp_path / "known.parquet", known)
    unseen = bloomline(tmp_path, "check", "-v", "--column", "k", "-s", "old.bloom", new).stdout
    (tmp_path / "unknown.parquet").write_bytes(unseen)
    assert_kept([new], tmp_path / "unknown.parquet", unknown)
    assert bloomline(tmp_path, "check", "--column", "k", "-s", "old.bloom", "--total", new).stdout == b"4\n"
    assert (
        bloomline(tmp_path, "check", "--json-pointer", "/k", "-s", "old.bloom", input=lines).stdout == b'{"k":"b"}\n{"k":"c"}\n'
    )
    (tmp_path / "old.jsonl").write_text('{"k":"a"}\n{"k":"b"}\n{"k":"c"}\n{"k":null}\n')
    for first in ["old.parquet", "old.jsonl"]:
        for exact in [[], ["--exact"]]:
            bloomline(tmp_path, "in", *exact, "--column", "k", "-o", "in.parquet", first, "--", new)
            assert_kept([new], tmp_path / "in.parquet", known)
            bloomline(tmp_path, "not-in", *exact, "--column", "k", "-o", "not-in.parquet", first, "--", new)
            assert_kept([new], tmp_path / "not-in.parquet", unknown)
            (tmp_path / "in.parquet").unlink()
            (tmp_path / "not-in.parquet").unlink()
    assert bloomline(tmp_path, "in", "--column", "k", "old.parquet", "--", "-", input=lines).stdout == b'{"k":"b"}\n{"k":"c"}\n'
    assert bloomline(tmp_path, "in", "--column", "k", "--any", "old.parquet", "--", "new.parquet").stdout == b""
    told = bloomline(tmp_path, "not-in", "--column", "k", "--any", "old.parquet", "--", "old.parquet", code=1)
    assert told.stderr == b""


def test_files_are_replaced_in_place(tmp_path: pathlib.Path) -> None:
    table, kept = some_rows()
    source = write(tmp_path / "in.parquet", in_groups(table))
    whole = write(tmp_path / "whole.parquet", in_groups(table.slice(0, 15)))
    before = whole.read_bytes()
    folder = tmp_path / "lists"
    folder.mkdir()
    for name in ["a", "b"]:
        (folder / f"{name}.parquet").write_bytes(before if name == "a" else source.read_bytes())
    bloomline(tmp_path, "dedup", "--column", "id", "--in-place", "lists")
    assert (folder / "a.parquet").read_bytes() == before
    assert_kept([source], folder / "b.parquet", [number for number in kept if number >= 15])
    (tmp_path / "same.parquet").write_bytes(source.read_bytes())
    bloomline(tmp_path, "dedup", "--column", "id", "same.parquet", "-o", "same.parquet")
    assert_kept([source], tmp_path / "same.parquet", kept)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "lists", "same.parquet", "whole.parquet"]


WORDS = (
    "the of and to in is for on that by this with you it not or be are from at as your all have new more an was we will".split()
)


def documents() -> list[str]:
    """Texts of paragraphs that repeat, whole or with a changed word."""
    random_ = random.Random(2)
    known = [" ".join(random_.choices(WORDS, k=random_.choice([3, 15, 30]))) for _ in range(12)]
    texts: list[str] = []
    for _ in range(40):
        paragraphs = []
        for _ in range(random_.randrange(5)):
            kind = random_.random()
            words = random_.choice(known).split()
            if kind < 0.2:
                words = random_.choices(WORDS, k=20)
            elif kind < 0.4:
                words[random_.randrange(len(words))] = "changed\U0001f600"
            elif kind < 0.45:
                words = [" "]
            paragraphs.append(" ".join(words))
        texts.append("\n".join(paragraphs))
        if random_.random() < 0.2:
            texts.append(random_.choice(texts))
    return texts


CORPUS = {
    "paragraphs": [],
    "paragraphs-exact": ["--ngram", "0"],
    "trimmed": ["--ngram", "0", "--normalize", "trim,lower"],
    "documents": ["--by", "document"],
    "documents-exact": ["--by", "document", "--ngram", "0"],
    "keep-empty": ["--keep-empty"],
    "drop-document": ["--drop-document"],
    "near": ["--near", "0.8"],
    "annotate": ["--annotate"],
    "annotate-documents": ["--annotate", "--by", "document"],
}


TEXTS = [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize(
    "mode, type", [*((mode, pa.string()) for mode in CORPUS), *(("paragraphs", type) for type in TEXTS)], ids=str
)
def test_texts_of_a_corpus_match_those_of_its_lines(mode: str, type: pa.DataType, tmp_path: pathlib.Path) -> None:
    texts = documents()
    table = pa.table({"id": range(len(texts)), "text": pa.array(texts, type), "tags": [["a", None]] * len(texts)})
    write(tmp_path / "in.parquet", in_groups(table, 12), compression="zstd")
    (tmp_path / "in.jsonl").write_bytes(json_lines(table))
    bloomline(tmp_path, "corpus", *CORPUS[mode], "in.jsonl", "-o", "out.jsonl")
    bloomline(tmp_path, "corpus", *CORPUS[mode], "in.parquet", "-o", "out.parquet")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    found = pq.read_table(tmp_path / "out.parquet")
    assert 0 < len(lines) <= len(texts)
    if mode.startswith("annotate"):
        assert [json.loads(note) for note in found["bloomline"].to_pylist()] == [line.pop("bloomline") for line in lines]
        found = found.drop_columns("bloomline")
    assert found.to_pylist() == lines
    assert found.schema == table.schema
    for read in READERS.values():
        texts_read = read(tmp_path / "out.parquet").rows
        assert [row[1] for row in texts_read] == [repr(line["text"]) for line in lines]


def test_a_corpus_copies_groups_and_reads_columns_by_name(tmp_path: pathlib.Path) -> None:
    long = [" ".join(f"word{number}-{i}" for i in range(20)) for number in range(4)]
    bodies = [long[0], long[1], long[0], long[1], long[2] + "\n" + long[0], long[3]]
    table = pa.table({"n": range(6), "body": bodies, "doc": pa.array([{"body": text} for text in bodies])})
    source = write(tmp_path / "in.parquet", in_groups(table, 2))
    bloomline(tmp_path, "corpus", "--column", "body", source, "-o", "out.parquet")
    found = pq.read_table(tmp_path / "out.parquet")
    assert [(row["n"], row["body"]) for row in found.to_pylist()] == [(0, long[0]), (1, long[1]), (4, long[2]), (5, long[3])]
    # The reader gets that column alone.
    assert found["doc"].to_pylist() == [{"body": bodies[number]} for number in [0, 1, 4, 5]]
    before, after = layout(source), layout(tmp_path / "out.parquet")
    assert [chunk.data for chunk in after.groups[0].chunks] == [chunk.data for chunk in before.groups[0].chunks]
    told = refused(tmp_path, "corpus", source, "-o", "text.parquet")
    assert "in.parquet" in told and '"text"' in told and '"body"' in told
    for column in ["n", "doc", "doc.body"]:
        told = refused(tmp_path, "corpus", "--column", column, source, "-o", "n.parquet")
        assert "in.parquet" in told and "column" in told


def test_an_interrupted_run_continues(tmp_path: pathlib.Path) -> None:
    crawl = tmp_path / "crawl"
    crawl.mkdir()
    random_ = random.Random(3)
    ids = [random_.randrange(300) for _ in range(400)]
    for number in range(4):
        write(crawl / f"{number}.parquet", in_groups(pa.table({"id": ids[100 * number : 100 * number + 100]}), 10))
    bad = (crawl / "3.parquet").read_bytes()
    (crawl / "3.parquet").write_bytes(bad[:-20])
    arguments = ["dedup", "--column", "id", "-s", "state", "--output-dir", "out", "--in-order", "crawl"]
    assert "3.parquet" in refused(tmp_path, *arguments)
    assert not (tmp_path / "out/3.parquet").exists()
    (crawl / "3.parquet").write_bytes(bad)
    bloomline(tmp_path, *arguments, "--resume")
    found = [pq.read_table(tmp_path / f"out/{number}.parquet")["id"].to_pylist() for number in range(4)]
    expected = [ids[number] for number in stay([(value,) for value in ids])]
    assert [value for file in found for value in file] == expected


@pytest.mark.parametrize("option", ["--zero-terminated", "--header", "--skip-blank", "--eol=keep"])
def test_options_of_lines_are_refused(option: str, tmp_path: pathlib.Path) -> None:
    pq.write_table(pa.table({"k": ["a"]}), tmp_path / "in.parquet")
    assert f"{option.split('=')[0]} is for lines" in refused(tmp_path, "dedup", option, "in.parquet", "-o", "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
