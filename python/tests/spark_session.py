"""Sessions of Spark for the tests, and frames whose tasks fail on request."""

import functools
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

CONF = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    # Most of the work is to compile queries that run once.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.timeType.enabled": "true",
}
# Less work for each task and each expression. The long tests run without these settings, as jobs of users do.
if os.environ.get("BLOOMLINE_LONG_TESTS") != "1":
    CONF |= {
        "spark.python.daemon.module": "spark_daemon",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.dataFrameQueryContext.enabled": "false",
    }


def missing() -> str | None:
    """The missing program that Spark needs, or None."""
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
    for name, value in (CONF | conf).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def start_cluster(home: pathlib.Path) -> Any:
    """A session with two executors, which are processes. They work in `home`."""
    import pyspark

    home.mkdir()
    for found in pathlib.Path(pyspark.__file__).parent.iterdir():
        (home / found.name).symlink_to(found)
    os.environ["SPARK_HOME"] = str(home)
    return start("local-cluster[2,1,1024]")


# A program and its processes, in a network of their own. They end when this does.
ALONE = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
# A host waits for the other end of its cable, and its worker for the master.
NETWORK = "ip link set lo up; until ip addr add $SPARK_LOCAL_IP/24 dev cable; do sleep 0.1; done; ip link set cable up"
LISTENS = "until echo > /dev/tcp/10.0.0.1/7077; do sleep 0.1; done"


def start_hosts(folder: pathlib.Path) -> Any:
    """A session with an executor on each of two hosts, for a program that `ALONE` runs. They work in `folder`/IP, and copy slow tasks."""
    import pyspark

    os.environ |= {"SPARK_HOME": str(pathlib.Path(pyspark.__file__).parent), "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": "10.0.0.1"}
    deploy = "$SPARK_HOME/bin/spark-class org.apache.spark.deploy"
    options = f"--host $SPARK_LOCAL_IP --work-dir {folder}/$SPARK_LOCAL_IP --cores 1 --memory 1g --webui-port 0"
    worker = f"{LISTENS}; exec {deploy}.worker.Worker {options} spark://10.0.0.1:7077"
    cable = "ip link add cable type veth peer name cable netns 1"
    subprocess.Popen(["unshare", "--net", "bash", "-c", f"{cable}; {NETWORK}; {worker}"], env=os.environ | {"SPARK_LOCAL_IP": "10.0.0.2"})
    subprocess.run(["bash", "-c", f"{NETWORK}; {deploy}.master.Master --host $SPARK_LOCAL_IP --webui-port 0 & {LISTENS}"], timeout=60)
    subprocess.Popen(["bash", "-c", worker])
    # Tasks begin when both executors are there.
    conf = {"driver.host": "10.0.0.1", "cores.max": "2", "scheduler.minRegisteredResourcesRatio": "1", "executor.memory": "512m"}
    conf |= {"executorEnv.PYTHONPATH": str(pathlib.Path(__file__).parent), "speculation": "true", "locality.wait": "0"}
    conf |= {"speculation.quantile": "0.1", "speculation.interval": "50ms", "speculation.minTaskRuntime": "50ms"}
    return start("spark://10.0.0.1:7077", **{f"spark.{name}": value for name, value in conf.items()})


def _raise(_: pathlib.Path) -> None:
    raise RuntimeError("the first attempt fails")


def _kill_executor(_: pathlib.Path) -> None:
    pid = os.getppid()
    while b"CoarseGrainedExecutorBackend" not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
        assert pid > 1, "no executor"
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[1])
    os.kill(pid, 9)
    time.sleep(60)


def _wait(_: pathlib.Path) -> None:
    time.sleep(20)


def _run_twice(path: pathlib.Path) -> None:
    """Waits until a copy of this task has reached the same point. Both end at the same time."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    end = time.monotonic() + 60
    while len(list(path.glob(f"attempt-{context.partitionId()}-*"))) < 2:
        assert time.monotonic() < end, "no copy"
        time.sleep(0.05)
    (path / "copied").touch()


def _be_late(path: pathlib.Path) -> None:
    """The copy ends, and this task is killed."""
    _run_twice(path)
    _wait(path)
    (path / "alive").touch()


def at_first(df: Any, folder: pathlib.Path, what: str, *, once: bool = False) -> Any:
    """The frame. The first attempt of each of its tasks, or of one of them, fails after its rows, or waits."""
    tasks = {"raise": _raise, "kill": _kill_executor, "wait": _wait, "twice": _run_twice, "late": _be_late}
    does: Callable[[pathlib.Path], None] = tasks[what]
    return df.mapInArrow(functools.partial(_first_fails, str(folder), once, does), df.schema)


def _first_fails(folder: str, once: bool, does: Callable[[pathlib.Path], None], batches: Iterator[Any]) -> Iterator[Any]:
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    yield from batches
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    (path / f"attempt-{context.partitionId()}-{context.taskAttemptId()}").touch()
    try:
        (path / ("first" if once else f"first-{context.partitionId()}")).touch(exist_ok=False)
    except FileExistsError:
        return
    does(path)
