"""What `bloomline dedup` promises in its help, in plain Python: the tests compare the outputs of the two.

Inputs are plain files. The keys of URLs are not made here: --keys names a file with the key of each line.
"""

import argparse
import json
import re
import sys


class NoKey(Exception):
    pass


class Number(str):
    """A number as it is written."""


def not_json(text):
    raise ValueError(text)


def member(value, token):
    name = token.replace("~1", "/").replace("~0", "~")
    if isinstance(value, dict) and name in value:
        return value[name]
    is_index = token.isascii() and token.isdigit() and str(int(token)) == token
    if isinstance(value, list) and is_index and int(token) < len(value):
        return value[int(token)]
    raise NoKey


def canonical(value):
    """One text for all spellings of a value."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(name) + ":" + canonical(value[name]) for name in sorted(value)) + "}"
    return json.dumps(value)


def json_value(line, pointer):
    try:
        value = json.loads(line.decode(), parse_int=Number, parse_float=Number, parse_constant=not_json)
    except ValueError:
        raise NoKey
    for token in pointer.split("/")[1:]:
        value = member(value, token)
    return value


def lower(key):
    try:
        return key.decode().lower().encode()
    except ValueError:
        return key.lower()


def csv_fields(line, delimiter):
    fields, rest, found = [], line.removesuffix(b"\r"), True
    while found:
        quoted = re.match(rb'"((?:[^"]|"")*)"(?!")', rest)
        if rest.startswith(b'"') and not quoted:
            raise NoKey
        content = quoted[1].replace(b'""', b'"') if quoted else b""
        more, found, rest = rest[quoted.end() if quoted else 0 :].partition(delimiter)
        fields.append(content + more)
    return fields


def parts_of(line, options, known):
    """The parts of the key: of each, its bytes and whether it is text."""
    if known is not None:
        return [(next(known), True)]
    if options.field:
        delimiter = options.delimiter or ("," if options.csv else "\t")
        delimiter = {"\\t": "\t", "\\0": "\0", "\\\\": "\\"}.get(delimiter, delimiter).encode()
        fields = csv_fields(line, delimiter) if options.csv else line.split(delimiter)
        numbers = [part.split("-") for text in options.field for part in text.split(",")]
        numbers = [number for ends in numbers for number in range(int(ends[0]), int(ends[-1]) + 1)]
        if max(numbers) > len(fields):
            raise NoKey
        return [(fields[number - 1], True) for number in numbers]
    if options.json_pointer:
        values = [json_value(line, pointer) for pointer in options.json_pointer]
        is_text = [isinstance(value, str) and not isinstance(value, Number) for value in values]
        return [((value if text else canonical(value)).encode(), text) for value, text in zip(values, is_text)]
    return [(line, True)]


def key_of(line, options, known):
    parts = parts_of(line, options, known)
    if options.trim:
        parts = [(part.strip(), text) for part, text in parts]
    if options.ignore_case:
        parts = [(lower(part), text) for part, text in parts]
    return tuple(parts)


def lines_of(path, end):
    with open(path, "rb") as file:
        lines = file.read().split(end)
    return lines if lines[-1] else lines[:-1]


def texts_of(path, end):
    """The lines, and of each what its key is made from: a byte order mark at the start of a file is no part of it."""
    for number, line in enumerate(lines_of(path, end)):
        yield line, line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--field", action="append")
    parser.add_argument("--delimiter")
    parser.add_argument("--json-pointer", action="append")
    parser.add_argument("--keys")
    for flag in ["--csv", "--trim", "--ignore-case", "--invert", "--annotate", "--total"]:
        parser.add_argument(flag, action="store_true")
    parser.add_argument("-z", action="store_true")
    parser.add_argument("--on-error", default="fail")
    parser.add_argument("--dupes")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()

    end = b"\0" if options.z else b"\n"
    known = options.keys and iter(lines_of(options.keys, b"\n"))
    seen, printed, dropped, code = set(), [], [], 0
    for line, text in (pair for path in options.files for pair in texts_of(path, end)):
        try:
            key = key_of(text, options, known)
            new = key not in seen
            seen.add(key)
        except NoKey:
            if options.on_error == "fail":
                code = 2
                break
            if options.on_error == "skip":
                continue
            new = True
        if options.annotate:
            printed.append((b"new\t" if new else b"dup\t") + line)
        elif new != options.invert:
            printed.append(line)
        if not new:
            dropped.append(line)

    if options.dupes:
        with open(options.dupes, "wb") as file:
            file.write(b"".join(line + end for line in dropped))
    if options.total:
        print(len(printed))
    else:
        sys.stdout.buffer.write(b"".join(line + end for line in printed))
    return code


sys.exit(main())
