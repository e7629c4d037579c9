//! The layouts that a file can hold, with their numbers: those of docs/FORMAT.md.

/// A layout, as its files have it.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) id: u16,
    pub(crate) name: &'static str,
    /// The numbers of probes that it offers, ascending, and in words.
    pub(crate) probes: &'static [u32],
    pub(crate) allowed: &'static str,
    /// Bits of the unit that its size is counted in besides the blocks; 0 where the blocks say all, and the field is 0.
    pub(crate) unit_bits: u64,
    /// The most units that a hash can choose among.
    pub(crate) most_units: u64,
}

/// A layout and a size in its units: what the geometry of `words4` does not say.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    pub(crate) layout: &'static Layout,
    pub(crate) units: u64,
}

pub(crate) const WORDS4: Layout = Layout {
    id: 1,
    name: "words4",
    probes: &crate::block::PROBES,
    allowed: "4, 8, 12 or 16",
    unit_bits: 0,
    most_units: u64::MAX,
};
pub(crate) const CLASSIC: Layout =
    Layout { id: 2, name: "classic", probes: &ONE_TO_32, allowed: "1 to 32", unit_bits: 1, most_units: u64::MAX };
pub(crate) const COUNTING: Layout = Layout {
    id: 3,
    name: "counting",
    probes: &[4, 8, 16],
    allowed: "4, 8 or 16",
    unit_bits: 1024,
    most_units: u64::MAX,
};
pub(crate) const SPLIT_BLOCK: Layout =
    Layout { id: 4, name: "split block", probes: &[8], allowed: "8", unit_bits: 256, most_units: 1 << 32 };
pub(crate) const REGISTER: Layout = Layout {
    id: 5,
    name: "register",
    probes: ONE_TO_32.split_at(1).1.split_at(9).0,
    allowed: "2 to 10",
    unit_bits: 64,
    most_units: u64::MAX,
};
pub(crate) const TWO_BLOCKS: Layout = Layout {
    id: 6,
    name: "words4x2",
    probes: &[8, 16, 24, 32],
    allowed: "8, 16, 24 or 32",
    unit_bits: 512,
    most_units: u64::MAX,
};

/// All of them, by number from 1 on.
pub(crate) static ALL: [&Layout; 6] = [&WORDS4, &CLASSIC, &COUNTING, &SPLIT_BLOCK, &REGISTER, &TWO_BLOCKS];

const ONE_TO_32: [u32; 32] = {
    let mut numbers = [0; 32];
    let mut i = 0;
    while i < 32 {
        numbers[i] = i as u32 + 1;
        i += 1;
    }
    numbers
};

impl Layout {
    /// The blocks of 64 bytes that so many units take.
    pub(crate) fn blocks(&self, units: u64) -> u64 {
        match self.unit_bits {
            bits if bits >= 512 => units.saturating_mul(bits / 512),
            bits => units.div_ceil(512 / bits.max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (i, layout) in ALL.into_iter().enumerate() {
            assert_eq!(usize::from(layout.id), i + 1);
            assert!(layout.probes.is_sorted());
        }
        assert_eq!(REGISTER.probes, [2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn units_fill_blocks() {
        assert_eq!([1, 512, 513].map(|bits| CLASSIC.blocks(bits)), [1, 1, 2]);
        assert_eq!([1, 2, 3].map(|blocks| SPLIT_BLOCK.blocks(blocks)), [1, 1, 2]);
        assert_eq!([1, 8, 9].map(|words| REGISTER.blocks(words)), [1, 1, 2]);
        assert_eq!([1, 3].map(|pairs| COUNTING.blocks(pairs)), [2, 6]);
    }
}
