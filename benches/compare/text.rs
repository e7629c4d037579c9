//! The result for people to read: as text, and its parts for the page.

use super::recommendation::{Recommendation, recommendations};
use super::result::{Comparison, LoadRow, RateRow, Row, Time};
use bloomline_benches::ROUND_KEYS;
use indicatif::HumanBytes;

/// A table. Its first row is the head.
pub struct Table {
    pub title: String,
    pub rows: Vec<Vec<String>>,
}

/// The whole result as text.
pub fn text(comparison: &Comparison) -> String {
    let mut parts = vec![facts(comparison).map(|(label, fact)| format!("{label:13} {fact}")).join("\n")];
    parts.extend(recommendations(comparison).into_iter().map(|Recommendation { job, best }| format!("{job}: {best}")));
    parts.push(units(comparison));
    parts.extend(tables(comparison).into_iter().map(|part| format!("{}\n{}", part.title, table(&part.rows))));
    parts.push(notes(comparison).join("\n"));
    parts.join("\n\n")
}

/// Returns the machine, date, version, command and duration of a comparison.
pub fn facts(comparison: &Comparison) -> [(&'static str, String); 7] {
    let machine = &comparison.machine;
    let memory = machine.memory_bytes.map_or_else(String::new, |bytes| format!(", {}", HumanBytes(bytes)));
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    let cache = |cache: &super::machine::Cache| format!("L{} {}", cache.level, size(cache.bytes));
    let pages = machine.huge_pages.as_ref().map_or_else(String::new, |mode| format!(", huge pages: {mode}"));
    [
        (
            "machine",
            format!("{}, {} {cores}{memory}, {} {}{pages}", machine.cpu, machine.cores, machine.os, machine.arch),
        ),
        ("CPU features", format!("{} (kernel: {})", machine.features.join(" "), machine.kernel)),
        ("caches", machine.caches.iter().map(cache).collect::<Vec<_>>().join(", ")),
        ("date", comparison.date.clone()),
        ("version", comparison.version.clone()),
        ("command", comparison.command.clone()),
        ("duration", format!("{:.0} s", comparison.seconds)),
    ]
}

/// Returns notes on the method of measurement.
pub fn notes(comparison: &Comparison) -> Vec<String> {
    let Comparison { round_keys, rounds, bits_per_key, .. } = comparison;
    let mut notes = vec![
        format!(
            "For inserts into a large filter, the parts that it is filled in take the place of the {rounds} rounds. The \
             contenders take turns in each round, with the same {round_keys} distinct pre-hashed keys. At equal memory, \
             they have {bits_per_key} bits for each key that they are filled with. Inserts fill an empty filter. Queries \
             on several threads find half of their keys. The measured rate is that of the queries without hits."
        ),
        "k is the number of bits set for a key, or the bits of its fingerprint: the whole of it, or what a quotient filter \
         stores of it. Fingerprints come in whole bits, and some sizes in powers of two. At equal memory such a filter takes \
         the most that fits, and for a rate the least that keeps it. Sizes of powers of two suit some numbers of keys \
         better than others; these are neither the best nor the worst."
            .to_owned(),
        "Resident is by how much the resident memory of the process grew while the filter was made and got its first keys. \
         Small filters may lie in memory that the allocator had already. It is unknown where the system did not report \
         it, or where it was read only after the filter had written to all of its memory."
            .to_owned(),
    ];
    if *round_keys < ROUND_KEYS as u64 {
        notes.push(format!("Only {round_keys} distinct keys a round: the memory they touch may stay in a cache, and then all times are too good."));
    }
    if let Some(fixed) = comparison.contenders.iter().find(|entry| entry.fixed) {
        let label = comparison.label(&fixed.name);
        notes.push(format!(
            "{label}: it is built once of all keys, and none can be inserted later. Its insert is the build, for each key. A \
             large one is built only once, so its quartiles are equal."
        ));
    }
    notes.extend(comparison.contenders.iter().map(|entry| match &entry.peer {
        Some(peer) => format!("{}: the crate {peer}; {}.", entry.name, entry.interface),
        None => format!("{}: {}.", entry.name, entry.interface),
    }));
    notes.extend(
        comparison
            .left_out
            .iter()
            .map(|left| format!("{} is left out at {}: {}.", left.contender, left.at, left.reason)),
    );
    notes
}

/// Returns the units of the tables.
pub fn units(comparison: &Comparison) -> String {
    format!(
        "Times are nanoseconds a key: the median of {} rounds, and their quartiles in parentheses. Rates are false-positive rates. \
         Query columns have no hits, half hits and only hits. \"Batch\" is one call for many keys; all other filters take a call for \
         each key.",
        comparison.rounds
    )
}

/// All tables.
pub fn tables(comparison: &Comparison) -> Vec<Table> {
    let mut tables = Vec::new();
    for rows in comparison.rows.chunk_by(|a, b| a.size_bytes == b.size_bytes) {
        let title = format!("Equal memory: {}, {} keys", size(rows[0].size_bytes), rows[0].keys);
        tables.push(speeds(comparison, title, rows));
        let equal_rate_rows = &comparison.equal_rate_rows;
        if equal_rate_rows.first().is_some_and(|row| row.size_bytes == rows[0].size_bytes) {
            let title = format!("Equal rate: {}, {} keys", percent(comparison.equal_rate), rows[0].keys);
            tables.push(speeds(comparison, title, equal_rate_rows));
        }
        let loads = comparison.loads.iter().filter(|load| load.size_bytes == rows[0].size_bytes);
        tables.extend(self::loads(&loads.collect::<Vec<_>>()));
    }
    tables.extend(rates(comparison));
    tables
}

fn speeds(comparison: &Comparison, title: String, rows: &[Row]) -> Table {
    let mut head = texts([
        "contender",
        "k",
        "bits a key",
        "modelled rate",
        "measured rate",
        "query, miss",
        "half",
        "hit",
        "insert",
    ]);
    let max = rows[0].query_threads.last().map_or(1, |last| last.threads);
    if max > 1 {
        head.push(format!("query, {max} threads"));
    }
    head.push("resident".to_owned());
    let row = |row: &Row| {
        let mut cells = vec![
            comparison.label(&row.contender),
            row.probes.to_string(),
            format!("{:.2}", row.bits_per_key),
            rate(row.modelled_fpr),
            rate(row.measured_fpr),
        ];
        cells.extend([row.query_0, row.query_50, row.query_100, row.insert].map(time));
        cells.extend(row.query_threads.iter().skip(1).last().map(|last| time(last.time)));
        cells.push(row.resident_bytes.map_or_else(|| "unknown".to_owned(), |bytes| HumanBytes(bytes).to_string()));
        cells
    };
    Table { title, rows: [head].into_iter().chain(rows.iter().map(row)).collect() }
}

fn loads(loads: &[&LoadRow]) -> Option<Table> {
    let first = loads.first()?;
    let mut head = texts(["contender", "load", "interface"]);
    let threads = |count: usize| if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") };
    head.extend(first.threads.iter().map(|at| threads(at.threads)));
    let row = |row: &&LoadRow| {
        let mut cells = vec![row.contender.clone(), row.operation.clone(), row.interface.clone()];
        cells.extend(row.threads.iter().map(|at| time(at.time)));
        cells
    };
    Some(Table {
        title: format!("Loads on threads: {}, ns a key", size(first.size_bytes)),
        rows: [head].into_iter().chain(loads.iter().map(row)).collect(),
    })
}

fn rates(comparison: &Comparison) -> Option<Table> {
    let rates = &comparison.rates;
    let first = rates.first()?;
    let head = texts(["contender", "requested", "modelled", "measured", "measured/requested", "k", "bits a key"]);
    let row = |row: &RateRow| {
        vec![
            comparison.label(&row.contender),
            rate(row.requested_fpr),
            rate(row.modelled_fpr),
            rate(row.measured_fpr),
            format!("{:.2}", row.measured_fpr / row.requested_fpr),
            row.probes.to_string(),
            format!("{:.2}", row.bits_per_key),
        ]
    };
    Some(Table {
        title: format!("Memory for a rate: {} keys", first.keys),
        rows: [head].into_iter().chain(rates.iter().map(row)).collect(),
    })
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

fn rate(rate: f64) -> String {
    format!("{rate:.2e}")
}

fn time(Time { lower_quartile, median, upper_quartile }: Time) -> String {
    format!("{median:.2} ({lower_quartile:.2}–{upper_quartile:.2})")
}

/// A rate in percent, if it is not small.
pub fn percent(rate: f64) -> String {
    if rate >= 0.001 { format!("{} %", 100.0 * rate) } else { format!("{rate:e}") }
}

/// A size, without decimals if it is a whole number of its unit.
pub fn size(bytes: usize) -> String {
    HumanBytes(bytes as u64).to_string().replace(".00", "")
}

/// Columns as wide as they need to be, all to the right as numbers are, but for the first.
fn table(rows: &[Vec<String>]) -> String {
    let width = |i: usize| rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).skip(1).map(|(cell, width)| format!("  {cell:>width$}"));
        format!("{:width$}{}", row[0], cells.collect::<String>(), width = widths[0])
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// For HTML and SVG.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
