//! Filters that are saved small, and merged in the smaller size.
