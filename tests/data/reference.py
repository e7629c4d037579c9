"""What `bloomline dedup` promises in its help, in plain Python: the tests compare the outputs of the two.

Inputs are plain files. The keys of URLs are not made here: --keys names a file with the key of each line.
"""

import argparse
import csv
import json
import re
import sys


class NoKey(Exception):
    pass


class Number(str):
    """A number as it is written, and equal to each that has its value: its digits without zeros at both ends, and the exponent."""

    def value(self):
        digits, _, exponent = self.lower().partition("e")
        whole, _, fraction = digits.lstrip("-").partition(".")
        digits = (whole + fraction).lstrip("0")
        shorter = digits.rstrip("0")
        if not shorter:
            return "0"
        exponent = int(exponent or 0) - len(fraction) + len(digits) - len(shorter)
        return f"{'-' * self.startswith('-')}{shorter}e{exponent}"


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
        return value.value()
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


def csv_rows(text, end, delimiter):
    """The records of CSV in a text: of each its bytes without the end, its fields, and whether it ends at all.

    Characters of the private use area stand for bytes that end a line for the module csv, and no record here.
    """
    text = text.decode("latin-1").translate({10: 0xE001, 13: 0xE000})
    lines = [line + "\n" for line in text.split(end.decode().replace("\n", "\ue001"))]
    if lines[-1] == "\n":
        lines.pop()

    def bytes_of(text):
        return text.translate({10: ord(end), 0xE000: 13, 0xE001: 10}).encode("latin-1")

    # What an open record is followed by becomes a part of it.
    reader = csv.reader(lines + ["last"], delimiter=delimiter.decode("latin-1"))
    rows, taken = [], 0
    for fields in reader:
        line = "".join(lines[taken : reader.line_num])
        is_open = reader.line_num > len(lines) and fields != ["last"]
        if taken < len(lines):
            rows.append((bytes_of(line)[:-1], [bytes_of(field) for field in fields or [""]], not is_open))
        taken = reader.line_num
    return rows


def is_strict(row, delimiter, end):
    """Whether no text follows the quote that ends a field, and no carriage return stands outside of quotes."""
    delimiter = re.escape(delimiter)
    returns = rb"\r" if end == b"\n" else b""
    field = rb'(?:"(?:[^"]|"")*"|(?!")[^' + delimiter + returns + rb"]*)"
    return re.fullmatch(field + b"(?:" + delimiter + field + b")*", row) is not None


def delimiter_of(options):
    delimiter = options.delimiter or ("," if options.csv else "\t")
    return {"\\t": "\t", "\\0": "\0", "\\\\": "\\"}.get(delimiter, delimiter).encode()


def fields_of(line, options, end):
    if not options.csv:
        return line.split(delimiter_of(options))
    rows = csv_rows(line, end, delimiter_of(options))
    if not rows:
        return [b""]
    _, fields, is_whole = rows[0]
    if not is_whole:
        raise NoKey
    return fields


def chosen(fields, picks, names):
    """The fields that --field chooses."""
    for pick in picks:
        first, dash, last = pick.partition("-")
        if not pick.replace("-", "").isdigit():
            number = names.index(pick.encode()) + 1
            first, last = number, number
        elif not dash:
            first, last = int(pick), int(pick)
        else:
            first = int(first or 1)
            last = int(last) if last else max(first, len(fields))
        if last > len(fields):
            raise NoKey
        yield from fields[first - 1 : last]


def parts_of(line, options, known, names, end):
    """The parts of the key: of each, its bytes and whether it is text."""
    if known is not None:
        return [(next(known), True)]
    if options.field:
        picks = ",".join(options.field).split(",")
        return [(field, True) for field in chosen(fields_of(line, options, end), picks, names)]
    if options.json_pointer:
        values = [json_value(line, pointer) for pointer in options.json_pointer]
        is_text = [isinstance(value, str) and not isinstance(value, Number) for value in values]
        return [((value if text else canonical(value)).encode(), text) for value, text in zip(values, is_text)]
    return [(line, True)]


def key_of(line, options, known, names, end):
    parts = parts_of(line, options, known, names, end)
    if options.trim:
        parts = [(part.strip() if text else part, text) for part, text in parts]
    if options.ignore_case:
        parts = [(lower(part) if text else part, text) for part, text in parts]
    return tuple(parts)


def lines_of(path, end):
    with open(path, "rb") as file:
        lines = file.read().split(end)
    return lines if lines[-1] else lines[:-1]


MARK = b"\xef\xbb\xbf"


def texts_of(path, end, options):
    """The lines; of each what its key is made from; whether it may have one, or `None` where its file is broken; and whether a byte order
    mark is before it, at the start of a file."""
    if options.csv:
        with open(path, "rb") as file:
            contents = file.read()
        mark = MARK if contents.startswith(MARK) else b""
        rows = csv_rows(contents[len(mark) :], end, delimiter_of(options))
        if mark and not rows:
            rows = [(b"", [b""], True)]
        delimiter = delimiter_of(options)
        for number, (row, _, is_whole) in enumerate(rows):
            text = row.removesuffix(b"\r")
            may_have = is_strict(text, delimiter, end) if is_whole else False if options.on_error == "keep" else None
            yield row, text, may_have, bool(mark) and number == 0
        return
    for number, line in enumerate(lines_of(path, end)):
        marked = number == 0 and line.startswith(MARK)
        line = line[len(MARK) :] if marked else line
        yield line, line.removesuffix(b"\r") if options.eol else line, True, marked


def inputs_of(options, end):
    """All lines as above, each with the names of the fields in its file; and the headers, which have no text."""
    for path in options.files:
        names = None
        for number, (line, text, is_whole, marked) in enumerate(texts_of(path, end, options)):
            if options.header and number == 0:
                names = fields_of(text, options, end)
                yield line, None, True, marked, names
            else:
                # A record of CSV has as many fields as its header.
                if options.csv and is_whole and names is not None:
                    is_whole = len(fields_of(text, options, end)) == len(names)
                yield line, text, is_whole, marked, names


def output_of(printed, end):
    """What is printed: of each line, whether it has a mark, what stands before it, and the line. A mark is at the start alone, and there
    is one if the first line begins like one."""
    output = b"".join(before + line + end for _, before, line in printed)
    return MARK + output if printed and (printed[0][0] or output.startswith(MARK)) else output


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--field", action="append")
    parser.add_argument("--delimiter")
    parser.add_argument("--json-pointer", action="append")
    parser.add_argument("--keys")
    flags = ["--csv", "--header", "--skip-blank", "--trim", "--ignore-case", "--invert", "--annotate", "--total"]
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    parser.add_argument("-z", action="store_true")
    parser.add_argument("--on-error", default="fail")
    parser.add_argument("--eol", choices=["keep"])
    parser.add_argument("--dupes")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()

    end = b"\0" if options.z else b"\n"
    known = options.keys and iter(lines_of(options.keys, b"\n"))
    seen, printed, dropped, code = set(), [], [], 0
    header = []
    for line, text, is_whole, marked, names in inputs_of(options, end):
        if text is None:
            header = header or [(marked, b"", line)]
            continue
        if options.skip_blank and not text.strip(b" \t\n\r\x0c"):
            continue
        if is_whole is None and options.on_error == "skip":
            code = 1
            continue
        try:
            if not is_whole:
                raise NoKey
            key = key_of(text, options, known, names, end)
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
            printed.append((marked, b"new\t" if new else b"dup\t", line))
        elif new != options.invert:
            printed.append((marked, b"", line))
        if not new:
            dropped.append((marked, b"", line))

    if options.dupes:
        with open(options.dupes, "wb") as file:
            file.write(output_of(header + dropped, end))
    if options.total:
        print(len(printed))
    else:
        if options.annotate:
            header = [(marked, b"mark\t", line) for marked, _, line in header]
        sys.stdout.buffer.write(output_of(header + printed, end))
    return code


sys.exit(main())
