#!/usr/bin/env python3
"""Makes a corpus of English prose from documentation that Debian packages: 440 MB of JSON lines, in one file and in eight shards.

    benches/corpus.py /tmp/large [MEGABYTES]    # as root on Debian 12, after `apt-get update`

A document is a page. A paragraph stands on one line, however its source was wrapped. Code is left out, and lines of fewer than
five words, as C4 does; licences and what else pages have in common stays in. Pages of all packages are mixed, in the same order
each time.
"""
import gzip
import hashlib
import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

PACKAGES = """ada-reference-manual-2020 anarchism apache2-doc bash-doc bible-kjv-text bind9-doc buildbot-doc cinder-doc cmake-doc
cppreference-doc-en-html debian-faq debian-history debian-policy debian-reference-en developers-reference erlang-doc
exim4-doc-html freedombox-doc-en gap-doc ghc-doc gimp-help-en git-doc glance-doc groovy-doc ironic-doc jargon-text keystone-doc
kicad-doc-en lazarus-doc-2.2 libboost1.81-doc libcommons-math3-java-doc libglib2.0-doc libgtk-3-doc libgtk-4-doc
libjfreechart-java-doc libopenjfx-java-doc libreoffice-help-en-us linux-doc-6.1 llvm-14-doc maxima-doc neutron-doc nodejs-doc
nova-doc octave-doc openjdk-17-doc perl-doc petsc3.18-doc postgresql-doc-15 python-astropy-doc python-django-doc python-pandas-doc
python-scipy-doc python-sklearn-doc python-sqlalchemy-doc python-statsmodels-doc python-sympy-doc python3.11-doc qtbase5-doc-html
qtdeclarative5-doc-html racket-doc rust-doc sagemath-doc sbcl-doc scala-doc slurm-wlm-doc sphinx-doc subversion twisted-doc
vim-doc wireshark-doc wx3.2-doc zsh-doc""".split()
NO_PROSE = re.compile(r"<!--.*?-->|<(script|style|head|nav|pre|svg|math|textarea|template)\b.*?</\1\s*>", re.S | re.I)
BLOCK = re.compile(
    r"</?(?:p|div|li|ul|ol|dl|dt|dd|h[1-6]|tr|table|br|hr|section|article|nav|header|footer|main|aside|blockquote|title|body|caption|summary|"
    r"details|figure|figcaption|form|option|button|center|address)\b[^>]*>",
    re.I,
)
TAG = re.compile(r"<[^>]*>")
UNDERLINE = re.compile(r".\x08")


def decoded(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def of_html(page):
    page = BLOCK.sub("\0", NO_PROSE.sub("\0", page))
    return [" ".join(html.unescape(part).split()) for part in TAG.sub("", page).split("\0")]


def of_text(page):
    """Paragraphs stand between blank lines. Those whose lines begin further in than their first are code or tables."""
    out = []
    for part in re.split(r"\n\s*\n", UNDERLINE.sub("", page)):
        lines = part.strip("\n").split("\n")
        deep = sum(line.startswith(("    ", "\t")) for line in lines)
        if deep * 2 <= len(lines):
            out.append(" ".join(part.split()))
    return out


def paragraphs(path):
    name = path.name.removesuffix(".gz")
    if name.endswith((".html", ".htm")):
        of = of_html
    elif name.endswith((".pod", ".txt", ".TXT")) or "/usr/share/perl/" in str(path) or "." not in name:
        of = of_text
    else:
        return []
    data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    return [] if b"\0" in data else [p for p in of(decoded(data)) if p.count(" ") >= 4]


def pages(folder):
    """Downloads and unpacks the packages; the pages of all of them, mixed."""
    for package in PACKAGES:
        if not list((folder / "debs").glob(package + "_*.deb")):
            download = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "-qq", package]
            subprocess.run(download, cwd=folder / "debs", check=True)
        if not (folder / "root" / package).exists():
            (deb,) = (folder / "debs").glob(package + "_*.deb")
            subprocess.run(["dpkg", "-x", deb, folder / "root" / package], check=True)
        for root, _, names in os.walk(folder / "root" / package):
            for name in names:
                path = Path(root, name)
                # `_sources` are what the pages beside them are made of.
                if path.is_file() and not path.is_symlink() and "_sources" not in path.parts:
                    key = f"{package}:{path.relative_to(folder / 'root' / package)}"
                    yield hashlib.md5(key.encode()).digest(), package, key, path


def main():
    folder, limit = Path(sys.argv[1]), float(sys.argv[2] if len(sys.argv) > 2 else 440) * 1e6
    for name in ("debs", "root"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    share, used, size, documents, count, text_bytes = limit / 12, {}, 0, 0, 0, 0
    with open(folder / "corpus.jsonl", "wb") as out:
        for _, package, key, path in sorted(pages(folder)):
            # No package fills more than a twelfth.
            if used.get(package, 0) > share:
                continue
            text = paragraphs(path)
            line = json.dumps({"id": key, "source": package, "text": "\n".join(text)}, ensure_ascii=False).encode() + b"\n"
            if len(line) < 500:
                continue
            if size + len(line) > limit:
                break
            out.write(line)
            used[package] = used.get(package, 0) + len(line)
            size, documents, count = size + len(line), documents + 1, count + len(text)
            text_bytes += len("\n".join(text).encode())
    (folder / "corpus").mkdir(exist_ok=True)
    shards = [gzip.open(folder / "corpus" / f"shard-{i}.jsonl.gz", "wb", 6) for i in range(8)]
    with open(folder / "corpus.jsonl", "rb") as lines:
        for i, line in enumerate(lines):
            shards[i * 8 // documents].write(line)
    for shard in shards:
        shard.close()
    print(f"{size} bytes, {documents} documents, {count} paragraphs, {text_bytes} bytes of text")
    for package, n in sorted(used.items(), key=lambda p: -p[1]):
        print(f"{n / 1e6:8.1f} MB  {package}")


if __name__ == "__main__":
    main()
