//! JSON pointers, and the lookup of their values in documents.
//!
//! The document is never parsed into a tree: values that the pointer passes are checked and skipped.

use crate::key::byte_scan::for_each_position;
use crate::key::error::excerpt;
use bloomline_keys::Kinds;
use bloomline_keys::encoding::{self, push_member, push_part};
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

/// A JSON pointer (RFC 6901).
#[derive(Clone, Debug, PartialEq)]
pub struct Pointer {
    text: String,
    /// The reference tokens, unescaped.
    tokens: Vec<String>,
}

/// A value that is compared or printed.
#[derive(Debug, PartialEq)]
pub enum JsonSpan<'a> {
    /// The content of a string.
    Text(&'a str),
    /// The text of another scalar as written, or the compact text of an array or object with members sorted by name. So 1 and 1.0
    /// differ.
    Other(&'a str),
}

/// A value at a pointer.
pub enum JsonPart<'a> {
    /// The content of a string.
    Text(&'a str),
    /// Another value as written.
    Other(&'a str),
}

/// The errors of an invalid pointer: no slash at the start, or a tilde that escapes nothing.
const START: &str = "a JSON pointer is empty or starts with \"/\"";
const ESCAPE: &str = "in the names of a JSON pointer, write \"~0\" for \"~\" and \"~1\" for \"/\"";

/// The reason why a document cannot be read.
#[derive(Debug, PartialEq)]
pub struct JsonError {
    message: String,
    /// The position in bytes, from 1. `None` for a blank line.
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

/// Returns the name that a token represents.
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

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read JSON: {}", self.message)?;
        if let Some(column) = self.column {
            write!(f, " at column {column}")?;
        }
        Ok(())
    }
}

impl JsonError {
    /// Describes an error in a part of a document.
    fn new(error: &serde_json::Error, part: &str, document: &str) -> Self {
        if document.trim_ascii().is_empty() {
            return Self { message: "the line is blank".to_owned(), column: None };
        }
        if !document.trim_ascii_start().starts_with(['{', '[', '"']) {
            let message = format!("lines of JSON are expected, and this one is {}", excerpt(document));
            return Self { message, column: None };
        }
        let text = error.to_string();
        let suffix = format!(" at line {} column {}", error.line(), error.column());
        let offset = part.as_ptr().addr() - document.as_ptr().addr();
        let message = match text.strip_suffix(&suffix).unwrap_or(&text) {
            "unexpected end of hex escape" | "lone leading surrogate in hex escape" => {
                "half of a surrogate pair is missing"
            }
            message => message,
        };
        Self { message: message.to_owned(), column: Some(offset + error.column()) }
    }
}

impl Pointer {
    /// Creates a pointer to the member with these names.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let tokens: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let escaped = tokens.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1")));
        Self { text: escaped.collect(), tokens }
    }

    /// Returns the reference tokens, unescaped.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// Returns the name of the value as a column: `page.url` for `/page/url`. A pointer that no name of a column means is its own name,
    /// and the whole document is `/`.
    pub fn column(&self) -> String {
        let is_name = |token: &String| !token.is_empty() && !token.contains('.');
        match &self.tokens[..] {
            [] => "/".to_owned(),
            // A column may have an empty name.
            [token] if token.is_empty() => String::new(),
            tokens if tokens.iter().all(is_name) => tokens.join("."),
            _ => self.text.clone(),
        }
    }

    /// Returns the value at the pointer for a key, if there is one.
    #[inline]
    pub fn find_part<'a>(&self, document: &'a str, scratch: &'a mut String) -> Result<Option<JsonPart<'a>>, JsonError> {
        let Some(part) = self.find_raw(document)? else { return Ok(None) };
        if !part.starts_with('"') {
            return Ok(Some(JsonPart::Other(part)));
        }
        match content(part, scratch).map_err(|error| JsonError::new(&error, part, document))? {
            JsonSpan::Text(text) | JsonSpan::Other(text) => Ok(Some(JsonPart::Text(text))),
        }
    }

    /// Returns the value at the pointer, if there is one.
    pub fn find<'a>(&self, document: &'a str, scratch: &'a mut String) -> Result<Option<JsonSpan<'a>>, JsonError> {
        let Some(part) = self.find_raw(document)? else { return Ok(None) };
        content(part, scratch).map(Some).map_err(|error| JsonError::new(&error, part, document))
    }

    /// Returns the string at the pointer as written, without its quotes, if there is one; `Err(None)` if the value is not a string.
    /// Appends its content to `into`, and calls `newline` with the range of each escaped newline in it.
    pub fn find_string<'a>(
        &self,
        document: &'a str,
        into: &mut String,
        newline: impl FnMut(Range<usize>),
    ) -> Result<Option<&'a str>, Option<JsonError>> {
        let Some(part) = self.find_raw(document).map_err(Some)? else { return Ok(None) };
        let string = part.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).ok_or(None)?;
        let before = into.len();
        if !unescape_content(string, into, newline) {
            into.truncate(before);
            let error = serde_json::from_str::<String>(part).expect_err("a surrogate stands alone");
            return Err(Some(JsonError::new(&error, part, document)));
        }
        Ok(Some(string))
    }

    /// Returns the text of the value at the pointer on one line, if there is one.
    pub fn find_compact<'a>(&self, document: &'a str) -> Result<Option<Cow<'a, str>>, JsonError> {
        let Some(part) = self.find_raw(document)? else { return Ok(None) };
        if !part.contains(['\n', '\r']) {
            return Ok(Some(part.into()));
        }
        let value = serde_json::from_str::<Value>(part).map_err(|error| JsonError::new(&error, part, document))?;
        Ok(Some(value.to_string().into()))
    }

    /// Returns the text of the value at the pointer, if there is one.
    ///
    /// The whole document is checked. Of several members with the same name, the last counts.
    fn find_raw<'a>(&self, document: &'a str) -> Result<Option<&'a str>, JsonError> {
        let mut part = document;
        let mut tokens = self.tokens.iter();
        let mut found = match tokens.next() {
            Some(token) => step(part, token),
            None => serde_json::from_str(part).map(Some),
        };
        // The values on the path are checked already, and mostly short.
        loop {
            match found.map_err(|error| JsonError::new(&error, part, document))? {
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

/// Returns the member or element of a value that a token names.
fn step<'a>(text: &'a str, token: &str) -> serde_json::Result<Option<&'a RawValue>> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => deserializer.deserialize_map(MemberVisitor(token)),
        Some(b'[') => deserializer.deserialize_seq(ElementVisitor(index(token))),
        _ => IgnoredAny::deserialize(&mut deserializer).map(|_| None),
    }?;
    deserializer.end()?;
    Ok(found)
}

/// Returns the ranges to remove from an object, checked before, so that no member has this name and the commas are right. Empty if
/// there are no other members.
pub fn members(object: &str, name: &str) -> Vec<Range<usize>> {
    let all = serde_json::Deserializer::from_str(object).deserialize_map(MembersVisitor).unwrap_or_default();
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

/// Appends the key of a value that is not a string, checked before, and returns its kind.
pub fn push(json: &str, out: &mut Vec<u8>) -> Result<Kinds, JsonError> {
    Ok(match json.as_bytes()[0] {
        b'n' => {
            encoding::push_null(out);
            Kinds::NONE
        }
        b't' | b'f' => {
            encoding::push_boolean(json == "true", out);
            Kinds::BOOLEAN
        }
        b'{' | b'[' => {
            let value: Value = serde_json::from_str(json).map_err(|error| JsonError::new(&error, json, json))?;
            push_value(&value, out);
            if value.is_object() { Kinds::STRUCT } else { Kinds::LIST }
        }
        _ => {
            encoding::push_number(json, out);
            Kinds::NUMBER
        }
    })
}

fn push_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => encoding::push_null(out),
        Value::Bool(boolean) => encoding::push_boolean(*boolean, out),
        Value::Number(number) => encoding::push_number(number.as_str(), out),
        Value::String(text) => encoding::push_text(text.as_bytes(), out),
        Value::Array(elements) => {
            encoding::begin_list(out);
            elements.iter().for_each(|element| push_part(out, |out| push_value(element, out)));
        }
        // Its members are sorted by name.
        Value::Object(members) => {
            encoding::begin_struct(out);
            members.iter().for_each(|(name, member)| push_member(name, out, |out| push_value(member, out)));
        }
    }
}

/// Parses an array index: digits without leading zeros. `None` if it exceeds any array's length.
fn index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = token.len() > 1 && token.starts_with('0');
    token.parse().ok().filter(|_| digits && !leading_zero)
}

/// Returns the content of a value.
#[inline]
fn content<'a>(text: &'a str, scratch: &'a mut String) -> serde_json::Result<JsonSpan<'a>> {
    Ok(match text.as_bytes()[0] {
        b'"' => {
            let content = &text[1..text.len() - 1];
            if memchr(b'\\', content.as_bytes()).is_none() {
                return Ok(JsonSpan::Text(content));
            }
            scratch.clear();
            if !unescape_content(content, scratch, |_| {}) {
                *scratch = serde_json::from_str(text)?;
            }
            JsonSpan::Text(scratch)
        }
        b'{' | b'[' => {
            *scratch = serde_json::from_str::<Value>(text)?.to_string();
            JsonSpan::Other(scratch)
        }
        _ => JsonSpan::Other(text),
    })
}

/// The meaning of the letter after a backslash. A table, because branches are unpredictable in texts that mix newlines, tabs and
/// quotes.
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

/// Unescapes the content of a string, checked before, and appends it; `false` if it has a lone surrogate. Most texts contain an
/// escape, and serde_json would allocate for each. Calls `newline` with the range of each escaped newline in the content.
fn unescape_content(content: &str, into: &mut String, mut newline: impl FnMut(Range<usize>)) -> bool {
    let unit = |escape: &str| u32::from_str_radix(escape.strip_prefix('u')?.get(..4)?, 16).ok();
    let (mut done, mut is_whole) = (0, true);
    for_each_position(content.as_bytes(), [b'\\'], |backslash| {
        // A backslash before `done` is part of the previous escape.
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

/// A visitor that finds the last member with a name.
struct MemberVisitor<'t>(&'t str);

impl<'de> Visitor<'de> for MemberVisitor<'_> {
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

/// A visitor that returns the names and values of all members as written.
struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(&'de RawValue, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        iter::from_fn(|| members.next_entry().transpose()).collect()
    }
}

/// A member's name. Without escapes it is not copied.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// A visitor that finds the element with an index.
struct ElementVisitor(Option<usize>);

impl<'de> Visitor<'de> for ElementVisitor {
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
mod tests;
