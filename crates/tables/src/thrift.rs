//! A parser of Thrift's compact protocol, for checks before the `parquet` crate parses the same bytes.

/// The types of fields.
const INTEGERS: std::ops::RangeInclusive<u8> = 4..=6;
const I32: u8 = 5;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The maximum nesting of skipped values.
const MAX_DEPTH: usize = 32;

/// The maximum nesting of a schema, because the `parquet` crate and the code that uses its types recurse.
const MAX_SCHEMA_DEPTH: usize = 100;

/// The remaining bytes. All methods return `None` for bytes that violate the protocol.
pub struct Thrift<'a>(pub &'a [u8]);

impl<'a> Thrift<'a> {
    pub fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Reads an unsigned number.
    pub fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a signed (zigzag) number.
    pub fn zigzag(&mut self) -> Option<i64> {
        self.varint().map(|number| (number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads the header of a struct's next field after the field with the id `last`. Sets `last` to its id and returns its type.
    /// The type 0 is the end.
    fn field(&mut self, last: &mut i64) -> Option<u8> {
        let byte = self.byte()?;
        let (step, kind) = (byte >> 4, byte & 0xF);
        match step {
            _ if kind == 0 => {}
            0 => *last = self.zigzag()?,
            step => *last = last.checked_add(step.into())?,
        }
        Some(kind)
    }

    /// Reads the header of a list: the number of its values, and their type.
    fn list(&mut self) -> Option<(u64, u8)> {
        let byte = self.byte()?;
        let size = if byte >> 4 == 0xF { self.varint()? } else { u64::from(byte >> 4) };
        Some((size, byte & 0xF))
    }

    /// Skips the value of a field or a list.
    fn skip(&mut self, kind: u8, in_list: bool, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            1 | 2 if !in_list => {}
            1..=3 => _ = self.byte()?,
            _ if INTEGERS.contains(&kind) => _ = self.varint()?,
            7 => _ = self.take(8)?,
            8 => {
                let length = self.varint()?;
                self.take(usize::try_from(length).ok()?)?;
            }
            LIST | 10 => {
                let (size, kind) = self.list()?;
                (0..size).try_for_each(|_| self.skip(kind, true, depth))?;
            }
            11 => {
                let size = self.varint()?;
                let kinds = if size == 0 { 0 } else { self.byte()? };
                (0..size).try_for_each(|_| {
                    self.skip(kinds >> 4, true, depth)?;
                    self.skip(kinds & 0xF, true, depth)
                })?;
            }
            STRUCT => {
                let mut id = 0;
                loop {
                    match self.field(&mut id)? {
                        0 => break,
                        kind => self.skip(kind, false, depth)?,
                    }
                }
            }
            13 => _ = self.take(16)?,
            _ => return None,
        }
        Some(())
    }

    /// Reads the fields of a top-level struct. Calls `visit` with the id and the type of each.
    fn fields(&mut self, mut visit: impl FnMut(&mut Self, i64, u8) -> Option<Visited>) -> Option<()> {
        let mut id = 0;
        loop {
            let kind = self.field(&mut id)?;
            if kind == 0 {
                return Some(());
            }
            match visit(self, id, kind)? {
                Visited::Read => {}
                Visited::Skip => self.skip(kind, false, MAX_DEPTH)?,
                Visited::Stop => return Some(()),
            }
        }
    }
}

/// The result of a visit to a field.
enum Visited {
    /// The value was read.
    Read,
    /// The value is to be skipped.
    Skip,
    /// The remaining fields are not needed.
    Stop,
}

/// Fails if the schema in a footer is incomplete or nested too deeply.
pub fn check_schema(footer: &[u8]) -> Result<(), String> {
    let mut deepest = 0;
    let parsed = Thrift(footer).fields(|footer, id, kind| {
        if (id, kind) != (2, LIST) {
            return Some(Visited::Skip);
        }
        let (mut remaining, _) = footer.list()?;
        // For each level, the number of columns left.
        let mut levels: Vec<u64> = Vec::new();
        while remaining > 0 {
            remaining -= 1;
            let mut children = 0;
            footer.fields(|column, id, kind| {
                if (id, kind) != (5, I32) {
                    return Some(Visited::Skip);
                }
                children = u64::try_from(column.zigzag()?).ok()?;
                Some(Visited::Read)
            })?;
            (children <= remaining).then_some(())?;
            if let Some(level) = levels.last_mut() {
                *level -= 1;
            }
            levels.push(children);
            deepest = deepest.max(levels.len());
            while levels.last() == Some(&0) {
                levels.pop();
            }
        }
        Some(Visited::Stop)
    });
    match parsed {
        None => Err("its footer is damaged: the schema is cut".to_owned()),
        Some(()) if deepest > MAX_SCHEMA_DEPTH => {
            Err(format!("its schema has {deepest} levels of columns; the limit is {MAX_SCHEMA_DEPTH}"))
        }
        Some(()) => Ok(()),
    }
}

/// Returns the footer with an element type for its empty list of row groups. fastparquet omits the type, and the `parquet` crate
/// requires it. `None` if the footer need not change.
pub fn with_typed_row_groups(footer: &[u8]) -> Option<Vec<u8>> {
    let mut position = None;
    Thrift(footer).fields(|rest, id, kind| {
        if (id, kind) != (4, LIST) {
            return Some(Visited::Skip);
        }
        position = Some(footer.len() - rest.0.len()).filter(|_| rest.0.first() == Some(&0));
        Some(Visited::Stop)
    })?;
    let mut typed = footer.to_vec();
    typed[position?] = STRUCT;
    Some(typed)
}

/// Returns the uncompressed and the compressed size of a page, from its header.
pub fn page_sizes(header: &[u8]) -> Option<(u64, u64)> {
    let (mut header, mut id) = (Thrift(header), 0);
    let mut field = |wanted| {
        let kind = header.field(&mut id)?;
        if (id, kind) == (wanted, I32) { header.zigzag() } else { None }
    };
    field(1)?;
    Some((u64::try_from(field(2)?).ok()?, u64::try_from(field(3)?).ok()?))
}

/// True if an offset index declares no more pages than it has bytes.
pub fn is_offset_index(bytes: &[u8]) -> bool {
    let (mut index, mut id) = (Thrift(bytes), 0);
    let kind = index.field(&mut id);
    (kind, id) == (Some(LIST), 1) && index.list().is_some_and(|(size, _)| size <= bytes.len() as u64)
}

/// Returns the number of values of a delta-encoded run and, if `to_end`, the bytes after the run.
pub fn parse_delta_run(bytes: &[u8], to_end: bool) -> Option<(u64, &[u8])> {
    let mut bytes = Thrift(bytes);
    let (block_values, miniblocks, count) = (bytes.varint()?, bytes.varint()?, bytes.varint()?);
    bytes.zigzag()?;
    let values = usize::try_from(block_values.checked_div(miniblocks)?).ok()?;
    let mut remaining = count.saturating_sub(1);
    while to_end && remaining > 0 && values > 0 {
        bytes.zigzag()?;
        for &width in bytes.take(usize::try_from(miniblocks).ok()?)? {
            if remaining > 0 {
                bytes.take(values.checked_mul(width.into())? / 8)?;
                remaining = remaining.saturating_sub(values as u64);
            }
        }
    }
    Some((count, bytes.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a column of a schema with a one-letter name. Another field precedes the name.
    fn column(children: u8) -> Vec<u8> {
        // An i32 with the id 3, a binary with the id 4, and an i32 with the id 5.
        vec![0x35, 0, 0x18, 1, b'a', 0x15, 2 * children, 0]
    }

    /// Returns a footer with a schema, preceded by its version.
    fn footer(columns: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x15, 2, 0x19, 0xFC];
        let mut count = columns.len();
        while count > 0x7F {
            bytes.push(count as u8 | 0x80);
            count >>= 7;
        }
        bytes.push(count as u8);
        bytes.extend(columns.iter().flat_map(|&children| column(children)));
        bytes
    }

    #[test]
    fn incomplete_and_too_deep_schemas_are_refused() {
        for (columns, expected) in [
            (vec![0], ""),
            (vec![2, 0, 0], ""),
            (vec![2, 1, 0, 1, 0], ""),
            (vec![3, 0, 0], "cut"),
            (vec![1, 60], "cut"),
            ([vec![1; 99], vec![0]].concat(), ""),
            ([vec![1; 100], vec![0]].concat(), "101 levels"),
            ([vec![1; 100_000], vec![0]].concat(), "100001 levels"),
        ] {
            let checked = check_schema(&footer(&columns)).err().unwrap_or_default();
            assert!(checked.contains(expected) && checked.is_empty() == expected.is_empty(), "{checked}");
        }
        let complete = footer(&[2, 1, 0, 0]);
        assert!((0..complete.len()).all(|length| check_schema(&complete[..length]).is_err()));
        // A map and a list of an empty struct precede the schema.
        let unknown = [&[0x1B, 1, 0x85, 4, 1, b'x', 0x09, 2, 0x1C, 0, 0x09, 4][..], &footer(&[1, 0])[3..]].concat();
        check_schema(&unknown).unwrap();
    }

    #[test]
    fn empty_row_groups_get_an_element_type() {
        // The number of rows, with the id 3, and the row groups, with the id 4.
        let with_groups = |list: u8| [footer(&[1, 0]), vec![0x16, 0, 0x19, list, 0]].concat();
        assert_eq!(with_typed_row_groups(&with_groups(0)), Some(with_groups(STRUCT)));
        for unchanged in [with_groups(STRUCT), with_groups(0x1C), footer(&[1, 0]), Vec::new()] {
            assert_eq!(with_typed_row_groups(&unchanged), None);
        }
    }

    #[test]
    fn page_sizes_and_counts_are_parsed() {
        assert_eq!(page_sizes(&[0x15, 0, 0x15, 0xC8, 1, 0x15, 6, 0]), Some((100, 3)));
        assert_eq!(page_sizes(&[0x15, 0, 0x15, 1, 0x15, 6]), None);
        assert_eq!(page_sizes(&[0x15, 0, 0x25, 2, 0x15, 6]), None);
        assert!(is_offset_index(&[0x19, 0x1C, 0]) && is_offset_index(&[0x19, 0xFC, 5, 0, 0, 0]));
        assert!(!is_offset_index(&[0x19, 0xFC, 0x7F, 0, 0]) && !is_offset_index(&[0x29, 0x1C, 0]));
        // 128 in 4 parts: one number, and then 34, two of them in the last part.
        assert_eq!(parse_delta_run(&[0x80, 1, 4, 1, 8, 7], true), Some((1, &[7][..])));
        let many = [&[0x80, 1, 4, 34, 8, 0, 1, 2, 9, 9][..], &[1; 4], &[2; 8], &[7]].concat();
        assert_eq!(parse_delta_run(&many, true), Some((34, &[7][..])));
        assert_eq!(parse_delta_run(&many[..12], true), None);
        assert_eq!(parse_delta_run(&[0x80, 1, 0, 1, 8], true), None);
    }
}
