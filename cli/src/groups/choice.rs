//! Which one of a group stays.

use crate::key::Value;
use crate::key::json::{Found, Pointer};
use std::fmt;
use std::str::FromStr;

/// Which of equal or similar lines stays. Of several that are as good it is the first.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    First,
    Last,
    /// That with the largest number at the pointer, or the smallest.
    Most(Pointer),
    Least(Pointer),
    /// That whose string at the pointer comes first in the list.
    Order(Pointer, Vec<String>),
}

/// The score of a line that has nothing to be chosen by: it comes after all that have.
pub const NONE: u64 = u64::MAX;

impl Choice {
    /// What a line is chosen by, if that is a value in it.
    pub fn pointer(&self) -> Option<&Pointer> {
        match self {
            Self::First | Self::Last => None,
            Self::Most(pointer) | Self::Least(pointer) | Self::Order(pointer, _) => Some(pointer),
        }
    }

    /// The score of a value: the least of a group is the best.
    pub fn score(&self, value: &Value<'_>) -> u64 {
        match (self, value) {
            (Self::Order(_, names), Value::Text(text)) => {
                names.iter().position(|name| name.as_bytes() == *text).map_or(NONE, |position| position as u64)
            }
            (Self::Least(_), Value::Json(json)) => number(json).map_or(NONE, ordered),
            (Self::Most(_), Value::Json(json)) => number(json).map_or(NONE, |number| ordered(-number)),
            _ => NONE,
        }
    }

    /// The score of a document that was checked before.
    pub fn score_of(&self, document: &str, scratch: &mut String) -> u64 {
        let found = self.pointer().and_then(|pointer| pointer.find(document, scratch).ok().flatten());
        found.map_or(NONE, |found| {
            self.score(&match found {
                Found::Text(text) => Value::Text(text.as_bytes()),
                Found::Other(json) => Value::Json(json),
            })
        })
    }

    /// The score of the line at a place, which its value has or which follows from the place.
    pub fn at(&self, place: u64, score: u64) -> u64 {
        match self {
            Self::First => 0,
            Self::Last => !place,
            _ => score,
        }
    }
}

/// The number that a JSON value is. A table has Infinity and NaN, too.
fn number(json: &str) -> Option<f64> {
    json.parse().ok().filter(|number: &f64| !number.is_nan())
}

/// Numbers in their order. -0 is 0.
fn ordered(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "first" => Ok(Self::First),
            None if text == "last" => Ok(Self::Last),
            Some(("max", at)) => Ok(Self::Most(value_at(at)?)),
            Some(("min", at)) => Ok(Self::Least(value_at(at)?)),
            Some(("order", rest)) => {
                let (at, names) =
                    rest.split_once('=').ok_or("give the strings in their order: order:/source=books,web")?;
                Ok(Self::Order(value_at(at)?, names.split(',').map(str::to_owned).collect()))
            }
            _ => Err("give first, last, max:POINTER, min:POINTER or order:POINTER=A,B,C".to_owned()),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Last => f.write_str("last"),
            Self::Most(pointer) => write!(f, "max:{pointer}"),
            Self::Least(pointer) => write!(f, "min:{pointer}"),
            Self::Order(pointer, names) => write!(f, "order:{pointer}={}", names.join(",")),
        }
    }
}

/// Where a value is: a JSON pointer, or the name of a column or a member, such as page.url.
pub fn value_at(text: &str) -> Result<Pointer, String> {
    match text {
        "" => Err("name a value: a JSON pointer such as /score, or a column".to_owned()),
        _ if text.starts_with('/') => text.parse().map_err(str::to_owned),
        name => Ok(Pointer::of_names(name.split('.'))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn score(choice: &str, document: &str) -> u64 {
        choice.parse::<Choice>().unwrap().score_of(document, &mut String::new())
    }

    #[test]
    fn better_ones_have_lower_scores() {
        for (choice, documents) in [
            (
                "max:/a",
                [
                    r#"{"a":1e999}"#,
                    r#"{"a":10}"#,
                    r#"{"a":9.5}"#,
                    r#"{"a":0}"#,
                    r#"{"a":-1e-300}"#,
                    r#"{"a":-1e999}"#,
                    r#"{"a":"11"}"#,
                ],
            ),
            (
                "min:a",
                [
                    r#"{"a":-1e999}"#,
                    r#"{"a":-7}"#,
                    r#"{"a":-6.5E0}"#,
                    r#"{"a":0}"#,
                    r#"{"a":1e-300}"#,
                    r#"{"a":1e999}"#,
                    r#"{"a":null}"#,
                ],
            ),
            (
                "order:/a=x,,é,1",
                [r#"{"a":"x"}"#, r#"{"a":""}"#, r#"{"a":"\u00e9"}"#, r#"{"a":"1"}"#, r#"{"a":"X"}"#, "", ""],
            ),
        ] {
            let scores: Vec<u64> = documents.iter().map(|document| score(choice, document)).collect();
            let found = scores.iter().take_while(|&&score| score != NONE).count();
            assert!(scores[..found].is_sorted_by(|a, b| a < b) && scores[found..].iter().all(|&score| score == NONE));
            assert_eq!(found, if choice.starts_with('o') { 4 } else { 6 }, "{choice}");
        }
        assert_eq!(score("max:/a", r#"{"a":-0.0}"#), score("max:/a", r#"{"a":0}"#));
        assert_eq!(score("max:/a/b", r#"{"a":{"b":[7]}}"#), NONE);
        assert_eq!(score("min:a.b", r#"{"a":{"b":7}}"#), score("min:/a/b", r#"{"a":{"b":7.0}}"#));
    }

    #[test]
    fn what_is_no_choice_is_refused() {
        for text in ["", "both", "first:", "max", "max:", "max:/~", "order:/a", "order:=a", "best:/a"] {
            assert!(text.parse::<Choice>().is_err(), "{text:?}");
        }
        for text in ["first", "last", "max:/a~1b", "min:/a", "order:/a=b,c,d=e"] {
            assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn numbers_keep_their_order(a: f64, b: f64) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            prop_assert_eq!(ordered(a).cmp(&ordered(b)), a.partial_cmp(&b).unwrap());
            prop_assert!(ordered(a) != NONE);
        }
    }
}
