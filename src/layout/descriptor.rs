//! `LayoutDescriptor`: the constants of each layout, as listed in docs/FORMAT.md.
// Without files and variants there is one layout, whose name few callers use.
#![cfg_attr(not(feature = "variants"), allow(dead_code))]

/// The constants of a layout that its files and its sizes depend on.
#[derive(Debug)]
pub(crate) struct LayoutDescriptor {
    pub(crate) id: u16,
    pub(crate) name: &'static str,
    /// The supported numbers of probes, in ascending order.
    pub(crate) probes: &'static [u32],
    /// The supported numbers of probes, as text for messages.
    pub(crate) allowed: &'static str,
    /// The number of bits in a unit. The size of a filter is a number of units.
    pub(crate) unit_bits: u64,
    /// True if files store the number of units besides the number of blocks. Otherwise the field is 0.
    pub(crate) has_units: bool,
    /// The maximum number of units that a hash can select from.
    pub(crate) max_units: u64,
}

pub(crate) const SECTORIZED: LayoutDescriptor = LayoutDescriptor {
    id: 1,
    name: "words4",
    probes: &crate::kernel::block::PROBES,
    allowed: "4, 8, 12 or 16",
    unit_bits: 512,
    has_units: false,
    max_units: u64::MAX,
};
pub(crate) const CLASSIC: LayoutDescriptor = LayoutDescriptor {
    id: 2,
    name: "classic",
    probes: &ONE_TO_32,
    allowed: "1 to 32",
    unit_bits: 1,
    has_units: true,
    max_units: u64::MAX,
};
pub(crate) const COUNTING: LayoutDescriptor = LayoutDescriptor {
    id: 3,
    name: "counting",
    probes: &[4, 8, 16],
    allowed: "4, 8 or 16",
    unit_bits: 1024,
    has_units: true,
    max_units: u64::MAX,
};
pub(crate) const SPLIT_BLOCK: LayoutDescriptor = LayoutDescriptor {
    id: 4,
    name: "split block",
    probes: &[8],
    allowed: "8",
    unit_bits: 256,
    has_units: true,
    max_units: 1 << 32,
};
pub(crate) const REGISTER: LayoutDescriptor = LayoutDescriptor {
    id: 5,
    name: "register",
    probes: &[2, 3, 4, 5, 6, 7, 8, 9, 10],
    allowed: "2 to 10",
    unit_bits: 64,
    has_units: true,
    max_units: u64::MAX,
};
pub(crate) const TWO_BLOCKS: LayoutDescriptor = LayoutDescriptor {
    id: 6,
    name: "words4x2",
    probes: &[8, 16, 24, 32],
    allowed: "8, 16, 24 or 32",
    unit_bits: 512,
    has_units: true,
    max_units: u64::MAX,
};

/// All layouts, in the order of their ids, from 1.
pub(crate) static ALL: [&LayoutDescriptor; 6] =
    [&SECTORIZED, &CLASSIC, &COUNTING, &SPLIT_BLOCK, &REGISTER, &TWO_BLOCKS];

const ONE_TO_32: [u32; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32,
];

impl LayoutDescriptor {
    /// Returns the number of blocks of 64 bytes that `units` units take.
    pub(crate) fn blocks(&self, units: u64) -> u64 {
        match self.unit_bits {
            bits if bits >= 512 => units.saturating_mul(bits / 512),
            bits => units.div_ceil(512 / bits),
        }
    }

    /// Returns the numbers of probes to choose from: the given number, or all.
    pub(crate) fn candidates(&self, given: Option<u32>) -> impl Iterator<Item = u32> {
        self.probes.iter().copied().filter(move |&probes| given.is_none_or(|given| given == probes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_layout_is_its_position() {
        for (i, layout) in ALL.into_iter().enumerate() {
            assert_eq!(usize::from(layout.id), i + 1);
            assert!(layout.probes.is_sorted());
        }
    }

    #[test]
    fn units_are_rounded_up_to_blocks() {
        assert_eq!([1, 512, 513].map(|bits| CLASSIC.blocks(bits)), [1, 1, 2]);
        assert_eq!([1, 2, 3].map(|blocks| SPLIT_BLOCK.blocks(blocks)), [1, 1, 2]);
        assert_eq!([1, 8, 9].map(|words| REGISTER.blocks(words)), [1, 1, 2]);
        assert_eq!([1, 3].map(|pairs| COUNTING.blocks(pairs)), [2, 6]);
    }
}
