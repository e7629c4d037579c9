//! The check that inputs have the same header, if their lines go to one output, or if their keys depend on the order of columns.

use crate::read::chunks::{Chunk, ChunkConfig, Chunks};
use crate::read::find;
use crate::read::header::ExpectedHeader;
use crate::read::inputs::{Input, Inputs};
use crate::read::projection::{HeaderRule, Projection};
use crate::system::error::Error;
use crate::system::files;
use std::mem;
use std::sync::Arc;

/// The number of bytes of an input that are read at once for its header.
const PEEK: usize = 1 << 14;

/// The end of the message for a key that depends on the order of columns.
pub const NAME_FIELDS: &str =
    "or name all fields of the key with -f NAME, because columns in another order are found only by name";

/// The end of the message for one output.
pub const ONE_OUTPUT: &str = "because one output has one header";

/// The end of the message for one output, if several outputs are possible.
pub const ONE_OUTPUT_OR_OWN: &str = "because one output has one header; with --output-dir or --in-place each input keeps its own, if -f \
                               names the fields of the key";

/// Refuses inputs with different headers, or leaves them out with `go_on`. Headers of files are compared at once, headers of pipes
/// when they are read.
pub fn check_all(
    groups: &mut [&mut Inputs],
    config: ChunkConfig,
    remedy: &'static str,
    go_on: bool,
) -> Result<(), Error> {
    if !config.format.header || groups.iter().map(|inputs| inputs.found.len()).sum::<usize>() < 2 {
        return Ok(());
    }
    let (expected, mut is_known) = (Arc::new(ExpectedHeader::new(remedy)), true);
    for inputs in groups {
        check_each(inputs, config, &expected, &mut is_known, go_on)?;
    }
    Ok(())
}

/// Checks the headers of some inputs. `is_known` is false after a pipe, because its header is read later.
fn check_each(
    inputs: &mut Inputs,
    config: ChunkConfig,
    expected: &Arc<ExpectedHeader>,
    is_known: &mut bool,
    go_on: bool,
) -> Result<(), Error> {
    for mut input in mem::take(&mut inputs.found) {
        input.header = Some(Arc::clone(expected));
        *is_known &= input.size.is_some();
        let header = if *is_known { header(&input, config) } else { Vec::new() };
        match expected.check(&header, input.origin.name(), &config.format) {
            Ok(()) => inputs.found.push(input),
            Err(source) => {
                let error = files::cannot_open(input.origin.name())(source);
                find::leave_out(&mut inputs.left_out, error, go_on)?;
            }
        }
    }
    Ok(())
}

/// Refuses files whose headers lack a name that is read. Headers of pipes are checked when they are read.
pub fn check_names(inputs: &Inputs, config: ChunkConfig, projection: &Projection) -> Result<(), Error> {
    let rule = projection.rule().filter(|rule| rule.needs_header() || !projection.values.is_empty());
    let Some(rule) = rule.filter(|_| config.format.header) else { return Ok(()) };
    for input in inputs.found.iter().filter(|input| input.size.is_some()) {
        let header = header(input, config);
        if !header.is_empty()
            && let Err(key_error) = HeaderRule::new(rule, &projection.values, &header)
        {
            let name = input.origin.name();
            return Err(Error::new(format!("cannot read {name}: {key_error}; use --on-error to choose how to go on")));
        }
    }
    Ok(())
}

/// Returns the header of a file without its end, or nothing if the input has none. Unreadable files are reported when they are read.
fn header(input: &Input, config: ChunkConfig) -> Vec<u8> {
    if input.is_table {
        return Vec::new();
    }
    let read_header = |input| {
        let mut chunks = Chunks::new(input, 0, ChunkConfig { size: PEEK.min(config.size), ..config });
        chunks.fill(&mut Chunk::default()).map(|_| chunks.header_text().to_vec())
    };
    input.peek(read_header).unwrap_or_default()
}
