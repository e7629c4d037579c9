//! Builders: from the values that a filter is built from to its geometry.

pub(crate) mod geometry;
pub(crate) mod options;
pub(crate) mod plan;
pub(crate) mod spec;
