//! Forms: normalization of texts before they are compared.

use crate::pieces::Piece;
use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::iter;
use core::ops::Range;
use core::str;
use unicase::UniCase;
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick};
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// A normalization form: the differences between texts that a comparison ignores. Each unit is normalized by itself
/// before it is hashed; the ranges to cut refer to the original text. By default nothing is ignored. crates/text/FORMAT.md has
/// the definition.
///
/// Text that is not UTF-8 keeps its invalid sequences, and the valid text between them is normalized piece by piece.
/// ASCII needs no tables of Unicode.
///
/// # Examples
/// ```
/// use bloomline_text::{Form, Rules};
/// let mut form = Form::default();
/// (form.nfkc, form.case, form.digits, form.punctuation) = (true, true, true, true);
/// assert_eq!(form.apply("Ｓtraße 17: “Ａ. Müller”"), "strasse 00 a müller");
/// // Paragraphs that differ in nothing else are equal.
/// let mut rules = Rules::default();
/// (rules.ngram, rules.form) = (0, form);
/// # let _ = rules;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Form {
    /// Ignores the composition of characters (NFC): `é` may be one character, or `e` and an accent.
    pub nfc: bool,
    /// Ignores composition and compatibility variants (NFKC): `ﬁ`, `½`, `①`, the width of Katakana and Latin letters.
    /// Includes `nfc`.
    pub nfkc: bool,
    /// Ignores case, by the full case folding of Unicode: `ß`, `ẞ` and `SS` are equal, as are `σ` and `ς`.
    pub case: bool,
    /// Ignores the value of decimal digits of any script, so numbers with equally many digits are equal.
    pub digits: bool,
    /// Removes punctuation (general category P) and the symbols of ASCII, so `it's` becomes `its`.
    pub punctuation: bool,
    /// Replaces all but letters, marks, numbers and white space by a space, so `a—b` becomes `a b`, and removes
    /// apostrophes. Includes `punctuation`.
    pub symbols: bool,
    /// Removes characters that are invisible by themselves (Default_Ignorable_Code_Point), such as the zero-width space
    /// and the soft hyphen.
    pub ignorable: bool,
    /// Removes white space from exact text. Grams never include the white space between words.
    pub space: bool,
    /// Adds a space after each Katakana, so each is a word, as in other texts without spaces.
    pub katakana: bool,
    /// Removes a carriage return (`\r`) before a newline or the end of exact text.
    pub crlf: bool,
}

impl Form {
    /// Returns a text in this form.
    ///
    /// ```
    /// use bloomline_text::Form;
    /// let mut form = Form::default();
    /// form.space = true;
    /// assert_eq!(form.apply("a\u{3000}b\n"), "ab");
    /// ```
    pub fn apply(&self, text: &str) -> String {
        let mut scratch = FormScratch::default();
        let form = self.apply_into(text.as_bytes(), &mut scratch);
        String::from_utf8_lossy(form).into_owned()
    }

    /// True if this form leaves every text unchanged.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the form for texts whose words are compared, without the options for exact text.
    pub(crate) fn for_words(self) -> Self {
        Self { space: false, crlf: false, ..self }
    }

    /// Returns a text in this form. Uses `scratch` unless the form is plain.
    pub(crate) fn apply_into<'a>(&self, text: &'a [u8], scratch: &'a mut FormScratch) -> &'a [u8] {
        if self.is_plain() {
            return text;
        }
        scratch.reset(*self);
        let text = if self.crlf { strip_carriage_returns(text) } else { Cow::Borrowed(text) };
        for chunk in text.utf8_chunks() {
            self.apply_valid(chunk.valid(), scratch);
            scratch.text.extend(chunk.invalid());
        }
        &scratch.text
    }

    /// Returns a text in this form for words, and its pieces in order. Uses `scratch`.
    pub(crate) fn apply_traced<'a>(&self, text: &str, scratch: &'a mut FormScratch) -> (&'a str, &'a [Piece]) {
        let form = self.for_words();
        scratch.reset(form);
        scratch.pieces = Some(Vec::new());
        form.apply_valid(text, scratch);
        let formed = str::from_utf8(&scratch.text).expect("the form of valid text is valid");
        (formed, scratch.pieces.as_deref().unwrap_or_default())
    }

    /// Applies all of the form but `crlf`, step by step as crates/text/FORMAT.md defines it.
    fn apply_by_definition(&self, text: &str) -> String {
        let composed = if self.symbols {
            let mapped = |c| if is_symbol_in_any_form(c) { replace_symbol(c) } else { Some(c) };
            self.compose(&text.chars().filter_map(mapped).collect::<String>())
        } else {
            self.compose(text)
        };
        let folded = if self.case { UniCase::unicode(composed).to_folded_case() } else { composed };
        let mapped: String = folded.chars().filter_map(|c| self.map_char(c)).collect();
        // The character between a letter and its accent may have been removed.
        let composed = self.compose(&mapped);
        if !self.katakana {
            return composed;
        }
        let spaced = composed.chars().flat_map(|c| [Some(c), is_katakana(c).then_some(' ')]);
        spaced.flatten().collect()
    }

    /// Applies NFC or NFKC if this form has it.
    fn compose(&self, text: &str) -> String {
        match (self.nfkc, self.nfc) {
            (true, _) => text.nfkc().collect(),
            (_, true) => text.nfc().collect(),
            _ => text.to_owned(),
        }
    }

    /// Maps a character after composition and case folding. Returns `None` if it is removed.
    fn map_char(&self, character: char) -> Option<char> {
        if self.digits && character.general_category() == GeneralCategory::DecimalNumber {
            return Some('0');
        }
        if self.ignorable && is_ignorable(character) {
            return None;
        }
        let mapped = match (self.symbols, self.punctuation) {
            (true, _) => replace_symbol(character),
            (_, true) if character.is_ascii_punctuation() || is_punctuation(character) => None,
            _ => Some(character),
        };
        mapped.filter(|mapped| !(self.space && mapped.is_whitespace()))
    }

    /// Appends the form of a text, character by character, or [by definition](Self::apply_by_definition) where a
    /// character depends on its neighbors.
    fn apply_valid(&self, text: &str, scratch: &mut FormScratch) {
        let table = self.ascii_table();
        let is_kept_ascii = |byte: &u8| byte.is_ascii() && table[usize::from(*byte)] != DROPPED;
        // The offset of the last character of ASCII that is kept, in the text and in its form. Later text does not
        // depend on anything before it.
        let mut anchor = (0, scratch.text.len());
        // True if the last character was a combining mark or was removed: a combining mark after it may be reordered.
        let mut after_mark = false;
        let mut offset = 0;
        while offset < text.len() {
            let rest = &text.as_bytes()[offset..];
            let run = &rest[..rest.iter().position(|byte| !byte.is_ascii()).unwrap_or(rest.len())];
            if !run.is_empty() {
                let before = scratch.text.len();
                map_ascii(table, run, &mut scratch.text);
                after_mark = scratch.text.len() - before < run.len();
                if let Some(pieces) = &mut scratch.pieces {
                    trace_ascii(table, run, offset, before, pieces);
                }
                if let Some(last) = run.iter().rposition(is_kept_ascii) {
                    anchor = (offset + last, scratch.text.len() - 1);
                }
                offset += run.len();
                continue;
            }
            let Some(character) = text[offset..].chars().next() else { break };
            let entry = scratch.entry(self, character);
            if entry & UNSTABLE != 0 || entry & MARK != 0 && after_mark {
                let end = rest.iter().position(is_kept_ascii).map_or(text.len(), |next| offset + next);
                scratch.text.truncate(anchor.1);
                scratch.text.extend(self.apply_by_definition(&text[anchor.0..end]).as_bytes());
                if let Some(pieces) = &mut scratch.pieces {
                    trace_rewritten(anchor.0..end, anchor.1, pieces);
                }
                (offset, anchor) = (end, (end, scratch.text.len()));
                continue;
            }
            after_mark = entry & (MARK | REMOVED) != 0;
            if entry & REMOVED == 0 {
                let mapped = char::from_u32(entry & CODE_POINT).expect("it was one");
                if let Some(pieces) = &mut scratch.pieces {
                    let original = offset..offset + character.len_utf8();
                    pieces.push(Piece { formed: scratch.text.len(), original, bytewise: false });
                }
                scratch.text.extend(mapped.encode_utf8(&mut [0; 4]).as_bytes());
                if self.katakana && is_katakana(mapped) {
                    scratch.text.push(b' ');
                }
            }
            offset += character.len_utf8();
        }
    }

    /// Computes the entry of a character: its form if that does not depend on its neighbors, or [`UNSTABLE`].
    fn entry(&self, character: char) -> u32 {
        let stable = |c: char| match (self.nfkc, self.nfc) {
            (true, _) => is_nfkc_quick(iter::once(c)) == IsNormalized::Yes,
            (_, true) => is_nfc_quick(iter::once(c)) == IsNormalized::Yes,
            _ => true,
        };
        let mark = |c: char| if canonical_combining_class(c) == 0 { 0 } else { MARK };
        if self.symbols && is_symbol_in_any_form(character) {
            return CACHED | self.map_char(character).map_or(REMOVED, u32::from);
        }
        let mut buffer = [0; 4];
        // A single character that this one is a variant of, such as the one of normal width.
        let composed =
            single_char(&self.compose(character.encode_utf8(&mut buffer))).filter(|composed| stable(*composed));
        let fold = |c: char| single_char(&UniCase::unicode(&*c.encode_utf8(&mut [0; 4])).to_folded_case());
        let folded = if self.case { composed.and_then(fold) } else { composed };
        let (Some(composed), Some(folded)) = (composed, folded) else { return CACHED | UNSTABLE };
        match self.map_char(folded) {
            Some(mapped) if stable(mapped) => CACHED | mark(composed) | mark(mapped) | u32::from(mapped),
            Some(_) => CACHED | UNSTABLE,
            None => CACHED | mark(composed) | REMOVED,
        }
    }

    /// Returns the table of ASCII for this form's options.
    fn ascii_table(&self) -> &'static [u8; 128] {
        let switches = [self.symbols, self.case, self.digits, self.punctuation, self.space];
        &ASCII[switches.iter().fold(0, |index, on| 2 * index + usize::from(*on))]
    }
}

/// Appends the form of ASCII text.
fn map_ascii(table: &[u8; 128], text: &[u8], into: &mut Vec<u8>) {
    let mut end = into.len();
    into.resize(end + text.len(), 0);
    for byte in text {
        let mapped = table[usize::from(byte & 0x7F)];
        into[end] = mapped;
        end += usize::from(mapped != DROPPED);
    }
    into.truncate(end);
}

/// Appends the pieces of a run of ASCII that starts at `offset` and whose form starts at `formed`: one for each run of
/// characters that are kept.
fn trace_ascii(table: &[u8; 128], run: &[u8], offset: usize, mut formed: usize, pieces: &mut Vec<Piece>) {
    let is_dropped = |byte: &u8| table[usize::from(*byte)] == DROPPED;
    let mut start = 0;
    for kept in run.split(is_dropped) {
        if !kept.is_empty() {
            let original = offset + start..offset + start + kept.len();
            pieces.push(Piece { formed, original, bytewise: true });
        }
        start += kept.len() + 1;
        formed += kept.len();
    }
}

/// Replaces the pieces from `formed` on, whose original text was rewritten as a whole.
fn trace_rewritten(original: Range<usize>, formed: usize, pieces: &mut Vec<Piece>) {
    while let Some(last) = pieces.pop_if(|piece| piece.original.end > original.start) {
        if last.original.start < original.start {
            pieces.push(Piece { original: last.original.start..original.start, ..last });
            break;
        }
    }
    pieces.push(Piece { formed, original, bytewise: false });
}

/// Reusable memory of [`Form::apply_into`], with a cache of the entries of characters.
#[derive(Clone, Debug, Default)]
pub(crate) struct FormScratch {
    text: Vec<u8>,
    /// The pieces of the text, if they are traced.
    pieces: Option<Vec<Piece>>,
    form: Form,
    pages: Vec<Option<Box<[u32; PAGE]>>>,
}

impl FormScratch {
    fn reset(&mut self, form: Form) {
        self.text.clear();
        self.pieces = None;
        if self.form != form {
            self.form = form;
            self.pages.clear();
        }
        self.pages.resize(char::MAX as usize / PAGE + 1, None);
    }

    #[inline]
    fn entry(&mut self, form: &Form, character: char) -> u32 {
        let code = character as usize;
        let page = self.pages[code / PAGE].get_or_insert_with(|| Box::new([0; PAGE]));
        let entry = &mut page[code % PAGE];
        if *entry == 0 {
            *entry = form.entry(character);
        }
        *entry
    }
}

/// The number of characters whose entries are allocated together.
const PAGE: usize = 256;
/// The entry of a character: the code point that it becomes, and the flags below.
const CODE_POINT: u32 = (1 << 21) - 1;
const CACHED: u32 = 1 << 31;
/// The character is removed.
const REMOVED: u32 = 1 << 30;
/// A combining mark, which may be reordered with its neighbors.
const MARK: u32 = 1 << 29;
/// The form depends on the neighbors, or has several characters.
const UNSTABLE: u32 = 1 << 28;

/// The entry of a removed character in [`ASCII`].
const DROPPED: u8 = 0xFF;

/// The form of each character of ASCII, or [`DROPPED`], by the options symbols, case, digits, punctuation and space
/// (the lowest bit).
const ASCII: [[u8; 128]; 32] = {
    let mut tables = [[0; 128]; 32];
    let mut choice = 0;
    while choice < tables.len() {
        let mut character = 0;
        while character < 128u8 {
            let [symbols, case, digits, punctuation, space] =
                [choice & 16 != 0, choice & 8 != 0, choice & 4 != 0, choice & 2 != 0, choice & 1 != 0];
            // The vertical tab is white space in Unicode.
            let is_space = character.is_ascii_whitespace() || character == 0x0B;
            let is_symbol = symbols && !is_space && !character.is_ascii_alphanumeric();
            tables[choice][character as usize] = match character {
                _ if digits && character.is_ascii_digit() => b'0',
                b'\'' | b'`' if symbols => DROPPED,
                _ if !symbols && punctuation && character.is_ascii_punctuation() => DROPPED,
                _ if space && (is_space || is_symbol) => DROPPED,
                _ if is_symbol => b' ',
                _ if case => character.to_ascii_lowercase(),
                _ => character,
            };
            character += 1;
        }
        choice += 1;
    }
    tables
};

/// Apostrophes of keyboards and of typography.
const APOSTROPHES: [char; 9] = ['\'', '`', '´', 'ʻ', 'ʼ', '‘', '’', '‛', '＇'];

/// Returns a space for a symbol, `None` for an apostrophe, and other characters unchanged.
fn replace_symbol(character: char) -> Option<char> {
    use GeneralCategoryGroup::{Letter, Mark, Number};
    if APOSTROPHES.contains(&character) {
        return None;
    }
    let is_kept = matches!(character.general_category_group(), Letter | Mark | Number) || character.is_whitespace();
    Some(if is_kept { character } else { ' ' })
}

/// True if no form of the character is a letter or a number. NFKC turns some of these, such as `´`, into combining
/// marks, which would be kept.
fn is_symbol_in_any_form(character: char) -> bool {
    is_punctuation(character) || character.general_category() == GeneralCategory::ModifierSymbol
}

fn is_punctuation(character: char) -> bool {
    character.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// True for the letters of Katakana and the mark of a long vowel, of normal width.
fn is_katakana(character: char) -> bool {
    matches!(character, 'ァ'..='ヺ' | 'ー'..='ヿ' | 'ㇰ'..='ㇿ')
}

/// True for a Default_Ignorable_Code_Point. Unicode reserves these ranges, so later versions have the same.
fn is_ignorable(character: char) -> bool {
    matches!(character,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}' | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Returns the only character of a text, or `None` if it has another number of characters.
fn single_char(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// Removes the carriage return before each newline and at the end.
fn strip_carriage_returns(text: &[u8]) -> Cow<'_, [u8]> {
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    if !text.windows(2).any(|pair| pair == b"\r\n") {
        return Cow::Borrowed(text);
    }
    let is_kept = |i: &usize| text[*i] != b'\r' || text.get(i + 1) != Some(&b'\n');
    (0..text.len()).filter(is_kept).map(|i| text[i]).collect::<Vec<u8>>().into()
}
