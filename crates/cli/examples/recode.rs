//! Decompresses gzip files and compresses them again, as gzip or zstd, and does nothing else: what a run over such files costs at
//! least, by the same libraries. `recode gz|zst FOLDER FILE...` writes to FOLDER under the same names.

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::{env, process};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [kind, folder, files @ ..] = &arguments[..] else {
        eprintln!("usage: recode gz|zst FOLDER FILE...");
        process::exit(2);
    };
    for file in files {
        let mut input = MultiGzDecoder::new(BufReader::with_capacity(1 << 17, File::open(file)?));
        let name = Path::new(file).file_name().unwrap_or_default();
        let output = File::create(Path::new(folder).join(name))?;
        if kind == "gz" {
            let mut encoder = GzEncoder::new(output, Compression::default());
            pass(&mut input, &mut encoder)?;
            encoder.finish()?;
        } else {
            let mut encoder = zstd::Encoder::new(output, zstd::DEFAULT_COMPRESSION_LEVEL)?;
            pass(&mut input, &mut encoder)?;
            encoder.finish()?;
        }
    }
    Ok(())
}

/// In pieces as large as those of the command.
fn pass(input: &mut impl Read, output: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 19];
    loop {
        match input.read(&mut buffer)? {
            0 => return Ok(()),
            n => output.write_all(&buffer[..n])?,
        }
    }
}
