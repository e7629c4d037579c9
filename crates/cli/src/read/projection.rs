//! The parts of a line or row that are read.

use crate::key::error::KeyError;
use crate::key::fields::FieldNumbers;
use crate::key::json::Pointer;
use crate::key::{KeyPart, KeyRule};

/// The parts of a line or row that are read: its key or a text, and other values.
#[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "only tables are read in part"))]
#[derive(Clone)]
pub struct Projection {
    pub part: ProjectedPart,
    /// The locations of other values.
    pub values: Vec<Pointer>,
    /// The comparison for which the first of these values is read, if it is compared.
    pub compared: Option<Compared>,
}

/// The main part of a line or row.
#[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "only tables are read in part"))]
#[derive(Clone)]
pub enum ProjectedPart {
    Key(KeyRule),
    /// The text at this location.
    Text(Pointer),
}

/// The values that are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Numbers, times and texts.
    All,
    Texts,
}

impl Projection {
    /// Reads keys by this rule and no other value.
    pub fn from_rule(rule: KeyRule) -> Self {
        Self { part: ProjectedPart::Key(rule), values: Vec::new(), compared: None }
    }

    /// Reads whole lines.
    pub fn whole() -> Self {
        Self::from_rule(KeyRule::new(KeyPart::Line))
    }

    /// Returns the rule for keys; `None` for texts.
    pub fn rule(&self) -> Option<&KeyRule> {
        if let ProjectedPart::Key(rule) = &self.part { Some(rule) } else { None }
    }
}

/// The parts of a rule that depend on the header of an input: the rule for keys, and the fields of other values.
pub struct HeaderRule {
    pub key: KeyRule,
    pub values: Option<FieldNumbers>,
}

impl HeaderRule {
    /// Returns the rule for lines with this header, or `None` if nothing depends on it.
    pub fn new(rule: &KeyRule, values: &[Pointer], header: &[u8]) -> Result<Option<Self>, KeyError> {
        let names: Vec<String> = values.iter().map(Pointer::column).collect();
        let fields = if names.is_empty() { None } else { rule.named_fields(header, &names)? };
        if !rule.needs_header() && fields.is_none() {
            return Ok(None);
        }
        Ok(Some(Self { key: rule.resolved(header)?, values: fields }))
    }
}
