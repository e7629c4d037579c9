"""Hugging Face's datasets as batches of Arrow."""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

# Rows that are read together. A batch of a stream is as small as those of `datasets`, because its first row waits for the last.
_ROWS = 1 << 14
_STREAM_ROWS = 1000
# Chunks of fewer rows are copied to one.
_LEAST_CHUNK = 1 << 6

NewRows = Callable[[Iterable[Any]], Iterator[Any]]


def table_of_dataset(dataset: Any) -> Any:
    """Returns the rows of a Dataset as a table, which refers to the files of the dataset, or has copies of rows that were reordered."""
    pa = import_module("pyarrow")

    def parts() -> Iterator[Any]:
        yield dataset.data.schema.empty_table()
        for part in dataset.with_format("arrow").iter(batch_size=_ROWS):
            # A reordered row is a chunk of its own.
            is_scattered = part.column(0).num_chunks * _LEAST_CHUNK > part.num_rows
            yield part.combine_chunks() if is_scattered else part

    table: Any = pa.concat_tables(parts())
    return table


class _Tables:
    """The new examples of an IterableDataset as numbered tables, a function without arguments."""

    def __init__(self, dataset: Any, new_rows: NewRows) -> None:
        self.dataset, self.new_rows = dataset, new_rows

    def __call__(self) -> Iterator[tuple[int, Any]]:
        return enumerate(self.new_rows(self.dataset.with_format("arrow").iter(batch_size=_STREAM_ROWS)))


def new_examples(dataset: Any, new_rows: NewRows) -> Any:
    """Returns an IterableDataset of the rows that `new_rows` yields, with the features, the split and the format of another.

    It has one shard, because workers that read several would each have a filter of their own.

    Raises:
        ImportError: If the package lacks the class that this needs.
    """
    # The class is not documented. Of the methods that are, `filter` and `map` would share one filter among all iterations, so one that is
    # resumed loses rows; `from_generator` pickles the dataset and the filter of the caller, and yields integers of 64 bits.
    try:
        tables = import_module("datasets.iterable_dataset").ArrowExamplesIterable(_Tables(dataset, new_rows), {})
    except AttributeError as error:
        version = import_module("datasets").__version__
        unknown = f"datasets {version} lacks ArrowExamplesIterable: give a Dataset, such as Dataset.from_generator(lambda: stream)"
        raise ImportError(unknown, name="datasets") from error
    made = type(dataset)(tables, info=dataset.info.copy(), split=dataset.split)
    formatting = dataset._formatting
    return made if formatting is None else made.with_format(formatting.format_type)
