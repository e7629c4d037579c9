"""Tests of few words: recall, precision and time of `bloomline corpus --against`, in five languages and in code.

`against.py` runs this. It makes three sets of items and documents. Rules are chosen by the first two. The third decides, and no rule
is ever chosen by it:

first    sentences of 5 to 12 words (6 to 20 characters of Japanese and Chinese), from each eighth piece of Debian's handbook,
         reference and installation guide; documents are the other pieces, of four paragraphs; lines of Django and Go
second   headings, list items and other short paragraphs of each fifth page of GIMP's and LibreOffice's help; documents are the
         other pages, up to twelve paragraphs; lines of Ruby and Boost
third    sentences of each sixth manual page; documents are the other pages, up to eight paragraphs; lines of Perl and GTK

An item is planted within paragraphs of six documents: unchanged, and with the changes of CHANGES. Each third item has an answer,
its last word or two; the rest is its text. One more document for each item, the near miss, must be kept:

rule     a rule of punctuation that is part of the test
phrase   half of the item's words, the run that is most frequent in the documents
answer   the item with another answer

A removal is correct if the item was planted in the document, or if the document has all its words in a row as they are counted
here. Items of four words (four or five characters) are planted unchanged and in another case, and counted apart.
"""

import gzip
import hashlib
import json
import random
import re
import resource
import subprocess
import unicodedata
from collections import Counter
from typing import NamedTuple

from corpus import decoded, of_html

WIDE = {"ja", "zh"}
ITEMS = 150
CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
# An apostrophe within a word is part of it, and in wide scripts each character is a word.
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
RULES = ["|---|:---:|---|---|---|---|", "─" * 20, "* * * * * * * * * * * * * * *", "=" * 30, "• ‣ • ‣ • ‣ • ‣ • ‣ • ‣ • ‣"]
FIRST = {
    "en": ["debian-handbook/**/html/en-US", "debian-reference-en/usr/share/debian-reference", "installation-guide-amd64/**/en"],
    "de": ["debian-handbook/**/html/de-DE", "debian-reference-de/usr/share/debian-reference", "installation-guide-amd64/**/de"],
    "fr": ["debian-handbook/**/html/fr-FR", "debian-reference-fr/usr/share/debian-reference", "installation-guide-amd64/**/fr"],
    "ja": ["debian-handbook/**/html/ja-JP", "debian-reference-ja/usr/share/debian-reference", "installation-guide-amd64/**/ja"],
    "zh": ["debian-handbook/**/html/zh-CN", "debian-reference-zh-cn/usr/share/debian-reference", "installation-guide-amd64/**/zh_CN"],
    "code": ["python3-django/usr/lib/python3/dist-packages/django", "golang-1.19-src/usr/share/go-1.19/src"],
}
SECOND = {
    "en": ["gimp-help-en", "libreoffice-help-en-us"],
    "de": ["gimp-help-de", "libreoffice-help-de"],
    "fr": ["gimp-help-fr", "libreoffice-help-fr"],
    "ja": ["gimp-help-ja", "libreoffice-help-ja"],
    "zh": ["gimp-help-zh-cn", "libreoffice-help-zh-cn"],
    "code": ["libruby3.1", "libboost1.74-dev/usr/include/boost/asio"],
}
THIRD = {
    "en": ["manpages/usr/share/man", "manpages-dev/usr/share/man"],
    "de": ["manpages-de/usr/share/man/de"],
    "fr": ["manpages-fr/usr/share/man/fr"],
    "ja": ["manpages-ja/usr/share/man/ja"],
    "zh": ["manpages-zh/usr/share/man/zh_CN"],
    "code": ["perl-modules-5.36/usr/share/perl", "libgtk-3-dev/usr/include/gtk-3.0/gtk"],
}


class Rule(NamedTuple):
    """A set: its files and seed, the share of pages or of pieces that is held out for items, and the paragraphs of a document."""

    paths: dict
    seed: str
    holds_pages: bool
    one_of: int
    takes_sentences: bool
    size: int


SETS = {
    "first": Rule(FIRST, "False", False, 8, True, 4),
    "second": Rule(SECOND, "True", True, 5, False, 12),
    "third": Rule(THIRD, "third", True, 6, True, 8),
}
CODE = (".py", ".go", ".rb", ".hpp", ".pm", ".h")
PROSE = (".html", ".gz")
PACKAGES = {path.split("/")[0] for rule in SETS.values() for paths in rule.paths.values() for path in paths}


def words(text, language):
    """In NFKC, without case; punctuation and symbols separate words, and a wide character is one."""
    text = unicodedata.normalize("NFKC", text).casefold()
    if language in WIDE:
        text = CJK.sub(r" \g<0> ", text)
    return WORD.findall(text.replace("’", "'"))


def spans(text, language):
    """The words of a text where they are."""
    pattern = re.compile(f"{CJK.pattern}|(?:(?!{CJK.pattern})[^\\W_])+") if language in WIDE else WORD
    return [match.span() for match in pattern.finditer(text)]


def of_manual(page):
    """The paragraphs of a manual page in troff, without headings and what is set as typed."""
    page = re.sub(r"(?ms)^\.(?:nf|EX|TS).*?^\.(?:fi|EE|TE)|^[.']\\\".*?$|^\.(?:SH|SS|TH|Sh|Ss|Dd|Dt|Os) .*?$", ".PP", page)
    page = re.sub(r"(?m)^[.'] *(?:[BIR]{1,2}|SM|SB) +(.*)$", lambda line: line[1].replace('"', ""), page)
    page = re.sub(r"(?m)^[.'].*$", "\0", page)
    page = re.sub(r"\\f(?:\(..|\[.*?\]|.)|\\[&/,:%|^]|\\s[-+]?\d|\\\*\(..", "", page)
    page = page.replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\").replace("\\~", " ").replace("\\ ", " ")
    return [" ".join(re.sub(r"\\(?:\(..|\[.*?\])", " ", part).split()) for part in page.split("\0")]


def paragraphs(path, language):
    data = path.read_bytes()
    if language == "code":
        return [line.rstrip() for line in decoded(data).split("\n") if line.strip()]
    parts = of_manual(decoded(gzip.decompress(data))) if path.suffix == ".gz" else of_html(decoded(data))
    return [p for p in parts if len(words(p, language)) > 3]


def pages(root, paths, language):
    for where in paths:
        for folder in sorted(root.glob(where)):
            found = (path for path in sorted(folder.rglob("*")) if path.suffix in (CODE if language == "code" else PROSE))
            yield from (own for path in found if path.is_file() and (own := paragraphs(path, language)))


def sentences(paragraph):
    return re.split(r"(?<=[.!?]) |(?<=。)", paragraph)


def fits(text, language, least, most):
    """True if a text is of the language, and of so many words."""
    count = len(words(text, language))
    return least <= count <= most and (language not in WIDE or 2 * len(CJK.findall(text)) > len(text))


def of_set(root, rule, language, limit):
    """The texts that may be items, and the documents, as lists of lines."""
    items, documents = [], []
    size = 40 if language == "code" else rule.size
    number = 0
    for page in pages(root, rule.paths[language], language):
        held = hashlib.md5("\n".join(page).encode()).digest()[0] % rule.one_of == 0
        for i in range(0, len(page), size):
            number += 1
            piece = page[i : i + size]
            if held if rule.holds_pages else number % rule.one_of == 0:
                items += [s for p in piece for s in sentences(p)] if rule.takes_sentences and language != "code" else piece
            else:
                documents.append(piece)
    # A page of code is known by its first lines, and a set of code has no more documents than others.
    if len(documents) > limit:
        random.shuffle(documents)
        documents = documents[:limit]
    return sorted({" ".join(item.split()) for item in items}), documents


def changed_case(text, *_):
    return random.choice([str.upper, str.title, str.swapcase])(text)


def changed_punctuation(text, *_):
    def of(mark):
        return mark[0] if random.random() < 0.4 else random.choice([" ", " - ", "; ", "! "])

    return re.sub(r"(?<=\w)['’](?=\w)|[^\w\s]|_", lambda mark: mark[0] if mark[0] in "'’" else of(mark), text)


def changed_space(text, *_):
    text = re.sub(r"(?<=[^\w\s'’])(?=\w)|(?<=\w)(?=[^\w\s'’])", lambda _: random.choice(["", "", " "]), text)
    return re.sub(" ", lambda _: random.choice([" ", "  ", "\u00a0", "\n", "\n    "]), text)


def changed_word(text, language, others):
    """One word is another, but not of the answer. In wide scripts this is one character, or two of ten and more."""
    found = spans(text, language)
    count = 2 if language in WIDE and len(found) >= 10 else 1
    at = random.randrange(len(found) - count + 1)
    (start, _), (_, end) = found[at], found[at + count - 1]
    return text[:start] + "".join(random.choice(others) for _ in range(count)) + text[end:]


def all_but_words(text, *_):
    return changed_space(changed_punctuation(changed_case(text)))


CHANGES = {
    "none": lambda text, *_: text,
    "case": changed_case,
    "punctuation": changed_punctuation,
    "space": changed_space,
    "these": all_but_words,
    "word": changed_word,
}


def planted_in(document, text, language):
    """A copy of the document with the text within it: in code a line, otherwise between words of a paragraph."""
    document = list(document)
    at = random.randrange(len(document))
    if language == "code":
        indent = re.match(r"\s*", document[at])[0]
        return "\n".join([*document[:at], indent + text, *document[at:]])
    found = spans(document[at], language)
    cut = found[random.randrange(len(found))][0]
    space = "" if language in WIDE else " "
    document[at] = document[at][:cut] + space + text + space + document[at][cut:]
    return "\n".join(document)


def has_run(these, run):
    return any(these[i : i + len(run)] == run for i in range(len(these) - len(run) + 1))


class Planted:
    """Items, and documents with what is planted in each: the number of the item and the change or the near miss."""

    def __init__(self, root, language, name, least, most, count, changes, limit=8000):
        random.seed(f"{language} {SETS[name].seed} {least}")
        self.language = language
        texts, documents = of_set(root, SETS[name], language, limit)
        parts = [words("\n".join(document), language) for document in documents]
        texts = [text for text in texts if fits(text, language, least, most)]
        random.shuffle(texts)
        runs = Counter(tuple(these[i : i + n]) for these in parts for n in (2, 3, 4, 5, 6) for i in range(len(these) - n + 1))
        joined = [f" {' '.join(these)} " for these in parts]
        everything = "\n".join(joined)
        chosen = []
        for text in texts:
            # What other documents say, too, is a phrase and no test.
            if len(chosen) < count and f" {' '.join(words(text, language))} " not in everything:
                chosen.append(text)
        others = [text[a:b] for text in texts for a, b in spans(text, language)]
        self.items, self.rows = [], []
        self.rows += [("\n".join(document), None, None) for document in documents]
        answers = []
        for text in chosen:
            found = spans(text, language)
            last = 3 if language in WIDE else 1 + (len(found) > 8)
            answers.append(text[found[-last][0] :])
        for i, text in enumerate(chosen):
            found = spans(text, language)
            has_answer = i % 3 == 2 and len(found) >= least + 3
            cut = text.rindex(answers[i]) if has_answer else len(text)
            item = {"text": text[:cut].strip(), "whole": text}
            if has_answer:
                item["answer"] = text[cut:]
            if i % 3 == 0:
                item["whole"] = item["text"] = text + "\n" + random.choice(RULES)
            self.items.append(item)
            for change in changes:
                of = CHANGES[change](text[:cut], language, others) + (CHANGES[change](text[cut:]) if has_answer and change != "word" else text[cut:])
                self.rows.append((planted_in(random.choice(documents), of, language), i, change))
            if i % 3 == 0:
                miss = "rule", random.choice(RULES)
            elif has_answer:
                other = random.choice([answer for answer in answers if words(answer, language) != words(answers[i], language)])
                miss = "answer", text[:cut] + other
            else:
                these, half = words(text, language), max(2, len(found) // 2)
                at = max(range(len(found) - half + 1), key=lambda at: runs[tuple(these[at : at + min(half, 6)])])
                miss = "phrase", text[found[at][0] : found[at + half - 1][1]]
            self.rows.append((planted_in(random.choice(documents), miss[1], language), None, miss[0]))
        self.changes = changes

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        lines = lambda rows: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / "tests.jsonl").write_text(lines({k: item[k] for k in ("text", "answer") if k in item} for item in self.items))
        (folder / "whole.jsonl").write_text(lines({"text": item["whole"]} for item in self.items))
        (folder / "documents.jsonl").write_text(lines({"id": i, "text": text} for i, (text, _, _) in enumerate(self.rows)))

    def counts(self, gone):
        """Recall by change, near misses that were removed, other documents, those removed, and precision."""
        recall = {change: [] for change in self.changes}
        misses, others, wrong, right = Counter(), 0, 0, 0
        runs = [words(item["whole"], self.language) for item in self.items]
        for i, (text, item, what) in enumerate(self.rows):
            is_gone = i in gone
            if item is not None:
                recall[what].append(is_gone)
                right += is_gone
                continue
            others += what is None
            if is_gone:
                these = words(text, self.language)
                if any(has_run(these, run) for run in runs):
                    right += 1
                else:
                    misses[what or "other"] += 1
                    wrong += 1
        found = [is_gone for own in recall.values() for is_gone in own]
        return {
            "recall": sum(found) / len(found),
            "precision": right / max(1, right + wrong),
            "others": misses["other"] / others,
            "documents": others,
            "by change": {change: sum(own) / len(own) for change, own in recall.items()},
            "near misses": {kind: n for kind, n in misses.items() if kind != "other"},
        }


def timed(command):
    """The output of a command, and its seconds of CPU."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = subprocess.run(command, capture_output=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return output, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def removed(command, documents):
    """The numbers of the documents that are removed, and the seconds of CPU."""
    output, seconds = timed(command)
    return set(range(documents)) - {int(line.split(b":", 1)[1].split(b",", 1)[0]) for line in output.splitlines()}, seconds


def told(counts):
    changes = ", ".join(f"{change} {share:.2f}" for change, share in counts["by change"].items())
    misses = ", ".join(f"{kind} {n}" for kind, n in counts["near misses"].items()) or "none"
    return (
        f"recall {counts['recall']:.3f}, precision {counts['precision']:.3f}, others {100 * counts['others']:.3f} % of "
        f"{counts['documents']} ({changes}; near misses removed: {misses})"
    )


def ngram(language):
    return ["--ngram", "20"] if language in WIDE else []


def short_tests(bloomline, folder, name):
    """Prints what is found of a set."""
    for language in FIRST:
        wide = language in WIDE
        planted = Planted(folder / "root", language, name, *((6, 20) if wide else (5, 12)), ITEMS, list(CHANGES))
        own = folder / f"{language}-{name}"
        planted.write(own)
        size = sum(len(text.encode()) for text, _, _ in planted.rows)
        command = [bloomline, "corpus", "-q", "-j1", *ngram(language), own / "documents.jsonl", "--against"]
        for which, options in [("whole", [own / "whole.jsonl"]), ("with answers", [own / "tests.jsonl", "--answer", "/answer"])]:
            gone, seconds = removed([*command, *options], len(planted.rows))
            print(f"{language} {which:12} {told(planted.counts(gone))}; {1e9 * seconds / size:.1f} µs a kB", flush=True)
        four = Planted(folder / "root", language, name, *((4, 5) if wide else (4, 4)), 50, ["none", "case"])
        four.write(own / "four")
        command = [bloomline, "corpus", "-q", *ngram(language), "--min-ngram", "4", own / "four/documents.jsonl"]
        gone, _ = removed([*command, "--against", own / "four/whole.jsonl"], len(four.rows))
        print(f"{language} of four     {told(four.counts(gone))}", flush=True)
