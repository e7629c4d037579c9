//! Text in UTF-16 without a byte order mark. It is recognized by its newlines and Latin characters, which contain a NUL
//! each.

use crate::read::foreign::{is_control, is_utf8};
use memchr::{memchr, memchr_iter};

/// True if contents with these first bytes are UTF-16, unless NUL ends their lines. Text in another encoding seldom has NULs.
/// If it has some, a few of them may look like characters of UTF-16. So all characters must be text, and either many are Latin
/// or most line feeds are whole characters.
pub fn is_utf16(head: &[u8], end: u8) -> bool {
    end != 0
        && memchr(0, head).is_some()
        && [u16::from_le_bytes, u16::from_be_bytes].iter().any(|read| fits(head, *read))
}

/// True if the bytes are UTF-16 in the byte order of `unit`.
fn fits(head: &[u8], unit: fn([u8; 2]) -> u16) -> bool {
    let (pairs, _) = head.as_chunks();
    let units = pairs.iter().map(|&pair| unit(pair));
    let all = pairs.len();
    let mut read = 0;
    let mut latin = 0;
    let mut newlines = 0;
    let mut doubtful = 0;
    for unit in char::decode_utf16(units) {
        match unit {
            Ok(character) if is_text(character) => {
                read += character.len_utf16();
                latin += usize::from(character < '\u{100}');
                newlines += usize::from(character == '\n');
                doubtful +=
                    usize::from(u16::try_from(character).is_ok_and(|unit| unit.to_be_bytes().iter().all(is_ascii)));
            }
            // The other half of the last character may be after these bytes.
            Err(half) if read + 1 == all && half.unpaired_surrogate() < 0xDC00 => {}
            _ => return false,
        }
    }
    // A newline, or half of another character.
    let line_feeds = memchr_iter(b'\n', head).count();
    if is_ascii_like(head) {
        // The bytes could be text that has NULs between its characters.
        return latin * 10 >= all * 9 && newlines == line_feeds && all >= if newlines > 0 { 4 } else { 16 };
    }
    // Few characters of other scripts are two bytes of ASCII, and most pairs of bytes in Latin-1 are.
    let is_other_script = doubtful * 4 <= (all - latin) * 3;
    all >= 8 && latin * 5 >= all * 2
        || all >= 16 && is_other_script && latin >= 2 && newlines > 0 && newlines * 2 >= line_feeds
}

/// True for characters of the scripts in use, and false for control characters and for codes without a character.
fn is_text(character: char) -> bool {
    matches!(
        u32::from(character),
        // Tab, newline and carriage return; ASCII; Latin to Arabic.
        0x09 | 0x0A | 0x0D | 0x20..=0x7E | 0xA0..=0x06FF
        // The scripts of India to Ethiopic; Latin and Greek with marks, and symbols.
        | 0x0900..=0x137F | 0x1E00..=0x2BFF
        // Chinese, Japanese and Korean, and forms of characters.
        | 0x2E80..=0x9FFF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE00..=0xFFEF
        // Emoji and rare characters.
        | 0x1_0000..=0x3_FFFF
    )
}

fn is_ascii(byte: &u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7E)
}

/// True if the bytes are UTF-8 without control characters, apart from NULs. The last character may be cut.
fn is_ascii_like(head: &[u8]) -> bool {
    is_utf8(head) && !head.iter().any(|&byte| byte != 0 && is_control(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::foreign::HEAD;

    fn utf16(text: &str) -> [Vec<u8>; 2] {
        let with = |write: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(write).take(HEAD).collect();
        [with(u16::to_le_bytes), with(u16::to_be_bytes)]
    }

    /// Pseudorandom bytes.
    fn noise(seed: u64) -> impl Iterator<Item = u8> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
    }

    #[test]
    fn utf16_is_recognized_in_both_byte_orders() {
        for text in [
            "a\nb\n",
            "a\r\nb\r\n",
            "one line without an end",
            "id,name\n1,Ann\n2,Bob\n",
            "Größe, naïve café, \u{201C}quoted\u{201D} \u{2013} 5 €\n",
            "Zażółć gęślą jaźń i pójdź w tan\n",
            "Съешь же ещё этих мягких французских булок\nда выпей чаю\n",
            "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία\nκαι πάλι\n",
            "דג סקרן שט בים מאוכזב\nולפתע מצא חברה\n",
            "上海一日，我们开门见山。\n一二三，最后在路上。\n",
            "ひらがなだけのぶんしょう。\nつぎのぎょうもそうです。\n",
            "日本語のテキスト　全角の空白\n次の行はこちらです\n",
            "가나다라 한국어 문장입니다\n다음 줄은 여기 있습니다\n",
            "ภาษาไทยไม่มีช่องว่าง\nบรรทัดต่อไป\n",
            "{\"text\":\"混合的内容 and English\"}\n",
            "emoji 😀 and 🎉 in a line\n",
        ] {
            for repeats in [1, 3, 40] {
                for head in utf16(&text.repeat(repeats)) {
                    assert!(is_utf16(&head, b'\n'), "{text:?} {repeats}");
                    // Lines that end with NUL.
                    assert!(!is_utf16(&head, 0), "{text:?}");
                }
            }
        }
        // The head may end inside a surrogate pair.
        for shift in 0..2 {
            let text = "x".repeat(shift) + &"a😀\n".repeat(200);
            assert!(utf16(&text).iter().all(|head| is_utf16(head, b'\n')));
        }
    }

    #[test]
    fn text_with_nuls_is_not_utf16() {
        let long = "the words of a line\n".repeat(30);
        for head in [
            &b""[..],
            b"\0",
            b"\0\0\0\0\0\0\0\0",
            b"x\0\x01\n",
            b"a\0\n",
            b"a\nb\n",
            // NUL-separated fields of one and of three characters.
            b"1\x002\x003\n4\x005\x006\n7\x008\x009\n",
            b"abc\0def\0ghi\0\n",
            b"one\0two\0three\0four\0five\0six\0seven\0",
            b"id\0name\n1\0Ann\n2\0Bob\n3\0Cas\n",
            // Lines that begin and end with NUL.
            b"\0one\n\0two\n\0three\n\0four\n\0five\n",
            b"one\0\ntwo\0\nthree\0\nfour\0\nfive\0\n",
            // Latin-1 with a NUL before a newline and after one.
            b"caf\xE9 na\xEFve\0\nd\xE9j\xE0 vu\n\0\xE0 la carte\n",
            // Cyrillic with one byte per character, and NULs.
            b"\xD1\xFA\xE5\xF8\xFC \xE6\xE5 \xE5\xF9\xB8 \xFD\xF2\xE8\xF5 \xEC\xFF\xE3\xEA\xE8\xF5\0\n\xE4\xE0\n",
            b"\xCC\xFF\xE3\xEA\xE8\xF5\xCC\xFF\xE3\xEA\xE8\xF5\xCC\xFF\xE3\xEA\xE8\xF5\xCC\xFF\xE3\xEA\xE8\xF5\xCC\xFF\xE3\xEA\xE8\xF5\0\n",
            // Padded fields, and small numbers.
            b"Ann\0\0\0\0\0Bob\0\0\0\0\0Christop\n",
            b"\x01\0\x02\0\x03\0\x04\0\x0A\0\x05\0\x06\0\x07\0\x08\0",
        ] {
            assert!(!is_utf16(head, b'\n'), "{}", head.escape_ascii());
        }
        // NULs at any one or two positions.
        for i in 0..long.len() {
            for j in [i, i * 7 + 1, i + 2] {
                let mut head = long.clone().into_bytes();
                head[i] = 0;
                head[j % HEAD] = 0;
                assert!(!is_utf16(&head[..HEAD.min(head.len())], b'\n'), "{i} {j}");
            }
        }
        // UTF-8 in all scripts, each with NULs.
        for text in ["Größe\n", "Съешь\n", "上海一日\n", "가나다라\n"] {
            let head = [text, "\0", text, text, "\0\0", text].concat().repeat(10);
            assert!(!is_utf16(&head.as_bytes()[..head.len().min(HEAD)], b'\n'), "{text:?}");
        }
    }

    #[test]
    fn random_bytes_are_not_utf16() {
        for length in [4, 8, 16, 32, 64, 512] {
            let found =
                (0..20_000).filter(|&seed| is_utf16(&noise(seed).skip(8).take(length).collect::<Vec<_>>(), b'\n'));
            assert_eq!(found.count(), 0, "{length}");
        }
    }
}
