#!/usr/bin/env python3
"""Test texts found by `bloomline corpus --against`: recall and precision in five languages, for several values of --normalize.

    benches/against.py target/release/bloomline /tmp/against    # as root on Debian 12, after `apt-get update`

The texts are Debian's handbook, reference and installation guide in English, German, French, Japanese and Chinese. Each eighth
piece of a page is held out, and paragraphs of these are the tests. The other pieces are documents. A test is planted in
documents as it is and with changes that copies have. Some tests have a run of punctuation, such as the rule of a table, which
other documents have too, as they have some words of a test that are fewer than a gram.

Recall is the share of documents with a planted test that go. Precision is the share of what goes that has a planted test, or 13
equal words in a row (20 characters of Japanese and Chinese) as this program finds them: in NFKC, without case and invisible
characters, and without punctuation and symbols, which are deleted as lm-evaluation-harness and datatrove delete them. Grams have
as many words.

Tests of few words follow, by `against_short.py`.
"""

import json
import random
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import against_short
from against_short import short_tests
from corpus import decoded, of_html

LANGUAGES = {"en": ("en-US", "en"), "de": ("de-DE", "de"), "fr": ("fr-FR", "fr"), "ja": ("ja-JP", "ja"), "zh": ("zh-CN", "zh_CN")}
WIDE = {"ja", "zh"}
TESTS = 150
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e"
RULES = ["|---|:---:|---|---|---|---|", ". " * 20, "─" * 20, "* * * * * * * * * * * * * * *", "=" * 30, "• ‣ • ‣ • ‣ • ‣ • ‣ • ‣ • ‣"]
CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


def words(text, language):
    """Those of the field: what is deleted joins what was around it."""
    text = unicodedata.normalize("NFKC", text).casefold()
    kept = [c for c in text if c not in INVISIBLE and unicodedata.category(c)[0] not in "PS"]
    text = "".join(kept)
    return CJK.sub(r" \g<0> ", text).split() if language in WIDE else text.split()


def grams(text, language, n):
    these = words(text, language)
    return {tuple(these[i : i + n]) for i in range(len(these) - n + 1)}


def pieces(folder, language):
    """Pieces of pages: some paragraphs each."""
    handbook, guide = LANGUAGES[language]
    reference = "zh-cn" if language == "zh" else language
    roots = [
        f"debian-handbook/usr/share/doc/debian-handbook/html/{handbook}",
        f"debian-reference-{reference}/usr/share/debian-reference",
        f"installation-guide-amd64/usr/share/doc/installation-guide-amd64/{guide}",
    ]
    for root in roots:
        for path in sorted((folder / "root" / root).rglob("*.html")):
            own = []
            for paragraph in of_html(decoded(path.read_bytes())):
                wide = len(CJK.findall(paragraph))
                if len(paragraph) > (20 if language in WIDE else 60) and (language not in WIDE or 2 * wide > len(paragraph)):
                    own.append(paragraph)
            yield from (own[i : i + 4] for i in range(0, len(own), 4))


def changed_case(text):
    return random.choice([str.upper, str.title, str.lower])(text)


def changed_punctuation(text):
    """Each mark stays, is deleted, or is another one."""
    others = {"(": "[", ")": "]", "。": "．", "，": "、", "、": "，", "-": " ", "/": " ", ":": " –", "：": "—", ",": ";"}

    def of(c):
        kept = not unicodedata.category(c).startswith("P") or random.random() < 0.4
        return c if kept else random.choice(["", others.get(c, "!")])

    return "".join(map(of, text))


def changed_space(text):
    """Lines are broken, spaces are doubled or cannot be broken, and come or go beside dashes and wide characters."""
    text = re.sub(" ?([–—/]) ?", lambda dash: random.choice([dash[1], f" {dash[1]} "]), text)
    text = re.sub(r" ?([:;!?»])", lambda mark: random.choice(["", "\u00a0", "\u202f"]) + mark[1], text)
    text = re.sub("(?<=[\u3040-\u9fff])(?=[A-Za-z0-9])", lambda _: random.choice(["", " "]), text)
    text = re.sub(" ", lambda _: random.choice([" ", " ", " ", "  ", "\u00a0", "\n", "\n    "]), text)
    return re.sub("(?<=[\u3040-\u9fff])(?=[\u3040-\u9fff])", lambda _: "" if random.random() < 0.95 else "\n", text)


def typographic(text):
    quotes = random.choice(["“”", "«»", "„“", "「」"])
    text = re.sub('"([^"]*)"', lambda quoted: quotes[0] + quoted[1] + quotes[1], text)
    for plain, other in [("'", "’"), ("...", "…"), ("--", "—"), (" - ", " – "), ("-", "\u2010"), (" — ", "—")]:
        text = text.replace(plain, other)
    return text


def wide(text):
    """Ligatures; and letters, digits and marks of the other width."""
    ligatures = text.replace("fi", "ﬁ").replace("fl", "ﬂ")
    full = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
    return random.choice([ligatures, full])


def invisible(text):
    return "".join(c + random.choice(INVISIBLE) if random.random() < 0.1 else c for c in text)


def marked_up(text):
    """As Markdown and mail have it."""
    text = re.sub(r"\w{3,}", lambda word: random.choice(["{}"] * 5 + ["*{}*", "**{}**", "`{}`", "[{}](a)"]).format(word[0]), text)
    return "\n".join("> " + line for line in re.findall(r".{1,60}(?:\s|$)|.{60}", text, re.S))


CHANGES = {
    "none": str,
    "case": changed_case,
    "punctuation": changed_punctuation,
    "space, lines": changed_space,
    "quotes, dashes": typographic,
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "width, ligatures": wide,
    "invisible": invisible,
    "markup": marked_up,
    "all of these": lambda text: invisible(marked_up(changed_space(changed_punctuation(typographic(changed_case(text)))))),
}
FORMS = ["none", "case,punctuation", "text", "the default"]


def between(text, language, least, most):
    return least <= len(words(text, language)) <= most


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def gone(bloomline, folder, count, *options):
    """The numbers of the documents that go."""
    command = [bloomline, "corpus", "-q", "--against", folder / "tests.jsonl", *options, folder / "documents.jsonl"]
    told = subprocess.run(command, capture_output=True, check=True, text=True)
    return set(range(count)) - {json.loads(line)["id"] for line in told.stdout.splitlines()}


def of_language(bloomline, folder, language):
    """What was planted and found by the change, and what went and is right, for each form."""
    random.seed(language)
    n, least, most = (20, 30, 160) if language in WIDE else (13, 20, 90)
    held, rest = [], []
    for number, piece in enumerate(pieces(folder, language)):
        (held if number % 8 == 0 else rest).append(piece)
    found = [paragraph for piece in held for paragraph in piece if between(paragraph, language, least, most)]
    tests = random.sample(sorted(set(found)), TESTS)
    tests = [test + "\n" + random.choice(RULES) if i % 5 == 0 else test for i, test in enumerate(tests)]
    known = set().union(*(grams(test, language, n) for test in tests))
    documents, planted = [], []
    for piece in rest:
        documents.append("\n".join(piece))
        planted.append(None)
    for test in tests:
        # What is shared is a rule, or runs of words that are shorter than a gram.
        piece = random.choice(rest)
        documents.append("\n".join([*piece[:1], random.choice(RULES), *piece[1:]]))
        short = words(test, language)
        documents.append(" ".join([piece[0], *short[: n - 1], piece[-1], *short[-n + 1 :], piece[0]]))
        planted += [None, None]
        for change, of in CHANGES.items():
            piece = random.choice(rest)
            at = random.randrange(len(piece) + 1)
            documents.append("\n".join([*piece[:at], of(test), *piece[at:]]))
            planted.append(change)
    right = [p is not None or not known.isdisjoint(grams(d, language, n)) for d, p in zip(documents, planted)]
    lines(folder / "tests.jsonl", [{"text": test} for test in tests])
    lines(folder / "documents.jsonl", [{"id": i, "text": text} for i, text in enumerate(documents)])
    results = {}
    for form in FORMS:
        options = ["--ngram", str(n)] + (["--normalize", form] if form != "the default" else [])
        went = gone(bloomline, folder, len(documents), *options)
        recalls = [sum(planted[i] == change for i in went) / TESTS for change in CHANGES]
        results[form] = (recalls, len(went), sum(right[i] for i in went))
    return len(documents), results


def main():
    bloomline, folder = (Path(path).absolute() for path in sys.argv[1:])
    for name in ("debs", "root"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for package in sorted(against_short.PACKAGES):
        if not list((folder / "debs").glob(package + "_*.deb")):
            download = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "-qq", package]
            subprocess.run(download, cwd=folder / "debs", check=True)
        if not (folder / "root" / package).exists():
            (deb,) = (folder / "debs").glob(package + "_*.deb")
            subprocess.run(["dpkg", "-x", deb, folder / "root" / package], check=True)
    by_change = {}
    for language in LANGUAGES:
        count, results = of_language(bloomline, folder, language)
        for form, (recalls, went, right) in results.items():
            mean, precision = sum(recalls) / len(recalls), right / went
            print(f"{language} {form:16} recall {mean:.3f}, precision {precision:.3f} ({right} of {went}; {count} documents)")
            by_change.setdefault(form, []).append(recalls)
    print("mean recall:", ", ".join(CHANGES))
    for form, recalls in by_change.items():
        print(f"{form:16}", " ".join(f"{sum(these) / len(these):5.3f}" for these in zip(*recalls)))
    for name in against_short.SETS:
        print(f"short tests, the {name} set")
        short_tests(bloomline, folder, name)


if __name__ == "__main__":
    main()
