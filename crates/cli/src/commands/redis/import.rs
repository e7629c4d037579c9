//! `bloomline redis import`: inserts the keys of files, or of a set on the server.

use crate::commands::redis::required_address;
use crate::commands::server;
use crate::options::ImportOptions;
use crate::read::find::NamedPaths;
use crate::read::inputs::Inputs;
use crate::seen::remote_set::{Address, RemoteSet};
use crate::system::error::Error;
use crate::system::files;
use crate::terminal::messages::warn;
use crate::write::output::Output;
use bloomline::Key;
use bloomline_keys::{KeyKinds, Kinds};
use bloomline_redis::SetMembers;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

/// The number of keys that are inserted together: as many as the library sends in one round trip.
const BATCH: usize = 4096;

/// Imports keys, and prints their number.
pub fn import(options: &ImportOptions) -> Result<(), Error> {
    let address = required_address(&options.shared)?;
    let output = Output::standard([])?;
    let import = match &options.set {
        Some(set) => import_set(options, &address, set)?,
        None => import_files(options, &address)?,
    };
    for warning in import.shared.warnings().iter().chain(&import.shared.overfull_warning()) {
        warn(warning);
    }
    output.write_line(format!("{} keys read, {} of them new", import.read, import.new))
}

/// Imports the members of a set on the server.
fn import_set(options: &ImportOptions, address: &Address, set: &str) -> Result<Import, Error> {
    let mut members = SetMembers::new(&address.server, set)?;
    let count = members.cardinality()?;
    if count == 0 {
        return Err(Error::new(format!(
            "the server has no set \"{set}\", or it is empty; give the key of a set with --set"
        )));
    }
    let mut import = Import::open(options, address)?;
    for batch in members {
        import.insert(&batch?)?;
    }
    if import.read < count {
        return Err(Error::new(format!(
            "only {} of {count} members of the set \"{set}\" were read, because another server took over or the set shrank; run \
             the command again",
            import.read
        )));
    }
    Ok(import)
}

/// Imports the lines of files, or of standard input.
fn import_files(options: &ImportOptions, address: &Address) -> Result<Import, Error> {
    let standard = [PathBuf::from("-")];
    let paths = if options.files.is_empty() { &standard[..] } else { &options.files };
    let inputs = Inputs::check(&NamedPaths { paths, line_end: Some(b'\n'), ..NamedPaths::default() }, &[], false)?;
    let mut import = Import::open(options, address)?;
    for input in inputs.found {
        let name = input.origin.name().to_owned();
        let failed = files::cannot_open(&name);
        let mut contents = BufReader::new(input.open(0).map_err(&failed)?.contents);
        loop {
            let lines = read_lines(&mut contents).map_err(&failed)?;
            if lines.is_empty() {
                break;
            }
            import.insert(&lines)?;
        }
    }
    Ok(import)
}

/// Reads the lines of a batch without their ends; none at the end of the file.
fn read_lines(contents: &mut impl BufRead) -> io::Result<Vec<Vec<u8>>> {
    let mut lines = Vec::new();
    while lines.len() < BATCH {
        let mut line = Vec::new();
        if contents.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.ends_with(b"\n") {
            line.pop();
        }
        lines.push(line);
    }
    Ok(lines)
}

/// An import into a filter, and the numbers of its keys.
struct Import {
    shared: RemoteSet,
    /// True if the keys are decoded from hexadecimal digits.
    hex: bool,
    read: u64,
    new: u64,
}

impl Import {
    /// Opens or creates the filter.
    fn open(options: &ImportOptions, address: &Address) -> Result<Self, Error> {
        let mut shared = server::open_to_write(address, &options.writing, &options.size)?;
        shared.read_kinds()?;
        shared.add_kinds(&KeyKinds::new(Kinds::TEXT))?;
        Ok(Self { shared, hex: options.hex, read: 0, new: 0 })
    }

    /// Inserts keys.
    fn insert(&mut self, keys: &[Vec<u8>]) -> Result<(), Error> {
        let mut hashes = Vec::with_capacity(keys.len());
        for key in keys {
            hashes.push(if self.hex {
                decode_hex(key)?.hash_with(self.shared.hasher())
            } else {
                key.hash_with(self.shared.hasher())
            });
        }
        let new = self.shared.insert_hashes(&hashes, &mut vec![false; hashes.len()])?;
        self.read += keys.len() as u64;
        self.new += new as u64;
        Ok(())
    }
}

/// Decodes a key in hexadecimal digits.
fn decode_hex(key: &[u8]) -> Result<Vec<u8>, Error> {
    from_hex(key).ok_or_else(|| {
        Error::new(format!(
            "\"{}\" is not a key in hexadecimal digits; leave out --hex, or remove it from the input",
            String::from_utf8_lossy(key).escape_debug()
        ))
    })
}

/// Decodes hexadecimal digits.
fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(value(high)? << 4 | value(low)?)).collect()
}
