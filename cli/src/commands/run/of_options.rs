//! Runs, as the options ask for them.

use crate::commands::against::Tests;
use crate::commands::groups::Grouping;
use crate::commands::run::Run;
use crate::engine::sink::Print;
use crate::groups::decisions::{Printed, Which};
use crate::input::lines::ends::LineEnds;
use crate::input::lines::{Before, What};
use crate::input::split::LineFormat;
use crate::options::{CorpusOptions, DedupOptions};
use crate::seen::exact;
use crate::table::Wish;
use crate::values::OnError;
use std::path::Path;

impl Run {
    /// Of lines.
    pub fn of_dedup(options: DedupOptions) -> Self {
        let asks_for_groups = options.groups.given().or(options.reads_twice()).is_some();
        let which = which(&options);
        let DedupOptions {
            reading,
            key,
            size,
            shared,
            writing,
            mut run,
            dupes,
            invert,
            total,
            verify,
            stats_every,
            groups,
            eol,
            ..
        } = options;
        let printed = Printed { which, counted: options.count };
        // Which copy of a line is the first one depends on it.
        run.in_order |= groups.keep.is_some() || asks_for_groups;
        let grouping = asks_for_groups.then(|| Grouping::new(groups, printed, None));
        let before = match (options.annotate, options.count) {
            (true, _) => Before::Mark,
            (_, true) => Before::Count,
            _ => Before::Nothing,
        };
        let exact = options.exact && grouping.is_none();
        let second = (exact || grouping.is_some()).then(|| exact::second_hasher(size.seed()));
        Self {
            format: key.format(reading.end()),
            crlf: key.crlf,
            what: What::Key(key.rule(), second),
            key_name: String::new(),
            description: String::new(),
            nulls: key.nulls.treated(),
            keys: "lines",
            wanted: "key",
            server: shared.server.redis.is_some().then_some((shared, writing)),
            frozen: None,
            against: None,
            exact,
            grouping,
            exact_units: false,
            sample: verify,
            stats_every,
            print: Print { wanted: !invert, kept: which.takes(1), before, total, wish: run.output.of_rows(), eol },
            ends: LineEnds::new(run.quiet).into(),
            dupes,
            reading,
            size,
            options: run,
        }
    }

    /// Of documents.
    pub fn of_corpus(options: CorpusOptions) -> Self {
        let mut rule = options.rule();
        let frozen = options.frozen().map(Path::to_owned);
        let asks_for_groups = options.asks_for_groups().is_some();
        let CorpusOptions { reading, size, mut run, verify, groups, count, near, against, report, .. } = options;
        let against = (!against.is_empty()).then(|| Tests::new(against, report, groups.id.clone()));
        let printed = Printed { which: Which::All, counted: count };
        let grouping = asks_for_groups.then(|| Grouping::new(groups, printed, rule.near.zip(near)));
        rule.second = grouping.as_ref().map(|_| exact::second_hasher(size.seed()));
        run.in_order |= grouping.is_some();
        let before = if count { Before::Member } else { Before::Nothing };
        Self {
            key_name: rule.name(),
            description: rule.description(),
            nulls: OnError::Fail,
            keys: rule.keys(),
            wanted: "text",
            server: None,
            frozen,
            against,
            exact: false,
            grouping,
            exact_units: verify,
            sample: None,
            stats_every: None,
            print: Print {
                wanted: true,
                kept: true,
                before,
                total: false,
                wish: Wish { cuts: rule.cuts(), ..run.output.of_rows() },
                eol: None,
            },
            ends: LineEnds::new(run.quiet).into(),
            dupes: None,
            format: LineFormat::plain(reading.end()),
            crlf: false,
            what: What::Document(rule, reading.on_error),
            reading,
            size,
            options: run,
        }
    }
}

/// Which distinct lines are printed.
fn which(options: &DedupOptions) -> Which {
    match (options.repeated, options.unique) {
        (true, _) => Which::Repeated,
        (_, true) => Which::Unique,
        _ => Which::All,
    }
}
