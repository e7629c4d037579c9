//! Types that can be keys, and their hash.

pub(crate) mod hash;
pub(crate) mod keys;
pub(crate) mod single;
pub(crate) mod within_build;
