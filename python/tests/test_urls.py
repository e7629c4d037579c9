"""Files by URL: on a local server, which only reads, and in memory, which writes too."""

import functools
import gzip
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import bloomline
from bloomline import BloomFilter, ScalableBloomFilter, _frames

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def memory() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


class ReadOnly(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """A file system that writes nothing, as those of archives and old ones of https."""

    protocol = "readonly"

    def pipe_file(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError


fsspec.register_implementation("readonly", ReadOnly)


class Hub(http.server.SimpleHTTPRequestHandler):
    """Serves the files of a folder, also as the data set `owner/set` of a hub."""

    def log_message(self, *_: Any) -> None: ...

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.removeprefix("/datasets/owner/set/resolve/main"))

    def do_GET(self) -> None:
        if not self.path.startswith("/api/datasets/owner/set"):
            super().do_GET()
            return
        folder = pathlib.Path(self.directory)
        files = [{"type": "file", "path": path.name, "oid": "0", "size": path.stat().st_size} for path in sorted(folder.iterdir())]
        answer = json.dumps(files if "/tree/" in self.path else {"id": "owner/set", "sha": "0", "siblings": []}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """The URL of a folder."""
    folder = tmp_path / "served"
    folder.mkdir()

    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Hub, directory=folder))
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}", folder
    served.shutdown()
    thread.join()
    served.server_close()


def lines(*urls: str) -> bytes:
    return b"".join(json.dumps({"url": url}).encode() + b"\n" for url in urls)


def urls_of(contents: bytes) -> list[str]:
    return [json.loads(line)["url"] for line in contents.splitlines()]


def test_inputs_are_read_from_a_server(server: tuple[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    url, folder = server
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines("a", "b", "a")))
    (folder / "b.jsonl").write_bytes(lines("b", "c"))
    output = tmp_path / "out.jsonl"
    figures = bloomline.dedup([f"{url}/a.jsonl.gz", f"{url}/b.jsonl?version=2"], on="url", output=output)
    assert (figures["lines"], figures["unique"]) == (5, 3) and urls_of(output.read_bytes()) == ["a", "b", "c"]
    pq.write_table(pa.table({"url": ["x", "y", "x"]}), folder / "c.parquet")
    bloomline.dedup(f"{url}/c.parquet", on="url", output=tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["url"].to_pylist() == ["x", "y"]
    with pytest.raises(FileNotFoundError, match="none.jsonl"):
        bloomline.dedup(f"{url}/none.jsonl", on="url", output=output)
    # Messages of the command have the URL.
    (folder / "null.jsonl").write_bytes(b'{"url": "a"}\n{"url": null}\n')
    with pytest.raises(RuntimeError, match=f'null in "{url}/null.jsonl", line 2'):
        bloomline.dedup(f"{url}/null.jsonl", on="url", output=output, nulls="fail")


def test_outputs_and_the_state_are_written_after_the_run(memory: Any, tmp_path: pathlib.Path) -> None:
    memory.pipe({"/logs/2026-10.jsonl": lines("a", "b", "a"), "/logs/2026-11.jsonl": lines("b", "c", "c"), "/logs/deep/x.jsonl": lines("c", "d")})
    for month, expected in {"2026-10": ["a", "b"], "2026-11": ["c"]}.items():
        new = f"memory://new/{month}.jsonl"
        bloomline.dedup(f"memory://logs/{month}.jsonl", on="url", output=new, state="memory://state/urls.bloom")
        assert urls_of(memory.cat(new)) == expected
    state = ScalableBloomFilter.load("memory://state/urls.bloom")
    assert state.contains_rows(pa.table({"url": ["a", "c", "d"]})).tolist() == [True, True, False]
    # A folder and a pattern.
    bloomline.dedup("memory://logs", on="url", keep="first", output_dir="memory://kept")
    assert sorted(memory.find("/kept")) == ["/kept/2026-10.jsonl", "/kept/2026-11.jsonl", "/kept/deep/x.jsonl"]
    assert [urls_of(memory.cat(f"/kept/{name}")) for name in ("2026-11.jsonl", "deep/x.jsonl")] == [["c"], ["d"]]
    # No file there is replaced unasked, and none is written beside one that exists.
    for month in "2026-10", "2026-11":
        memory.rm(f"/kept/{month}.jsonl")
    memory.pipe("/kept/deep/x.jsonl", b"other")
    with pytest.raises(FileExistsError, match="memory://kept/deep/x.jsonl exists: write to another folder, or replace it by the option '--force'"):
        bloomline.dedup("memory://logs", on="url", keep="first", output_dir="memory://kept")
    assert memory.cat("/kept/deep/x.jsonl") == b"other" and not memory.exists("/kept/2026-10.jsonl")
    bloomline.dedup("memory://logs", on="url", keep="first", output_dir="memory://kept", options=["--force"])
    assert urls_of(memory.cat("/kept/deep/x.jsonl")) == ["d"]
    bloomline.dedup("memory://logs/*.jsonl", on="url", output=tmp_path / "all.jsonl")
    assert urls_of((tmp_path / "all.jsonl").read_bytes()) == ["a", "b", "c"]
    # A failed run writes nothing.
    before = memory.cat("/state/urls.bloom")
    memory.pipe("/logs/bad.jsonl", lines("e") + b"{\n")
    with pytest.raises(RuntimeError, match='no key in "memory://logs/bad.jsonl", line 2'):
        bloomline.dedup("memory://logs/bad.jsonl", on="url", output="memory://no", state="memory://state/urls.bloom")
    assert not memory.exists("/no") and memory.cat("/state/urls.bloom") == before


def test_filters_are_saved_and_loaded(memory: Any, server: tuple[str, pathlib.Path]) -> None:
    seen = BloomFilter(1000, 1e-6, key_name="url")
    seen.update(["a", "b"])
    seen.save("memory://state/seen.bloom")
    assert memory.cat("/state/seen.bloom") == bytes(seen) and BloomFilter.load("memory://state/seen.bloom") == seen
    url, folder = server
    seen.save(folder / "seen.bloom")
    assert BloomFilter.load(f"{url}/seen.bloom") == seen
    with pytest.raises(ValueError, match="load it as a BloomFilter"):
        ScalableBloomFilter.load(f"{url}/seen.bloom")
    with pytest.raises(FileNotFoundError):
        BloomFilter.load(f"{url}/none.bloom")
    with pytest.raises(OSError, match="readonly://x: no file can be written there; write a local one"):
        seen.save("readonly://x")
    with pytest.raises(ValueError, match="is a URL, and only a file is mapped: load it"):
        BloomFilter.map(f"{url}/seen.bloom")


def test_data_sets_of_a_hub_are_read(server: tuple[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    pytest.importorskip("huggingface_hub")
    url, folder = server
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines("a", "b", "a")))
    (folder / "b.jsonl").write_bytes(lines("b", "c"))
    seen = BloomFilter(1000, 1e-6)
    seen.save(folder / "seen.bloom")
    # The package reads the variable once.
    program = """if True:
        import bloomline, sys
        bloomline.dedup("hf://datasets/owner/set/*.jsonl*", on="url", output=sys.argv[1])
        bloomline.BloomFilter.load("hf://datasets/owner/set/seen.bloom").save(sys.argv[2])
    """
    environment = {**os.environ, "HF_ENDPOINT": url, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    output, loaded = tmp_path / "out.jsonl", tmp_path / "loaded.bloom"
    subprocess.run([sys.executable, "-c", program, output, loaded], env=environment, check=True)
    assert urls_of(output.read_bytes()) == ["a", "b", "c"] and BloomFilter.load(loaded) == seen


def test_buckets_are_read_and_written(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s3fs = pytest.importorskip("s3fs")
    pytest.importorskip("flask", reason="the server of moto needs it")
    served = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    served.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*served.get_host_and_port()))
    for name in "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY":
        monkeypatch.setenv(name, "test")
    s3fs.S3FileSystem.clear_instance_cache()
    try:
        system = fsspec.filesystem("s3")
        system.mkdir("logs")
        system.pipe({"logs/in/2026-10.jsonl": lines("a", "b", "a"), "logs/in/2026-11.jsonl": lines("b", "c", "c")})
        for month, expected in {"2026-10": ["a", "b"], "2026-11": ["c"]}.items():
            new = f"s3://logs/new/{month}.jsonl"
            bloomline.dedup(f"s3://logs/in/{month}.jsonl", on="url", output=new, state="s3://logs/urls.bloom")
            assert urls_of(system.cat(new)) == expected
        assert ScalableBloomFilter.load("s3://logs/urls.bloom").contains_rows(pa.table({"url": ["a", "c", "d"]})).tolist() == [True, True, False]
        for inputs in "s3://logs/in", "s3://logs/in/*.jsonl":
            bloomline.dedup(inputs, on="url", keep="first", output_dir="s3://logs/kept")
            assert [urls_of(system.cat(f"logs/kept/{month}.jsonl")) for month in ("2026-10", "2026-11")] == [["a", "b"], ["c"]]
            system.rm("logs/kept", recursive=True)
        seen = BloomFilter(1000, 1e-6)
        seen.save("s3://logs/seen.bloom")
        assert BloomFilter.load("s3://logs/seen.bloom") == seen
        with pytest.raises(FileNotFoundError):
            BloomFilter.load("s3://logs/none.bloom")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        with pytest.raises(FileNotFoundError) as refused:
            bloomline.dedup("s3://logs/in/2026-10.jsonl", on="url", output="s3://none/new.jsonl")
        unwritten, kept = refused.value.__notes__
        assert unwritten == "s3://none/new.jsonl was not written" and kept.startswith("its contents are in ")
        assert urls_of(pathlib.Path(kept.removeprefix("its contents are in ")).read_bytes()) == ["a", "b"]
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        served.stop()


def test_wrong_arguments_are_refused(memory: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe("/a.jsonl", lines("a"))
    with pytest.raises(ValueError, match="in_place replaces local files"):
        bloomline.dedup("memory://a.jsonl", on="url", in_place=True)
    with pytest.raises(ValueError, match="with --resume, give paths"):
        bloomline.dedup("memory://a.jsonl", on="url", output="memory://b.jsonl", options=["--resume"])
    with pytest.raises(ValueError, match="no file matches 'memory://x"):
        bloomline.dedup("memory://x*.jsonl", on="url", output=tmp_path / "x")
    # A file may have such a name.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd:").mkdir()
    (tmp_path / "odd:/a.jsonl").write_bytes(lines("a", "a"))
    assert bloomline.dedup("odd://a.jsonl", on="url", output="x")["unique"] == 1
    _frames.needed.cache_clear()
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ModuleNotFoundError, match="fsspec is not installed, and it reads and writes files by URL: pip install"):
        bloomline.dedup("memory://a.jsonl", on="url", output=tmp_path / "y")
    _frames.needed.cache_clear()
