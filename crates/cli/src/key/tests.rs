//! Tests of keys, their names, and the errors of lines without a key.

use super::*;
use ::url::ParseError;
use bloomline_keys::MAX_NAME_BYTES as NAME_BYTES;
use proptest::prelude::*;
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// The rule of whole lines.
pub const LINE: KeyRule = KeyRule::new(KeyPart::Line);

fn numbered(numbers: &[RangeInclusive<usize>]) -> Vec<FieldSelector> {
    numbers.iter().map(|numbers| FieldSelector::Numbers(*numbers.start(), Some(*numbers.end()))).collect()
}

/// Returns a part with the fields of a list, as `-f` parses it.
fn part_picks(list: &str, split: FieldSplit) -> KeyPart {
    KeyPart::Fields { selectors: list.split(',').map(|selector| selector.parse().unwrap()).collect(), split }
}

fn part_fields(numbers: &[RangeInclusive<usize>], delimiter: &[u8]) -> KeyPart {
    KeyPart::Fields { selectors: numbered(numbers), split: FieldSplit::At(delimiter.to_vec()) }
}

fn part_field(number: usize, delimiter: &[u8]) -> KeyPart {
    part_fields(&[number..=number], delimiter)
}

fn part_csv(numbers: &[RangeInclusive<usize>], delimiter: u8) -> KeyPart {
    KeyPart::Fields { selectors: numbered(numbers), split: FieldSplit::Csv(delimiter.into()) }
}

fn part_values(pointers: &[&str]) -> KeyPart {
    KeyPart::from_pointers(pointers.iter().map(|pointer| pointer.parse().unwrap()))
}

fn part_json(pointer: &str) -> KeyPart {
    part_values(&[pointer])
}

fn key(rule: &KeyRule, line: impl AsRef<[u8]>) -> Result<Vec<u8>, KeyError> {
    rule.key(line.as_ref(), &mut KeyScratch::default()).map(<[u8]>::to_vec)
}

fn bytes(text: impl AsRef<[u8]>) -> Result<Vec<u8>, KeyError> {
    Ok(text.as_ref().to_vec())
}

#[test]
fn only_the_plain_rule_is_a_line_rule() {
    assert!(LINE.is_line());
    assert!(!KeyRule { crlf: true, ..LINE }.is_line());
    assert!(!KeyRule { part: KeyPart::Record(b','.into()), ..LINE }.is_line());
    assert!(!KeyRule { trim: PartNumbers::All, ..LINE }.is_line());
    assert!(!KeyRule { url: PartNumbers::All, ..LINE }.is_line());
    assert!(!KeyRule { ignore_case: PartNumbers::All, ..LINE }.is_line());
    assert!(!KeyRule { part: part_field(1, b"\t"), ..LINE }.is_line());
    assert!(!KeyRule { part: part_json(""), ..LINE }.is_line());
}

#[test]
fn plain_lines_are_their_own_keys() {
    for line in [&b""[..], b" a\r", b"\xff\0"] {
        assert_eq!(key(&LINE, line), bytes(line));
    }
}

/// The key of a text that begins with the mark of another kind differs from the key of such a value.
#[test]
fn texts_that_begin_with_a_kind_mark_are_escaped() {
    for line in [&b"\xffn1"[..], b"\xff"] {
        let escaped = [b"\xff", line].concat();
        assert_eq!(key(&KeyRule { part: part_field(1, b","), ..LINE }, line), bytes(&escaped));
        let rule = KeyRule { part: part_picks("a", FieldSplit::Csv(b','.into())), ..LINE };
        assert_eq!(key(&rule.resolved(b"a").unwrap(), line), bytes(&escaped));
    }
}

#[test]
fn texts_are_read_as_numbers_and_times() {
    let number = KeyRule { number: PartNumbers::All, ..LINE };
    for (text, json) in [("007", "7"), (" +7.0 ", "7e0"), ("-.5", "-0.5"), ("5.", "5"), ("1E400", "1e400"), ("-0", "0")]
    {
        let of_json = key(&KeyRule { part: part_json(""), ..LINE }, json);
        assert_eq!(key(&number, text), of_json, "{text}");
        // In JSON, a text is parsed as a number, and a number is used as it is.
        let in_json = KeyRule { part: part_json("/a"), ..number.clone() };
        assert_eq!(key(&in_json, serde_json::json!({ "a": text }).to_string()), of_json);
        assert_eq!(key(&in_json, format!(r#"{{"a":{json}}}"#)), of_json);
    }
    assert_eq!(key(&number, "NaN"), bytes(b"\xffnnan"));
    assert_eq!(key(&number, "-inf"), bytes(b"\xffn-inf"));
    for text in ["a", "1,5", "++1", "+-1", "--1", "0x1", "1 2", "1e", "e5", "."] {
        assert_eq!(key(&number, text), Err(KeyError::NoNumber { text: text.to_owned() }), "{text}");
    }
    let time = KeyRule { time: PartNumbers::All, ..LINE };
    assert_eq!(key(&time, "1970-01-01T00:00:01Z"), bytes(b"\xffi1"));
    assert_eq!(key(&time, "now"), Err(KeyError::NoTime { text: "now".to_owned() }));
    // An empty text is a null.
    for rule in [number, time] {
        assert_eq!(key(&rule, " "), bytes(b"\xff0"));
        assert_eq!(key(&KeyRule { nulls: false, ..rule }, ""), Err(KeyError::Null));
    }
}

/// A row has the same key in every format and with every order of its columns.
#[test]
fn named_fields_form_a_row() {
    let resolved = |list, header: &str| {
        let rule = KeyRule { part: part_picks(list, FieldSplit::Csv(b','.into())), ..LINE };
        rule.resolved(header.as_bytes()).unwrap()
    };
    let row = key(&resolved("id,name", "id,name,other"), "x,y,z");
    let length = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let expected = [b"\xff{".to_vec(), length("id"), length("x"), length("name"), length("y")].concat();
    assert_eq!(row, Ok(expected));
    assert_eq!(key(&resolved("name,id", "name,id"), "y,x"), row);
    assert_eq!(key(&KeyRule { part: part_values(&["/name", "/id"]), ..LINE }, r#"{"id":"x","name":"y"}"#), row);
    assert_eq!(key(&KeyRule { part: part_json(""), ..LINE }, r#"{"name":"y","id":"x"}"#), row);
    assert_ne!(key(&resolved("id,name", "name,id"), "x,y"), row);
    // Parts are numbered in the order of the options.
    let rule = KeyRule { ignore_case: PartNumbers::Some(vec![1]), ..resolved("name,id", "id,name") };
    assert_eq!(key(&rule, "X,Y"), key(&resolved("id,name", "id,name"), "X,y"));
}

#[test]
fn kinds_follow_from_the_rule_or_the_lines() {
    let fixed = |rule: &KeyRule| rule.fixed_kinds().map(|kinds| kinds.to_bits());
    let [text, number] = [Kinds::TEXT, Kinds::NUMBER].map(u16::from);
    let in_row = u16::from(Kinds::IN_ROW);
    assert_eq!(fixed(&LINE), Some(vec![text]));
    assert_eq!(fixed(&KeyRule { part: part_fields(&[1..=2], b","), ..LINE }), Some(vec![text; 2]));
    let rule =
        KeyRule { part: part_picks("b,a", FieldSplit::Csv(b','.into())), number: PartNumbers::Some(vec![1]), ..LINE };
    assert_eq!(fixed(&rule), Some(vec![text | in_row, number | in_row]));
    assert_eq!(fixed(&rule.resolved(b"a,b").unwrap()), fixed(&rule));
    let found = |rule: &KeyRule, lines: &[&str]| {
        assert_eq!(rule.fixed_kinds(), None);
        let mut scratch = KeyScratch::default();
        lines.iter().for_each(|line| _ = rule.key(line.as_bytes(), &mut scratch).unwrap());
        scratch.take_kinds().to_bits()
    };
    let values = KeyRule { part: part_json("/a"), ..LINE };
    assert_eq!(found(&values, &[r#"{"a":1}"#, r#"{"a":null}"#]), [number]);
    assert_eq!(found(&values, &[r#"{"a":"1"}"#, r#"{"a":2}"#]), [text | number]);
    assert_eq!(found(&KeyRule { number: PartNumbers::All, ..values }, &[r#"{"a":"1"}"#]), [number]);
    let rows = KeyRule { part: part_values(&["/b", "/a"]), ..LINE };
    assert_eq!(found(&rows, &[r#"{"a":null,"b":[1]}"#]), [in_row, u16::from(Kinds::LIST) | in_row]);
    let time = KeyRule { time: PartNumbers::All, ..LINE };
    assert_eq!(found(&time, &["2026-01-01", "07:05"]), [u16::from(Kinds::DATE | Kinds::TIME)]);
}

#[test]
fn fields_match_cut() {
    let field = |number, delimiter: &str, line: &str| {
        key(&KeyRule { part: part_field(number, delimiter.as_bytes()), ..LINE }, line)
    };
    assert_eq!(field(1, "\t", "a\tb\tc"), bytes("a"));
    assert_eq!(field(2, "\t", "a\tb\tc"), bytes("b"));
    assert_eq!(field(3, "\t", "a\tb\tc"), bytes("c"));
    assert_eq!(field(4, "\t", "a\tb\tc"), Err(KeyError::Field { number: 4, fields: 3 }));
    assert_eq!(field(1, ",", ",,"), bytes(""));
    assert_eq!(field(3, ",", ",,"), bytes(""));
    assert_eq!(field(4, ",", ",,"), Err(KeyError::Field { number: 4, fields: 3 }));
    assert_eq!(field(1, ",", ""), bytes(""));
    assert_eq!(field(2, ",", ""), Err(KeyError::Field { number: 2, fields: 1 }));
    assert_eq!(field(usize::MAX, ",", "a"), Err(KeyError::Field { number: usize::MAX, fields: 1 }));
    assert_eq!(field(2, "::", "a:b::c:::d"), bytes("c"));
    assert_eq!(field(3, "::", "a:b::c:::d"), bytes(":d"));
    assert_eq!(field(2, "\u{2192}", "a\u{2192}b"), bytes("b"));
    assert_eq!(field(2, ",", "a, b\r"), bytes(" b\r"));
}

#[test]
fn a_final_carriage_return_is_not_part_of_the_key() {
    let rule = KeyRule { crlf: true, ..LINE };
    for (line, expected) in [("a\r", "a"), ("a", "a"), ("\r", ""), ("a\r\r", "a\r"), ("\ra", "\ra")] {
        assert_eq!(key(&rule, line), bytes(expected));
        // A carriage return within a CSV record is an error.
        let record = if expected.contains('\r') { Err(KeyError::LoneCr) } else { bytes(expected) };
        assert_eq!(key(&KeyRule { part: KeyPart::Record(b','.into()), ..LINE }, line), record);
    }
    let rule = KeyRule { part: part_field(2, b","), ..rule };
    assert_eq!(key(&rule, "a\r,b\r"), bytes("b"));
    assert_eq!(key(&KeyRule { part: part_field(1, b","), ..rule }, "a\r,b\r"), bytes("a\r"));
}

#[test]
fn field_lists_are_parsed_as_by_cut() {
    for (text, expected) in [
        ("2", Some((2, Some(2)))),
        ("2-4", Some((2, Some(4)))),
        ("3-3", Some((3, Some(3)))),
        ("2-", Some((2, None))),
        ("-3", Some((1, Some(3)))),
        ("007", Some((7, Some(7)))),
        ("4294967295-", Some((u32::MAX as usize, None))),
        ("", None),
        ("-", None),
        ("0", None),
        ("0-", None),
        ("-0", None),
        ("0-2", None),
        ("4-2", None),
        ("4294967296", None),
        ("-a", None),
        ("--csv", None),
    ] {
        let numbers = expected.map(|(first, last)| FieldSelector::Numbers(first, last));
        assert_eq!(text.parse::<FieldSelector>().ok(), numbers, "{text:?}");
    }
    for name in ["url", "2a", "a-", "1.5", "+1", " 1", "2024-01-02", "\u{e4}"] {
        assert_eq!(name.parse::<FieldSelector>(), Ok(FieldSelector::Name(name.to_owned())));
    }
}

#[test]
fn names_are_resolved_with_the_header() {
    let one = |number| FieldSelector::Numbers(number, Some(number));
    let resolved = |list, split: &FieldSplit, crlf, header: &str| {
        let rule = KeyRule { part: part_picks(list, split.clone()), crlf, ..LINE };
        Ok(match rule.resolved(header.as_bytes())?.part {
            KeyPart::Fields { selectors, .. } => selectors,
            KeyPart::NamedFields { fields, .. } => fields.iter().map(|field| one(field.at)).collect(),
            _ => unreachable!(),
        })
    };
    let (csv, tab) = (FieldSplit::Csv(b';'.into()), FieldSplit::At(b"\t".to_vec()));
    assert_eq!(resolved("b,a,2-", &csv, false, "a;x;b"), Ok(vec![one(3), one(1), FieldSelector::Numbers(2, None)]));
    assert_eq!(resolved("b", &csv, false, "\"a;\n\";\"b\"\r"), Ok(vec![one(2)]));
    assert_eq!(resolved("say \"b\"", &csv, false, "a;\"say \"\"b\"\"\""), Ok(vec![one(2)]));
    assert_eq!(resolved("b", &tab, true, "a\tb\r"), Ok(vec![one(2)]));
    assert_eq!(resolved("\"b\"", &tab, false, "a\t\"b\""), Ok(vec![one(2)]));
    assert_eq!(resolved("2-,1", &tab, false, ""), Ok(vec![FieldSelector::Numbers(2, None), one(1)]));
    let missing = |names: &[&str], is_csv| {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Err(KeyError::NoName { name: "b".to_owned(), names, is_csv })
    };
    assert_eq!(resolved("a,b", &tab, false, "a\tB"), missing(&["a", "B"], false));
    assert_eq!(resolved("b", &tab, false, "a\tb\r"), missing(&["a", "b\r"], false));
    assert_eq!(resolved("b", &csv, false, ""), missing(&[""], true));
    let twice = KeyError::TwoNames { name: "b".to_owned(), numbers: [1, 3] };
    assert_eq!(resolved("b", &csv, false, "b;a;\"b\";b"), Err(twice));
    assert_eq!(resolved("a", &csv, false, "b;a;b"), Ok(vec![one(2)]));
    assert_eq!(resolved("a", &csv, false, "a;\"b"), Err(KeyError::Quote { has_escape: false }));
}

#[test]
fn white_space_around_the_key_is_trimmed() {
    let rule = KeyRule { trim: PartNumbers::All, ..LINE };
    assert_eq!(key(&rule, " \t\x0c\r\na b\r"), bytes("a b"));
    assert_eq!(key(&rule, ""), bytes(""));
    assert_eq!(key(&rule, " \r"), bytes(""));
    assert_eq!(key(&rule, b" \xff "), bytes(b"\xff"));
    // White space outside ASCII is kept.
    assert_eq!(key(&rule, "\u{a0}a\u{3000}"), bytes("\u{a0}a\u{3000}"));
    // The key is trimmed, not the line.
    assert_eq!(key(&KeyRule { part: part_field(2, b","), ..rule }, "a , b ,c"), bytes("b"));
    let rule = KeyRule { part: part_json("/a"), trim: PartNumbers::All, ..LINE };
    assert_eq!(key(&rule, r#"{"a":"\n b\t"}"#), bytes("b"));
}

#[test]
fn case_is_ignored() {
    let rule = KeyRule { ignore_case: PartNumbers::All, ..LINE };
    assert_eq!(key(&rule, ""), bytes(""));
    assert_eq!(key(&rule, "aBC [1]"), bytes("abc [1]"));
    assert_eq!(key(&rule, "\u{c4}\u{410}A"), bytes("\u{e4}\u{430}a"));
    // Lower case of the word's last letter is the final form of sigma.
    assert_eq!(key(&rule, "\u{39f}\u{3a3}"), bytes("\u{3bf}\u{3c2}"));
    assert_eq!(key(&rule, b"A\xc3\x84\xff"), bytes(b"a\xc3\x84\xff"));
}

#[test]
fn urls_are_normalized() {
    let rule = KeyRule { url: PartNumbers::All, ..LINE };
    assert_eq!(key(&rule, " HTTP://Example.org.:80/%c3#a\r"), bytes("http://example.org/%C3"));
    assert_eq!(key(&rule, ""), Err(KeyError::Url(ParseError::RelativeUrlWithoutBase)));
    assert_eq!(key(&rule, "example.org"), Err(KeyError::Url(ParseError::RelativeUrlWithoutBase)));
    assert!(matches!(key(&rule, b"http://example.org/\xff"), Err(KeyError::Utf8(_))));
}

#[test]
fn json_values_are_keys() {
    let rule = KeyRule { part: part_json("/text"), ..LINE };
    assert_eq!(key(&rule, "{\"id\":1,\"text\":\"a\"}\r"), bytes("a"));
    assert_eq!(key(&rule, r#"{"text":"1"}"#), bytes("1"));
    assert_eq!(key(&rule, r#"{"id":1}"#), Err(KeyError::NoValue { pointer: "/text".to_owned(), is_array: false }));
    assert!(matches!(key(&rule, ""), Err(KeyError::Json(_))));
    assert!(matches!(key(&rule, r#"{"text":"a","#), Err(KeyError::Json(_))));
    // Invalid UTF-8 anywhere is invalid JSON.
    for line in [&b"{\"text\":\"\xff\"}"[..], b"{\"text\":\"a\",\"b\":\"\xff\"}", b"{\"text\":\"a\"}\xff"] {
        assert!(matches!(key(&rule, line), Err(KeyError::Utf8(_))));
    }
}

#[test]
fn json_values_of_different_types_have_different_keys() {
    for (trim, ignore_case) in [(false, false), (true, false), (false, true), (true, true)] {
        let [trim, ignore_case] = [trim, ignore_case].map(PartNumbers::from);
        let rule = KeyRule { part: part_json("/a"), trim, ignore_case, ..LINE };
        let texts = ["null", "true", "1", "1.5", "-0", "[]", "[1]", r#"["1"]"#, "{}", r#"{"b":1}"#];
        let values = texts.map(|text| key(&rule, format!(r#"{{"a":{text}}}"#)).unwrap());
        let strings = texts.map(|text| key(&rule, serde_json::json!({ "a": text }).to_string()).unwrap());
        // The key of a string equals the key of a line with the same text. Keys of other values equal no line of text.
        assert_eq!(strings, texts.map(|text| text.as_bytes().to_vec()));
        assert!(values.iter().all(|value| from_utf8(value).is_err()), "{values:?}");
        let all: HashSet<_> = values.iter().chain(&strings).collect();
        assert_eq!(all.len(), 2 * texts.len());
    }
    // Strings within arrays and objects are not normalized.
    let rule = KeyRule { part: part_json(""), ignore_case: PartNumbers::All, ..LINE };
    assert_ne!(key(&rule, r#"["A"]"#), key(&rule, r#"[ "a" ]"#));
    let rule = KeyRule { part: part_json("/a"), url: PartNumbers::All, ..LINE };
    assert_eq!(key(&rule, r#"{"a":"http://a"}"#), bytes("http://a/"));
    for value in ["1", "null", r#"["http://a/"]"#] {
        let key_error = key(&rule, format!(r#"{{"a":{value}}}"#));
        assert_eq!(key_error, Err(KeyError::NoString { pointer: "/a".to_owned() }), "{value}");
    }
}

#[test]
fn csv_fields_lose_their_quotes() {
    let field =
        |number, delimiter, line: &str| key(&KeyRule { part: part_csv(&[number..=number], delimiter), ..LINE }, line);
    for (line, expected) in [
        ("", &[""][..]),
        (",", &["", ""]),
        ("a,b", &["a", "b"]),
        (r#""a",b"#, &["a", "b"]),
        (r#""a,b",c"#, &["a,b", "c"]),
        (r#""say ""hi""","""#, &["say \"hi\"", ""]),
        (r#""","""#, &["", ""]),
        (r#"a"b",c"#, &["a\"b\"", "c"]),
        (r#" "a",b"#, &[" \"a\"", "b"]),
        ("\"a\nb\",c", &["a\nb", "c"]),
        ("a,b\r", &["a", "b"]),
        ("a,\"b\"\r", &["a", "b"]),
        ("a,\"b\r\"", &["a", "b\r"]),
        ("\u{feff}\"a\",b", &["\u{feff}\"a\"", "b"]),
        ("\u{feff},\"b\"", &["\u{feff}", "b"]),
    ] {
        for (i, text) in expected.iter().enumerate() {
            assert_eq!(field(i + 1, b',', line), bytes(text), "{line:?}");
            assert_eq!(field(i + 1, b';', &line.replace(',', ";")), bytes(text.replace(',', ";")), "{line:?}");
        }
        let (number, fields) = (expected.len() + 1, expected.len());
        assert_eq!(field(number, b',', line), Err(KeyError::Field { number, fields }), "{line:?}");
    }
    for line in ["\"", "a,\"b", "\"a\"\"", "\"a,b\r", "a,\""] {
        assert_eq!(field(1, b',', line), Err(KeyError::Quote { has_escape: false }), "{line:?}");
    }
    for (line, number) in [(r#""a"b"c,d"#, 1), (r#"1,"Acme \"A\", Paris""#, 2), (r#"1,"a" ,b"#, 2), ("1,\"a\"\r\r", 2)]
    {
        let key_error = KeyError::BehindQuote { field: number, has_escape: false };
        assert_eq!(field(1, b',', line), Err(key_error), "{line:?}");
    }
}

const ESCAPED: Csv = Csv { delimiter: b',', escape: Some(b'\\'), columns: None };

#[test]
fn escaped_quotes_need_the_escape_option() {
    let field = |number: usize, csv: Csv, line: &str| {
        key(&KeyRule { part: part_picks(&number.to_string(), FieldSplit::Csv(csv)), ..LINE }, line)
    };
    for (line, expected) in [
        (r#"1,"Acme \"A\", Paris",x"#, &["1", r#"Acme "A", Paris"#, "x"][..]),
        (r#""5\"",b"#, &["5\"", "b"]),
        (r#""a\\",b"#, &["a\\", "b"]),
        (r#""a\\\"",b"#, &["a\\\"", "b"]),
        (r#""a""b","""#, &["a\"b", ""]),
        // In other positions a backslash is text, as in a field without quotes.
        (r#""C:\new",C:\new,\"#, &[r"C:\new", r"C:\new", r"\"]),
        (r#"a\"b,c"#, &[r#"a\"b"#, "c"]),
    ] {
        for (i, text) in expected.iter().enumerate() {
            assert_eq!(field(i + 1, ESCAPED, line), bytes(text), "{line:?}");
        }
        assert!(field(expected.len() + 1, ESCAPED, line).is_err());
    }
    assert_eq!(field(1, ESCAPED, r#""a\","#), Err(KeyError::Quote { has_escape: true }));
    assert_eq!(field(1, ESCAPED, r#""a"b\"","#), Err(KeyError::BehindQuote { field: 1, has_escape: true }));
    // Without an escape, a backslash before a closing quote is text if the rest of the record is valid.
    let (two, any) = (Csv { columns: Some(2), ..b','.into() }, Csv::from(b','));
    for (line, key_error) in [
        (r#""C:\",b"#, None),
        (r#""C:\",b,c"#, Some(KeyError::Columns { fields: 3, columns: 2, may_be_escape: true })),
        (r#""a \", b", c"#, Some(KeyError::Amid { field: 2 })),
        (r#""a",b,c"#, Some(KeyError::Columns { fields: 3, columns: 2, may_be_escape: false })),
        ("a,b,c", Some(KeyError::Columns { fields: 3, columns: 2, may_be_escape: false })),
        ("a", Some(KeyError::Columns { fields: 1, columns: 2, may_be_escape: false })),
        (r#"a\"b,"c""#, None),
    ] {
        assert_eq!(field(1, two, line).err(), key_error, "{line:?}");
        let key_error = key_error.filter(|key_error| !matches!(key_error, KeyError::Columns { .. }));
        assert_eq!(field(1, any, line).err(), key_error, "{line:?}");
        assert_eq!(key(&KeyRule { part: KeyPart::Record(any), ..LINE }, line).err(), key_error, "{line:?}");
    }
    let resolved = KeyRule { part: KeyPart::Record(any), ..LINE }.resolved(b"\"a\",b\r").unwrap();
    assert!(matches!(resolved.part, KeyPart::Record(csv) if csv == two));
}

#[test]
fn normalizations_are_applied_in_order() {
    let rule = KeyRule {
        part: part_field(2, b"\t"),
        trim: PartNumbers::All,
        url: PartNumbers::All,
        ignore_case: PartNumbers::All,
        ..LINE
    };
    assert_eq!(key(&rule, "1\t http://Example.org/\u{c4}/A#B \t2"), bytes("http://example.org/%c3%84/a"));
    let rule = KeyRule { part: part_json("/u"), ..rule };
    assert_eq!(key(&rule, r#"{"u":"\thttp:\/\/Example.org\/A"}"#), bytes("http://example.org/a"));
    // No state leaks from one line to the next.
    let mut scratch = KeyScratch::default();
    for (line, expected) in [
        (r#"{"u":"http:\/\/a.example\/LONGER"}"#, Some("http://a.example/longer")),
        (r#"{"u":"\n"}"#, None),
        (r#"{"u":"http:\/\/b.example"}"#, Some("http://b.example/")),
    ] {
        assert_eq!(rule.key(line.as_bytes(), &mut scratch).ok(), expected.map(str::as_bytes));
    }
}

#[test]
fn key_names_are_readable() {
    let named = |part, trim, url, ignore_case| {
        let [trim, url, ignore_case] = [trim, url, ignore_case].map(PartNumbers::from);
        KeyRule { part, trim, url, ignore_case, ..LINE }.name()
    };
    for (part, expected) in [
        (KeyPart::Line, "line"),
        (part_field(2, b"\t"), "field 2 of lines split at tab"),
        (part_field(12, b", "), "field 12 of lines split at ', '"),
        (part_field(1, b"'\\\n\x1b"), r"field 1 of lines split at '\'\\\n\u{1b}'"),
        (part_json("/text"), "text"),
        (part_json("/~1a\n/\u{e4}"), r"'/a\n.ä'"),
        (part_json("/a.b"), "/a.b"),
        (part_json("/page/url"), "page.url"),
        (part_json(""), "value of JSON lines"),
        (part_field(1, b"\0"), "field 1 of lines split at NUL"),
        (part_fields(&[1..=1, 3..=3], b"\t"), "fields 1,3 of lines split at tab"),
        (part_fields(&[3..=3, 1..=1, 1..=1], b";"), "fields 3,1,1 of lines split at ';'"),
        (part_csv(&[2..=2], b','), "field 2 of CSV lines"),
        (part_csv(&[2..=4, 1..=1], b';'), "fields 2-4,1 of CSV lines split at ';'"),
        (KeyPart::Record(b','.into()), "record of CSV lines"),
        (KeyPart::Record(ESCAPED), r"record of CSV lines with the escape '\\'"),
        (part_picks("2", FieldSplit::Csv(ESCAPED)), r"field 2 of CSV lines with the escape '\\'"),
        (
            part_picks("2", FieldSplit::Csv(Csv { delimiter: b';', columns: Some(3), ..ESCAPED })),
            r"field 2 of CSV lines split at ';' with the escape '\\'",
        ),
        (part_picks("2-", FieldSplit::At(b"\t".to_vec())), "fields 2- of lines split at tab"),
        (part_picks("-3,1-1,-1", FieldSplit::Csv(b','.into())), "fields 1-3,1,1 of CSV lines"),
        (part_picks("url", FieldSplit::Csv(b','.into())), "url"),
        (part_picks("url,day", FieldSplit::At(b"\t".to_vec())), "day,url"),
        (KeyPart::Row(vec!["day".to_owned(), "url".to_owned()]), "day,url"),
        (KeyPart::Row(vec!["url".to_owned()]), "row of url"),
        (
            part_picks("it's,2-,title", FieldSplit::At(b",".to_vec())),
            r"fields 'it\'s',2-,'title' of lines split at ','",
        ),
        (part_json("/"), "''"),
        (part_values(&["/a", "/", "", "/b'c"]), r"'',/,a,'b\'c'"),
    ] {
        assert_eq!(named(part.clone(), false, false, false), expected);
        let all = format!("{expected}, trimmed, normal form of a URL, case ignored");
        assert_eq!(named(part, true, true, true), all);
    }
    assert_eq!(KeyRule { crlf: true, ..LINE }.name(), "line, without CR");
    let one = PartNumbers::Some(vec![1]);
    let rule = KeyRule {
        part: part_values(&["/a", "/b", "/c"]),
        trim: PartNumbers::Some(vec![1, 3]),
        url: one.clone(),
        ..LINE
    };
    assert_eq!(
        KeyRule { ignore_case: one, ..rule }.name(),
        "a,b,c, trimmed in part 1,3, normal form of a URL in part 1, case ignored in part 1"
    );
    assert_eq!(KeyRule { crlf: true, trim: PartNumbers::All, ..LINE }.name(), "line, without CR, trimmed");
    // The name of a column depends neither on number parsing nor on line endings.
    let as_number = KeyRule { number: PartNumbers::All, crlf: true, ..LINE };
    assert_eq!(as_number.name(), "line, without CR, as a number");
    assert_eq!(KeyRule { part: part_json("/id"), ..as_number }.name(), "id");
    assert_eq!(named(KeyPart::Line, true, false, false), "line, trimmed");
    assert_eq!(named(KeyPart::Line, false, true, false), "line, normal form of a URL");
    assert_eq!(named(KeyPart::Line, false, false, true), "line, case ignored");
}

fn name_of(part: KeyPart) -> String {
    KeyRule { part, ..LINE }.name()
}

#[test]
fn different_rules_have_different_names() {
    let mut parts = vec![KeyPart::Line, KeyPart::Record(b','.into()), KeyPart::Record(ESCAPED)];
    for list in ["1-", "2-", "1,2-", "-4", "2,3-", "a,1"] {
        // These delimiters do not occur below.
        parts.extend(
            [
                FieldSplit::At(b"|".to_vec()),
                FieldSplit::Csv(b'|'.into()),
                FieldSplit::Csv(Csv { delimiter: b'|', ..ESCAPED }),
            ]
            .map(|split| part_picks(list, split)),
        );
    }
    for delimiter in [&b","[..], b";", b"\t", b"\0", b"\\0", b"tab", b"' of"] {
        for numbers in [&[1..=1][..], &[2..=2], &[1..=1, 3..=3], &[3..=3, 1..=1], &[1..=3], &[1..=1, 1..=3], &[13..=13]]
        {
            parts.push(part_fields(numbers, delimiter));
            parts.extend((delimiter.len() == 1).then(|| part_csv(numbers, delimiter[0])));
        }
    }
    let mut named_parts = Vec::new();
    for pointers in [
        &[""][..],
        &["/"],
        &["/a"],
        &["/b"],
        &["/a/b"],
        &["/a.b"],
        &["/a", "/b"],
        &["/a", "/a"],
        &["/a,b"],
        &["/a' and '/b"],
        &["/a' and '/b", "/c"],
        &["/a", "/b", "/c"],
        &["", ""],
        &["/a of JSON lines, trimmed"],
    ] {
        named_parts.push(part_values(pointers));
    }
    for name in ["1-2-3", "a' of", "'", "'1'"] {
        named_parts.push(part_picks(name, FieldSplit::Csv(b'|'.into())));
    }
    let with_cr = parts.iter().map(|part| KeyRule { part: part.clone(), crlf: true, ..LINE }.name());
    let names = parts.iter().chain(&named_parts).flat_map(|part| {
        let part = || part.clone();
        [
            KeyRule { part: part(), ..LINE }.name(),
            KeyRule { part: part(), trim: PartNumbers::All, ..LINE }.name(),
            KeyRule { part: part(), url: PartNumbers::All, ..LINE }.name(),
            KeyRule { part: part(), ignore_case: PartNumbers::All, ..LINE }.name(),
        ]
    });
    let all: HashSet<String> = names.chain(with_cr).collect();
    assert_eq!(all.len(), 5 * parts.len() + 4 * named_parts.len());
    // The name depends neither on the order of columns nor on the delimiter of a header.
    assert_eq!(name_of(part_values(&["/b", "/a"])), name_of(part_picks("a,b", FieldSplit::At(b"\t".to_vec()))));
    // Lists that select equal fields have equal names.
    let name = |numbers: &[RangeInclusive<usize>]| KeyRule { part: part_fields(numbers, b","), ..LINE }.name();
    assert_eq!(name(&[1..=1, 2..=2, 3..=3, 5..=5]), name(&[1..=2, 3..=3, 5..=5]));
}

#[test]
fn long_names_are_shortened_and_remain_distinct() {
    let name = |text: &str| KeyRule { part: part_json(text), ..LINE }.name();
    let longest = "/".repeat(NAME_BYTES);
    assert_eq!(name(&longest), longest);
    for one in ["/", "\u{e4}", "\u{1f600}"] {
        let long = format!("{longest}{}", one.repeat(1000));
        let names = [&long, &format!("{long}a"), &format!("{long}b")].map(|text| name(text));
        let builder = |name| bloomline::BloomFilter::builder().memory(64).probes(4).key_name(name);
        assert!(names.iter().all(|name| builder(name).plan().is_ok() && name.len() > NAME_BYTES - 4));
        assert!(names[0] != names[1] && names[1] != names[2], "{names:?}");
    }
}

#[test]
fn errors_have_one_line() {
    let key_error = |rule: KeyRule, line: &[u8]| key(&rule, line).unwrap_err().to_string();
    assert_eq!(
        key_error(KeyRule { part: part_field(3, b","), ..LINE }, b"a"),
        "there is no field 3: the line has 1 field"
    );
    assert_eq!(
        key_error(KeyRule { part: part_field(3, b","), ..LINE }, b"a,"),
        "there is no field 3: the line has 2 fields"
    );
    assert_eq!(key_error(KeyRule { part: part_json("/a\nb"), ..LINE }, b"{}"), r#"there is no value at "/a\nb""#);
    for text in [
        key_error(KeyRule { part: part_json("/a"), ..LINE }, b"{"),
        key_error(KeyRule { part: part_json("/a"), ..LINE }, b"\xff"),
        key_error(KeyRule { url: PartNumbers::All, ..LINE }, b"a\nb"),
        key_error(KeyRule { url: PartNumbers::All, ..LINE }, b"\xff"),
    ] {
        assert_eq!(text.lines().count(), 1, "{text:?}");
    }
}

/// Splits a line naively.
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

/// Returns the key of a text: a second mark precedes a text that begins with a mark.
fn escaped(text: Vec<u8>) -> Vec<u8> {
    if text.first() == Some(&0xff) { [b"\xff", &text[..]].concat() } else { text }
}

/// Splits a line of CSV naively.
fn split_csv(line: &[u8], delimiter: u8) -> Result<Vec<Vec<u8>>, KeyError> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (mut fields, mut at) = (Vec::new(), 0);
    loop {
        let mut field = Vec::new();
        if line.get(at) == Some(&b'"') {
            at += 1;
            loop {
                match (line.get(at).ok_or(KeyError::Quote { has_escape: false })?, line.get(at + 1)) {
                    (b'"', Some(b'"')) => at += 1,
                    (b'"', _) => break,
                    _ => {}
                }
                field.push(line[at]);
                at += 1;
            }
            at += 1;
            if at < line.len() && line[at] != delimiter {
                return Err(KeyError::BehindQuote { field: fields.len() + 1, has_escape: false });
            }
        }
        while at < line.len() && line[at] != delimiter {
            if line[at] == b'\r' {
                return Err(KeyError::LoneCr);
            }
            field.push(line[at]);
            at += 1;
        }
        fields.push(field);
        if at == line.len() {
            return Ok(fields);
        }
        at += 1;
    }
}

/// Returns the key of each part by itself, or the first error.
fn keys(rule: &KeyRule, line: &[u8]) -> Result<Vec<Vec<u8>>, KeyError> {
    let parts: Vec<KeyPart> = match &rule.part {
        KeyPart::Line | KeyPart::Record(_) | KeyPart::Row(_) => vec![rule.part.clone()],
        KeyPart::Fields { selectors, split } => {
            let one = |number| KeyPart::Fields { selectors: numbered(&[number..=number]), split: split.clone() };
            let fields = match split {
                FieldSplit::At(delimiter) => self::split(line, delimiter).len(),
                FieldSplit::Csv(csv) => split_csv(line, csv.delimiter).map_or(0, |fields| fields.len()),
            };
            let numbers = selectors.iter().flat_map(|selector| match *selector {
                FieldSelector::Numbers(first, last) => first..=last.unwrap_or(fields.max(first)),
                FieldSelector::Name(_) => unreachable!(),
            });
            numbers.map(one).collect()
        }
        KeyPart::NamedFields { .. } | KeyPart::Json(_) => unreachable!(),
    };
    let of_part = |(number, part)| {
        let forms = [&rule.trim, &rule.url, &rule.ignore_case];
        let [trim, url, ignore_case] = forms.map(|parts| match parts {
            PartNumbers::Some(parts) => PartNumbers::from(parts.contains(&number)),
            all_or_none => all_or_none.clone(),
        });
        key(&KeyRule { part, trim, url, ignore_case, ..rule.clone() }, line)
    };
    (1..).zip(parts).map(of_part).collect()
}

fn some_parts() -> impl Strategy<Value = PartNumbers> {
    prop_oneof![
        Just(PartNumbers::None),
        Just(PartNumbers::All),
        prop::sample::subsequence(vec![1, 2, 3, 4], 0..4).prop_map(PartNumbers::Some),
    ]
}

fn some_picks() -> impl Strategy<Value = Vec<FieldSelector>> {
    let range = (1..4usize, prop::option::of(0..2usize));
    let selector = range.prop_map(|(first, more)| FieldSelector::Numbers(first, more.map(|more| first + more)));
    prop::collection::vec(selector, 1..4)
}

fn line_of(bytes: &'static [u8], most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(bytes), 0..=most)
}

proptest! {
    #[test]
    fn fields_match_a_naive_split(
        line in line_of(b",;\xff", 40),
        delimiter in prop::collection::vec(prop::sample::select(&b",;"[..]), 1..4),
    ) {
        let fields = split(&line, &delimiter);
        for number in 1..fields.len() + 3 {
            let rule = KeyRule { part: part_field(number, &delimiter), ..LINE };
            let expected = fields.get(number - 1).cloned().ok_or(KeyError::Field { number, fields: fields.len() });
            prop_assert_eq!(key(&rule, &line), expected.map(escaped));
        }
    }

    #[test]
    fn csv_fields_match_a_naive_split(line in line_of(b"\"\"\"\",,,;;a\r\n\0\xef\xbb\xbf", 40), delimiter in prop::sample::select(&b",;\0"[..])) {
        let fields = split_csv(&line, delimiter);
        for number in 1..fields.as_ref().map_or(0, Vec::len) + 3 {
            let rule = KeyRule { part: part_csv(&[number..=number], delimiter), ..LINE };
            let expected = split_csv(&line, delimiter).and_then(|fields| {
                fields.get(number - 1).cloned().ok_or(KeyError::Field { number, fields: fields.len() })
            });
            prop_assert_eq!(key(&rule, &line), expected.map(escaped));
        }
    }

    #[test]
    fn keys_of_several_parts_are_equal_if_each_part_is(
        one in line_of(b"aA ,,,\"", 8),
        two in line_of(b"aA ,,,\"", 8),
        selectors in some_picks(),
        (trim, ignore_case) in (some_parts(), some_parts()),
    ) {
        for split in [FieldSplit::At(b",".to_vec()), FieldSplit::Csv(b','.into())] {
            let part = KeyPart::Fields { selectors: selectors.clone(), split };
            let (trim, ignore_case) = (trim.clone(), ignore_case.clone());
            let rule = KeyRule { part, trim, ignore_case, ..LINE };
            let model = [&one, &two].map(|line| keys(&rule, line));
            // No state leaks from one line to the next.
            let mut scratch = KeyScratch::default();
            let ours = [&one, &two].map(|line| rule.key(line, &mut scratch).map(<[u8]>::to_vec));
            for (model, ours) in model.iter().zip(&ours) {
                prop_assert_eq!(model.as_ref().err(), ours.as_ref().err());
            }
            prop_assert_eq!(model[0] == model[1], ours[0] == ours[1]);
        }
    }

    #[test]
    fn keys_of_several_values_are_equal_if_each_value_is(
        values in prop::array::uniform4(prop::sample::select(&["", "a", "aa", "1", "null"][..])),
        strings in any::<[bool; 4]>(),
    ) {
        // The value as a string, or unquoted.
        let text = |i: usize| {
            let string = strings[i] || values[i].is_empty() || values[i].starts_with('a');
            if string { format!("\"{}\"", values[i]) } else { values[i].to_owned() }
        };
        let rule = KeyRule { part: part_values(&["/b", "/a"]), ..LINE };
        let [one, two] = [0, 2].map(|i| key(&rule, format!(r#"{{"a":{},"b":{}}}"#, text(i), text(i + 1))).unwrap());
        prop_assert_eq!(one == two, (text(0), text(1)) == (text(2), text(3)));
    }

    #[test]
    fn arbitrary_lines_do_not_panic(
        line in prop::collection::vec(any::<u8>(), 0..60),
        (trim, url, ignore_case) in (some_parts(), some_parts(), some_parts()),
    ) {
        let several = [part_fields(&[2..=4, 1..=1], b"::"), part_csv(&[1..=2], b','), part_values(&["/a", ""])];
        for part in [KeyPart::Line, KeyPart::Record(b','.into()), KeyPart::Record(ESCAPED), part_field(2, b","), part_json(""), part_json("/a")].into_iter().chain(several) {
            let (trim, url, ignore_case) = (trim.clone(), url.clone(), ignore_case.clone());
            let _ = key(&KeyRule { part, trim, url, ignore_case, ..LINE }, &line);
        }
    }
}
