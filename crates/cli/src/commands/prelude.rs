//! The checks of inputs and their keys that all jobs share.

use crate::commands::headers;
use crate::commands::input_kinds::{self, TableRequirements};
use crate::key::KeyRule;
use crate::options::ReadOptions;
use crate::read::hints;
use crate::read::inputs::Inputs;
use crate::read::projection::Projection;
use crate::read::skip::OnError;
use crate::read::split::LineFormat;
use crate::system::error::Error;
use bloomline_keys::KeyKinds;

/// The options that inputs are checked by.
pub struct Prelude<'a> {
    pub reading: &'a ReadOptions,
    pub format: LineFormat,
    /// True if CR LF is accepted as a line end, or written.
    pub crlf: bool,
    /// The remedy for different headers, if the lines of the last group of inputs go to one output.
    pub one_output: Option<&'static str>,
    pub quiet: bool,
}

impl Prelude<'_> {
    /// Checks groups of inputs whose keys are compared. Returns the key rule for them. Inputs with other headers are left out or refused.
    pub fn check_keys(&self, groups: &mut [&mut Inputs], rule: KeyRule) -> Result<KeyRule, Error> {
        let all: Vec<&Inputs> = groups.iter().map(|inputs| &**inputs).collect();
        input_kinds::check_directories(&all, None, self.reading)?;
        let rule = input_kinds::rule(&all, rule)?;
        input_kinds::check_format(&all, self.format, Some(&rule), self.crlf)?;
        hints::warn_of_format(&all, self.format.end, &rule, self.quiet);
        self.check_output(groups, rule.depends_on_order())?;
        Ok(rule)
    }

    /// Checks what is read of inputs: the names in their headers, and the columns of tables. Returns the kinds of the keys of all inputs,
    /// as far as they do not depend on values.
    pub fn check_projection(
        &self,
        inputs: &Inputs,
        projection: &Projection,
        demand: TableRequirements,
    ) -> Result<KeyKinds, Error> {
        let on_error = self.reading.on_error;
        if on_error == OnError::Fail {
            headers::check_names(inputs, self.reading.chunk_config(self.format), projection)?;
        }
        input_kinds::check_tables(inputs, projection, demand, on_error)
    }

    /// Checks that inputs whose lines go to one output are of one kind and have one header, and that all inputs have one header if their
    /// keys depend on the order of columns.
    pub fn check_output(&self, groups: &mut [&mut Inputs], has_order: bool) -> Result<(), Error> {
        let Some((printed, others)) = groups.split_last_mut() else { return Ok(()) };
        if self.one_output.is_some() {
            input_kinds::check_one(printed)?;
        }
        let remedy = self.one_output.filter(|_| others.is_empty() || !has_order).unwrap_or(headers::NAME_FIELDS);
        let config = self.reading.chunk_config(self.format);
        let go_on = self.reading.on_error != OnError::Fail;
        if has_order {
            headers::check_all(groups, config, remedy, go_on)
        } else if self.one_output.is_some() {
            headers::check_all(&mut [printed], config, remedy, go_on)
        } else {
            Ok(())
        }
    }
}
