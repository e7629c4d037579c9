"""Sessions of Spark for the tests, and frames whose tasks fail as they are told to."""

import functools
import os
import pathlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

CONF = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.timeType.enabled": "true",
}


def missing() -> str | None:
    """What Spark needs and is not here."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "no pyspark"
    return None if "JAVA_HOME" in os.environ or shutil.which("java") else "no java"


def start(master: str, **conf: str) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Workers import this file.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    os.environ["TZ"] = "UTC"
    time.tzset()
    builder: Any = SparkSession.builder
    builder = builder.master(master)
    for name, value in (CONF | {name.replace("_", "."): value for name, value in conf.items()}).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def start_cluster(home: pathlib.Path, **conf: str) -> Any:
    """A session with two executors, which are processes. They work in `home`."""
    import pyspark

    home.mkdir()
    for found in pathlib.Path(pyspark.__file__).parent.iterdir():
        (home / found.name).symlink_to(found)
    os.environ["SPARK_HOME"] = str(home)
    return start("local-cluster[2,1,1024]", **conf)


def _raise() -> None:
    raise RuntimeError("the first attempt fails")


def _kill_executor() -> None:
    pid = os.getppid()
    while b"CoarseGrainedExecutorBackend" not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
        assert pid > 1, "no executor"
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[1])
    os.kill(pid, 9)
    time.sleep(60)


def _wait() -> None:
    time.sleep(20)


def at_first(df: Any, folder: pathlib.Path, what: str, *, once: bool = False) -> Any:
    """The frame. The first attempt of each of its tasks, or of one of them, fails after its rows, or waits."""
    does: Callable[[], None] = {"raise": _raise, "kill": _kill_executor, "wait": _wait}[what]
    return df.mapInArrow(functools.partial(_first_fails, str(folder), once, does), df.schema)


def _first_fails(folder: str, once: bool, does: Callable[[], None], batches: Iterator[Any]) -> Iterator[Any]:
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    yield from batches
    place = pathlib.Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    (place / f"attempt-{context.taskAttemptId()}").touch()
    try:
        (place / ("first" if once else f"first-{context.partitionId()}")).touch(exist_ok=False)
    except FileExistsError:
        return
    does()
