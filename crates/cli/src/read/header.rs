//! The header that an input must have, because it is that of other inputs.

use crate::key::fields::{FieldSplit, Spans};
use crate::read::split::LineFormat;
use std::io;
use std::sync::OnceLock;

/// The maximum number of characters of a header in a message.
const SHOWN: usize = 300;

/// The header that inputs must have, once the first is known.
pub struct ExpectedHeader {
    first: OnceLock<FirstHeader>,
    /// The end of the message for another header.
    remedy: &'static str,
}

/// The header of the first input with a header.
#[derive(Clone)]
struct FirstHeader {
    /// The name of the input.
    name: String,
    text: String,
    fields: Vec<Vec<u8>>,
}

impl ExpectedHeader {
    /// Expects any header. `remedy` is the end of the message for a later one that differs.
    pub fn new(remedy: &'static str) -> Self {
        Self { first: OnceLock::new(), remedy }
    }

    /// Refuses a header, without its end and byte order mark, that differs from the expected one. The first header becomes
    /// the expected one. An empty input has no header.
    pub fn check(&self, header: &[u8], name: &str, format: &LineFormat) -> io::Result<()> {
        if header.is_empty() {
            return Ok(());
        }
        let line = header.strip_suffix(b"\r").unwrap_or(header);
        let mut memory = Spans::default();
        let fields = format.csv.and_then(|csv| FieldSplit::Csv(csv).fields(line, usize::MAX, &mut memory).ok());
        let fields = fields.map_or_else(|| vec![line.to_vec()], |fields| fields.iter().map(<[u8]>::to_vec).collect());
        let text = String::from_utf8_lossy(line).chars().take(SHOWN).collect();
        let header = FirstHeader { name: name.to_owned(), text, fields };
        let first = self.first.get_or_init(|| header.clone());
        if header.fields == first.fields {
            return Ok(());
        }
        let header = header.text;
        let FirstHeader { name: first_name, text: first_header, .. } = first;
        let remedy = self.remedy;
        Err(io::Error::other(format!(
            "its header is {header:?}, but the header of {first_name} is {first_header:?}; give both the same header, {remedy}"
        )))
    }
}
