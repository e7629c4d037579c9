//! The choice of the member that is kept of a group.

use crate::key::json::{JsonSpan, Pointer};
use crate::steps::groups::score::{self, Kind, NONE};
use crate::steps::groups::string_order;
use bloomline_keys::Value;
use std::fmt;
use std::str::FromStr;

/// The member of a group that is kept. Ties go to the first.
#[derive(Clone, Debug, PartialEq)]
pub enum KeepPolicy {
    First,
    Last,
    /// The document with the most bytes of text.
    Longest,
    /// The line with the greatest value at the pointer, or the least. Numbers rank before texts.
    Max(Pointer),
    Min(Pointer),
    /// The line whose string at the pointer is earliest in the list.
    Order(Pointer, Vec<String>),
}

impl KeepPolicy {
    /// Returns the pointer to the value that decides, if any.
    pub fn pointer(&self) -> Option<&Pointer> {
        match self {
            Self::First | Self::Last | Self::Longest => None,
            Self::Max(pointer) | Self::Min(pointer) | Self::Order(pointer, _) => Some(pointer),
        }
    }

    /// True if a line's score is recorded with it.
    pub fn is_by_value(&self) -> bool {
        !matches!(self, Self::First | Self::Last)
    }

    /// Returns the score of a document with a text of this many bytes, if the longest is kept.
    pub fn length_score(&self, bytes: usize) -> Option<[u64; 1]> {
        // Six bytes of length and the kind fit into one word.
        let length = (*self == Self::Longest).then_some(bytes as u64)?;
        let mut score = Vec::new();
        score::push(Kind::Number, &length.to_be_bytes()[2..], true, &mut score);
        Some([score[0]])
    }

    /// Appends the score of a value. `bytes` is scratch memory.
    pub fn push_score(&self, value: &Value<'_>, bytes: &mut Vec<u8>, score: &mut Vec<u64>) {
        let is_max = matches!(self, Self::Max(_));
        bytes.clear();
        match (self, value) {
            (Self::Order(_, names), Value::Text(text)) => {
                match names.iter().position(|name| name.as_bytes() == *text) {
                    Some(position) => score::push(Kind::Number, &(position as u32).to_be_bytes(), false, score),
                    None => score.push(NONE),
                }
            }
            (Self::Max(_) | Self::Min(_), Value::Text(text)) => {
                let utc = string_order::utc(text);
                score::push(Kind::Text, utc.as_ref().map_or(text, String::as_bytes), is_max, score);
            }
            (Self::Max(_) | Self::Min(_), Value::Json(json)) if score::push_number(json, bytes) => {
                score::push(Kind::Number, bytes, is_max, score);
            }
            _ => score.push(NONE),
        }
    }

    /// Appends the score of a document that was checked before. `text` and `bytes` are scratch memory.
    pub fn push_score_of(&self, document: &str, text: &mut String, bytes: &mut Vec<u8>, score: &mut Vec<u64>) {
        let found = self.pointer().and_then(|pointer| pointer.find(document, text).ok().flatten());
        let value = found.map_or(Value::Null, |found| match found {
            JsonSpan::Text(text) => Value::Text(text.as_bytes()),
            JsonSpan::Other(json) => Value::Json(json),
        });
        self.push_score(&value, bytes, score);
    }

    /// Returns the score of the line at an ordinal, if lines are chosen by ordinal.
    pub fn ordinal_score(&self, ordinal: u64) -> u64 {
        if *self == Self::Last { !ordinal } else { 0 }
    }
}

impl FromStr for KeepPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "first" => Ok(Self::First),
            None if text == "last" => Ok(Self::Last),
            None if text == "longest" => Ok(Self::Longest),
            Some(("max", name)) => Ok(Self::Max(parse_value_pointer(name)?)),
            Some(("min", name)) => Ok(Self::Min(parse_value_pointer(name)?)),
            Some(("order", rest)) => {
                let (name, names) =
                    rest.split_once('=').ok_or("give the strings in their order: order:/source=books,web")?;
                Ok(Self::Order(parse_value_pointer(name)?, names.split(',').map(str::to_owned).collect()))
            }
            _ => Err("give first, last, longest, max:POINTER, min:POINTER or order:POINTER=A,B,C".to_owned()),
        }
    }
}

impl fmt::Display for KeepPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Last => f.write_str("last"),
            Self::Longest => f.write_str("longest"),
            Self::Max(pointer) => write!(f, "max:{pointer}"),
            Self::Min(pointer) => write!(f, "min:{pointer}"),
            Self::Order(pointer, names) => write!(f, "order:{pointer}={}", names.join(",")),
        }
    }
}

/// Parses the location of a value: a JSON pointer, or the name of a column or member, such as page.url.
pub fn parse_value_pointer(text: &str) -> Result<Pointer, String> {
    match text {
        "" => Err("name a value: a JSON pointer such as /score, or a column".to_owned()),
        _ if text.starts_with('/') => text.parse().map_err(str::to_owned),
        name => Ok(Pointer::from_names(name.split('.'))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(choice: &str, document: &str) -> Vec<u64> {
        let mut score = Vec::new();
        let choice = choice.parse::<KeepPolicy>().unwrap();
        choice.push_score_of(document, &mut String::new(), &mut Vec::new(), &mut score);
        score
    }

    #[test]
    fn better_documents_have_lower_scores() {
        for (choice, documents, found) in [
            (
                "max:/a",
                &[
                    r#"{"a":1e999}"#,
                    r#"{"a":9007199254740993}"#,
                    r#"{"a":9007199254740992}"#,
                    r#"{"a":10}"#,
                    r#"{"a":9.5}"#,
                    r#"{"a":true}"#,
                    r#"{"a":0}"#,
                    r#"{"a":-1e-300}"#,
                    r#"{"a":-1e999}"#,
                    r#"{"a":"2026-11-01T10:00:00.5Z"}"#,
                    r#"{"a":"2026-11-01T10:00:00"}"#,
                    r#"{"a":"2026-11-01"}"#,
                    r#"{"a":"11"}"#,
                    r#"{"a":""}"#,
                    r#"{"a":[9]}"#,
                    "{}",
                ][..],
                14,
            ),
            (
                "min:a",
                &[
                    r#"{"a":-1e999}"#,
                    r#"{"a":-7}"#,
                    r#"{"a":-6.5E0}"#,
                    r#"{"a":0}"#,
                    r#"{"a":1e-300}"#,
                    r#"{"a":1e999}"#,
                    r#"{"a":""}"#,
                    r#"{"a":"a text that takes several words"}"#,
                    r#"{"a":"a text that takes several words, \u0061nd is longer"}"#,
                    r#"{"a":"\u00e9"}"#,
                    r#"{"a":null}"#,
                ],
                10,
            ),
            (
                "order:/a=x,,é,1",
                &[r#"{"a":"x"}"#, r#"{"a":""}"#, r#"{"a":"\u00e9"}"#, r#"{"a":"1"}"#, r#"{"a":"X"}"#, r#"{"a":1}"#, ""],
                4,
            ),
        ] {
            let scores: Vec<_> = documents.iter().map(|document| score(choice, document)).collect();
            assert!(scores[..found].is_sorted_by(|a, b| a < b), "{choice}");
            assert!(scores[..found].iter().all(|score| score[0] < NONE), "{choice}");
            assert!(scores[found..].iter().all(|score| *score == [NONE]), "{choice}");
        }
        assert_eq!(score("max:/a", r#"{"a":-0.0}"#), score("max:/a", r#"{"a":0}"#));
        assert_eq!(
            score("max:/a", r#"{"a":"2026-11-01T10:00:00.50Z"}"#),
            score("max:/a", r#"{"a":"2026-11-01T11:00:00.5+01:00"}"#)
        );
        assert_eq!(score("max:/a/b", r#"{"a":{"b":[7]}}"#), [NONE]);
        assert_eq!(score("min:a.b", r#"{"a":{"b":7}}"#), score("min:/a/b", r#"{"a":{"b":7.0}}"#));
    }

    #[test]
    fn invalid_policies_are_refused() {
        for text in ["", "both", "first:", "max", "max:", "max:/~", "order:/a", "order:=a", "best:/a"] {
            assert!(text.parse::<KeepPolicy>().is_err(), "{text:?}");
        }
        for text in ["first", "last", "longest", "max:/a~1b", "min:/a", "order:/a=b,c,d=e"] {
            assert_eq!(text.parse::<KeepPolicy>().unwrap().to_string(), text);
        }
    }
}
