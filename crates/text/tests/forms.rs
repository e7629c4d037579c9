//! Forms of texts in many scripts, and their effect on grams, exact texts and bands.

use bloomline::KeyHasher;
use bloomline_text::near::{Near, Scratch};
use bloomline_text::{Form, Rules, Texts, Unit, words};
use proptest::prelude::*;
use unicase::UniCase;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

fn form(names: &str) -> Form {
    let mut form = Form::default();
    for name in names.split(',').filter(|name| !name.is_empty()) {
        match name {
            "nfc" => form.nfc = true,
            "nfkc" => form.nfkc = true,
            "case" => form.case = true,
            "digits" => form.digits = true,
            "punctuation" => form.punctuation = true,
            "space" => form.space = true,
            "crlf" => form.crlf = true,
            "symbols" => form.symbols = true,
            "ignorable" => form.ignorable = true,
            "katakana" => form.katakana = true,
            _ => unreachable!("{name}"),
        }
    }
    form
}

const TEXT: &str = "nfkc,case,digits,punctuation,space";

/// Pieces of many scripts, with characters for each option.
const PIECES: [&str; 60] = [
    "Hello, World! ",
    "don't ",
    "3.14 ",
    "a-b_c ",
    "$1 + <2> ",
    "E = mc² ",
    "\r\n",
    "\n",
    "\r",
    "\t",
    "\u{B}",
    "\u{A0}",
    "\u{3000}",
    "我喜欢中文。",
    "「日本語」",
    "カタカナ",
    "ｶﾞｷﾞ",
    "ＡＢＣ１２３",
    "ภาษาไทย ",
    "น้ำ๑๒๓",
    "Привет, Мир! ",
    "ЁЖ й и\u{306} ",
    "مرحبا، ١٢٣ ",
    "ﷺ",
    "ﻻ",
    "\u{202B}",
    "हिन्दी १२ ",
    "한국어 ",
    "\u{1112}\u{1161}\u{11AB}",
    "e\u{301}",
    "É",
    "E\u{301}\u{323}",
    "o-\u{308}",
    "ก\u{E48}-",
    "ก\u{E48}”",
    "\u{E38}",
    "ŉ",
    "ﬁ",
    "Straße",
    "ẞ",
    "ΣΊΣΥΦΟΣ ς",
    "\u{390}\u{345}",
    "İı",
    "👩\u{200D}👩\u{200D}👧 ",
    "🇩🇪🇫🇷",
    "👍🏽",
    "½①",
    "don\u{2019}t don´t don`t ",
    "a¨\u{301}=\u{338}",
    "\u{200B}",
    "e\u{200B}\u{301}\u{323}",
    "so\u{AD}ft",
    "می\u{200C}خواهم ",
    "\u{3164}\u{115F}\u{1161}",
    "\u{1112}\u{1160}\u{1161}",
    "1\u{FE0F}\u{20E3}",
    "――║┃™℃㎏\u{F0B7}",
    "\u{34F}\u{345}",
    "\u{0}\u{1C}\u{7F}",
    "ﹶﹽ゛か゛ｶ\u{FF9E}",
];

/// Applies the definition in crates/text/FORMAT.md step by step.
fn specified(form: Form, text: &str) -> String {
    let mut text = text.to_owned();
    if form.crlf {
        text = text.strip_suffix('\r').unwrap_or(&text).replace("\r\n", "\n");
    }
    let composed = |text: &str| -> String {
        match (form.nfkc, form.nfc) {
            (true, _) => text.nfkc().collect(),
            (_, true) => text.nfc().collect(),
            _ => text.to_owned(),
        }
    };
    let symbol = |c: char| match c.general_category_group() {
        _ if "'`´ʻʼ‘’‛＇".contains(c) => None,
        GeneralCategoryGroup::Letter | GeneralCategoryGroup::Mark | GeneralCategoryGroup::Number => Some(c),
        _ => Some(if c.is_whitespace() { c } else { ' ' }),
    };
    if form.symbols {
        let early = |c: char| {
            c.general_category_group() == GeneralCategoryGroup::Punctuation
                || c.general_category() == GeneralCategory::ModifierSymbol
        };
        text = text.chars().filter_map(|c| if early(c) { symbol(c) } else { Some(c) }).collect();
    }
    text = composed(&text);
    if form.case {
        text = text.chars().map(|c| UniCase::unicode(c.to_string()).to_folded_case()).collect();
    }
    if form.digits {
        text = text
            .chars()
            .map(|c| if c.general_category() == GeneralCategory::DecimalNumber { '0' } else { c })
            .collect();
    }
    if form.ignorable {
        text.retain(|c| !is_ignorable(c));
    }
    if form.symbols {
        text = text.chars().filter_map(symbol).collect();
    } else if form.punctuation {
        let stays =
            |c: &char| c.general_category_group() != GeneralCategoryGroup::Punctuation && !"$+<=>^`|~".contains(*c);
        text = text.chars().filter(stays).collect();
    }
    if form.space {
        text.retain(|c| !c.is_whitespace());
    }
    text = composed(&text);
    if form.katakana {
        let spaced = |c: char| {
            if matches!(c as u32, 0x30A1..=0x30FA | 0x30FC..=0x30FF | 0x31F0..=0x31FF) {
                format!("{c} ")
            } else {
                c.into()
            }
        };
        text = text.chars().map(spaced).collect();
    }
    text
}

/// Returns the Default_Ignorable_Code_Points as Unicode derives them: format characters and variation selectors,
/// without those that are visible or annotate something, and some others.
fn is_ignorable(c: char) -> bool {
    let is_seen = matches!(c, '\u{600}'..='\u{605}' | '\u{6DD}' | '\u{70F}' | '\u{890}'..='\u{891}' | '\u{8E2}'
        | '\u{110BD}' | '\u{110CD}');
    let notes = matches!(c, '\u{FFF9}'..='\u{FFFB}' | '\u{13430}'..='\u{1343F}');
    let selects =
        matches!(c, '\u{180B}'..='\u{180D}' | '\u{180F}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}');
    let other = matches!(c, '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{2065}' | '\u{3164}'
        | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}' | '\u{E0000}'..='\u{E0FFF}');
    c.general_category() == GeneralCategory::Format && !is_seen && !notes || selects || other
}

fn any_form() -> impl Strategy<Value = Form> {
    any::<[bool; 10]>().prop_map(|flags| {
        let mut form = Form::default();
        [
            form.nfc,
            form.nfkc,
            form.case,
            form.digits,
            form.punctuation,
            form.symbols,
            form.ignorable,
            form.space,
            form.crlf,
            form.katakana,
        ] = flags;
        form
    })
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(&PIECES[..]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => (0x2000..0x3100u32).prop_map(|c| char::from_u32(c).unwrap().to_string()),
        1 => "[ -~]{0,20}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_form_of_any_text_matches_the_specification(form in any_form(), text in any_text()) {
        prop_assert_eq!(form.apply(&text), specified(form, &text));
    }

    /// The ranges to cut refer to the original text, and each unit is compared in its form.
    #[test]
    fn units_are_ranges_of_the_original_text(
        form in any_form(),
        text in any_text(),
        ngram in 0..4usize,
        document: bool,
    ) {
        let (hasher, mut texts, mut rules) = (KeyHasher::new(0), Texts::default(), Rules::default());
        rules.unit = if document { Unit::Document } else { Unit::Paragraph };
        (rules.ngram, rules.min_ngram, rules.form) = (ngram, 1, form);
        texts.push(&rules, &hasher, text.as_bytes());
        let units: Vec<&str> = if document { vec![&text] } else { text.split('\n').collect() };
        let ranges: Vec<_> = texts.document(0).verdicts().map(|unit| unit.range).collect();
        prop_assert_eq!(ranges.len(), units.len());
        prop_assert_eq!(ranges.iter().map(|range| &text[range.clone()]).collect::<String>(), &text[..]);
        // The expected result: texts that are in the form already.
        let (mut rules, mut words) = (rules, form);
        rules.form = Form::default();
        rules.unit = Unit::Document;
        (words.space, words.crlf) = (words.space && ngram == 0, words.crlf && ngram == 0);
        let mut plain = Texts::default();
        units.iter().for_each(|unit| plain.push(&rules, &hasher, specified(words, unit).as_bytes()));
        let expected: Vec<Vec<u64>> =
            (0..units.len()).flat_map(|i| plain.document(i).hashes().map(<[u64]>::to_vec).collect::<Vec<_>>()).collect();
        let found: Vec<Vec<u64>> = texts.document(0).hashes().map(<[u64]>::to_vec).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn bands_are_computed_from_the_form(form in any_form(), text in any_text()) {
        let near = Near::with_bands(3, 2).unwrap().with_ngram(2).unwrap();
        let (hasher, mut scratch) = (KeyHasher::new(1), Scratch::default());
        let mut hash = |near: Near, text: &str| {
            let mut bands = Vec::new();
            near.hash(&hasher, text.as_bytes(), &mut scratch, &mut bands);
            bands
        };
        let mut words = form;
        (words.space, words.crlf) = (false, false);
        prop_assert_eq!(hash(near.with_form(form), &text), hash(near, &specified(words, &text)));
        prop_assert_eq!(near.with_form(form).form(), words);
    }
}

#[test]
fn each_switch_makes_texts_equal() {
    for (switches, equal, other) in [
        ("nfc", ["é", "e\u{301}"], "e"),
        ("nfc", ["한국", "\u{1112}\u{1161}\u{11AB}\u{1100}\u{116E}\u{11A8}"], "한"),
        ("nfc", ["ё", "е\u{308}"], "е"),
        ("nfc", ["か\u{3099}", "が"], "か"),
        ("nfc", ["q\u{323}\u{307}", "q\u{307}\u{323}"], "q\u{307}"),
        ("nfkc", ["ﾊﾟﾘ", "パリ"], "ハリ"),
        ("nfkc", ["ＡＢＣ　１", "ABC 1"], "ABC1"),
        ("nfkc", ["ﻻ", "لا"], "لأ"),
        ("nfkc", ["น้ำ", "น้\u{E4D}\u{E32}"], "นำ"),
        ("nfkc", ["ﬁ", "fi"], "ﬀ"),
        ("case", ["Straße", "STRASSE"], "STRASE"),
        ("case", ["ΣΊΣΥΦΟΣ", "σίσυφος"], "ΣΊΣΥΦΟ"),
        ("case", ["Привет", "ПРИВЕТ"], "Прибет"),
        ("digits", ["١٢٣", "456"], "12"),
        ("digits", ["๒๕๖๗ २०", "2024 19"], "2024 1"),
        ("punctuation", ["「我喜欢，中文。」", "我喜欢中文"], "我喜欢中"),
        ("punctuation", ["مرحبا، بك؟", "مرحبا بك"], "مرحبابك"),
        ("punctuation", ["don’t – a|b", "dont  ab"], "don t  ab"),
        ("nfc,punctuation", ["e-\u{301}", "é"], "e"),
        ("space", ["ภาษา\u{A0}ไทย", " ภาษาไทย\t"], "ภาษา-ไทย"),
        ("crlf", ["a\r\nb\r", "a\nb"], "a\rb"),
        ("symbols", ["don’t—a|b", "dont – a © b"], "don t a b"),
        ("symbols", ["Eʻa ┃ d’été ´ §", "Ea d\u{27}été"], "Ea d été"),
        ("nfkc,symbols", ["a¨b´c 5㎏ ⁇d", "a bc 5kg d"], "a bc 5 kg d"),
        ("symbols,punctuation", ["it\u{27}s (a-b)", "its a b"], "its ab"),
        ("symbols,space", ["a-b\tc\u{1C}", "abc"], "a b"),
        ("nfkc,katakana", ["ｶﾞｰﾄﾞ木", "ガード木"], "ガ ー ド 木"),
        ("ignorable", ["\u{FEFF}so\u{AD}ft می\u{200C}خواهم\u{200E}", "soft میخواهم"], "so ft می خواهم"),
        ("nfc,ignorable", ["e\u{200B}\u{301}", "é"], "e"),
        // A family is one emoji whose joiners count, as do flags.
        (TEXT, ["👩\u{200D}👩\u{200D}👧!", "👩\u{200D}👩\u{200D}👧"], "👩👩👧"),
        (TEXT, ["🇩🇪, 🇫🇷", "🇩🇪🇫🇷"], "🇫🇷🇩🇪"),
        (TEXT, ["Ｇroß: 10 €", "gross 99 €"], "gross 100 €"),
    ] {
        let switched = form(switches);
        let of = |text| match switched.symbols {
            // Runs of spaces do not change words.
            true => switched.apply(text).split_whitespace().collect::<Vec<_>>().join(" "),
            false => switched.apply(text),
        };
        assert_eq!(of(equal[0]), of(equal[1]), "{switches}");
        assert_ne!(of(equal[0]), of(other), "{switches}");
        assert_eq!(Form::default().apply(equal[0]), equal[0]);
    }
}

/// The version of Unicode is fixed: characters of later versions are not covered.
#[test]
fn digits_and_spaces_are_those_of_unicode() {
    let (digits, space) = (form("digits"), form("space"));
    for c in ['٠', '߀', '०', '๐', '༠', '０', '𝟎', '\u{1FBF0}'] {
        assert_eq!(digits.apply(&c.to_string()), "0");
    }
    for c in ['²', '½', '①', '一', 'Ⅷ', '٪'] {
        assert_eq!(digits.apply(&c.to_string()), c.to_string());
    }
    for c in " \t\n\u{B}\u{C}\r\u{85}\u{A0}\u{1680}\u{2000}\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}".chars() {
        assert_eq!(space.apply(&c.to_string()), "", "{c:?}");
    }
    for c in ['\u{1C}', '\u{1F}', '\u{180E}', '\u{200B}', '\u{200D}', '\u{FEFF}'] {
        assert_eq!(space.apply(&c.to_string()), c.to_string());
    }
}

#[test]
fn every_ignorable_character_is_dropped() {
    let all: String = ('\0'..=char::MAX).collect();
    let expected: String = all.chars().filter(|c| !is_ignorable(*c)).collect();
    assert!(form("ignorable").apply(&all) == expected);
}

/// The words of a unit are found in its form, so a dropped mark joins what it was between.
#[test]
fn words_are_found_in_the_form() {
    let tokens =
        |text: &str| words(&form("nfkc,case,digits,punctuation").apply(text)).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(tokens("It's 3,000.5 (or “more”)…"), ["its", "00000", "or", "more"]);
    assert_eq!(tokens("ｶﾀｶﾅ・語"), ["カタカナ", "語"]);
    assert_eq!(tokens("你好，世界！"), ["你", "好", "世", "界"]);
    assert_eq!(tokens("Это — ЁЖ."), ["это", "ёж"]);
}

/// Units that are blank in their form leave nothing in the set.
#[test]
fn units_that_are_blank_in_their_form_have_no_grams() {
    let mut rules = Rules::default();
    (rules.ngram, rules.form) = (0, form("punctuation"));
    let mut texts = Texts::default();
    texts.push(&rules, &KeyHasher::new(0), "---\n。。\n 「」 \n€".as_bytes());
    assert_eq!(texts.document(0).verdicts().map(|unit| unit.grams).collect::<Vec<_>>(), [0, 0, 0, 1]);
}

/// Invalid UTF-8 is kept, and the text around it is normalized.
#[test]
fn invalid_bytes_are_kept_and_hashed() {
    let hash = |form: Form, text: &[u8]| {
        let mut rules = Rules::default();
        (rules.ngram, rules.form) = (0, form);
        let mut texts = Texts::default();
        texts.push(&rules, &KeyHasher::new(0), text);
        texts.document(0).hashes().map(<[u64]>::to_vec).collect::<Vec<_>>()
    };
    assert_eq!(hash(form(TEXT), b"A, \xFF\xC3\x89 1\r"), hash(Form::default(), b"a\xFF\xC3\xA90"));
    assert_eq!(hash(form("crlf"), b"a\xFF\r"), hash(Form::default(), b"a\xFF"));
}
