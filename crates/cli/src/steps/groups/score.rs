//! Scores: the values that lines are chosen by, as words. The least score is the best.
//!
//! A score consists of a kind and the value's bytes in order, seven in each word. The last byte of a word is the number of bytes in
//! it, or indicates that another word follows. So no score is a prefix of another, and values of any length are compared to their
//! ends.

/// The score of a line without a value. It ranks after all others.
pub const NONE: u64 = u64::MAX;

/// The score of a line that is kept in any case. It ranks before all others.
pub const FIRST: u64 = 0;

/// The number of content bytes in a word, and the last byte of a word that is followed by another.
const CONTENT: usize = 7;
const MORE: u8 = 8;

/// The kind of a value. The first is the best, in either order of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Number,
    Text,
}

impl Kind {
    /// Returns the kind of the value whose score begins with this word.
    pub fn from_first_word(first: u64) -> Option<Self> {
        let [kind, ..] = first.to_be_bytes();
        if first == FIRST {
            return None;
        }
        [Self::Number, Self::Text].into_iter().find(|other| *other as u8 == kind)
    }
}

/// True if another word of the score follows.
pub fn has_more(word: u64) -> bool {
    [MORE, !MORE].contains(&(word as u8))
}

/// Returns the bytes of a text from its score.
pub fn text_of(score: &[u64]) -> Option<Vec<u8>> {
    (Kind::from_first_word(*score.first()?) == Some(Kind::Text)).then_some(())?;
    let mut bytes = Vec::new();
    for word in score {
        let [content @ .., length] = word.to_be_bytes();
        let (mask, length) = if length > MORE { (u8::MAX, !length) } else { (0, length) };
        bytes.extend(content[..CONTENT.min(length.into())].iter().map(|byte| byte ^ mask));
    }
    // The first byte is the kind.
    bytes.remove(0);
    Some(bytes)
}

/// Appends the score of a value with these bytes. The least bytes are the best, or the greatest if `reversed`.
pub fn push(kind: Kind, bytes: &[u8], reversed: bool, score: &mut Vec<u64>) {
    // The order of kinds is never reversed.
    let mut mask = if reversed { u64::MAX >> u8::BITS } else { 0 };
    let mut bytes = [kind as u8].into_iter().chain(bytes.iter().copied()).peekable();
    while bytes.peek().is_some() {
        let (mut word, mut length) = ([0; CONTENT + 1], 0);
        for (content, byte) in word[..CONTENT].iter_mut().zip(bytes.by_ref()) {
            *content = byte;
            length += 1;
        }
        word[CONTENT] = if bytes.peek().is_some() { MORE } else { length };
        score.push(u64::from_be_bytes(word) ^ mask);
        mask = if reversed { u64::MAX } else { 0 };
    }
}

/// The sign of a number that is not negative, and the bias of the power of ten. Infinity and zero lie beyond.
const SIGN: u16 = 1 << 15;
const BIAS: i64 = 1 << 14;

/// Appends bytes in the order of numbers if a JSON value is a number: its sign, its power of ten, and then all digits, two in a
/// byte. `false` is 0 and `true` is 1. Tables also have Infinity. Returns false for any other value.
pub fn push_number(json: &str, bytes: &mut Vec<u8>) -> bool {
    let (negative, number) = json.strip_prefix('-').map_or((false, json), |number| (true, number));
    let number = match number {
        "false" => "0",
        "true" => "1",
        "Infinity" => "1e32768",
        number if number.starts_with(|first: char| first.is_ascii_digit()) => number,
        _ => return false,
    };
    let (number, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = integer.bytes().chain(fraction.bytes());
    let is_zero = |digit: &u8| *digit == b'0';
    let leading = digits.clone().take_while(is_zero).count();
    let length = integer.len() + fraction.len() - digits.clone().rev().take_while(is_zero).count();
    let far = if exponent.starts_with('-') { i32::MIN } else { i32::MAX };
    let power = BIAS + (integer.len() as i64 - leading as i64) + i64::from(exponent.parse().unwrap_or(far));
    let start = bytes.len();
    match u16::try_from(power) {
        _ if length <= leading || power < 1 => {
            bytes.extend(SIGN.to_be_bytes());
            return true;
        }
        Ok(power @ 1..0x7fff) => {
            bytes.extend((SIGN | power).to_be_bytes());
            let mut digits = digits.take(length).skip(leading).map(|digit| digit - b'0');
            while let Some(digit) = digits.next() {
                bytes.push(1 + 10 * digit + digits.next().unwrap_or(0));
            }
        }
        _ => bytes.extend(u16::MAX.to_be_bytes()),
    }
    if negative {
        bytes[start..].iter_mut().for_each(|byte| *byte = !*byte);
        // Of two negative numbers with a common prefix, the longer is less.
        bytes.push(u8::MAX);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn score_of(kind: Kind, bytes: &[u8], reversed: bool) -> Vec<u64> {
        let mut score = Vec::new();
        push(kind, bytes, reversed, &mut score);
        // Only the last word marks the end of the score.
        assert!(score.iter().rev().skip(1).all(|&word| has_more(word)) && !has_more(score[score.len() - 1]));
        assert_eq!(Kind::from_first_word(score[0]), Some(kind));
        score
    }

    fn number(json: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(push_number(json, &mut bytes), "{json}");
        bytes
    }

    #[test]
    fn scores_of_numbers_are_ordered() {
        let ordered: [&[&str]; 25] = [
            &["-Infinity", "-1e20000", "-1e99999999999999999999"],
            &["-1e300"],
            &["-9223372036854775808"],
            &["-9223372036854775807"],
            &["-10"],
            &["-9.51"],
            &["-9.5", "-95e-1", "-9.50"],
            &["-9.4999999999999999999999999"],
            &["-1.00001"],
            &["-1"],
            &["-0.001"],
            &["-1e-300"],
            &["0", "-0", "0.0", "0e7", "-0.00E+5", "false", "1e-99999999999999999999"],
            &["1e-300"],
            &["0.1"],
            &["0.10000000000000000000001"],
            &["1", "1.0", "10e-1", "0.1E1", "0.01e+2", "true"],
            &["1.5"],
            &["9"],
            &["10", "1e1"],
            &["9007199254740992"],
            &["9007199254740993", "9007199254740993.000"],
            &["18446744073709551615"],
            &["18446744073709551616", "1.8446744073709551616e19"],
            &["Infinity", "1e20000"],
        ];
        let keys: Vec<Vec<u8>> = ordered.iter().map(|equal| number(equal[0])).collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
        for (key, equal) in keys.iter().zip(ordered) {
            assert!(equal.iter().all(|other| number(other) == *key), "{equal:?}");
        }
        for json in ["null", "NaN", "[1]", "{\"a\":1}", "\"1\""] {
            assert!(!push_number(json, &mut Vec::new()), "{json}");
        }
    }

    proptest! {
        #[test]
        fn scores_of_doubles_and_integers_are_ordered(a: f64, b: f64, c: i128, d: i128, few in any::<bool>()) {
            prop_assume!(a.is_finite() && b.is_finite());
            let key = |double: f64| number(&serde_json::to_string(&double).unwrap());
            prop_assert_eq!(key(a).cmp(&key(b)), a.partial_cmp(&b).unwrap());
            let [c, d] = if few { [c % 300, d % 300] } else { [c, d] };
            prop_assert_eq!(number(&c.to_string()).cmp(&number(&d.to_string())), c.cmp(&d));
        }

        #[test]
        fn scores_of_texts_are_ordered_by_bytes(
            a in prop::collection::vec(0..3u8, 0..20),
            b in prop::collection::vec(0..3u8, 0..20),
            more in prop::collection::vec(any::<u8>(), 0..20),
            reversed: bool,
        ) {
            let expected = |order: Ordering| if reversed { order.reverse() } else { order };
            for (a, b) in [(&a, &b), (&a, &[a.clone(), more.clone()].concat()), (&more, &b)] {
                let [own, other] = [a, b].map(|bytes| score_of(Kind::Text, bytes, reversed));
                prop_assert_eq!(own.cmp(&other), expected(a.cmp(b)));
                prop_assert!(score_of(Kind::Number, b, reversed) < own && own < vec![NONE]);
                prop_assert_eq!(text_of(&own), Some(a.clone()));
                prop_assert_eq!(text_of(&score_of(Kind::Number, a, reversed)), None);
            }
        }
    }
}
