"""`corpus --normalize` beside the forms of crates/text/FORMAT.md, by Python's tables of Unicode."""

import json
import pathlib
import re
import tempfile
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import examples
from trips import bloomline

# White_Space of Unicode.
SPACE = {*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
# Default_Ignorable_Code_Point of Unicode, from its data.
IGNORABLE = {0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010)}
IGNORABLE |= {*range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0}
IGNORABLE |= {*range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)}
APOSTROPHES = "\u0027\u0060\u00b4\u02bb\u02bc\u2018\u2019\u201b\uff07"
SWITCHES = ["nfc", "nfkc", "case", "digits", "punctuation", "symbols", "ignorable", "space", "crlf", "katakana"]


def formed(text: str, switches: frozenset[str]) -> str:
    def composed(text: str) -> str:
        form = "NFKC" if "nfkc" in switches else "NFC" if "nfc" in switches else None
        return unicodedata.normalize(form, text) if form else text

    def without_symbol(c: str) -> str:
        stays = unicodedata.category(c)[0] in "LMN" or ord(c) in SPACE
        return "" if c in APOSTROPHES else c if stays else " "

    if "crlf" in switches:
        text = re.sub(r"\r(?=\n|\Z)", "", text)
    if "symbols" in switches:
        early = (unicodedata.category(c)[0] == "P" or unicodedata.category(c) == "Sk" for c in text)
        text = "".join(without_symbol(c) if now else c for c, now in zip(text, early))
    text = composed(text)
    if "case" in switches:
        text = text.casefold()
    if "digits" in switches:
        text = "".join("0" if unicodedata.category(c) == "Nd" else c for c in text)
    if "ignorable" in switches:
        text = "".join(c for c in text if ord(c) not in IGNORABLE)
    if "symbols" in switches:
        text = "".join(map(without_symbol, text))
    elif "punctuation" in switches:
        text = "".join(c for c in text if unicodedata.category(c)[0] != "P" and c not in "$+<=>^`|~")
    if "space" in switches:
        text = "".join(c for c in text if ord(c) not in SPACE)
    text = composed(text)
    return re.sub("[\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff]", r"\g<0> ", text) if "katakana" in switches else text


# Each word is followed by words that equal it in some form.
WORDS = [
    ["Straße ", "STRASSE ", "ｓtrasse "],
    ["\u00e9t\u00e9 ", "e\u0301te\u0301 ", "\u00c9T\u00c9 "],
    ["don't ", "don\u2019t ", "dont "],
    ["17 ", "42 ", "١٧ ", "๑๗ ", "①⑦ "],
    ["カタカナ", "ｶﾀｶﾅ"],
    ["\u30ac", "\u30ab\u3099", "ｶﾞ"],
    ["我喜欢，中文。", "我喜欢中文"],
    ["「日本語」です", "日本語です"],
    ["น้ำดื่ม", "น้\u0e4d\u0e32ดื่ม"],
    ["Привет, ", "ПРИВЕТ ", "привет\u00a0"],
    ["мо\u0439 ", "мо\u0438\u0306 "],
    ["مرحبا، ", "مرحبا ", "ﻣﺮﺣﺒﺎ "],
    ["\ud55c\uad6d ", "\u1112\u1161\u11ab\u1100\u116e\u11a8 "],
    ["हिन्दी १२ ", "हिन्दी ३४ "],
    ["👩\u200d👩\u200d👧 ", "👩👩👧 "],
    ["🇩🇪🇫🇷", "🇫🇷🇩🇪", "👍🏽", "👍"],
    ["ΣΊΣΥΦΟΣ ", "σίσυφος "],
    ["q\u0323\u0307 ", "q\u0307\u0323 ", "q-\u0307\u0323 "],
    ["a+b ", "ab ", "a b "],
    ["don\u00b4t ", "don`t ", "d\u00adon\u02bct "],
    ["\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 ", "\u0645\u06cc\u062e\u0648\u0627\u0647\u0645 "],
    ["e\u200b\u0301t\u00e9\ufeff ", "\u2500\u2500", "=\u0338", "5\u338f "],
    ["\r", "", " ", "\u3000"],
]

MODES = {
    "exact": ["--ngram", "0"],
    "exact-documents": ["--by", "document", "--ngram", "0"],
    "grams": ["--ngram", "2", "--min-ngram", "1", "--threshold", "0.5"],
    "grams-documents": ["--by", "document", "--ngram", "3", "--min-ngram", "1", "--threshold", "0.3"],
    "near": ["--near", "0.5"],
}

word = st.sampled_from(WORDS).flatmap(st.sampled_from)
paragraph = st.lists(word, max_size=6).map("".join)
end = st.sampled_from(["\n", "\r\n"])
text = st.tuples(st.lists(paragraph, min_size=1, max_size=4), end).map(lambda parts: parts[1].join(parts[0]))


@settings(max_examples=examples(40))
@given(st.lists(text, min_size=2, max_size=30), st.sets(st.sampled_from(SWITCHES), min_size=1), st.sampled_from(sorted(MODES)))
def test_texts_repeat_if_their_forms_repeat(texts: list[str], chosen: set[str], mode: str) -> None:
    switches = frozenset(chosen if mode.startswith("exact") else (chosen - {"space", "crlf"}) or {"case"})
    by_paragraph = mode in ("exact", "grams")

    def units(text: str) -> list[str]:
        return text.split("\n") if by_paragraph else [text]

    def noted(folder: pathlib.Path, texts: list[str], *options: str) -> list[tuple[int, int, list[int]]]:
        """The grams of each text, those that were found, and the numbers of the units that are cut."""
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (folder / "in.jsonl").write_text(lines, encoding="utf-8")
        told = bloomline(folder, "corpus", *MODES[mode], "--annotate", "-n", "10000", "-p", "1e-9", *options, "in.jsonl")
        notes = [json.loads(line)["bloomline"] for line in told.stdout.splitlines()]

        def number(text: str, start: int) -> int:
            return text.encode()[: start + 1].count(b"\n") if by_paragraph else 0

        return [
            (note["grams"], note["found"], [number(text, start) for start, _, share in note["spans"] if share > 0])
            for text, note in zip(texts, notes, strict=True)
        ]

    with tempfile.TemporaryDirectory() as name:
        found = noted(pathlib.Path(name), texts, "--normalize", ",".join(sorted(switches)))
        # The same with texts that are in their forms already.
        from_start = ["\n".join(formed(unit, switches) for unit in units(text)) for text in texts]
        assert found == noted(pathlib.Path(name), from_start)
