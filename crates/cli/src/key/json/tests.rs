//! Lookups in JSON, compared with a complete parser.

use super::*;
use proptest::prelude::*;

/// Returns the text of the value and whether it is a string, or `None` if there is no value.
fn value(pointer: &str, document: &str) -> Result<Option<(String, bool)>, JsonError> {
    let mut scratch = String::new();
    let pointer: Pointer = pointer.parse().unwrap();
    pointer.find(document, &mut scratch).map(|found| {
        found.map(|found| match found {
            JsonSpan::Text(text) => (text.to_owned(), true),
            JsonSpan::Other(text) => (text.to_owned(), false),
        })
    })
}

fn key(pointer: &str, document: &str) -> Result<Option<String>, JsonError> {
    value(pointer, document).map(|value| value.map(|(text, _)| text))
}

fn found(pointer: &str, document: &str) -> Option<String> {
    key(pointer, document).unwrap()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// True if the key is a slice of the document.
fn is_borrowed(pointer: &str, document: &str) -> bool {
    let mut scratch = String::new();
    let pointer: Pointer = pointer.parse().unwrap();
    let (JsonSpan::Text(text) | JsonSpan::Other(text)) = pointer.find(document, &mut scratch).unwrap().unwrap();
    document.as_bytes().as_ptr_range().contains(&text.as_ptr())
}

#[test]
fn examples_of_rfc_6901_are_found() {
    // Section 5, without the white space of its document.
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
fn invalid_pointers_are_refused() {
    for text in ["a", " /a", "#/a", "0"] {
        assert_eq!(text.parse::<Pointer>(), Err(START), "{text:?}");
    }
    for text in ["/~", "/a~", "/~2", "/~a/b", "/~~0", "/b/~\u{e9}"] {
        assert_eq!(text.parse::<Pointer>(), Err(ESCAPE), "{text:?}");
    }
    // Section 4: "~01" denotes "~1", because "~1" is replaced first.
    assert_eq!(found("/~01", r#"{"/":1,"~1":2}"#), some("2"));
    assert_eq!(found("/~10~0", r#"{"/0~":1}"#), some("1"));
    assert_eq!("/a~1b".parse::<Pointer>().unwrap().to_string(), "/a~1b");
}

#[test]
fn empty_member_names_are_found() {
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
    for pointer in ["/2", "/00", "/01", "/-", "/-1", "/+1", "/1.0", "/", "/a", "/\u{661}", "/99999999999999999999999"] {
        assert_eq!(found(pointer, document), None, "{pointer:?}");
    }
    assert_eq!(found("/0", "[]"), None);
    // In an object, a number is the name of a member.
    assert_eq!(found("/01", r#"{"1":"a","01":"b"}"#), some("b"));
    assert_eq!(found("/-", r#"{"-":"a"}"#), some("a"));
}

#[test]
fn a_pointer_below_a_scalar_finds_nothing() {
    for document in [r#""a""#, "1", "-1.5e3", "true", "false", "null", "{}", "[]"] {
        assert_eq!(found("/0", document), None, "{document}");
        assert_eq!(found("/a/0", &format!(r#"{{"a":{document}}}"#)), None, "{document}");
    }
}

#[test]
fn values_are_formatted_compactly() {
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
    // Numbers beyond 64 bits and beyond the precision and range of a double.
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
    // Names of members are unescaped too.
    assert_eq!(found("/\u{1f600}/b\n", r#"{"\ud83d\ude00":{"\u0062\n":"c"}}"#), some("c"));
}

#[test]
fn plain_values_are_borrowed_from_the_document() {
    assert!(is_borrowed("/a/0", r#"{"a":["text"]}"#));
    assert!(is_borrowed("/a", r#"{"b":"\n","a":1.5}"#));
    assert!(!is_borrowed("/a", r#"{"a":"\n"}"#));
}

#[test]
fn the_last_member_of_equal_name_is_found() {
    assert_eq!(found("/a", r#"{"a":1,"b":2,"a":3}"#), some("3"));
    assert_eq!(found("/a", r#"{"a":1,"\u0061":3}"#), some("3"));
    // The first member is ignored even if only its value contains the rest of the path.
    assert_eq!(found("/a/b", r#"{"a":{"b":1},"a":{}}"#), None);
    assert_eq!(found("/a/b", r#"{"a":0,"a":{"b":1}}"#), some("1"));
    assert_eq!(found("", r#"{"a":1,"a":3}"#), some(r#"{"a":3}"#));
}

#[test]
fn the_whole_document_must_be_valid() {
    // The column is that of the first invalid byte, or of the last byte if the document is truncated.
    for (document, column) in [
        (r#"{"a":1"#, 6),
        (r#"{"a":1}}"#, 8),
        (r#"{"a":1} x"#, 9),
        (r#"{"a":1,"b":tru}"#, 15),
        (r#"{"a":1,"b":[1,2}"#, 16),
        (r#"{"a":1,b:2}"#, 8),
        (r#"{"a":1,"b" 2}"#, 12),
        (r#"{"a":1,"b":"\x"}"#, 14),
    ] {
        for pointer in ["/a", "/c", "/a/b", ""] {
            let error = key(pointer, document).unwrap_err();
            assert_eq!(error.column, Some(column), "{pointer:?} {document:?} {error}");
        }
    }
    for document in ["", " \t"] {
        assert_eq!(key("/a", document).unwrap_err().to_string(), "cannot read JSON: the line is blank");
    }
    let error = key("/a", "id,name").unwrap_err().to_string();
    assert_eq!(error, "cannot read JSON: lines of JSON are expected, and this one is \"id,name\"");
    for document in ["{\"a\":1,\"b\":\"\n\"}", r#"{"a":1,}"#, r#"["#, r#"{"a":1,"b":"\u12"}"#, "\u{feff}{}", "'a'"] {
        for pointer in ["/a", "/c", "/0", ""] {
            assert!(key(pointer, document).is_err(), "{pointer:?} {document:?}");
        }
    }
}

#[test]
fn errors_report_the_column_in_the_document() {
    let error = key("/a/b", r#"{"c":"\ud800","a": {"b":"x\ud800y"}}"#).unwrap_err();
    // A surrogate must be followed by the escape of another: "y", the 33rd byte, is not one.
    assert_eq!(error.column, Some(33), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("cannot read JSON: ") && text.ends_with(" at column 33"), "{text}");
    assert!(!text.contains("line"), "{text}");
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    const DEPTH: usize = 100_000;
    let deep = "[".repeat(DEPTH) + &"]".repeat(DEPTH);
    let document = format!(r#"{{"b":{deep},"a":"text","c":{deep}}}"#);
    // Only skipped values may be nested this deeply.
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

/// One of a few names, so that pointers often find a value.
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
            prop::collection::btree_map(name(), inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
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
    fn escapes_are_decoded_as_utf_16(characters in prop::collection::vec((any::<char>(), any::<bool>()), 0..20)) {
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
    fn all_members_of_a_name_are_removed(
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
    fn unpaired_surrogates_are_refused(
        half in prop::sample::select(&[r"\ud83d", r"\udc00"][..]),
        after in prop::sample::select(&["", "ndc00", r"\ndc00", r"\\dc00", r"\bdc00", r"\u0041", r"\ud83d", "x"][..]),
    ) {
        let document = format!("[\"{half}{after}\"]");
        prop_assert!(key("/0", &document).is_err(), "{document}");
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in any::<String>(), cut in any::<prop::sample::Index>(), document in document()) {
        let _ = key("/a", &text);
        // A truncated document is invalid, unless it is a number.
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
