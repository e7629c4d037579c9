//! `bloomline corpus --against`: a first pass puts the grams of tests into a set, and the run removes what it has.

use crate::against::Against;
use crate::commands::kinds::{self, Demand};
use crate::commands::pass::Pass;
use crate::documents::rule::DocumentRule;
use crate::engine::wakes::Wake;
use crate::error::{Error, Stop};
use crate::files;
use crate::groups::values;
use crate::input::estimate::Sampled;
use crate::input::find::Named;
use crate::input::inputs::{Input, Inputs};
use crate::input::lines::{Hashing, What};
use crate::input::split::LineFormat;
use crate::key::json::Pointer;
use crate::locked::locked;
use crate::options::{ReadOptions, RunOptions, SizeOptions};
use crate::seen::set::KeySet;
use crate::seen::sizing::New;
use crate::seen::tally::Tally;
use crate::seen::{Beside, Seen};
use crate::table::Wish;
use crate::values::OnError;
use crossbeam_channel::Receiver;
use std::cell::Cell;
use std::mem;
use std::path::PathBuf;

/// Tests whose texts are removed.
pub struct Tests {
    named: Vec<PathBuf>,
    /// The files that they are in, once these are known.
    pub files: Vec<PathBuf>,
    pub report: Option<PathBuf>,
    pub id: Option<Pointer>,
    /// The set of their grams, once it is built.
    pub set: Cell<Option<KeySet>>,
}

impl Tests {
    pub fn new(named: Vec<PathBuf>, report: Option<PathBuf>, id: Option<Pointer>) -> Self {
        Self { named, files: Vec::new(), report, id, set: Cell::new(None) }
    }

    /// What is read of lines beside their texts.
    pub fn values(&self) -> values::Wanted {
        values::Wanted { choice: None, id: self.id.clone() }
    }

    /// Finds their files: those of all names, as globs are for the inputs. All of them have to be there.
    pub fn find(&mut self, reading: &ReadOptions) -> Result<Inputs, Error> {
        let named = Named { paths: &self.named, list: None, globs: &[], ..reading.named() };
        let inputs = Inputs::check(&named, &[], false)?;
        self.files = inputs.found.iter().map(|input| input.path.clone()).collect();
        Ok(inputs)
    }

    /// Puts all of their grams into a set, whatever resembles each other, and counts the inputs that are left out. Fails with why it ended
    /// before.
    pub fn build(
        &self,
        inputs: Inputs,
        rule: &DocumentRule,
        reading: &ReadOptions,
        size: &SizeOptions,
        options: &RunOptions,
        wakes: &Receiver<Wake>,
    ) -> Result<(Against, u64), Stop> {
        let mut rule = rule.clone();
        rule.text.frozen = false;
        rule.text.drop_document = false;
        (rule.text.threshold, rule.text.at_least) = (1.0, false);
        rule.annotate = false;
        let what = What::Document(rule.clone(), reading.on_error);
        let values = self.values();
        kinds::check_tables(&inputs, what.of_rows(), &values, Demand::default(), reading.on_error)?;
        let RunOptions { growth, quiet, .. } = options;
        let key_name = &rule.name();
        let new = New { size, growth, keep: false, key_name, keys: rule.keys(), quiet: *quiet };
        let (set, limit) = new.of_inputs(&inputs.found, reading, &Sampled::Documents(rule.clone()))?;
        let tally = Tally::new(&set, limit, rule.keys(), "text", *quiet);
        let names = names(&inputs);
        let against = Against::new(rule, set.hasher().clone(), names, self.id.is_some())?;
        let mut seen = Seen::new(set);
        seen.beside = Beside::Against(against);
        let format = LineFormat::plain(reading.end());
        let hashing = Hashing { values, ..Hashing::of_keys(seen.set.hasher(), format, what, OnError::Fail) };
        let pass = Pass { reading, hashing, quiet: *quiet, wish: Wish::default(), eol: None, wakes: wakes.clone() };
        let (work, stop) = pass.insert(inputs, seen, tally)?;
        stop.map_or(Ok(()), Err)?;
        let mut seen = work.seen.write();
        self.set.set(Some(seen.take_set()?));
        let left_out = locked(&work.tally).counts.left_out;
        match mem::take(&mut seen.beside) {
            Beside::Against(against) => Ok((against, left_out)),
            _ => Err(Error::Worker.into()),
        }
    }
}

/// The members that tell each input in a report.
pub fn names(inputs: &Inputs) -> Vec<String> {
    inputs.found.iter().map(|input: &Input| files::members(&input.path)).collect()
}
