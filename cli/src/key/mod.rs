//! What the key of a line is: lines with equal keys are duplicates.

pub mod json;
pub mod url;

use crate::key::json::{Pointer, Unreadable};
use crate::key::url::normal_url;
use ::url::ParseError;
use bloomline::KeyHasher;
use memchr::{memchr, memmem};
use std::fmt;
use std::str::{Utf8Error, from_utf8};

/// Which part of a line is its key, and in which form.
#[derive(Clone)]
pub struct KeyRule {
    /// The part.
    pub part: Part,
    /// Without the ASCII white space around it.
    pub trim: bool,
    /// As a URL in its normal form.
    pub url: bool,
    /// In lower case: of Unicode where the key is UTF-8, of ASCII where it is not.
    pub ignore_case: bool,
}

/// The most bytes of a name, which the files of filters have room for.
const NAME_BYTES: usize = 1024;

/// A part of a line.
#[derive(Clone)]
pub enum Part {
    /// All of it, without its end.
    Line,
    /// What stands between delimiters, which are not empty. Numbers start at 1.
    Field { number: usize, delimiter: Vec<u8> },
    /// A value of a JSON document.
    Json(Pointer),
}

/// Why a line has no key.
#[derive(Debug, PartialEq)]
pub enum Fault {
    /// Too few fields.
    Field { number: usize, fields: usize },
    /// JSON and URLs are text.
    Utf8(Utf8Error),
    /// Not JSON, or a value that cannot be a key.
    Json(Unreadable),
    /// The document has no value there.
    NoValue { pointer: String },
    /// Not an absolute URL.
    Url(ParseError),
}

/// Memory for keys that have to be made, used again and again.
#[derive(Default)]
pub struct Scratch {
    json: String,
    url: Vec<u8>,
    lower: Vec<u8>,
}

impl KeyRule {
    /// Whether the key is the line as it stands.
    pub fn is_line(&self) -> bool {
        matches!(self.part, Part::Line) && !self.trim && !self.url && !self.ignore_case
    }

    /// A name for such keys. Other rules have other names. It has no control characters, and a long one ends in its hash.
    pub fn name(&self) -> String {
        let mut name = match &self.part {
            Part::Line => "line".to_owned(),
            Part::Field { number, delimiter } => {
                let delimiter = match &delimiter[..] {
                    b"\t" => "tab".to_owned(),
                    other => format!("'{}'", escaped(&String::from_utf8_lossy(other))),
                };
                format!("field {number} of lines split at {delimiter}")
            }
            Part::Json(pointer) => match &*escaped(&pointer.to_string()) {
                "" => "value of JSON lines".to_owned(),
                pointer => format!("{pointer} of JSON lines"),
            },
        };
        let steps =
            [(self.trim, ", trimmed"), (self.url, ", normal form of a URL"), (self.ignore_case, ", case ignored")];
        steps.iter().filter(|(taken, _)| *taken).for_each(|(_, step)| name += step);
        if name.len() > NAME_BYTES {
            let hash = KeyHasher::new(0).bytes(name.as_bytes());
            // Room for the three bytes of the dots, a space and the hash.
            let cut = (0..NAME_BYTES - 20).rfind(|&cut| name.is_char_boundary(cut)).unwrap_or(0);
            name = format!("{}… {hash:016x}", &name[..cut]);
        }
        name
    }

    /// The key of a line without its end: a part of the line where possible.
    pub fn key<'a>(&self, line: &'a [u8], scratch: &'a mut Scratch) -> Result<&'a [u8], Fault> {
        let mut key = match &self.part {
            Part::Line => line,
            Part::Field { number, delimiter } => field(line, *number, delimiter)?,
            Part::Json(pointer) => {
                let document = from_utf8(line).map_err(Fault::Utf8)?;
                let value = pointer.key(document, &mut scratch.json).map_err(Fault::Json)?;
                value.ok_or_else(|| Fault::NoValue { pointer: pointer.to_string() })?.as_bytes()
            }
        };
        if self.trim {
            key = key.trim_ascii();
        }
        if self.url {
            let text = from_utf8(key).map_err(Fault::Utf8)?;
            scratch.url = normal_url(text).map_err(Fault::Url)?;
            key = &scratch.url;
        }
        if self.ignore_case {
            key = lower(key, &mut scratch.lower);
        }
        Ok(key)
    }
}

/// The text on one line, with an escape for each control character, quote and backslash.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if character.is_control() || matches!(character, '\'' | '\\') {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn field<'a>(line: &'a [u8], number: usize, delimiter: &[u8]) -> Result<&'a [u8], Fault> {
    let find = |rest: &[u8]| match *delimiter {
        [byte] => memchr(byte, rest),
        _ => memmem::find(rest, delimiter),
    };
    let mut rest = line;
    for fields in 1..number {
        let end = find(rest).ok_or(Fault::Field { number, fields })?;
        rest = &rest[end + delimiter.len()..];
    }
    Ok(&rest[..find(rest).unwrap_or(rest.len())])
}

fn lower<'a>(key: &[u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    match from_utf8(key) {
        Ok(text) if !key.is_ascii() => *scratch = text.to_lowercase().into_bytes(),
        _ => {
            scratch.clear();
            scratch.extend_from_slice(key);
            scratch.make_ascii_lowercase();
        }
    }
    scratch
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field { number, fields: 1 } => write!(f, "there is no field {number}: the line has 1 field"),
            Self::Field { number, fields } => write!(f, "there is no field {number}: the line has {fields} fields"),
            Self::Utf8(error) => write!(f, "not UTF-8: {error}"),
            Self::Json(unreadable) => unreadable.fmt(f),
            Self::NoValue { pointer } => write!(f, "there is no value at {pointer:?}"),
            Self::Url(error) => write!(f, "not an absolute URL: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: KeyRule = KeyRule { part: Part::Line, trim: false, url: false, ignore_case: false };

    fn part_field(number: usize, delimiter: &[u8]) -> Part {
        Part::Field { number, delimiter: delimiter.to_vec() }
    }

    fn part_json(pointer: &str) -> Part {
        Part::Json(pointer.parse().unwrap())
    }

    fn key(rule: &KeyRule, line: impl AsRef<[u8]>) -> Result<Vec<u8>, Fault> {
        rule.key(line.as_ref(), &mut Scratch::default()).map(<[u8]>::to_vec)
    }

    fn bytes(text: impl AsRef<[u8]>) -> Result<Vec<u8>, Fault> {
        Ok(text.as_ref().to_vec())
    }

    #[test]
    fn only_plain_lines_are_lines() {
        assert!(LINE.is_line());
        assert!(!KeyRule { trim: true, ..LINE }.is_line());
        assert!(!KeyRule { url: true, ..LINE }.is_line());
        assert!(!KeyRule { ignore_case: true, ..LINE }.is_line());
        assert!(!KeyRule { part: part_field(1, b"\t"), ..LINE }.is_line());
        assert!(!KeyRule { part: part_json(""), ..LINE }.is_line());
    }

    #[test]
    fn lines_are_their_keys() {
        for line in [&b""[..], b" a\r", b"\xff\0"] {
            assert_eq!(key(&LINE, line), bytes(line));
        }
    }

    #[test]
    fn fields_are_those_of_cut() {
        let field = |number, delimiter: &str, line: &str| {
            key(&KeyRule { part: part_field(number, delimiter.as_bytes()), ..LINE }, line)
        };
        assert_eq!(field(1, "\t", "a\tb\tc"), bytes("a"));
        assert_eq!(field(2, "\t", "a\tb\tc"), bytes("b"));
        assert_eq!(field(3, "\t", "a\tb\tc"), bytes("c"));
        assert_eq!(field(4, "\t", "a\tb\tc"), Err(Fault::Field { number: 4, fields: 3 }));
        assert_eq!(field(1, ",", ",,"), bytes(""));
        assert_eq!(field(3, ",", ",,"), bytes(""));
        assert_eq!(field(4, ",", ",,"), Err(Fault::Field { number: 4, fields: 3 }));
        assert_eq!(field(1, ",", ""), bytes(""));
        assert_eq!(field(2, ",", ""), Err(Fault::Field { number: 2, fields: 1 }));
        assert_eq!(field(usize::MAX, ",", "a"), Err(Fault::Field { number: usize::MAX, fields: 1 }));
        assert_eq!(field(2, "::", "a:b::c:::d"), bytes("c"));
        assert_eq!(field(3, "::", "a:b::c:::d"), bytes(":d"));
        assert_eq!(field(2, "\u{2192}", "a\u{2192}b"), bytes("b"));
        assert_eq!(field(2, ",", "a, b\r"), bytes(" b\r"));
    }

    #[test]
    fn white_space_around_the_key_goes() {
        let rule = KeyRule { trim: true, ..LINE };
        assert_eq!(key(&rule, " \t\x0c\r\na b\r"), bytes("a b"));
        assert_eq!(key(&rule, ""), bytes(""));
        assert_eq!(key(&rule, " \r"), bytes(""));
        assert_eq!(key(&rule, b" \xff "), bytes(b"\xff"));
        // White space of Unicode only stays.
        assert_eq!(key(&rule, "\u{a0}a\u{3000}"), bytes("\u{a0}a\u{3000}"));
        // The key's, not the line's.
        assert_eq!(key(&KeyRule { part: part_field(2, b","), ..rule }, "a , b ,c"), bytes("b"));
        let rule = KeyRule { part: part_json("/a"), trim: true, ..LINE };
        assert_eq!(key(&rule, r#"{"a":"\n b\t"}"#), bytes("b"));
    }

    #[test]
    fn case_is_ignored() {
        let rule = KeyRule { ignore_case: true, ..LINE };
        assert_eq!(key(&rule, ""), bytes(""));
        assert_eq!(key(&rule, "aBC [1]"), bytes("abc [1]"));
        assert_eq!(key(&rule, "\u{c4}\u{410}A"), bytes("\u{e4}\u{430}a"));
        // A sigma at the end of a word has a form of its own.
        assert_eq!(key(&rule, "\u{39f}\u{3a3}"), bytes("\u{3bf}\u{3c2}"));
        assert_eq!(key(&rule, b"A\xc3\x84\xff"), bytes(b"a\xc3\x84\xff"));
    }

    #[test]
    fn urls_are_in_their_normal_form() {
        let rule = KeyRule { url: true, ..LINE };
        assert_eq!(key(&rule, " HTTP://Example.org.:80/%c3#a\r"), bytes("http://example.org/%C3"));
        assert_eq!(key(&rule, ""), Err(Fault::Url(ParseError::RelativeUrlWithoutBase)));
        assert_eq!(key(&rule, "example.org"), Err(Fault::Url(ParseError::RelativeUrlWithoutBase)));
        assert!(matches!(key(&rule, b"http://example.org/\xff"), Err(Fault::Utf8(_))));
    }

    #[test]
    fn json_values_are_keys() {
        let rule = KeyRule { part: part_json("/text"), ..LINE };
        assert_eq!(key(&rule, "{\"id\":1,\"text\":\"a\"}\r"), bytes("a"));
        assert_eq!(key(&rule, r#"{"text":"1"}"#), key(&rule, r#"{"text":1}"#));
        assert_eq!(key(&rule, r#"{"id":1}"#), Err(Fault::NoValue { pointer: "/text".to_owned() }));
        assert!(matches!(key(&rule, ""), Err(Fault::Json(_))));
        assert!(matches!(key(&rule, r#"{"text":"a","#), Err(Fault::Json(_))));
        // Invalid UTF-8 is no JSON, wherever it stands.
        for line in [&b"{\"text\":\"\xff\"}"[..], b"{\"text\":\"a\",\"b\":\"\xff\"}", b"{\"text\":\"a\"}\xff"] {
            assert!(matches!(key(&rule, line), Err(Fault::Utf8(_))));
        }
    }

    #[test]
    fn all_steps_go_in_order() {
        let rule = KeyRule { part: part_field(2, b"\t"), trim: true, url: true, ignore_case: true };
        assert_eq!(key(&rule, "1\t http://Example.org/\u{c4}/A#B \t2"), bytes("http://example.org/%c3%84/a"));
        let rule = KeyRule { part: part_json("/u"), ..rule };
        assert_eq!(key(&rule, r#"{"u":"\thttp:\/\/Example.org\/A"}"#), bytes("http://example.org/a"));
        // What one line leaves behind is not seen by the next.
        let mut scratch = Scratch::default();
        for (line, expected) in [
            (r#"{"u":"http:\/\/a.example\/LONGER"}"#, Some("http://a.example/longer")),
            (r#"{"u":"\n"}"#, None),
            (r#"{"u":"http:\/\/b.example"}"#, Some("http://b.example/")),
        ] {
            assert_eq!(rule.key(line.as_bytes(), &mut scratch).ok(), expected.map(str::as_bytes));
        }
    }

    #[test]
    fn names_are_read_with_ease() {
        let named = |part, trim, url, ignore_case| KeyRule { part, trim, url, ignore_case }.name();
        for (part, expected) in [
            (Part::Line, "line"),
            (part_field(2, b"\t"), "field 2 of lines split at tab"),
            (part_field(12, b", "), "field 12 of lines split at ', '"),
            (part_field(1, b"'\\\n\x1b"), r"field 1 of lines split at '\'\\\n\u{1b}'"),
            (part_json("/text"), "/text of JSON lines"),
            (part_json("/~1a\n/\u{e4}"), r"/~1a\n/ä of JSON lines"),
            (part_json(""), "value of JSON lines"),
        ] {
            assert_eq!(named(part.clone(), false, false, false), expected);
            let all = format!("{expected}, trimmed, normal form of a URL, case ignored");
            assert_eq!(named(part, true, true, true), all);
        }
        assert_eq!(named(Part::Line, true, false, false), "line, trimmed");
        assert_eq!(named(Part::Line, false, true, false), "line, normal form of a URL");
        assert_eq!(named(Part::Line, false, false, true), "line, case ignored");
    }

    #[test]
    fn long_names_fit_a_file_and_differ() {
        let name = |text: &str| KeyRule { part: part_json(text), ..LINE }.name();
        let longest = "/".repeat(NAME_BYTES - " of JSON lines".len());
        assert_eq!(name(&longest), format!("{longest} of JSON lines"));
        for one in ["/", "\u{e4}", "\u{1f600}"] {
            let long = format!("{longest}{}", one.repeat(1000));
            let names = [&long, &format!("{long}a"), &format!("{long}b")].map(|text| name(text));
            let builder = |name| bloomline::BloomFilter::builder().memory(64).probes(4).key_name(name);
            assert!(names.iter().all(|name| builder(name).plan().is_ok() && name.len() > NAME_BYTES - 4));
            assert!(names[0] != names[1] && names[1] != names[2], "{names:?}");
        }
    }

    #[test]
    fn faults_are_told_on_one_line() {
        let fault = |rule: KeyRule, line: &[u8]| key(&rule, line).unwrap_err().to_string();
        assert_eq!(
            fault(KeyRule { part: part_field(3, b","), ..LINE }, b"a"),
            "there is no field 3: the line has 1 field"
        );
        assert_eq!(
            fault(KeyRule { part: part_field(3, b","), ..LINE }, b"a,"),
            "there is no field 3: the line has 2 fields"
        );
        assert_eq!(fault(KeyRule { part: part_json("/a\nb"), ..LINE }, b"{}"), r#"there is no value at "/a\nb""#);
        for text in [
            fault(KeyRule { part: part_json("/a"), ..LINE }, b"{"),
            fault(KeyRule { part: part_json("/a"), ..LINE }, b"\xff"),
            fault(KeyRule { url: true, ..LINE }, b"a\nb"),
            fault(KeyRule { url: true, ..LINE }, b"\xff"),
        ] {
            assert_eq!(text.lines().count(), 1, "{text:?}");
        }
    }

    /// The fields of a line, found the slow way.
    fn split(line: &[u8], delimiter: &[u8]) -> Vec<Vec<u8>> {
        let mut fields = vec![Vec::new()];
        let mut at = 0;
        while at < line.len() {
            if line[at..].starts_with(delimiter) {
                fields.push(Vec::new());
                at += delimiter.len();
            } else {
                fields.last_mut().unwrap().push(line[at]);
                at += 1;
            }
        }
        fields
    }

    proptest! {
        #[test]
        fn fields_are_those_of_a_naive_split(
            line in prop::collection::vec(prop::sample::select(&b",;\xff"[..]), 0..40),
            delimiter in prop::collection::vec(prop::sample::select(&b",;"[..]), 1..4),
        ) {
            let fields = split(&line, &delimiter);
            for number in 1..fields.len() + 3 {
                let rule = KeyRule { part: part_field(number, &delimiter), ..LINE };
                let expected = fields.get(number - 1).cloned().ok_or(Fault::Field { number, fields: fields.len() });
                prop_assert_eq!(key(&rule, &line), expected);
            }
        }

        #[test]
        fn no_line_is_a_danger(
            line in prop::collection::vec(any::<u8>(), 0..60),
            (trim, url, ignore_case) in any::<(bool, bool, bool)>(),
        ) {
            for part in [Part::Line, part_field(2, b","), part_json(""), part_json("/a")] {
                let _ = key(&KeyRule { part, trim, url, ignore_case }, &line);
            }
        }
    }
}
