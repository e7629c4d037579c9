//! Figures: printed for people, and as JSON for programs.

use clap::ValueEnum;
use serde_json::{Map, Value};
use std::fmt::Display;

/// The format of statistics.
#[derive(Clone, Copy, ValueEnum)]
pub enum StatsFormat {
    /// A line for each figure.
    Text,
    /// One JSON object on one line.
    Json,
}

/// The layout of the library's filters, by its name in the documentation.
pub const LAYOUT: &str = "words4";

/// Rows for people, fields for programs.
#[derive(Default)]
pub struct Figures {
    rows: Vec<(String, String)>,
    fields: Map<String, Value>,
}

impl Figures {
    /// Adds a figure for people.
    pub fn row(&mut self, label: &str, text: impl Display) {
        self.rows.push((label.to_owned(), text.to_string()));
    }

    /// Adds a figure for programs. Infinity and NaN become `null`, because JSON has no notation for them.
    pub fn field(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    /// Adds a figure for both.
    pub fn row_and_field(&mut self, label: &str, text: impl Display, name: &str, value: impl Into<Value>) {
        self.row(label, text);
        self.field(name, value);
    }

    /// Adds a figure that is the same for both.
    pub fn figure(&mut self, label: &str, name: &str, value: impl Display + Into<Value> + Copy) {
        self.row_and_field(label, value, name, value);
    }

    /// Adds a count, which people see only if it is not zero.
    pub fn unless_zero(&mut self, label: &str, name: &str, count: u64) {
        self.field(name, count);
        if count > 0 {
            self.row(label, count);
        }
    }

    /// Formats a line for each figure.
    pub fn text(&self) -> String {
        let width = self.rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        let lines: Vec<String> = self.rows.iter().map(|(label, text)| format!("{label:width$}  {text}")).collect();
        lines.join("\n")
    }

    /// Formats one JSON object on one line.
    pub fn json(self) -> String {
        Value::Object(self.fields).to_string()
    }

    pub fn format(self, format: StatsFormat) -> String {
        match format {
            StatsFormat::Text => self.text(),
            StatsFormat::Json => self.json(),
        }
    }
}

/// Formats a rate for people.
pub fn readable(rate: f64) -> String {
    if rate < 0.001 { format!("{rate:.2e}") } else { format!("{rate:.4}") }
}

/// Formats an estimate for people. It may not be finite: bits per key of no keys, or the number of keys if all bits are set.
pub fn estimated(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{value:.decimals$} (estimated)") } else { "unknown".to_owned() }
}

/// Formats a large number for people.
pub fn readable_count(count: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(unit, _)| count >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", count / unit),
        None => format!("{count:.0}"),
    }
}

/// Formats a size for people.
pub fn readable_size(bytes: usize) -> String {
    let (mut size, mut unit) = (bytes as f64, "bytes");
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, larger);
    }
    if unit == "bytes" { format!("{size} {unit}") } else { format!("{size:.2} {unit}") }
}

/// Formats columns of minimal width, right-aligned except for the first.
pub fn table(rows: &[Vec<String>]) -> String {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = cell.chars().count().max(*width));
    }
    let line = |row: &Vec<String>| {
        let mut line = format!("{:width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            line += &format!("  {cell:>width$}");
        }
        line
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
