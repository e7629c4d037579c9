"""Files by URL, through fsspec: s3, https, hf and other protocols that are installed for it."""

import contextlib
import dataclasses
import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from bloomline._frames import needed

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def is_url(path: object) -> bool:
    """True for a URL that no local file or folder has as its name."""
    return isinstance(path, str) and _URL.match(path) is not None and not os.path.lexists(path)


def read(url: str) -> bytes:
    """Returns the contents of a file."""
    system, path = _system(url)
    contents: bytes = system.cat_file(path)
    return contents


def write(url: str, contents: bytes) -> None:
    """Writes a file."""
    system, path = _system(url)
    with _writing(url):
        system.pipe_file(path, contents)


def _system(url: str) -> tuple[Any, Any]:
    """Returns the file system of a URL, and the path there."""
    found: tuple[Any, Any] = needed("fsspec").core.url_to_fs(url)
    return found


@contextlib.contextmanager
def _writing(url: str) -> Iterator[None]:
    try:
        yield
    except NotImplementedError as error:
        raise io.UnsupportedOperation(f"{url}: no file can be written there; write a local one, and copy it") from error
    except Exception as error:
        error.add_note(f"{url} was not written")
        raise


@dataclasses.dataclass
class Local:
    """The local paths of a call, among them copies of files by URL."""

    paths: list[str]
    output: Any
    output_dir: Any
    state: Any
    # The URL of each copy.
    urls: dict[str, str]

    def named(self, message: str) -> str:
        """Returns a message with URLs in place of the names of copies."""
        for path, url in sorted(self.urls.items(), reverse=True):
            message = message.replace(path, url)
        return message


@contextlib.contextmanager
def local_copies(paths: Sequence[str], output: Any, output_dir: Any, state: Any, *, force: bool) -> Iterator[Local]:
    """Downloads the inputs and the state that are URLs to a temporary folder. Without an exception, uploads the outputs and then the state.

    In a folder of outputs, files are replaced only if `force` is true.
    """
    results = [path for path in (output, output_dir, state) if is_url(path)]
    if not results and not any(map(is_url, paths)):
        yield Local(list(paths), output, output_dir, state, {})
        return
    with tempfile.TemporaryDirectory(prefix="bloomline-") as folder:
        made = Local([], output, output_dir, state, {})
        for path in paths:
            made.paths += _downloaded(path, os.path.join(folder, "in"), made.urls) if is_url(path) else [path]
        for name in "output", "output_dir", "state":
            url = getattr(made, name)
            if not is_url(url):
                continue
            copy = _name(url, os.path.join(folder, name), made.urls)
            os.makedirs(copy if name == "output_dir" else os.path.dirname(copy))
            system, path = _system(url)
            if name == "state" and system.exists(path):
                system.get_file(path, copy)
            setattr(made, name, copy)
        yield made
        for url, copy in (output, made.output), (output_dir, made.output_dir), (state, made.state):
            if not is_url(url):
                continue
            try:
                _upload(copy, url, force)
            except Exception as error:
                kept = shutil.move(copy, tempfile.mkdtemp(prefix="bloomline-"))
                error.add_note(f"its contents are in {kept}")
                raise


def _name(url: str, folder: str, urls: dict[str, str]) -> str:
    """Returns a name for a copy: the path of the URL, whose ending has the format."""
    path = _URL.sub("", url)
    path = re.split(r"[?#]", path)[0] if url.startswith("http") else path
    if os.name == "nt":
        # Separators of folders, drives and streams would lead out of the folder.
        path = path.replace("\\", "/").replace(":", "_")
    name = "/".join(part for part in path.split("/") if part not in ("", ".", "..")) or "file"
    while os.path.join(folder, name) in urls:
        name = os.path.join("again", name)
    copy = os.path.join(folder, name)
    urls[copy] = url
    return copy


def _downloaded(url: str, folder: str, urls: dict[str, str]) -> list[str]:
    """Downloads a file, the files of a folder, or the matches of a pattern. Returns the names of the copies."""
    system, path = _system(url)
    found = {path: url}
    if "*" in path or (not url.startswith("http") and system.isdir(path)):
        names = sorted(system.glob(path) if "*" in path else system.find(path))
        if not names:
            raise ValueError(f"no inputs: no file matches {url!r}")
        found = {name: system.unstrip_protocol(name) for name in names}
    copies = {_name(one, folder, urls): path for path, one in found.items()}
    for copy, path in copies.items():
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        system.get_file(path, copy)
    return list(copies)


def _upload(copy: str, url: str, force: bool) -> None:
    system, path = _system(url)
    with _writing(url):
        if not os.path.isdir(copy):
            system.put_file(copy, path)
            return
        names = [os.path.relpath(os.path.join(folder, name), copy) for folder, _, names in os.walk(copy) for name in names]
        targets = {name: "/".join([path.rstrip("/"), *name.split(os.sep)]) for name in names}
        for name, target in targets.items():
            if not force and system.exists(target):
                raise FileExistsError(f"{url.rstrip('/')}/{name} exists: write to another folder, or replace it by the option '--force'")
        for name, target in targets.items():
            system.makedirs(os.path.dirname(target), exist_ok=True)
            system.put_file(os.path.join(copy, name), target)
