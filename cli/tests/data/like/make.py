#!/usr/bin/env python3
"""Makes documents.jsonl, and with the tools at hand results.jsonl: what each of them removed. README.md says what is in them.

    make.py documents
    make.py results DCLM BFF DOLMA     # paths of the tools' binaries
"""
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DOCUMENTS = os.path.join(HERE, "documents.jsonl")

ENGLISH = """the a this that every some no other first last old new small large quiet green cold early river mountain garden window
letter kitchen station bridge engine market harbour village teacher doctor captain neighbour daughter machine paper lamp
morning evening winter summer road field stone water fire bread salt sugar coffee music answer question story number city
writes reads opens closes carries finds loses remembers forgets builds repairs measures counts sells buys paints follows
leaves meets asks tells brings keeps breaks slowly quickly often never always perhaps again today tomorrow outside below
above between without before after because while although and or but if when where with under over near it's don't o'clock
well-known twenty-one e-mail U.S. Mr. Dr. 3.14 1,234,567 42 2024-05-01 10:30 $9.99 50% #7 C++ a/b x_1 foo_bar ~ © 1st""".split()
SCRIPTS = {
    "chinese": "春天 的 河水 慢慢 流 过 村庄 。 老人 在 桥 上 等待 朋友 ， 孩子们 写 信 给 远方 的 城市 ！ 一 二 三 北京 上海".split(),
    "japanese": "今日 は とても 静か な 朝 です 。 カタカナ コーヒー を 飲みながら 手紙 を 書く 、 東京 の 駅 へ 行く ｶﾅ ー 々".split(),
    "thai": "วันนี้ อากาศ ดี มาก แม่น้ำ ไหล ผ่าน หมู่บ้าน เด็ก เขียน จดหมาย ถึง เพื่อน ที่ กรุงเทพฯ ๑๒๓".split(),
    "arabic": "كان الصباح هادئًا جدًّا والنهر يجري قرب القرية ، كتب الولد رسالةً إلى صديقه ؟ ١٢٣ اَلْعَرَبِيَّةُ لـ".split(),
    "hindi": "नदी गाँव के पास बहती है और बच्चा मित्र को पत्र लिखता है । हिन्दी क्षेत्र १२३".split(),
    "korean": "오늘 아침 강물 이 마을 옆 을 흐른다 . 아이 는 친구 에게 편지 를 쓴다 한국어 ㄱㄴ".split(),
    "hebrew": "הנהר זורם ליד הכפר צה\"ל ג'ירפה והילד כותב מכתב לחבר ירושלים א'".split(),
    "accents": "café naïve Straße ÉCOLE über Ærø İstanbul ıssız ΟΔΟΣ λόγος Ёлка e\u0301te\u0301 n\u0303 a\u0308 ﬁn Å Å ǅ x\u0323\u0307".split(),
    "emoji": "👩‍👩‍👧 🇩🇪🇫🇷 🇯🇵 👍🏽 ❤️ ☕ 🏳️‍🌈 1️⃣ 🧑🏿‍🚀 😀 ©️ → ∞ ½ №".split(),
    "signs": "\u200b a\u200bb \ufeff \u00ad so\u00adft \u2060 \u200d \u200f “quoted” ‘single’ ’tis don’t … — – « » ¿ a.b a..b 1.a 3,x , ,, a:b a·b 1٫5 \\ \" / </b> {} []".split(),
}


def sentence(rng, length):
    kind = rng.choice(sorted(SCRIPTS)) if rng.random() < 0.22 else None
    pool = SCRIPTS[kind] if kind else ENGLISH
    out = [rng.choice(pool if rng.random() < 0.93 else ENGLISH) for _ in range(length)]
    if not kind:
        out[0] = out[0].capitalize()
        out[-1] += rng.choice([".", ".", ".", "?", "!", '."', "…"])
        if length > 6:
            out[length // 2] += rng.choice([",", ",", ";", "", "", ":"])
    # Between these words stands no white space in their own script.
    gap = "" if kind in ("chinese", "japanese", "thai") and rng.random() < 0.8 else " "
    return gap.join(out)


def paragraph(rng):
    kind = rng.random()
    if kind < 0.07:
        return rng.choice(["", " ", "\t", "\r", " \u00a0 ", "\u3000", "   \t", "\u2028", "\u0085"])
    if kind < 0.20:
        return sentence(rng, rng.randint(1, 6))
    if kind < 0.24:
        # The same gram many times in one paragraph.
        return " ".join([rng.choice(ENGLISH)] * rng.randint(3, 40))
    text = " ".join(sentence(rng, rng.randint(4, 14)) for _ in range(rng.choice([1, 1, 2, 2, 3])))
    if rng.random() < 0.1:
        text = text.replace(" ", rng.choice(["  ", "\t", " \t ", "\u00a0", "\u3000", "\u2003", "\r", "\u2029"]), rng.randint(1, 4))
    if rng.random() < 0.05:
        text += rng.choice(["\r", " ", "\t", "\u00a0", "\x00", "\x7f", "\u0085"])
    return text


def words(rng, count):
    """`count` plain words that make `count` tokens, and hardly ever the same twice."""
    return [rng.choice("bcdfghklmnprstvw") + rng.choice("aeiou") + rng.choice("bdgklmnprst") + str(rng.randint(10, 99)) for _ in range(count)]


def variant(rng, text):
    """The same as people repeat it: exactly, in other case or white space, with a few words changed, cut or continued."""
    kind = rng.random()
    if kind < 0.35:
        return text
    if kind < 0.45:
        return rng.choice([text.upper(), text.lower(), text.swapcase()])
    if kind < 0.55:
        return rng.choice([" " + text, text + " ", "\t" + text + "\r", text.replace(" ", "  ", 3), "\u3000" + text])
    parts = text.split(" ")
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(parts))
        if kind < 0.75:
            parts[at] = rng.choice(ENGLISH)
        elif kind < 0.85:
            parts.insert(at, rng.choice(ENGLISH))
        elif len(parts) > 1:
            del parts[at]
    if kind > 0.95:
        parts += words(rng, rng.randint(1, 8))
    return " ".join(parts)


def on_the_edge(rng, texts):
    """Units of which exactly 0.8 or 0.5 of the grams were seen, and those one gram beside it."""
    for n in (5, 13, 20):
        for grams in (2, 4, 5, 10, 15):
            for share in (0.5, 0.8):
                found = round(grams * share)
                for more in (-1, 0, 1):
                    if not 0 < found + more < grams:
                        continue
                    first = words(rng, n + grams - 1)
                    second = first[: n - 1 + found + more] + words(rng, grams - found - more)
                    texts.append(" ".join(first))
                    # As a paragraph of a text of its own, and between other paragraphs.
                    texts.append(" ".join(second) if rng.random() < 0.5 else "\n".join([" ".join(words(rng, 3)), " ".join(second), ""]))
    # Whole texts: their paragraphs stay below the share or go above it, all together are on it.
    for pattern in ((5, 5, 5, 5, 0), (5, 4, 4, 4, 3), (5, 5, 5, 5, 1), (4, 4, 4, 4, 4), (5, 5, 0, 0), (5, 5, 5, 0), (5, 5, 5, 5, 5, 0)):
        first = [words(rng, 17) for _ in pattern]
        second = [p[: 12 + found] + words(rng, 5 - found) for p, found in zip(first, pattern)]
        texts.append("\n".join(map(" ".join, first)))
        texts.append("\n".join(map(" ".join, second)))
        texts.append("\n".join(map(" ".join, second[::-1])))


def texts(rng):
    # Repeats of a paragraph within a document, the first of a corpus, and the blanks that some tools compare.
    out = ["First.\n\nFirst.\n \nFirst.", "", "\n", "\n\n", " ", "\r\n", " \n\t\n", ""]
    on_the_edge(rng, out)
    seen = []
    while len(out) < 560:
        if out and rng.random() < 0.07:
            out.append(rng.choice(out) if rng.random() < 0.6 else variant(rng, rng.choice(out)))
            continue
        parts = []
        for _ in range(rng.choice([1, 1, 2, 2, 3, 4, 5, 7])):
            if seen and rng.random() < 0.38:
                parts.append(variant(rng, rng.choice(seen)))
            else:
                parts.append(paragraph(rng))
                seen.append(parts[-1])
        out.append(rng.choice(["\n", "\n", "\n", "\r\n", "\n\n"]).join(parts) + rng.choice(["", "", "", "\n", "\r\n", "\n\n\n"]))
    tail = out[190:]
    rng.shuffle(tail)
    return out[:190] + tail


def encode(rng, text):
    """A JSON string of the text, in one of the ways in which it can be written."""
    style = rng.random()
    out = json.dumps(text, ensure_ascii=style < 0.35)
    if style < 0.1:
        out = out.replace("/", "\\/")
    elif style > 0.97:
        out = '"' + "".join("\\u%04X" % ord(c) if c.isascii() else c for c in text) + '"'
    elif style > 0.94:
        out = out.replace("\\n", "\\u000a").replace(" ", "\\u0020", 2)
    return out


def line(rng, number, text):
    members = [
        ('"id"', str(number) if rng.random() < 0.3 else json.dumps(f"doc-{number:03}")),
        ('"text"', encode(rng, text)),
    ]
    for member in (
        ('"n"', "12345678901234567890123"),
        ('"score"', rng.choice(["1e5", "0.10", "-0", "1.0000000000000000001", "3E-7"])),
        ('"meta"', '{"text":"not this one","a":[1,{"text":"nor\\nthis"}],"é":null}'),
        ('"te\\"xt"', '"a quote in its name"'),
        ('"url"', '"https:\\/\\/example.org\\/\\u00e9"'),
        ('"texts"', "[true,false,[]]"),
    ):
        if rng.random() < 0.18:
            members.append(member)
    rng.shuffle(members)
    comma, colon = rng.choice([(",", ":"), (", ", ": "), (" , ", " : "), (",\t", ":")])
    return "{" + comma.join(name + colon + value for name, value in members) + "}"


def documents():
    rng = random.Random(20240501)
    with open(DOCUMENTS, "w", encoding="utf-8", newline="\n") as out:
        for number, text in enumerate(texts(rng)):
            out.write(line(rng, number, text) + "\n")


def paragraphs(text):
    """[start, end] of each paragraph, in bytes: from its leading newline to before the next one."""
    data = text.encode()
    at = [0] + [i for i, byte in enumerate(data) if byte == 10] + [len(data)]
    return [list(pair) for pair in zip(at, at[1:])]


def cut(text, spans):
    data = text.encode()
    out, last = b"", 0
    for start, end in spans:
        out += data[last:start]
        last = end
    return (out + data[last:]).decode()


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def lines_of(path):
    if not os.path.exists(path):
        return []
    with gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file.read().split("\n") if line]


def numbered(docs):
    """The same documents with their number as id."""
    return "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(docs))


def dclm(tool, docs, megabytes, *options):
    """Spans as `--annotate` tells them; None for a document that is not in the output. `exact` has no spans."""
    with tempfile.TemporaryDirectory() as work:
        os.mkdir(f"{work}/in")
        with open(f"{work}/in/a.jsonl", "w") as out:
            out.write(numbered(docs))
        # 48 bits for each gram keep this rate.
        common = ("--inputs", f"{work}/in", "--expected-ngram-count", str(megabytes * 2**20 // 6), "--fp-rate", "1e-10", "-t", "1", "--no-progress-bar")
        run(tool, "bff", *common, "--output-directory", f"{work}/kept", *options)
        run(tool, "bff", *common, "--output-directory", f"{work}/notes", "--annotate", *options)
        kept = {d["id"]: d["text"] for d in lines_of(f"{work}/kept/a.jsonl")}
        notes = {d["id"]: d.get("bff_duplicate_spans") for d in lines_of(f"{work}/notes/a.jsonl")}
    out = []
    for i, text in enumerate(docs):
        spans = notes.get(i) or []
        assert i not in kept or kept[i] == cut(text, spans), (i, kept[i], spans)
        out.append(spans if i in kept else None)
    return out


def bff(tool, docs, megabytes, *options):
    with tempfile.TemporaryDirectory() as work:
        with gzip.open(f"{work}/a.jsonl.gz", "wt") as out:
            out.write(numbered(docs))
        results = []
        for note in ((), ("--annotate-only",)):
            os.mkdir(f"{work}/out{len(results)}")
            run(tool, "--bloom-filter-file", f"{work}/f{len(results)}", "--bloom-filter-size", str(megabytes * 2**20),
                "--expected-ngram-count", str(megabytes * 2**20 // 6), "-t", "1", *options, *note, "-o", f"{work}/out{len(results)}", f"{work}/a.jsonl.gz")
            results.append(lines_of(f"{work}/out{len(results)}/a.jsonl.gz"))
    kept, notes = results
    assert [d["id"] for d in kept] == list(range(len(docs)))
    for text, d, note in zip(docs, kept, notes):
        assert d["text"] == cut(text, note["bff_duplicate_spans"])
    return [note["bff_duplicate_spans"] for note in notes]


def dolma(tool, docs, megabytes, *options):
    """dolma's spans are characters from the start of a paragraph to after its newline: told as the paragraphs above."""
    with tempfile.TemporaryDirectory() as work:
        os.mkdir(f"{work}/documents")
        with open(f"{work}/documents/a.jsonl", "w") as out:
            out.write(numbered(docs))
        run(tool, "dedupe", "--documents", f"{work}/documents/*.jsonl", "--bloom_filter.file", f"{work}/filter",
            "--bloom_filter.size_in_bytes", str(megabytes * 2**20), "--no-bloom_filter.read_only", "--bloom_filter.estimated_doc_count",
            str(megabytes * 2**20 // 6), "--processes", "1", "--dedupe.name", "x", *options)
        spans = [d["attributes"].get("x") or [] for d in lines_of(f"{work}/attributes/x/a.jsonl")]
    assert len(spans) == len(docs)
    out = []
    for text, found in zip(docs, spans):
        if "--dedupe.documents.key" in options:
            out.append([[0, len(text.encode())]] if found else [])
            continue
        # Where dolma says that a paragraph begins: after the last newline of an ASCII text it counts one character less.
        starts, offset = [], 0
        for part in text.split("\n"):
            starts.append(offset)
            offset += len(part)
            offset += offset < len(text.encode()) - 1
        todo = [f[0] for f in found]
        windows = []
        for start, window in zip(starts, paragraphs(text)):
            if todo and todo[0] == start:
                windows.append(window)
                del todo[0]
        assert not todo, (text, starts, found)
        out.append(windows)
    return out


def c4(docs):
    """The rules of C4 (tensorflow_datasets/text/c4_utils.py) in plain Python: each line stays in one page, which is the first here."""
    page_of = {}
    for page, text in enumerate(docs):
        for row in text.split("\n"):
            page_of.setdefault(row.strip().lower(), page)
    out = []
    for page, text in enumerate(docs):
        kept, cut_rows, seen = [], [], set()
        for row, window in zip(text.split("\n"), paragraphs(text)):
            key = row.strip().lower()
            if page_of[key] != page or key in seen:
                cut_rows.append(window)
            else:
                kept.append(row)
                seen.add(key)
        out.append(cut_rows if "\n".join(kept).strip() else None)
    return out


NGRAM = ("--dedupe.paragraphs.attribute_name", "x", "--dedupe.paragraphs.by_ngram.stride", "1")


def results(dclm_tool, bff_tool, dolma_tool):
    thirteen = ("--min-ngram-size", "13", "--max-ngram-size", "13")
    modes = {}
    for mode in ("paragraph", "document", "old-both"):
        modes[f"dclm-{mode}-20"] = (dclm, dclm_tool, "--remove-type", mode)
        modes[f"dclm-{mode}-13"] = (dclm, dclm_tool, "--remove-type", mode, *thirteen)
        modes[f"dclm-{mode}-5-13-half"] = (dclm, dclm_tool, "--remove-type", mode, "--min-ngram-size", "5", "--max-ngram-size", "13", "--filtering-threshold", "0.5")
    modes["dclm-exact"] = (dclm, dclm_tool, "--remove-type", "exact")
    modes["bff-paragraph"] = (bff, bff_tool)
    modes["bff-document"] = (bff, bff_tool, "--whole-document")
    modes["bff-whole-paragraph"] = (bff, bff_tool, "--whole-paragraphs")
    modes["dolma-paragraph"] = (dolma, dolma_tool, "--dedupe.paragraphs.attribute_name", "x")
    for n, threshold in ((13, "0.8"), (5, "0.5"), (13, "1.0")):
        modes[f"dolma-ngram-{n}-{threshold}"] = (dolma, dolma_tool, *NGRAM, "--dedupe.paragraphs.by_ngram.ngram_length", str(n),
                                                "--dedupe.paragraphs.by_ngram.overlap_threshold", threshold)
    modes["dolma-document"] = (dolma, dolma_tool, "--dedupe.documents.attribute_name", "x", "--dedupe.documents.key", "$.text")
    docs = [d["text"] for d in lines_of(DOCUMENTS)]
    modes["c4-line"] = (lambda _, docs, *__: c4(docs), None)
    with open(os.path.join(HERE, "results.jsonl"), "w") as out:
        for name, (function, tool, *options) in modes.items():
            found = function(tool, docs, 64, *options)
            assert found == function(tool, docs, 24, *options), f"{name}: another filter gave another result"
            out.write(json.dumps({"mode": name, "cut": found}, separators=(",", ":")) + "\n")
            print(f"{name:24} dropped {sum(s is None for s in found):4}  cut {sum(len(s or []) for s in found):4}")


if __name__ == "__main__":
    {"documents": documents, "results": results}[sys.argv[1]](*sys.argv[2:])
