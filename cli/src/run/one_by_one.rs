//! The outputs in a folder, written one after another in the order of the inputs.

use crate::error::Error;
use crate::files;
use crate::lines::Lines;
use crate::lines::input::Input;
use crate::lines::position::Position;
use crate::output::{Output, Target};
use crate::pieces::Crew;
use crate::run::Run;
use crate::run::checkpoint::{Checkpoint, Mark};
use crate::run::folder::Folder;
use crate::run::manifest::{self, Summary};
use crate::run::start as begin;
use crate::set::inserter::Counts;
use std::collections::VecDeque;
use std::fs;
use std::iter;
use std::path::PathBuf;

/// One of the outputs at a time, and those before it that are not all compressed yet.
pub struct OneByOne {
    folder: Folder,
    crew: Crew,
    /// Paths and sizes of the inputs.
    inputs: Vec<(PathBuf, u64)>,
    marks: Vec<Mark>,
    /// Outputs before this one are begun.
    next: usize,
    /// Outputs before this one have their names.
    named: usize,
    /// The numbers of those that are open, and the outputs. The last one gets the lines, unless it was whole at the start.
    open: VecDeque<(usize, Output)>,
    /// What was counted up to the last line that was printed.
    counted: Counts,
    /// Outputs get their names at once, and not at the next checkpoint.
    stateless: bool,
    manifest: Option<PathBuf>,
    /// Whether lines are documents.
    documents: bool,
}

impl OneByOne {
    /// From where the outputs were at a checkpoint, if there is one.
    pub fn new(run: &Run<'_>, folder: Folder, inputs: &[Input], start: Option<&Checkpoint>) -> Result<Self, Error> {
        let marks = start.map_or(&[][..], |start| &start.shards).iter().cloned();
        let mut this = Self {
            crew: begin::crew(run, folder.places.iter().map(|place| place.compression))?,
            inputs: inputs.iter().map(|input| (input.path.clone(), input.size.unwrap_or(0))).collect(),
            marks: marks.chain(iter::repeat_with(Mark::default)).take(inputs.len()).collect(),
            next: start.map_or(0, |start| start.input),
            folder,
            named: 0,
            open: VecDeque::new(),
            counted: Counts::default(),
            stateless: run.options.state.is_none(),
            manifest: run.options.manifest.clone(),
            documents: run.document_rule().is_some(),
        };
        if start.is_some() {
            this.publish()?;
        }
        Ok(this)
    }

    /// Prints lines of one input by their marks. `after` is the position after them, and `counts` is what was counted up to there.
    pub fn print(&mut self, run: &Run<'_>, lines: &Lines, after: &Position, counts: &Counts) -> Result<(), Error> {
        self.go_to(after.input + 1)?;
        let mark = &mut self.marks[after.input];
        mark.counts.add(&counts.since(&self.counted));
        self.counted = counts.clone();
        match self.open.back_mut() {
            Some((_, output)) => lines.print(run.annotates(), !run.inverts(), |bytes| output.write(bytes)),
            None => Ok(()),
        }
    }

    /// What failed of the input of this number.
    pub fn broken(&mut self, input: usize, why: String) {
        self.marks[input].broken = Some(why);
    }

    /// Begins so many of the outputs, and ends those before the last of them.
    fn go_to(&mut self, count: usize) -> Result<(), Error> {
        while self.next < count {
            if let Some((_, output)) = self.open.back_mut() {
                output.hand_over()?;
            }
            self.end_all_but_few()?;
            self.begin(self.next)?;
            self.next += 1;
        }
        Ok(())
    }

    /// Those that are still being compressed wait, with as many pieces in all as there are threads.
    fn end_all_but_few(&mut self) -> Result<(), Error> {
        let threads = self.crew.threads();
        loop {
            let (open, excess) = (self.open.len(), self.under_way().saturating_sub(threads));
            let Some((_, first)) = self.open.front_mut() else { return Ok(()) };
            let most = first.under_way().saturating_sub(excess);
            if most > 0 && open <= threads {
                return first.write_done(most);
            }
            self.end_first()?;
        }
    }

    /// Pieces of all outputs that are being compressed.
    fn under_way(&self) -> usize {
        self.open.iter().map(|(_, output)| output.under_way()).sum()
    }

    fn begin(&mut self, number: usize) -> Result<(), Error> {
        let (place, mark) = (&self.folder.places[number], &self.marks[number]);
        if mark.whole {
            return Ok(());
        }
        let folder = files::folder(&place.part);
        let made = fs::create_dir_all(folder);
        made.map_err(|source| Error::Create { output: files::name(folder), source })?;
        let target = Target::open(Some(&place.part), Some(place.compression), [], [])?;
        self.folder.begun(place);
        self.open.push_back((number, target.begin(mark.output, self.crew.clone())?));
        Ok(())
    }

    /// Ends the first of the open outputs.
    fn end_first(&mut self) -> Result<(), Error> {
        let Some((number, output)) = self.open.front_mut() else { return Ok(()) };
        output.finish()?;
        let mark = &mut self.marks[*number];
        mark.output = if self.stateless { output.length()? } else { output.settle()? };
        mark.whole = true;
        if self.stateless {
            self.folder.places[*number].publish()?;
        }
        self.open.pop_front();
        Ok(())
    }

    /// Makes what was printed safe from a crash. Returns where the outputs are.
    pub fn settle(&mut self) -> Result<Vec<Mark>, Error> {
        while self.open.len() > 1 {
            self.end_first()?;
        }
        if let Some((number, output)) = self.open.front_mut() {
            self.marks[*number].output = output.settle()?;
        }
        self.folder.sync()?;
        Ok(self.marks.clone())
    }

    /// Ends all outputs, those of inputs without lines too, once the inputs are at their ends.
    pub fn end(&mut self) -> Result<(), Error> {
        self.go_to(self.inputs.len())?;
        while !self.open.is_empty() {
            self.end_first()?;
        }
        Ok(())
    }

    /// Removes what is not whole, which no run goes on with.
    pub fn abandon(&mut self) {
        for (number, _) in self.open.drain(..) {
            // What cannot be removed is replaced by the next run.
            let _ = fs::remove_file(&self.folder.places[number].part);
        }
    }

    /// Gives the whole outputs their names, since the state is saved. Writes the manifest.
    pub fn publish(&mut self) -> Result<(), Error> {
        // They become whole in their order.
        let whole = self.marks[self.named..].iter().take_while(|mark| mark.whole).count();
        self.folder.publish(self.folder.places[self.named..][..whole].iter())?;
        self.named += whole;
        let Some(path) = &self.manifest else { return Ok(()) };
        let all = self.inputs.iter().zip(&self.folder.places).zip(&self.marks).filter(|(_, mark)| mark.whole);
        manifest::write(
            path,
            all.map(|(((input, size), place), mark)| Summary::new(input, *size, place, mark, self.documents)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::lines::input::Inputs;
    use clap::Parser;

    /// However many outputs wait for the threads.
    #[test]
    fn few_pieces_are_under_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let paths: Vec<PathBuf> = (0..8).map(|i| path(&format!("{i}.gz"))).collect();
        paths.iter().for_each(|path| fs::write(path, "").unwrap());
        let Command::Dedup(options) = Cli::parse_from(["bloomline", "dedup", "-j", "6"]).command else { panic!() };
        let run = &Run::of_dedup(&options);
        let inputs = Inputs::of(&paths);
        let folder = Folder::open(&path("o"), &inputs, None, &[]).unwrap();
        let mut outputs = OneByOne::new(run, folder, &inputs.found, None).unwrap();
        let mut noise = 1u64;
        let mut bytes = || {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (noise >> 56) as u8
        };
        let bytes: Vec<u8> = (0..7 << 20).map(|_| bytes()).collect();
        let mut most = 0;
        for number in 0..paths.len() {
            outputs.go_to(number + 1).unwrap();
            outputs.open.back_mut().unwrap().1.write(&bytes).unwrap();
            most = most.max(outputs.under_way());
        }
        outputs.end().unwrap();
        // As many as there are threads, and those of the last output.
        assert!((6..=6 + 7).contains(&most), "{most}");
        assert!(paths.iter().all(|input| path("o").join(input.file_name().unwrap()).exists()));
    }
}
