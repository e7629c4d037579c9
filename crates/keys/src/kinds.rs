//! The kinds of values, and the kinds that a filter records of each part of its keys.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of kinds of values. A null has no kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// No kind.
    pub const NONE: Self = Self(0);
    /// Texts.
    pub const TEXT: Self = Self(1);
    /// Byte strings, if a column distinguishes them from texts.
    pub const BYTES: Self = Self(1 << 1);
    /// Integers, decimals and floating-point numbers.
    pub const NUMBER: Self = Self(1 << 2);
    /// Booleans.
    pub const BOOLEAN: Self = Self(1 << 3);
    /// Dates.
    pub const DATE: Self = Self(1 << 4);
    /// Times of day.
    pub const TIME: Self = Self(1 << 5);
    /// Timestamps without a zone.
    pub const TIMESTAMP: Self = Self(1 << 6);
    /// Timestamps with a zone.
    pub const INSTANT: Self = Self(1 << 7);
    /// Durations.
    pub const DURATION: Self = Self(1 << 8);
    /// Lists.
    pub const LIST: Self = Self(1 << 9);
    /// Structs, which are the objects of JSON.
    pub const STRUCT: Self = Self(1 << 10);
    /// Maps.
    pub const MAP: Self = Self(1 << 11);
    /// Not a kind of value: the part is a column of a row whose columns are found by name.
    pub const IN_ROW: Self = Self(1 << 14);
    /// Not a kind of value: keys of the library other than texts and byte strings, such as integers and tuples.
    pub const LIBRARY: Self = Self(1 << 15);

    const NAMES: [(Self, &str); 13] = [
        (Self::TEXT, "texts"),
        (Self::BYTES, "byte strings"),
        (Self::NUMBER, "numbers"),
        (Self::BOOLEAN, "booleans"),
        (Self::DATE, "dates"),
        (Self::TIME, "times of day"),
        (Self::TIMESTAMP, "timestamps without a zone"),
        (Self::INSTANT, "timestamps with a zone"),
        (Self::DURATION, "durations"),
        (Self::LIST, "lists"),
        (Self::STRUCT, "structs"),
        (Self::MAP, "maps"),
        (Self::LIBRARY, "integers or tuples of add and add_many"),
    ];

    /// Returns true if a kind is in both sets.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the kinds of values, without the two flags.
    fn values(self) -> Self {
        Self(self.0 & !(Self::IN_ROW.0 | Self::LIBRARY.0))
    }
}

impl From<u16> for Kinds {
    fn from(bits: u16) -> Self {
        Self(bits)
    }
}

impl From<Kinds> for u16 {
    fn from(kinds: Kinds) -> Self {
        kinds.0
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Kinds {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Names the kinds, as in "texts or numbers".
impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Self::NAMES.iter().filter(|(kind, _)| self.meets(*kind)).map(|(_, name)| *name);
        f.write_str(names.next().unwrap_or("nulls"))?;
        names.try_for_each(|name| write!(f, " or {name}"))
    }
}

/// The kinds of each part of some keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyKinds(Vec<Kinds>);

impl KeyKinds {
    /// Creates the kinds of keys that are single values.
    pub fn new(kinds: Kinds) -> Self {
        Self(vec![kinds])
    }

    /// Creates the kinds of keys of several parts: the columns of a row in the order of their names if `in_row`.
    pub fn from_parts(parts: impl IntoIterator<Item = Kinds>, in_row: bool) -> Self {
        let flag = if in_row { Kinds::IN_ROW } else { Kinds::NONE };
        Self(parts.into_iter().map(|kinds| kinds | flag).collect())
    }

    /// Creates the kinds that a filter has recorded. A filter that is not empty and has recorded none has keys of texts.
    pub fn from_recorded(bits: &[u16]) -> Self {
        if bits.is_empty() {
            return Self::new(Kinds::TEXT);
        }
        Self(bits.iter().copied().map(Kinds::from).collect())
    }

    /// Returns the bits that a filter records.
    pub fn to_bits(&self) -> Vec<u16> {
        self.0.iter().copied().map(u16::from).collect()
    }

    /// Returns the kinds of each part.
    pub fn parts(&self) -> &[Kinds] {
        &self.0
    }

    /// Adds the kinds of a part.
    #[inline]
    pub fn add(&mut self, part: usize, kinds: Kinds) {
        match self.0.get_mut(part) {
            Some(ours) => *ours |= kinds,
            None => {
                self.0.resize(part, Kinds::NONE);
                self.0.push(kinds);
            }
        }
    }

    /// Adds the kinds of other keys.
    pub fn unite(&mut self, other: &Self) {
        (0..).zip(&other.0).for_each(|(part, kinds)| self.add(part, *kinds));
    }

    /// Returns true if the kinds of each part of other keys are among these.
    pub fn includes(&self, other: &Self) -> bool {
        let is_included = |(part, kinds): (usize, &Kinds)| self.0.get(part).is_some_and(|ours| *ours | *kinds == *ours);
        other.0.iter().enumerate().all(is_included)
    }

    /// Returns the reason that none of these keys can be in a filter whose keys have the `recorded` kinds; `None` if
    /// some can. A part that has had only nulls fits any other.
    pub fn conflict(&self, recorded: &Self) -> Option<KindConflict> {
        let (Some(ours), Some(theirs)) = (self.0.first(), recorded.0.first()) else { return None };
        let is_plain_text = self.0.len() == 1 && !ours.meets(Kinds::IN_ROW) && ours.values() == Kinds::TEXT;
        if theirs.meets(Kinds::LIBRARY) && !(is_plain_text && theirs.meets(Kinds::TEXT)) {
            return Some(KindConflict::Kinds { part: None, brought: ours.values(), recorded: Kinds::LIBRARY });
        }
        let (ours_in_row, theirs_in_row) = (ours.meets(Kinds::IN_ROW), theirs.meets(Kinds::IN_ROW));
        if (self.0.len(), ours_in_row) != (recorded.0.len(), theirs_in_row) {
            let [brought, recorded] = [(self.0.len(), ours_in_row), (recorded.0.len(), theirs_in_row)];
            return Some(KindConflict::Parts { brought, recorded });
        }
        let mut parts = self.0.iter().zip(&recorded.0).map(|(ours, theirs)| (ours.values(), theirs.values()));
        let part =
            parts.position(|(ours, theirs)| ours != Kinds::NONE && theirs != Kinds::NONE && !ours.meets(theirs))?;
        let number = (self.0.len() > 1).then_some(part);
        let [brought, recorded] = [self, recorded].map(|kinds| kinds.0[part].values());
        Some(KindConflict::Kinds { part: number, brought, recorded })
    }
}

/// Names the kinds of each part, as in "texts, numbers".
impl fmt::Display for KeyKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (part, kinds) in self.0.iter().enumerate() {
            write!(f, "{}{kinds}", if part == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// The reason why none of some keys can be in a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindConflict {
    /// The keys have another form: another number of parts, or parts that are found by name on one side alone.
    Parts {
        /// The form of the keys that are looked up or inserted: the number of parts, and true if these are found by
        /// name.
        brought: (usize, bool),
        /// The form of the keys of the filter.
        recorded: (usize, bool),
    },
    /// A part of the keys has other kinds of values.
    Kinds {
        /// The number of the part, from 0, in keys of several parts.
        part: Option<usize>,
        /// The kinds of the keys that are looked up or inserted.
        brought: Kinds,
        /// The kinds of the keys of the filter.
        recorded: Kinds,
    },
}

impl fmt::Display for KindConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn form((parts, in_row): (usize, bool)) -> String {
            match (parts, in_row) {
                (1, false) => "single values".to_owned(),
                (1, true) => "rows of 1 named column".to_owned(),
                (parts, true) => format!("rows of {parts} named columns"),
                (parts, false) => format!("{parts} fields in order"),
            }
        }
        match *self {
            Self::Parts { brought, recorded } => {
                write!(f, "they are {}, and the earlier keys are {}", form(brought), form(recorded))
            }
            Self::Kinds { part: None, brought, recorded } => {
                write!(f, "they are {brought}, and the earlier keys are {recorded}")
            }
            Self::Kinds { part: Some(part), brought, recorded } => {
                let part = part + 1;
                write!(f, "part {part} is {brought}, and part {part} of the earlier keys is {recorded}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kinds: &[Kinds]) -> KeyKinds {
        KeyKinds::from_parts(kinds.iter().copied(), true)
    }

    #[test]
    fn keys_without_a_common_kind_are_refused() {
        let [text, number, both, null] =
            [Kinds::TEXT, Kinds::NUMBER, Kinds::TEXT | Kinds::NUMBER, Kinds::NONE].map(KeyKinds::new);
        let conflict = number.conflict(&text).unwrap();
        assert_eq!(conflict.to_string(), "they are numbers, and the earlier keys are texts");
        for (ours, theirs) in [(&text, &text), (&both, &text), (&text, &both), (&null, &text), (&text, &null)] {
            assert_eq!(ours.conflict(theirs), None, "{ours} {theirs}");
        }
        assert_eq!(number.conflict(&KeyKinds::default()), None);
        assert_eq!(text.conflict(&KeyKinds::from_recorded(&[])), None);
        assert!(number.conflict(&KeyKinds::from_recorded(&[])).is_some());
    }

    #[test]
    fn a_part_without_a_common_kind_is_named() {
        let (ids, names) = (row(&[Kinds::NUMBER, Kinds::TEXT]), row(&[Kinds::NUMBER, Kinds::BYTES]));
        let conflict = names.conflict(&ids).unwrap();
        assert_eq!(conflict.to_string(), "part 2 is byte strings, and part 2 of the earlier keys is texts");
    }

    #[test]
    fn keys_of_another_form_are_refused() {
        let (one, two) = (row(&[Kinds::TEXT]), row(&[Kinds::TEXT; 2]));
        let (single, fields) = (KeyKinds::new(Kinds::TEXT), KeyKinds::from_parts([Kinds::TEXT; 2], false));
        for (ours, theirs, sentence) in [
            (&single, &one, "they are single values, and the earlier keys are rows of 1 named column"),
            (&two, &fields, "they are rows of 2 named columns, and the earlier keys are 2 fields in order"),
            (&two, &one, "they are rows of 2 named columns, and the earlier keys are rows of 1 named column"),
        ] {
            assert_eq!(ours.conflict(theirs).unwrap().to_string(), sentence);
            assert!(theirs.conflict(ours).is_some());
        }
    }

    /// The library hashes texts as values are hashed, but integers and tuples in another way.
    #[test]
    fn texts_are_the_only_keys_of_the_library_that_are_values() {
        let [integers, mixed] = [Kinds::LIBRARY, Kinds::LIBRARY | Kinds::TEXT].map(KeyKinds::new);
        let [text, number] = [Kinds::TEXT, Kinds::NUMBER].map(KeyKinds::new);
        assert!(number.conflict(&integers).is_some() && text.conflict(&integers).is_some());
        assert!(number.conflict(&mixed).is_some() && row(&[Kinds::TEXT; 2]).conflict(&mixed).is_some());
        assert_eq!(text.conflict(&mixed), None);
    }

    #[test]
    fn kinds_are_united_part_by_part() {
        let mut kinds = KeyKinds::new(Kinds::TEXT);
        kinds.unite(&KeyKinds::from_parts([Kinds::NUMBER, Kinds::DATE], false));
        assert_eq!(kinds.to_bits(), [1 | 4, 16]);
        assert_eq!(kinds.to_string(), "texts or numbers, dates");
        assert_eq!(KeyKinds::from_recorded(&kinds.to_bits()), kinds);
    }
}
