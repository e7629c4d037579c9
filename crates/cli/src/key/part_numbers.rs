//! Numbers of the parts of a key, as options give them.

/// The parts of a key that are normalized, numbered from 1 in the order of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PartNumbers {
    #[default]
    None,
    All,
    /// These, in ascending order.
    Some(Vec<usize>),
}

impl PartNumbers {
    /// True if the part of this number is included.
    pub fn has(&self, part: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(parts) => parts.contains(&part),
        }
    }

    /// Returns the parts that are in this set or in the other one.
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, parts) | (parts, Self::None) => parts,
            (Self::Some(mut parts), Self::Some(others)) => {
                parts.extend(others);
                parts.sort_unstable();
                parts.dedup();
                Self::Some(parts)
            }
            (Self::All, _) | (_, Self::All) => Self::All,
        }
    }

    /// Returns the parts that are in this set and in the other one.
    pub fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::All, parts) | (parts, Self::All) => parts.clone(),
            (Self::Some(parts), others) => {
                let common: Vec<usize> = parts.iter().copied().filter(|&part| others.has(part)).collect();
                if common.is_empty() { Self::None } else { Self::Some(common) }
            }
            (Self::None, _) => Self::None,
        }
    }

    /// Returns the largest number, if numbers are given.
    pub fn last(&self) -> Option<usize> {
        if let Self::Some(parts) = self { parts.last().copied() } else { None }
    }
}

impl From<bool> for PartNumbers {
    fn from(all: bool) -> Self {
        if all { Self::All } else { Self::None }
    }
}
