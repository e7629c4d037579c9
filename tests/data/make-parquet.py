"""Makes columns.parquet in the folder that is its argument."""

import sys

import pyarrow
import pyarrow.parquet

rows = range(300)
table = pyarrow.table(
    [[f"key {i}" for i in rows], [i * i - 100 for i in rows]],
    schema=pyarrow.schema([
        pyarrow.field("text", pyarrow.string(), nullable=False),
        pyarrow.field("int64", pyarrow.int64(), nullable=False),
    ]),
)
column = {"ndv": 200, "fpp": 0.01}
pyarrow.parquet.write_table(
    table,
    f"{sys.argv[1]}/columns.parquet",
    row_group_size=200,
    compression="none",
    use_dictionary=False,
    store_schema=False,
    bloom_filter_options={"text": column, "int64": column},
)
