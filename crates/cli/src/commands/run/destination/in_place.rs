//! A replacement for each input.

use crate::commands::run::plan::Plan;
use crate::read::inputs::Input;
use crate::run::sink::Sink;
use crate::system::error::Error;
use crate::system::file_status::FileId;
use crate::system::files::NamedFile;
use crate::write::replace::ReplacedFile;
use std::collections::HashMap;

impl Plan {
    /// Prepares to replace each input. Nothing is opened before an input has lost a line.
    pub(super) fn check_in_place(&self, inputs: &[Input]) -> Result<Vec<Sink>, Error> {
        let besides: Vec<NamedFile> = self.other_files().map(NamedFile::from_path).collect();
        let mut known: HashMap<FileId, &Input> = HashMap::new();
        let mut sinks = Vec::new();
        let output = &self.destination.output;
        let annotates = self.keys.what.document().is_some_and(|rule| rule.annotate);
        for (number, input) in inputs.iter().enumerate() {
            let replaced = ReplacedFile::new(&input.path, input, output.compress.filter(|_| !input.is_table))?;
            input.origin.check_apart(&besides, [])?;
            // The second time, all its lines would be duplicates.
            if let Some(first) = input.origin.identity().and_then(|identity| known.insert(identity, input)) {
                return Err(Error::new(format!(
                    "cannot replace {}: it is the same file as {}, so each of its lines would be removed as a repeat; name each \
                     file once, or exclude one from a directory with --glob '!NAME'",
                    input.origin.name(),
                    first.origin.name()
                )));
            }
            let always_rewrite = annotates || output.compress.is_some() || self.print.eol.is_some();
            sinks.push(Sink::in_place(number, replaced, always_rewrite));
        }
        Ok(sinks)
    }
}
