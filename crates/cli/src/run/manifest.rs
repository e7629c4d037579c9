//! The manifest: a line of JSON for each whole output in a folder.

use crate::read::table::GroupCounts;
use crate::run::checkpoint::InputProgress;
use crate::run::input::RunInput;
use crate::seen::counts::UnitCounts;
use crate::system::error::Error;
use crate::system::files::{self, hex};
use crate::write::atomic_file::AtomicFile;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The figures of an input and its output.
#[derive(Serialize)]
pub struct InputSummary<'a> {
    /// Paths, with replacement characters for bytes that are not UTF-8. The bytes then follow in hexadecimal.
    input: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_hex: Option<String>,
    output: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_hex: Option<String>,
    lines: u64,
    unique: u64,
    dropped: u64,
    without_key: u64,
    blank: u64,
    /// The bytes of these lines.
    bytes: u64,
    input_bytes: u64,
    output_bytes: u64,
    /// Figures of documents.
    #[serde(flatten)]
    text: Option<TextSummary>,
    /// Row groups of tables.
    #[serde(flatten)]
    groups: Option<GroupSummary>,
    /// The reason why the rest of the input is skipped.
    fault: Option<String>,
}

/// The units of the documents of an input.
#[derive(Serialize)]
struct TextSummary {
    shortened: u64,
    units: u64,
    duplicate_units: u64,
    text_bytes: u64,
    removed_bytes: u64,
    expected_wrongly_removed: f64,
}

/// Counts of the row groups of an input.
#[derive(Serialize)]
struct GroupSummary {
    groups: u64,
    groups_copied: u64,
    groups_written: u64,
}

impl GroupSummary {
    fn new(GroupCounts { read, copied, written }: GroupCounts) -> Self {
        Self { groups: read, groups_copied: copied, groups_written: written }
    }
}

impl TextSummary {
    fn new(counts: &UnitCounts) -> Self {
        let &UnitCounts { units, duplicates, shortened, bytes, removed, wrong, .. } = counts;
        Self {
            shortened,
            units,
            duplicate_units: duplicates,
            text_bytes: bytes,
            removed_bytes: removed,
            expected_wrongly_removed: wrong,
        }
    }
}

impl<'a> InputSummary<'a> {
    /// Summarizes an input, whose lines may be documents, and its output, which lacks `dropped` of them.
    pub fn new(
        input: &'a RunInput,
        output: &'a AtomicFile,
        reached: &InputProgress,
        dropped: u64,
        documents: bool,
    ) -> Self {
        Self {
            input: input.path.to_string_lossy(),
            input_hex: hex(&input.path),
            output: output.whole.to_string_lossy(),
            output_hex: hex(&output.whole),
            lines: reached.counts.lines,
            unique: reached.counts.unique,
            dropped,
            without_key: reached.counts.faults,
            blank: reached.counts.blank,
            bytes: reached.counts.bytes,
            input_bytes: input.size.unwrap_or(0),
            output_bytes: reached.output,
            text: documents.then(|| TextSummary::new(&reached.counts.units)),
            groups: reached.table.as_ref().map(|table| GroupSummary::new(table.groups)),
            fault: reached.broken.clone(),
        }
    }
}

/// Replaces the manifest atomically.
pub fn write<'a>(path: &Path, summaries: impl Iterator<Item = InputSummary<'a>>) -> Result<(), Error> {
    let written = bloomline::save_file(path, |file| {
        let mut writer = BufWriter::new(file);
        for summary in summaries {
            serde_json::to_writer(&mut writer, &summary)?;
            writer.write_all(b"\n")?;
        }
        writer.flush()
    });
    written.map_err(files::failed(path))
}
