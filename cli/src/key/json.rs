//! JSON pointers, and the key that one finds in a document.
//!
//! The document is walked and never built: what the pointer passes by is checked and skipped.

use crate::places::places;
use memchr::memchr;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::iter;
use std::ops::Range;
use std::str::FromStr;

/// Where in a document a value is (RFC 6901).
#[derive(Clone, Debug, PartialEq)]
pub struct Pointer {
    text: String,
    /// The names on the way, unescaped.
    tokens: Vec<String>,
}

/// A value, as a key tells it.
#[derive(Debug, PartialEq)]
pub enum Found<'a> {
    /// The content of a string.
    Text(&'a str),
    /// The text of another scalar as it is written, the compact text of an array or object with its members sorted by name. So
    /// the numbers 1 and 1.0 are two.
    Other(&'a str),
}

/// Why a text is no pointer: it starts with something else than a slash, or a tilde escapes nothing.
const START: &str = "a JSON pointer is empty or starts with \"/\"";
const ESCAPE: &str = "in the names of a JSON pointer, write \"~0\" for \"~\" and \"~1\" for \"/\"";

/// Why a document cannot be read.
#[derive(Debug, PartialEq)]
pub struct Unreadable {
    message: String,
    /// In bytes, from 1. `None` if nothing is there to point to.
    column: Option<usize>,
}

impl FromStr for Pointer {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let mut tokens = text.split('/');
        if tokens.next() != Some("") {
            return Err(START);
        }
        Ok(Self { text: text.to_owned(), tokens: tokens.map(unescape).collect::<Result<_, _>>()? })
    }
}

/// The name that a token stands for.
fn unescape(token: &str) -> Result<String, &'static str> {
    let mut parts = token.split('~');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (character, rest) = match part.as_bytes().first() {
            Some(b'0') => ('~', &part[1..]),
            Some(b'1') => ('/', &part[1..]),
            _ => return Err(ESCAPE),
        };
        name.push(character);
        name.push_str(rest);
    }
    Ok(name)
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read JSON: {}", self.message)?;
        self.column.map_or(Ok(()), |column| write!(f, " at column {column}"))
    }
}

impl Unreadable {
    /// An error in a part of a document.
    fn new(error: &serde_json::Error, part: &str, document: &str) -> Self {
        if document.trim_ascii().is_empty() {
            return Self { message: "the line is blank".to_owned(), column: None };
        }
        let text = error.to_string();
        let suffix = format!(" at line {} column {}", error.line(), error.column());
        let offset = part.as_ptr().addr() - document.as_ptr().addr();
        let message = match text.strip_suffix(&suffix).unwrap_or(&text) {
            "unexpected end of hex escape" | "lone leading surrogate in hex escape" => {
                "half of a surrogate pair stands alone"
            }
            message => message,
        };
        Self { message: message.to_owned(), column: Some(offset + error.column()) }
    }
}

impl Pointer {
    /// To the member of these names.
    pub fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let tokens: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let escaped = tokens.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1")));
        Self { text: escaped.collect(), tokens }
    }

    /// The names on the way, unescaped.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// The value at the pointer, if there is one.
    pub fn find<'a>(&self, document: &'a str, scratch: &'a mut String) -> Result<Option<Found<'a>>, Unreadable> {
        let Some(part) = self.find_raw(document)? else { return Ok(None) };
        content(part, scratch).map(Some).map_err(|error| Unreadable::new(&error, part, document))
    }

    /// The string at the pointer between its quotes, as it is written, if there is one; `Err` of `None` if the value is no string.
    /// Adds its content to `into`, and calls `newline` with where in it each escape for a newline is.
    pub fn find_string<'a>(
        &self,
        document: &'a str,
        into: &mut String,
        newline: impl FnMut(Range<usize>),
    ) -> Result<Option<&'a str>, Option<Unreadable>> {
        let Some(part) = self.find_raw(document).map_err(Some)? else { return Ok(None) };
        let string = part.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).ok_or(None)?;
        let before = into.len();
        if !unescape_content(string, into, newline) {
            into.truncate(before);
            let error = serde_json::from_str::<String>(part).expect_err("a surrogate stands alone");
            return Err(Some(Unreadable::new(&error, part, document)));
        }
        Ok(Some(string))
    }

    /// The text of the value at the pointer on one line, if there is one.
    pub fn find_compact<'a>(&self, document: &'a str) -> Result<Option<Cow<'a, str>>, Unreadable> {
        let Some(part) = self.find_raw(document)? else { return Ok(None) };
        if !part.contains(['\n', '\r']) {
            return Ok(Some(part.into()));
        }
        let value = serde_json::from_str::<Value>(part).map_err(|error| Unreadable::new(&error, part, document))?;
        Ok(Some(value.to_string().into()))
    }

    /// The text of the value at the pointer, if there is one.
    ///
    /// All of the document is checked. If several members have one name, the last one counts.
    fn find_raw<'a>(&self, document: &'a str) -> Result<Option<&'a str>, Unreadable> {
        let mut part = document;
        let mut tokens = self.tokens.iter();
        let mut found = match tokens.next() {
            Some(token) => step(part, token),
            None => serde_json::from_str(part).map(Some),
        };
        // The way down leads through values that are checked already, and are mostly short.
        loop {
            match found.map_err(|error| Unreadable::new(&error, part, document))? {
                Some(value) => part = value.get(),
                None => return Ok(None),
            }
            match tokens.next() {
                Some(token) => found = step(part, token),
                None => return Ok(Some(part)),
            }
        }
    }
}

/// The member or element of a value that a token names.
fn step<'a>(text: &'a str, token: &str) -> serde_json::Result<Option<&'a RawValue>> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => deserializer.deserialize_map(Member(token)),
        Some(b'[') => deserializer.deserialize_seq(Element(index(token))),
        _ => IgnoredAny::deserialize(&mut deserializer).map(|_| None),
    }?;
    deserializer.end()?;
    Ok(found)
}

/// What to take out of an object that was checked before, so that no member of this name is left, and the others are with their
/// commas. Nothing if there is no other.
pub fn members(object: &str, name: &str) -> Vec<Range<usize>> {
    let all = serde_json::Deserializer::from_str(object).deserialize_map(Members).unwrap_or_default();
    let place = |part: &str| part.as_ptr().addr() - object.as_ptr().addr();
    let (mut ranges, mut end) = (Vec::new(), None);
    for (i, (key, value)) in all.iter().enumerate() {
        let (start, after) = (place(key.get()), place(value.get()) + value.get().len());
        if !serde_json::from_str(key.get()).is_ok_and(|Name(key)| key == name) {
            end = Some(after);
            continue;
        }
        let before = end.map(|end| end + object[end..start].find(',').expect("a comma is between members"));
        let next = all.get(i + 1).map(|(key, _)| place(key.get()));
        ranges.push(match before {
            Some(comma) => comma..after,
            None => start..next.unwrap_or(after),
        });
        end = end.map(|_| after);
    }
    if end.is_some() { ranges } else { Vec::new() }
}

/// The array index that a token is: digits without leading zeros. What no array is long enough for is none.
fn index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = token.len() > 1 && token.starts_with('0');
    token.parse().ok().filter(|_| digits && !leading_zero)
}

/// What a value tells.
fn content<'a>(text: &'a str, scratch: &'a mut String) -> serde_json::Result<Found<'a>> {
    Ok(match text.as_bytes()[0] {
        b'"' => {
            let content = &text[1..text.len() - 1];
            if memchr(b'\\', content.as_bytes()).is_none() {
                return Ok(Found::Text(content));
            }
            scratch.clear();
            if !unescape_content(content, scratch, |_| {}) {
                *scratch = serde_json::from_str(text)?;
            }
            Found::Text(scratch)
        }
        b'{' | b'[' => {
            *scratch = serde_json::from_str::<Value>(text)?.to_string();
            Found::Other(scratch)
        }
        _ => Found::Other(text),
    })
}

/// What the letter after a backslash means. A table, for no branch can be foretold where texts mix newlines, tabs and quotes.
const MEANINGS: [u8; 256] = {
    let mut meanings = [0; 256];
    let mut letter = 0;
    while letter < 256 {
        meanings[letter] = match letter as u8 {
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            itself => itself,
        };
        letter += 1;
    }
    meanings
};

/// Unescapes the content of a string that was checked before, and adds it; `false` if one of its surrogates stands alone. Most
/// texts have an escape somewhere, and serde_json would allocate for each of them. Calls `newline` with where in the content each
/// escape for a newline is.
fn unescape_content(content: &str, into: &mut String, mut newline: impl FnMut(Range<usize>)) -> bool {
    let unit = |escape: &str| u32::from_str_radix(escape.strip_prefix('u')?.get(..4)?, 16).ok();
    let (mut done, mut is_whole) = (0, true);
    places(content.as_bytes(), [b'\\'], |backslash| {
        // One before `done` is a part of the escape before it.
        if backslash < done || !is_whole {
            return;
        }
        into.push_str(&content[done..backslash]);
        let escape = &content[backslash + 1..];
        let (character, length) = match escape.as_bytes()[0] {
            b'u' => {
                let first = unit(escape);
                let second = escape.get(5..).and_then(|escape| escape.strip_prefix('\\')).and_then(unit);
                match (first, first.and_then(char::from_u32), second) {
                    (_, Some(character), _) => (character, 5),
                    (Some(high @ 0xD800..0xDC00), None, Some(low @ 0xDC00..0xE000)) => {
                        let code = 0x10000 + ((high - 0xD800) << 10 | (low - 0xDC00));
                        (char::from_u32(code).expect("a pair of surrogates is a character"), 11)
                    }
                    _ => {
                        is_whole = false;
                        return;
                    }
                }
            }
            letter => (char::from(MEANINGS[usize::from(letter)]), 1),
        };
        done = backslash + 1 + length;
        if character == '\n' {
            newline(backslash..done);
        }
        into.push(character);
    });
    into.push_str(&content[done..]);
    is_whole
}

/// Finds the last member of a name.
struct Member<'t>(&'t str);

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(Name(name)) = members.next_key()? {
            if name == self.0 {
                found = Some(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// All members: names and values as they are written.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(&'de RawValue, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        iter::from_fn(|| members.next_entry().transpose()).collect()
    }
}

/// A member's name. One without escapes is not copied.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Finds the element of an index.
struct Element(Option<usize>);

impl<'de> Visitor<'de> for Element {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        for _ in 0..self.0.unwrap_or(0) {
            if elements.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
        }
        let found = if self.0.is_some() { elements.next_element()? } else { None };
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The text of the value, and whether it is a string; `None` where there is no value.
    fn value(pointer: &str, document: &str) -> Result<Option<(String, bool)>, Unreadable> {
        let mut scratch = String::new();
        let pointer: Pointer = pointer.parse().unwrap();
        pointer.find(document, &mut scratch).map(|found| {
            found.map(|found| match found {
                Found::Text(text) => (text.to_owned(), true),
                Found::Other(text) => (text.to_owned(), false),
            })
        })
    }

    /// The text alone.
    fn key(pointer: &str, document: &str) -> Result<Option<String>, Unreadable> {
        value(pointer, document).map(|value| value.map(|(text, _)| text))
    }

    fn found(pointer: &str, document: &str) -> Option<String> {
        key(pointer, document).unwrap()
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    /// Whether the key is a part of the document itself.
    fn is_borrowed(pointer: &str, document: &str) -> bool {
        let mut scratch = String::new();
        let pointer: Pointer = pointer.parse().unwrap();
        let (Found::Text(text) | Found::Other(text)) = pointer.find(document, &mut scratch).unwrap().unwrap();
        document.as_bytes().as_ptr_range().contains(&text.as_ptr())
    }

    #[test]
    fn examples_of_the_rfc() {
        // Section 5, with the whitespace of the document left out.
        let document = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
        let sorted = r#"{"":0," ":7,"a/b":1,"c%d":2,"e^f":3,"foo":["bar","baz"],"g|h":4,"i\\j":5,"k\"l":6,"m~n":8}"#;
        for (pointer, expected) in [
            ("", sorted),
            ("/foo", r#"["bar","baz"]"#),
            ("/foo/0", "bar"),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            assert_eq!(found(pointer, document), some(expected), "{pointer:?}");
        }
    }

    #[test]
    fn pointers_are_checked() {
        for text in ["a", " /a", "#/a", "0"] {
            assert_eq!(text.parse::<Pointer>(), Err(START), "{text:?}");
        }
        for text in ["/~", "/a~", "/~2", "/~a/b", "/~~0", "/b/~\u{e9}"] {
            assert_eq!(text.parse::<Pointer>(), Err(ESCAPE), "{text:?}");
        }
        // Section 4: "~01" is "~1", for "~1" is replaced first.
        assert_eq!(found("/~01", r#"{"/":1,"~1":2}"#), some("2"));
        assert_eq!(found("/~10~0", r#"{"/0~":1}"#), some("1"));
        assert_eq!("/a~1b".parse::<Pointer>().unwrap().to_string(), "/a~1b");
    }

    #[test]
    fn empty_names_count() {
        let document = r#"{"":{"":"deep"},"a":{"":"one"}}"#;
        assert_eq!(found("//", document), some("deep"));
        assert_eq!(found("/a/", document), some("one"));
        assert_eq!(found("/a//", document), None);
    }

    #[test]
    fn array_indices_are_plain_numbers() {
        let document = r#"["a","b"]"#;
        assert_eq!(found("/0", document), some("a"));
        assert_eq!(found("/1", document), some("b"));
        for pointer in
            ["/2", "/00", "/01", "/-", "/-1", "/+1", "/1.0", "/", "/a", "/\u{661}", "/99999999999999999999999"]
        {
            assert_eq!(found(pointer, document), None, "{pointer:?}");
        }
        assert_eq!(found("/0", "[]"), None);
        // In an object they are names.
        assert_eq!(found("/01", r#"{"1":"a","01":"b"}"#), some("b"));
        assert_eq!(found("/-", r#"{"-":"a"}"#), some("a"));
    }

    #[test]
    fn nothing_is_below_a_scalar() {
        for document in [r#""a""#, "1", "-1.5e3", "true", "false", "null", "{}", "[]"] {
            assert_eq!(found("/0", document), None, "{document}");
            assert_eq!(found("/a/0", &format!(r#"{{"a":{document}}}"#)), None, "{document}");
        }
    }

    #[test]
    fn values_have_their_text() {
        for (value, expected) in [
            (r#""text""#, "text"),
            (r#""""#, ""),
            (r#""1""#, "1"),
            ("1", "1"),
            ("true", "true"),
            ("false", "false"),
            ("null", "null"),
            (r#"[ 1 , "a" , [ ] ]"#, r#"[1,"a",[]]"#),
            (r#"{ "b" : 1 , "a" : { "d" : null , "c" : "\u0041" } }"#, r#"{"a":{"c":"A","d":null},"b":1}"#),
        ] {
            assert_eq!(found("", value), some(expected), "{value}");
            assert_eq!(found("", &format!(" \t{value} \r")), some(expected), "{value}");
            assert_eq!(found("/a", &format!(r#" {{ "b" : [{value}] , "a" : {value} }} "#)), some(expected), "{value}");
            assert_eq!(found("/1", &format!("[0, {value}\t, 2]")), some(expected), "{value}");
        }
    }

    #[test]
    fn numbers_keep_their_digits() {
        // Beyond 64 bits, beyond what a double holds, and beyond its range.
        for number in ["18446744073709551616", "-9223372036854775809", "340282366920938463463374607431768211455"] {
            assert_eq!(found("/a", &format!(r#"{{"a":{number}}}"#)), some(number));
            assert_eq!(found("", &format!("[{number}]")), some(&format!("[{number}]")));
        }
        for number in ["1.0", "1.00", "-0", "1e400", "1E5", "0.1000000000000000055511151231257827"] {
            assert_eq!(found("/a", &format!(r#"{{"a":{number}}}"#)), some(number));
        }
        for number in ["01", "+1", "1.", ".5", "1e", "0x1", "NaN", "-"] {
            assert!(key("/a", &format!(r#"{{"a":{number}}}"#)).is_err(), "{number}");
            assert!(key("/b", &format!(r#"{{"a":{number}}}"#)).is_err(), "{number}");
        }
    }

    #[test]
    fn strings_are_unescaped() {
        let text = r#"{"a":"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00 \u0000"}"#;
        assert_eq!(found("/a", text), some("\"\\/\u{8}\u{c}\n\r\t\u{e9}\u{1f600} \0"));
        assert_eq!(found("/a", r#"{"a":"\"\\\/\b\f\n\r\t\u00E9\u0000"}"#), some("\"\\/\u{8}\u{c}\n\r\t\u{e9}\0"));
        assert_eq!(found("/a", "{\"a\":\"\u{e9}\u{1f600}\"}"), some("\u{e9}\u{1f600}"));
        // Names, too.
        assert_eq!(found("/\u{1f600}/b\n", r#"{"\ud83d\ude00":{"\u0062\n":"c"}}"#), some("c"));
    }

    #[test]
    fn what_stands_in_the_document_is_not_copied() {
        assert!(is_borrowed("/a/0", r#"{"a":["text"]}"#));
        assert!(is_borrowed("/a", r#"{"b":"\n","a":1.5}"#));
        assert!(!is_borrowed("/a", r#"{"a":"\n"}"#));
    }

    #[test]
    fn the_last_of_equal_names_wins() {
        assert_eq!(found("/a", r#"{"a":1,"b":2,"a":3}"#), some("3"));
        assert_eq!(found("/a", r#"{"a":1,"\u0061":3}"#), some("3"));
        // Even where the first only leads on.
        assert_eq!(found("/a/b", r#"{"a":{"b":1},"a":{}}"#), None);
        assert_eq!(found("/a/b", r#"{"a":0,"a":{"b":1}}"#), some("1"));
        assert_eq!(found("", r#"{"a":1,"a":3}"#), some(r#"{"a":3}"#));
    }

    #[test]
    fn the_rest_must_be_json() {
        // Each with the column of the first byte that is wrong, or of the last where more is missing.
        for (document, column) in [
            (r#"{"a":1"#, 6),
            (r#"{"a":1}}"#, 8),
            (r#"{"a":1} x"#, 9),
            (r#"{"a":1,"b":tru}"#, 15),
            (r#"{"a":1,"b":[1,2}"#, 16),
            (r#"{"a":1,b:2}"#, 8),
            (r#"{"a":1,"b" 2}"#, 12),
            (r#"{"a":1,"b":"\x"}"#, 14),
            ("text", 2),
        ] {
            for pointer in ["/a", "/c", "/a/b", ""] {
                let error = key(pointer, document).unwrap_err();
                assert_eq!(error.column, Some(column), "{pointer:?} {document:?} {error}");
            }
        }
        for document in ["", " \t"] {
            assert_eq!(key("/a", document).unwrap_err().to_string(), "cannot read JSON: the line is blank");
        }
        for document in ["{\"a\":1,\"b\":\"\n\"}", r#"{"a":1,}"#, r#"["#, r#"{"a":1,"b":"\u12"}"#, "\u{feff}{}", "'a'"]
        {
            for pointer in ["/a", "/c", "/0", ""] {
                assert!(key(pointer, document).is_err(), "{pointer:?} {document:?}");
            }
        }
    }

    #[test]
    fn errors_tell_the_column_of_the_document() {
        let error = key("/a/b", r#"{"c":"\ud800","a": {"b":"x\ud800y"}}"#).unwrap_err();
        // A surrogate must be followed by the escape of another: "y", the 33rd byte, is not one.
        assert_eq!(error.column, Some(33), "{error}");
        let text = error.to_string();
        assert!(text.starts_with("cannot read JSON: ") && text.ends_with(" at column 33"), "{text}");
        assert!(!text.contains("line"), "{text}");
    }

    #[test]
    fn depth_is_no_danger() {
        const DEPTH: usize = 100_000;
        let deep = "[".repeat(DEPTH) + &"]".repeat(DEPTH);
        let document = format!(r#"{{"b":{deep},"a":"text","c":{deep}}}"#);
        // What is skipped may be deep. A key may not.
        assert_eq!(found("/a", &document), some("text"));
        let error = key("/b", &document).unwrap_err();
        assert!(error.to_string().contains("recursion limit"), "{error}");
        assert!(key("", &deep).is_err());
        assert!(key("/a", &"[".repeat(DEPTH)).is_err());
        assert!(key("/a", &"{\"a\":".repeat(DEPTH)).is_err());
        let pointer = "/0".repeat(1000);
        let document = "[".repeat(1000) + "\"text\"" + &"]".repeat(1000);
        assert_eq!(found(&pointer, &document), some("text"));
    }

    /// Few names, so that pointers often find something.
    fn name() -> impl Strategy<Value = String> {
        let names = vec!["", "a", "b", "0", "1", "10", "01", "-", "/", "~", "~1", "\"", "\\", "\n", "\u{e9}"];
        prop::sample::select(names).prop_map(str::to_owned)
    }

    fn document() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            name().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(name(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn pointers_find_what_serde_json_finds(
            document in document(),
            names in prop::collection::vec(name(), 0..4),
            pretty in any::<bool>(),
        ) {
            let pointer: String =
                names.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect();
            let text = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) };
            let expected = document.pointer(&pointer).map(|value| match value {
                Value::String(text) => (text.clone(), true),
                other => (other.to_string(), false),
            });
            prop_assert_eq!(value(&pointer, &text.unwrap()), Ok(expected));
        }

        #[test]
        fn escapes_are_those_of_utf_16(characters in prop::collection::vec((any::<char>(), any::<bool>()), 0..20)) {
            let mut text = String::new();
            for &(character, escaped) in &characters {
                if escaped || character < ' ' || "\"\\".contains(character) {
                    text.extend(character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
                } else {
                    text.push(character);
                }
            }
            let expected: String = characters.iter().map(|&(character, _)| character).collect();
            prop_assert_eq!(key("/0", &format!("[\"{text}\"]")), Ok(Some(expected)));
        }

        #[test]
        fn all_members_of_a_name_are_taken_out(
            written in prop::collection::vec((
                prop::sample::select(&[r#""a""#, r#""\u0061""#, r#""b""#, r#""A""#][..]),
                prop::sample::select(&["1", r#"{"a":2,"b":[3]}"#, r#"",a""#, "[ ]"][..]),
                prop::sample::select(&["", " ", "\t "][..]),
            ), 0..7),
        ) {
            let member = |(name, value, space): &(&str, &str, &str)| format!("{space}{name}{space}:{space}{value}{space}");
            let object = |members: &[(&str, &str, &str)]| {
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            };
            let is_other = |(name, ..): &&(&str, &str, &str)| !name.ends_with(r#"a""#) && !name.contains('u');
            let others: Vec<_> = written.iter().filter(is_other).copied().collect();
            let before = object(&written);
            let (mut left, mut start) = (String::new(), 0);
            for range in members(&before, "a") {
                left += &before[start..range.start];
                start = range.end;
            }
            left += &before[start..];
            let without_space = |text: &str| text.replace([' ', '\t'], "");
            let expected = if others.is_empty() { before.clone() } else { object(&others) };
            prop_assert_eq!(without_space(&left), without_space(&expected));
        }

        #[test]
        fn half_a_pair_of_surrogates_is_nothing(
            half in prop::sample::select(&[r"\ud83d", r"\udc00"][..]),
            after in prop::sample::select(&["", "ndc00", r"\ndc00", r"\\dc00", r"\bdc00", r"\u0041", r"\ud83d", "x"][..]),
        ) {
            let document = format!("[\"{half}{after}\"]");
            prop_assert!(key("/0", &document).is_err(), "{document}");
        }

        #[test]
        fn no_text_is_a_danger(text in any::<String>(), cut in any::<prop::sample::Index>(), document in document()) {
            let _ = key("/a", &text);
            // A document that is cut is none, but for numbers.
            let whole = document.to_string();
            let mut end = cut.index(whole.len());
            while !whole.is_char_boundary(end) {
                end -= 1;
            }
            if !document.is_number() {
                prop_assert!(key("/a", &whole[..end]).is_err());
            }
        }
    }
}
