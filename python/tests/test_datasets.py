"""Datasets of Hugging Face: against pandas, as streams, and with what a result keeps."""

import pathlib
import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bloomline
from bloomline import ScalableBloomFilter
from conftest import examples

# `skipped` in words: the package is in the extra `datasets`.
datasets = pytest.importorskip("datasets")
np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")

datasets.disable_progress_bars()

ROWS = {"url": ["a", "b", "a", None, None], "day": [1, 1, 2, 2, 3], "tags": [[1], [2], [1], None, []]}


@st.composite
def columns(draw: st.DrawFn) -> dict[str, list[Any]]:
    rows = draw(st.integers(1, 40))
    kinds = draw(st.lists(st.sampled_from([st.sampled_from("abc"), st.integers(0, 3), st.sampled_from([0.0, -0.0, 0.5])]), min_size=1, max_size=3))
    values = {f"c{i}": draw(st.lists(st.none() | kind, min_size=rows, max_size=rows)) for i, kind in enumerate(kinds)}
    # A column of nulls has no type.
    return {name: ["a" if not any(value is not None for value in column) else column[0], *column] for name, column in values.items()}


@settings(max_examples=examples(30))
@given(columns(), st.sampled_from(["first", "last"]), st.booleans())
def test_the_rows_are_those_of_pandas(values: dict[str, list[Any]], keep: Any, reordered: bool) -> None:
    rows = len(values["c0"])
    dataset = datasets.Dataset.from_dict({**values, "row": range(rows)})
    if reordered:
        dataset = dataset.select(np.random.default_rng(rows).permutation(rows))
    on = list(values)
    frame = dataset.to_pandas()
    expected = frame.drop_duplicates(on, keep=keep)["row"].tolist()
    assert bloomline.dedup(dataset, on=on, keep=keep)["row"][:] == expected
    seen = ScalableBloomFilter(1000, 1e-9)
    assert bloomline.dedup(dataset, on=on, keep=keep, seen=seen)["row"][:] == expected
    assert len(bloomline.dedup(dataset, on=on, keep=keep, seen=seen)) == 0
    if keep == "first":
        assert [row["row"] for row in bloomline.dedup(dataset.to_iterable_dataset(), on=on)] == expected


def test_a_result_keeps_features_and_format() -> None:
    features = datasets.Features({
        "url": datasets.Value("string"),
        "label": datasets.ClassLabel(names=["no", "yes"]),
        "size": datasets.Value("int16"),
        "parts": datasets.List({"at": datasets.Value("float32")}),
    })
    rows = {"url": ["a", "b", "a"], "label": [0, 1, 0], "size": [1, 2, 1], "parts": [[{"at": 0.5}], [], [{"at": 0.5}]]}
    dataset = datasets.Dataset.from_dict(rows, features, split="test")
    for on in "url", ["url", "label"], "parts", None:
        kept = bloomline.dedup(dataset.with_format("numpy", columns=["size"]), on=on)
        assert kept.features == features and kept.format["type"] == "numpy" and kept.format["columns"] == ["size"]
        assert kept.split == "test" and kept["size"][:].tolist() == [1, 2]
    source = dataset.to_iterable_dataset().with_format("numpy")
    stream = bloomline.dedup(source, on="url")
    assert stream.features == features and stream.split == source.split
    assert [(type(row["size"]), row["label"]) for row in stream] == [(type(row["size"]), row["label"]) for row in source][:2]
    assert list(stream.with_format(None)) == [{name: values[row] for name, values in rows.items()} for row in range(2)]


def test_rows_are_read_from_the_files_of_a_dataset(tmp_path: pathlib.Path) -> None:
    datasets.Dataset.from_dict({"url": [f"u{i % 700}" for i in range(5000)], "row": range(5000)}).save_to_disk(tmp_path / "saved")
    saved = datasets.load_from_disk(tmp_path / "saved")
    assert bloomline.dedup(saved, on="url")["row"][:] == list(range(700))
    # One filter for several processes of `map` only looks up.
    seen = ScalableBloomFilter(1000, 1e-9)
    bloomline.dedup(saved, on="url", seen=seen)
    new = datasets.Dataset.from_dict({"url": ["u1", "v1", "v1"]})
    assert bloomline.dedup(new, on="url", seen=seen)["url"][:] == ["v1"]


def test_a_stream_stays_lazy_and_begins_anew() -> None:
    read = []

    def rows() -> Any:
        for number in range(5000):
            read.append(number)
            yield {"url": f"u{number % 700}", "row": number}

    stream = bloomline.dedup(datasets.IterableDataset.from_generator(rows), on="url")
    assert not read
    assert next(iter(stream))["row"] == 0 and len(read) < 2500
    for _ in range(2):
        assert [row["row"] for row in stream] == list(range(700))
    # A filter of the caller has the keys of earlier iterations.
    seen = ScalableBloomFilter(1000, 1e-9)
    stream = bloomline.dedup(datasets.IterableDataset.from_generator(rows), on="url", seen=seen)
    assert [len(list(stream)) for _ in range(2)] == [700, 0]
    assert seen.contains_rows(pd.DataFrame({"url": ["u1", "v1"]})).tolist() == [True, False]


def test_a_stream_is_resumed_and_sent_to_a_process() -> None:
    stream = bloomline.dedup(datasets.Dataset.from_dict({"url": ["a", "b", "a", "c"]}).to_iterable_dataset(num_shards=2), on="url")
    assert stream.num_shards == 1
    rows = iter(stream)
    assert [next(rows)["url"], next(rows)["url"]] == ["a", "b"]
    state = stream.state_dict()
    again = pickle.loads(pickle.dumps(stream))
    again.load_state_dict(state)
    assert [row["url"] for row in again] == ["c"]
    # After several batches, with a copy of the filter as it was before.
    source = datasets.Dataset.from_dict({"row": [row % 3000 for row in range(9000)]}).to_iterable_dataset(num_shards=2)
    seen = ScalableBloomFilter(1000, 1e-9)
    seen.add_rows(pd.DataFrame({"row": range(500)}))
    before = seen.copy()
    stream = bloomline.dedup(source, on="row", seen=seen)
    rows, others = iter(stream), iter(bloomline.dedup(source, on="row"))
    first = [(next(rows)["row"], next(others)["row"]) for _ in range(2000)]
    assert first == [(500 + row, row) for row in range(2000)]
    again = bloomline.dedup(source, on="row", seen=before)
    again.load_state_dict(stream.state_dict())
    assert [row["row"] for row in again] == list(range(2500, 3000))


def test_a_stream_that_is_stored_has_an_exact_result(tmp_path: pathlib.Path) -> None:
    stream = datasets.Dataset.from_dict(ROWS).to_iterable_dataset()
    stored = datasets.Dataset.from_generator(lambda: stream, features=stream.features, cache_dir=str(tmp_path))
    assert bloomline.dedup(stored, on="url")["day"][:] == [1, 1, 2]


def test_wrong_arguments_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = datasets.Dataset.from_dict(ROWS)
    stream = dataset.to_iterable_dataset()
    for data in dataset, stream:
        with pytest.raises(KeyError, match="on has 'none', and the first columns are"):
            bloomline.dedup(data, on="none")
        with pytest.raises(ValueError, match="a frame is returned, not written"):
            bloomline.dedup(data, on="url", output="x")
        with pytest.raises(ValueError, match="its key has a null"):
            list(bloomline.dedup(data, on="url", nulls="fail"))
    with pytest.raises(ValueError, match="the IterableDataset is read once.*a Dataset of Hugging Face"):
        bloomline.dedup(stream, on="url", keep="last")
    with pytest.raises(TypeError, match=r"inputs is of type DatasetDict .*: give one of its splits, such as inputs\['train'\]"):
        bloomline.dedup(datasets.DatasetDict({"train": dataset}))
    with monkeypatch.context() as patch, pytest.raises(ImportError, match="lacks ArrowExamplesIterable: give a Dataset"):
        patch.delattr("datasets.iterable_dataset.ArrowExamplesIterable")
        bloomline.dedup(stream, on="url")
    assert bloomline.dedup(dataset, on="url", nulls="keep")["day"][:] == [1, 1, 2, 3]
    assert bloomline.dedup(dataset.select([]), on="url").num_rows == 0


def test_datasets_is_imported_by_the_caller_alone() -> None:
    program = "import sys, pandas, bloomline; bloomline.dedup(pandas.DataFrame({'a': [1, 1]})); print('datasets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
