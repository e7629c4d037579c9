"""A filter on a server: the same bits, one claim for each key, threads, forks, and errors."""

import multiprocessing
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from bloomline import AtomicBloomFilter, BloomFilter, RedisBloomFilter
from conftest import Server, free_port
from server import ask

HERE = pathlib.Path(__file__).parent


def test_answers_and_bits_match_a_local_filter(redis: Server) -> None:
    shared = RedisBloomFilter(redis.url, "f", 10_000, 0.01, seed=3)
    local = BloomFilter(10_000, 0.01, seed=3)
    keys = np.random.default_rng(1).integers(0, 8000, 10_000)
    assert (shared.add_many(keys) == local.add_many(keys)).all()
    probes = [f"key {i}" for i in range(5000)]
    assert (shared.contains_many(probes) == local.contains_many(probes)).all()
    for key in "a", b"b", 3, ("d", 4), "a":
        assert (key in shared) == (key in local) and shared.add(key) == local.add(key)
    shared.update(iter(probes))
    local.update(probes)
    assert shared.download() == local
    assert (shared.name, shared.seed, shared.uncertain) == ("f", 3, 0)
    assert (shared.memory_bytes, shared.probes) == (local.memory_bytes, local.probes)
    stats = shared.stats()
    assert stats.fill_ratio == pytest.approx(local.fill_ratio())
    assert stats.estimated_keys == pytest.approx(local.estimated_keys())
    assert stats.stored_bytes == local.memory_bytes and 0 < stats.expected_fpr < 0.05
    assert "fill_ratio=0." in repr(stats) and "'f'" in repr(shared).replace('"', "'")


def test_metrics_report_batches_and_lost_connections(redis: Server) -> None:
    shared = RedisBloomFilter(redis.url, "f", 100_000, 0.001)
    assert shared.metrics().mean_batch_seconds is None
    shared.update(range(10_000))
    metrics = shared.metrics()
    assert (metrics.batches, metrics.sent_again, metrics.uncertain, metrics.unconfirmed) == (3, 0, 0, 0)
    assert metrics.mean_batch_seconds and 0 < metrics.mean_batch_seconds <= metrics.slowest_batch_seconds
    assert metrics.fill_ratio is None and "batches=3" in repr(metrics)
    assert shared.metrics().batches == 0
    fill = shared.stats().fill_ratio
    assert shared.metrics().fill_ratio == fill

    def sends_again(tries: int) -> bool:
        """The server closes the connection. A connection that was idle for a second is tested first, and then nothing is sent again."""
        shared.update([tries])
        redis.tell("CLIENT KILL TYPE normal")
        shared.update(range(1000 * tries, 1000 * tries + 1000))
        return shared.metrics().sent_again > 0

    assert any(map(sends_again, range(10, 30)))


def test_a_filter_on_a_server_grows(redis: Server) -> None:
    a, b = (RedisBloomFilter(redis.url, "f", false_positive_rate=1e-9, seed=4, mirror=mirror) for mirror in (True, False))
    keys = np.arange(50_000)
    assert (a.add_many(keys[:30_000]).sum(), b.add_many(keys).sum()) == (30_000, 20_000)
    opened = RedisBloomFilter(redis.url, "f")
    assert opened.contains_many(keys).all() and opened.size == {"false_positive_rate": 1e-9, "seed": 4}
    stats = opened.stats()
    assert stats.stages == 1 and stats.memory_bytes == opened.memory_bytes and stats.expected_fpr < 1e-9
    # Full stages are sealed, and the next client opens the next stage.
    redis.tell("SETBIT cbf:{f:0.0} 0 1")
    assert (opened.add(-1), b.add(-1), a.add(-2)) == (True, False, True)
    stats = a.stats()
    assert stats.stages == 2 and stats.memory_bytes > opened.memory_bytes and "stages=2" in repr(stats)
    with pytest.raises(ValueError, match="grows or forgets"):
        opened.download()
    with pytest.raises(ValueError, match="grows, from .* has room for 1[0-9]{3} keys at a rate of 0.001"):
        RedisBloomFilter(redis.url, "f", 1000, 0.001)
    assert RedisBloomFilter(redis.url, "fixed", 1000, 0.01, seed=4).size == {"memory": 1280, "probes": 8, "seed": 4}


def test_a_filter_on_a_server_forgets(redis: Server) -> None:
    seen = RedisBloomFilter(redis.url, "f", 1000, 1e-6, forget_after=600)
    size = {"expected_keys": 1000, "false_positive_rate": 1e-6, "forget_after": 600.0, "seed": 0}
    assert seen.add("a") and not seen.add("a") and seen.size == size
    again = RedisBloomFilter(redis.url, "f", **seen.size)
    assert "a" in again
    redis.pass_time("f", 3000)
    seen, again = (RedisBloomFilter(redis.url, "f") for _ in range(2))
    assert seen.add("a") and not again.add("a")


def test_other_clients_open_a_filter_by_its_name(redis: Server) -> None:
    first = RedisBloomFilter(redis.url, "f", 1000, 0.001, seed=9)
    first.add("a")
    for other in (
        RedisBloomFilter(redis.url, "f"),
        RedisBloomFilter(redis.url, "f", 1000, 0.001, seed=9),
        RedisBloomFilter(redis.url, "f", mirror=True),
    ):
        assert not other.add("a") and other.seed == 9
        assert "a" in other and "b" not in other
    local = BloomFilter(1000, 0.001, seed=9)
    local.add("b")
    first.upload(local)
    assert "b" in first
    with pytest.raises(ValueError, match="seed"):
        first.upload(BloomFilter(1000, 0.001))
    with pytest.raises(TypeError, match="AtomicBloomFilter can't be uploaded"):
        first.upload(AtomicBloomFilter(1000, 0.001))  # type: ignore[arg-type]
    first.delete()
    with pytest.raises(ValueError, match="was deleted"):
        first.add("a")
    with pytest.raises(ValueError, match="no filter"):
        RedisBloomFilter(redis.url, "f")


def test_wrong_arguments_are_refused(redis: Server) -> None:
    RedisBloomFilter(redis.url, "f", 1000, 0.001)
    for arguments, options, match in (
        (("http://me:hush@host", "f"), {}, "address of the server is not valid"),
        ((redis.url, "{f}"), {}, "name"),
        ((redis.url, "f", 2000, 0.001), {}, "has room for 1[0-9]{3} keys at .* room for 2[0-9]{3} keys at a rate of 0.001"),
        ((redis.url, "f", 1000, 0.001), {"seed": 1}, "another seed"),
        ((redis.url, "f", 1000), {}, "false-positive rate"),
        ((redis.url, "f", 1000), {"forget_after": 60}, "forget_after goes with"),
        ((redis.url, "f", 1000, 0.1), {"forget_after": 60, "memory": 64}, "forget_after goes with"),
        ((redis.url, "f", 1000, 0.1), {"forget_after": -60}, "forget_after is -60"),
        ((redis.url, "f"), {"false_positive_rate": 0.1}, "has room for .* asked for that grows"),
        ((redis.url, "f", 1000, 2.0), {}, "rate"),
        ((redis.url, "f"), {"retry_timeout": -1.0}, "retry_timeout is -1"),
        ((redis.url, "f"), {"connect_timeout": float("nan")}, "connect_timeout"),
    ):
        with pytest.raises(ValueError, match=match) as raised:
            RedisBloomFilter(*arguments, **options)
        assert "hush" not in str(raised.value)
    redis.tell("SET cbf:{alien:meta} x")
    seen = RedisBloomFilter(redis.url, "f")
    with pytest.raises(TypeError, match="a key is"):
        seen.add(None)  # type: ignore[arg-type]
    # An invalid key is detected before any key is claimed.
    with pytest.raises(TypeError, match=r"keys\[9000\]"):
        seen.update([*range(9000), None])  # type: ignore[list-item]
    assert seen.stats().fill_ratio == 0
    with pytest.raises(TypeError, match="does not pickle"):
        pickle.dumps(seen)


def test_errors_of_the_server_are_raised(redis: Server) -> None:
    seen = RedisBloomFilter(redis.url, "f", 1000, 0.001, retry_timeout=0.2)
    redis.tell("ACL SETUSER default -bitfield")
    with pytest.raises(PermissionError, match="denies access"):
        seen.add("a")
    redis.tell("ACL SETUSER default +bitfield")
    redis.tell("CONFIG SET maxmemory 1")
    with pytest.raises(OSError, match="out of memory"):
        seen.add("a")
    redis.tell("CONFIG SET maxmemory 0")
    redis.stop()
    with pytest.raises(ConnectionError, match="no answer from 127.0.0.1"):
        seen.add("a")
    with pytest.raises(ConnectionError, match="no answer from 127.0.0.1"):
        RedisBloomFilter(redis.url, "f")
    # The server returns empty: that is reported, and a filter that is made anew works.
    redis.start()
    with pytest.raises(OSError, match="gone or has lost a part"):
        seen.add("a")
    assert RedisBloomFilter(redis.url, "f", 1000, 0.001).add("a")


# The server receives claims, and does not answer them.
PAUSE = "CLIENT PAUSE 600000 WRITE"


def answered(call: Callable[[], Any]) -> Any:
    """The result of a call of a client with short time-outs, which may expire on a busy machine."""
    end = time.monotonic() + 300
    while True:
        try:
            return call()
        except ConnectionError:
            assert time.monotonic() < end


def test_claims_outlive_an_error(redis: Server) -> None:
    """Keys that were sent and not answered are reported as new, in the exception too."""
    times = {"retry_timeout": 0.2, "response_timeout": 2.0}
    seen, other = (answered(lambda: RedisBloomFilter(redis.url, "f", 100_000, 0.001, **times)) for _ in range(2))
    # Keys that are new, after which a claim is not preceded by a read.
    answered(lambda: seen.update(f"seen {i}" for i in range(1000)))
    answered(lambda: other.add("other"))
    before = other.uncertain, seen.uncertain
    redis.tell(PAUSE)
    doubt = ThreadPoolExecutor(1).submit(other.add, "doubt")
    with pytest.raises(ConnectionError) as raised:
        seen.add_many(range(5000))
    new = raised.value.new  # type: ignore[attr-defined]
    assert new.dtype == bool and new[:4096].all() and not new[4096:].any()
    # It is unknown whether the key was claimed, so it is reported as new.
    assert doubt.result() and (other.uncertain - before[0], seen.uncertain - before[1]) == (1, 4096)
    redis.tell("CLIENT UNPAUSE")
    assert answered(lambda: seen.add_many(range(5000)))[4096:].all()


def test_threads_take_turns_without_the_gil(redis: Server) -> None:
    seen = RedisBloomFilter(redis.url, "f", 100_000, 1e-9, retry_timeout=5.0)
    claimed: list[int] = []

    def add() -> None:
        claimed.extend(key for key in range(500) if seen.add(key))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == list(range(500))
    # This thread runs while another one waits for the server.
    os.kill(redis.process.pid, signal.SIGSTOP)
    waiting = threading.Thread(target=seen.add, args=("a",))
    waiting.start()
    for _ in range(10):
        time.sleep(0.01)
    # With the GIL held, this thread would continue only after the other one has given up.
    assert waiting.is_alive()
    os.kill(redis.process.pid, signal.SIGCONT)
    waiting.join()


def claim(url: str, start: int) -> list[int]:
    seen = RedisBloomFilter(url, "f")
    new = seen.add_many(range(start, start + 3000))
    return (np.flatnonzero(new) + start).tolist()


def test_processes_claim_each_key_once(redis: Server) -> None:
    RedisBloomFilter(redis.url, "f", 100_000, 1e-9)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        parts = pool.starmap(claim, [(redis.url, start) for start in (0, 1000, 2000, 0)])
    assert sorted(sum(parts, [])) == list(range(5000))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_filters_made_by_parent_and_child_have_different_marks(redis: Server) -> None:
    """Each filter has a random number. A fork continues from its parent's state of random numbers."""
    names = ["before", "parent", "child"]
    RedisBloomFilter(redis.url, "before", 1000, 0.01)
    pid = os.fork()
    if pid == 0:
        try:
            RedisBloomFilter(redis.url, "child", 1000, 0.01)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    RedisBloomFilter(redis.url, "parent", 1000, 0.01)
    lines = [redis.tell(f"""EVAL "return {{ok=redis.call('GET',KEYS[1])}}" 1 cbf:{{{name}:meta}}""") for name in names]
    made = {line.strip().rpartition("made=")[2] for line in lines}
    assert len(made) == 3 and all(map(str.isdecimal, made)), lines


def test_a_forked_process_has_connections_of_its_own(redis: Server) -> None:
    seen = RedisBloomFilter(redis.url, "f", 100_000, 1e-9)
    seen.add("parent")
    children = []
    for child in range(4):
        pid = os.fork()
        if pid == 0:
            # Answers over a shared socket would reach the wrong process.
            found = all(seen.add((child, i)) and (child, i) in seen and (-1, i) not in seen for i in range(500))
            os._exit(0 if found and "parent" in seen else 1)
        children.append(pid)
    sound = all(seen.add(("own", i)) and ("own", i) in seen and (-1, i) not in seen for i in range(500))
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * 4
    assert sound and all((child, i) in seen for child in range(4) for i in range(500))
    clients = re.search(r"connected_clients:(\d+)", ask(redis.port, "INFO clients"))
    assert clients and int(clients[1]) == 2


def test_ctrl_c_ends_a_call_between_portions(redis: Server) -> None:
    code = f"""
import itertools, os, signal, threading, time
from bloomline import RedisBloomFilter
from server import calls_of
seen = RedisBloomFilter({redis.url!r}, "f", 10_000_000, 0.001)
keys = range(1_000_000)
def interrupt():
    while calls_of({redis.port}, "bitfield") < 20_000:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
def then_interrupt():
    threading.Thread(target=interrupt).start()
    yield from ()
try:
    seen.add_many(itertools.chain(keys, then_interrupt()))
except KeyboardInterrupt as stopped:
    claimed = stopped.new.sum()
    print(0 < claimed < len(keys) and abs(seen.stats().estimated_keys / claimed - 1) < 0.01)
"""
    answer = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True)
    assert answer.stdout == "True\n", answer.stderr


def handles_in_time(server: Server, calls: dict[str, str], setup: str = "", *, writes: bool = True, then: str = "") -> None:
    """Runs each call of a filter while the server hangs, and sends SIGINT while the call waits. `calls` has the expected output of each.

    The server hangs for all commands, or only for those that write. In that case the server reports that the command has arrived.
    """
    code = f"""
import os, signal, threading, time
import numpy
from bloomline import BloomFilter, RedisBloomFilter
from server import ask, awaits
def openfilter():
    return RedisBloomFilter({server.url!r}, "f", 100_000, 0.001, response_timeout=300.0, retry_timeout=300.0)
def go_on():
    if {writes}:
        ask({server.port}, "CLIENT UNPAUSE")
    os.kill({server.process.pid}, signal.SIGCONT)
def interrupt():
    while {writes} and not awaits({server.port}):
        time.sleep(0.01)
    time.sleep(0 if {writes} else 1)
    os.kill(os.getpid(), signal.SIGINT)
    exec({then!r})
for number, call in enumerate({list(calls)!r}):
    seen = openfilter()
    before, after = ("before", number), ("after", number)
    seen.add(before)
    if {writes}:
        ask({server.port}, {PAUSE!r})
    else:
        os.kill({server.process.pid}, signal.SIGSTOP)
    exec({setup!r})
    interrupting = threading.Thread(target=interrupt)
    started = time.monotonic()
    try:
        interrupting.start()
        exec(call)
    except KeyboardInterrupt as stopped:
        print("stopped", getattr(stopped, "new", None))
    print(time.monotonic() - started < 200)
    interrupting.join()
    go_on()
    print(before in seen, seen.add(after), seen.add(after))
"""
    try:
        answer = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True)
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert answer.stdout == "".join(said + "True\nTrue True False\n" for said in calls.values()), answer.stderr


def test_ctrl_c_ends_a_call_while_a_server_accepts_no_keys(redis: Server) -> None:
    handles_in_time(
        redis,
        {
            "seen.add('a')": "stopped True\n",
            "seen.add_many(range(3))": "stopped [ True  True  True]\n",
            "seen.update(range(10_000))": "stopped None\n",
            "seen.delete()": "stopped None\n",
        },
    )


def test_ctrl_c_ends_a_call_while_a_server_hangs(redis: Server) -> None:
    calls = ["'a' in seen", "seen.stats()", "seen.download()", "openfilter()"]
    handles_in_time(redis, dict.fromkeys(calls, "stopped None\n"), writes=False)


def test_ctrl_c_ends_a_call_while_another_thread_hangs(redis: Server) -> None:
    waits = "threading.Thread(target=seen.add, args=('a',)).start(); time.sleep(0.5)"
    handles_in_time(redis, {"seen.add('b')": "stopped False\n"}, waits, writes=False)


def test_other_handlers_run_while_a_server_hangs(redis: Server) -> None:
    """A handler that raises nothing does not end the call, and cannot use the filter of the call."""
    setup = """
def handle(*_):
    try:
        seen.add("a")
    except RuntimeError as error:
        print("handler", "after the call" in str(error))
    go_on()
signal.signal(signal.SIGINT, handle)
"""
    handles_in_time(redis, {"print(seen.add('b'))": "handler True\nTrue\n"}, setup)


def test_handlers_wait_for_the_end_of_an_upload(redis: Server) -> None:
    """A handler that adds to the uploaded filter would wait for the upload, and the upload for the handler."""
    setup = """
local = BloomFilter(100_000, 0.001)
local.add("uploaded")
signal.signal(signal.SIGINT, lambda *_: print("handler", local.add("a")))
"""
    handles_in_time(redis, {"seen.upload(local)": "handler True\n"}, setup, then="time.sleep(0.5); go_on()")


def certify(folder: pathlib.Path) -> None:
    """A key, and a certificate for it that is signed by itself."""
    folder.mkdir()
    subject = ["-subj", "/CN=bloomline", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", "key.pem", "-out", "cert.pem"], cwd=folder, check=True, capture_output=True)


def test_certificate_authorities(redis: Server, tmp_path: pathlib.Path) -> None:
    if not shutil.which("openssl"):
        assert os.environ.get("BLOOMLINE_REQUIRE_REDIS") != "1", "no openssl"
        pytest.skip("no openssl")
    ours, others = tmp_path / "ours", tmp_path / "others"
    certify(ours)
    certify(others)
    redis.stop()
    files = ["--tls-cert-file", ours / "cert.pem", "--tls-key-file", ours / "key.pem", "--tls-ca-cert-file", ours / "cert.pem"]
    # The plain port stays, for the test's own commands.
    port = free_port()
    redis.arguments += ["--tls-port", str(port), *map(str, files)]
    redis.start()
    url = f"rediss://127.0.0.1:{port}"
    for path in ours / "cert.pem", str(ours / "cert.pem"):
        shown = {"client_certificate": path, "client_key": ours / "key.pem"}
        seen = RedisBloomFilter(url, "f", 1000, 0.001, certificate_authority=path, **shown)
        seen.update(range(100))
        assert all(key in seen for key in range(100))
    for path in others / "cert.pem", None:
        with pytest.raises(ConnectionError, match="certificate"):
            RedisBloomFilter(url, "f", certificate_authority=path, retry_timeout=0.2)
    with pytest.raises(ConnectionError, match="ertificate"):
        RedisBloomFilter(url, "f", certificate_authority=ours / "cert.pem", retry_timeout=0.2)
    with pytest.raises(ValueError, match="go together"):
        RedisBloomFilter(url, "f", client_certificate=ours / "cert.pem")
    with pytest.raises(FileNotFoundError) as raised:
        RedisBloomFilter(url, "f", certificate_authority=tmp_path / "none.pem")
    assert raised.value.filename == str(tmp_path / "none.pem")
    with pytest.raises(ValueError, match="BEGIN CERTIFICATE"):
        RedisBloomFilter(url, "f", certificate_authority=__file__)
    with pytest.raises(ValueError, match="only for rediss://"):
        RedisBloomFilter(redis.url, "f", certificate_authority=ours / "cert.pem")


def test_replicas_are_waited_for(redis: Server) -> None:
    seen = RedisBloomFilter(redis.url, "f", 1000, 0.01, wait_for_replicas=1)
    began = time.monotonic()
    assert seen.add("a") and time.monotonic() - began >= 1  # there is no replica
    assert not seen.add("a")
    assert (seen.unconfirmed, seen.uncertain) == (1, 0)
    other = RedisBloomFilter(redis.url, "f")
    assert other.add("b") and other.unconfirmed == 0


def test_the_removal_of_a_filter_is_reported(redis: Server) -> None:
    seen = RedisBloomFilter(redis.url, "gone", 1000, 0.01)
    seen.add("a")
    RedisBloomFilter(redis.url, "gone").delete()
    time.sleep(1.1)
    # The claim that detects the removal is answered.
    with pytest.raises(OSError, match="is gone"):
        for key in range(3):
            seen.add(key)
    with pytest.raises(OSError, match="is gone"):
        "a" in seen
