//! The fields after a header: the specification of the filter, and fields that later versions add.
//!
//! A field is a tag, a length and a value of this length in bytes. Readers skip a field with an unknown tag, unless the
//! tag marks it as required.

use super::error::{FileErrorKind, check};
use crate::builder::spec::{FilterSpec, KeyKinds, SavedAge, is_key_name};
use crate::kernel::block::BLOCK_BYTES;
use twox_hash::XxHash3_64;

/// The highest number of bytes of all fields.
pub(super) const MAX_FIELD_BYTES: usize = 1 << 16;
/// Bytes of the checksum at the end.
const CHECKSUM_BYTES: usize = 8;

const END: u16 = 0;
const EXPECTED_KEYS: u16 = 1;
const RATE: u16 = 2;
const KEY_NAME: u16 = 3;
const CLOSED: u16 = 4;
const AGE: u16 = 5;
/// Required, because a reader that ignores the kinds of keys would look for keys of other kinds in vain.
const KEY_KINDS: u16 = 0x8001;
/// From this tag on, fields are required: a reader must support them.
const REQUIRED: u16 = 0x8000;

/// Encodes all fields in whole blocks; empty if no field is set.
pub(crate) fn encode(spec: &FilterSpec) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut push = |tag: u16, value: &[u8]| {
        bytes.extend(tag.to_le_bytes());
        // At most MAX_KEY_NAME_BYTES, or two bytes for each of KeyKinds::MAX_PARTS.
        bytes.extend((value.len() as u16).to_le_bytes());
        bytes.extend(value);
    };
    if let Some(keys) = spec.keys {
        push(EXPECTED_KEYS, &keys.to_le_bytes());
    }
    if let Some(rate) = spec.rate {
        push(RATE, &rate.to_le_bytes());
    }
    if !spec.key_name.is_empty() {
        push(KEY_NAME, spec.key_name.as_bytes());
    }
    if spec.is_closed {
        push(CLOSED, &[]);
    }
    if let Some(SavedAge { nanos, saved }) = spec.age {
        push(AGE, &[nanos.to_le_bytes(), saved.to_le_bytes()].concat());
    }
    let kinds = spec.kinds.written();
    if !kinds.is_empty() {
        push(KEY_KINDS, &kinds.iter().flat_map(|kinds| kinds.to_le_bytes()).collect::<Vec<u8>>());
    }
    if !bytes.is_empty() {
        bytes.resize((bytes.len() + CHECKSUM_BYTES).next_multiple_of(BLOCK_BYTES) - CHECKSUM_BYTES, 0);
        bytes.extend(XxHash3_64::oneshot(&bytes).to_le_bytes());
    }
    bytes
}

/// Decodes the fields. Tags ascend, and zeros follow the last field.
pub(super) fn decode(bytes: &[u8]) -> Result<FilterSpec, FileErrorKind> {
    let mut spec = FilterSpec::default();
    let Some((mut rest, checksum)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Ok(spec);
    };
    if XxHash3_64::oneshot(rest) != u64::from_le_bytes(*checksum) {
        return Err(FileErrorKind::DamagedHeader);
    }
    let mut last = END;
    while let Some((tag, after)) = number(rest).filter(|&(tag, _)| tag != END) {
        let value = number(after).and_then(|(length, after)| after.split_at_checked(length.into()));
        let fits = value.filter(|_| tag > last);
        check("tag", tag.into(), fits.is_some(), "ascending, with a whole value")?;
        let (value, after) = fits.unwrap_or_default();
        let number = value.try_into().map(u64::from_le_bytes);
        match (tag, number) {
            (EXPECTED_KEYS, Ok(keys)) if keys > 0 => spec.keys = Some(keys),
            (RATE, Ok(rate)) if f64::from_bits(rate) > 0.0 && f64::from_bits(rate) < 1.0 => {
                spec.rate = Some(f64::from_bits(rate));
            }
            (KEY_NAME, _) => {
                let name = str::from_utf8(value).ok().filter(|name| !name.is_empty() && is_key_name(name));
                let length = value.len() as u64;
                check("key name", length, name.is_some(), "1 to 1024 bytes of UTF-8 without control characters")?;
                spec.key_name = name.unwrap_or_default().to_owned();
            }
            (CLOSED, _) => {
                check("closed", value.len() as u64, value.is_empty(), "0 bytes")?;
                spec.is_closed = true;
            }
            (AGE, _) => {
                let numbers: Vec<u64> = value.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect();
                let &[nanos, saved] = &numbers[..] else {
                    return Err(FileErrorKind::Field { field: "age", value: value.len() as u64, allowed: "16 bytes" });
                };
                spec.age = Some(SavedAge { nanos, saved });
            }
            (KEY_KINDS, _) => {
                let (kinds, odd) = value.as_chunks::<2>();
                let fits = odd.is_empty() && (1..=KeyKinds::MAX_PARTS).contains(&kinds.len());
                check("key kinds", value.len() as u64, fits, "two bytes for each part of a key, of at most 1024")?;
                spec.kinds = kinds.iter().map(|kinds| u16::from_le_bytes(*kinds)).collect::<Vec<u16>>().into();
            }
            (EXPECTED_KEYS, _) => check("expected keys", number.unwrap_or(0), false, "8 bytes, at least 1")?,
            (RATE, _) => check("rate", number.unwrap_or(0), false, "the bits of a double between 0 and 1")?,
            (REQUIRED.., _) => check("tag", tag.into(), false, "a tag that this build knows")?,
            _ => {}
        }
        (rest, last) = (after, tag);
    }
    let padded = rest.iter().all(|&byte| byte == 0);
    check("padding", rest.len() as u64, padded, "zeros")?;
    let used = bytes.len() - rest.len();
    let minimal = last != END && used.next_multiple_of(BLOCK_BYTES) == bytes.len();
    check("fields", bytes.len() as u64, minimal, "the least multiple of 64 that has room for them")?;
    Ok(spec)
}

/// Returns the first two bytes as a number, and the bytes after them.
fn number(bytes: &[u8]) -> Option<(u16, &[u8])> {
    bytes.split_first_chunk().map(|(number, rest)| (u16::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> FilterSpec {
        FilterSpec {
            keys: Some(1000),
            rate: Some(0.01),
            key_name: "url".to_owned(),
            is_closed: true,
            age: Some(SavedAge { nanos: 1, saved: 2 }),
            kinds: vec![1 << 2, 1 | 1 << 15].into(),
        }
    }

    /// Fields as a writer of another version may write them.
    fn written(fields: &[(u16, &[u8])]) -> Vec<u8> {
        let field = |&(tag, value): &(u16, &[u8])| {
            [&tag.to_le_bytes()[..], &(value.len() as u16).to_le_bytes(), value].concat()
        };
        let mut bytes = fields.iter().flat_map(field).collect::<Vec<u8>>();
        bytes.resize((bytes.len() + 8).next_multiple_of(64) - 8, 0);
        let checksum = XxHash3_64::oneshot(&bytes);
        [&bytes[..], &checksum.to_le_bytes()].concat()
    }

    #[test]
    fn fields_round_trip() {
        for spec in
            [FilterSpec::default(), spec(), FilterSpec { keys: None, ..spec() }, FilterSpec { rate: None, ..spec() }]
        {
            let bytes = encode(&spec);
            assert_eq!(bytes.len() % 64, 0);
            assert_eq!(decode(&bytes).unwrap(), spec);
        }
        let longest = FilterSpec { key_name: "n".repeat(1024), kinds: vec![3; 1024].into(), ..spec() };
        assert_eq!(decode(&encode(&longest)).unwrap(), longest);
    }

    /// Builds without support for kinds read a filter of texts, because its file has no kinds.
    #[test]
    fn the_kinds_of_texts_are_not_written() {
        let texts = FilterSpec { kinds: vec![1].into(), ..spec() };
        let none = FilterSpec { kinds: KeyKinds::default(), ..spec() };
        assert_eq!(encode(&texts), encode(&none));
        // So a filter is equal to the one that is read from its file.
        assert_eq!(decode(&encode(&texts)).unwrap(), texts);
    }

    #[test]
    fn the_kinds_of_removed_keys_are_forgotten() {
        macro_rules! check {
            ($($Filter:ident)*) => {$({
                let mut filter = crate::$Filter::new(100, 0.01).unwrap();
                filter.add_key_kinds(&[4, 1]);
                filter.clear();
                assert!(filter.key_kinds().is_empty(), stringify!($Filter));
            })*};
        }
        check!(BloomFilter AtomicBloomFilter ScalableBloomFilter AtomicScalableBloomFilter RotatingBloomFilter);
    }

    #[test]
    fn unknown_fields_are_skipped_unless_they_are_required() {
        let known = (1, &1000u64.to_le_bytes()[..]);
        let read = decode(&written(&[known, (6, b"later"), (0x7FFF, b"")])).unwrap();
        assert_eq!(read, FilterSpec { keys: Some(1000), ..FilterSpec::default() });
        let refused = decode(&written(&[known, (0x8000, b"")])).unwrap_err();
        assert!(refused.to_string().contains("tag is 32768"), "{refused}");
    }

    #[test]
    fn bad_fields_are_named() {
        let refused = |fields: &[(u16, &[u8])]| decode(&written(fields)).unwrap_err().to_string();
        assert!(refused(&[(1, &[0; 8])]).contains("expected keys is 0"));
        assert!(refused(&[(1, &[1; 7])]).contains("expected keys"));
        assert!(refused(&[(2, &1.0f64.to_le_bytes())]).contains("rate is"));
        assert!(refused(&[(2, &f64::NAN.to_le_bytes())]).contains("rate is"));
        assert!(refused(&[(3, b"a\nb")]).contains("key name is 3"));
        assert!(refused(&[(3, b"\xFF")]).contains("key name is 1"));
        assert!(refused(&[(3, b"")]).contains("key name is 0"));
        assert!(refused(&[(5, &[1; 8])]).contains("age is 8"));
        assert!(refused(&[(4, b"a")]).contains("closed is 1"));
        assert!(refused(&[(0x8001, b"")]).contains("key kinds is 0"));
        assert!(refused(&[(0x8001, b"abc")]).contains("key kinds is 3"));
        assert!(refused(&[(0x8001, &[1; 2050])]).contains("key kinds is 2050"));
        assert!(refused(&[(2, &0.5f64.to_le_bytes()), (1, &[1; 8])]).contains("tag is 1"));
        assert!(refused(&[(6, b""), (6, b"")]).contains("tag is 6"));
        // A length beyond the end, bytes after the end, a wrong checksum.
        let mut long = written(&[(9, b"")]);
        long[2] = 200;
        let end = long.len() - 8;
        let checksum = XxHash3_64::oneshot(&long[..end]).to_le_bytes();
        long[end..].copy_from_slice(&checksum);
        assert!(decode(&long).unwrap_err().to_string().contains("tag is 9"));
        assert!(refused(&[(0, b"a")]).contains("padding"));
        // No field, and more bytes than the fields need.
        assert!(refused(&[]).contains("fields is 64"));
        let long = [&written(&[(1, &[1; 8])])[..56], &[0; 64]].concat();
        let long = [&long[..], &XxHash3_64::oneshot(&long).to_le_bytes()].concat();
        assert!(decode(&long).unwrap_err().to_string().contains("fields is 128"));
        let mut damaged = encode(&spec());
        damaged[20] ^= 1;
        assert!(matches!(decode(&damaged), Err(FileErrorKind::DamagedHeader)));
    }
}
