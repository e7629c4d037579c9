"""The process from which Spark forks its Python workers, with the modules that each worker would import by itself.

Workers collect garbage after each task. The collector leaves out the objects of these modules.
"""

import gc

import pandas  # type: ignore[import-untyped]  # noqa: F401
import pyarrow.pandas_compat  # type: ignore[import-untyped]  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import bloomline.spark  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
