//! Reads the rows of Parquet files and writes them again, group by group, and does nothing else: what a run over such files costs
//! at least where it has to write each group, by the same libraries. `parquet_copy OUTPUT FILE...` writes one file, or to a folder
//! under the same names.

use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::{env, process};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [output, files @ ..] = &arguments[..] else {
        eprintln!("usage: parquet_copy OUTPUT FILE...");
        process::exit(2);
    };
    let output = Path::new(output);
    for file in files.iter().map(Path::new) {
        if output.is_dir() {
            copy(file, &output.join(file.file_name().unwrap_or_default()))?;
        } else {
            copy(file, output)?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let input = File::open(from)?;
    let metadata = ArrowReaderMetadata::load(&input, ArrowReaderOptions::default())?;
    // The level that the command takes where nobody names one.
    let codec = Compression::ZSTD(ZstdLevel::try_new(3)?);
    let properties = WriterProperties::builder().set_compression(codec).build();
    let mut writer = ArrowWriter::try_new(File::create(to)?, metadata.schema().clone(), Some(properties))?;
    for group in 0..metadata.metadata().num_row_groups() {
        let rows = ParquetRecordBatchReaderBuilder::new_with_metadata(input.try_clone()?, metadata.clone());
        // Larger batches are no faster.
        for batch in rows.with_row_groups(vec![group]).with_batch_size(8192).build()? {
            writer.write(&batch?)?;
        }
        writer.flush()?;
    }
    writer.close()?;
    Ok(())
}
