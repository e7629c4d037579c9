//! Times joins of 10 million rows with and without filters: `cargo run --release --example join`.
//!
//! The build side has a million keys. Of the probe side's rows, a share has one of them. All keys are random numbers, so that
//! their bounds rule out nothing.

use bloomline_datafusion::BloomFilterJoins;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const BUILD: u64 = 1_000_000;
const PROBE: u64 = 10_000_000;
const BATCH: u64 = 8192;
const ROUNDS: usize = 5;
const JOIN: &str = "SELECT count(*), sum(b.x), sum(p.y), sum(p.z) FROM b JOIN p ON b.k = p.k";

/// The storage of the tables.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    Memory,
    Parquet,
}

/// SplitMix64, which has no two equal numbers.
fn key(number: u64) -> i64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) as i64
}

fn batches(rows: u64, names: &[&str], key: impl Fn(u64) -> i64) -> Vec<RecordBatch> {
    let column = |name: &&str, rows: std::ops::Range<u64>| -> ArrayRef {
        match *name {
            "k" => Arc::new(rows.map(&key).collect::<Int64Array>()),
            _ => Arc::new(rows.map(|row| (row % 1000) as f64).collect::<Float64Array>()),
        }
    };
    let batch = |first: u64| {
        let columns = names.iter().map(|name| (*name, column(name, first..rows.min(first + BATCH))));
        RecordBatch::try_from_iter(columns).unwrap()
    };
    (0..rows).step_by(BATCH as usize).map(batch).collect()
}

/// The tables `b` and `p`. The keys of `share` of the rows of `p` are in `b`.
fn tables(share: f64) -> [(&'static str, Vec<RecordBatch>); 2] {
    let build = batches(BUILD, &["k", "x"], key);
    let probe = batches(PROBE, &["k", "y", "z"], |row| {
        let random = key(row + (1 << 60)) as u64;
        let found = ((random >> 32) as f64) < share * (1u64 << 32) as f64;
        key(if found { random % BUILD } else { BUILD + row })
    });
    [("b", build), ("p", probe)]
}

async fn context(
    source: Source,
    filters: bool,
    tables: &[(&str, Vec<RecordBatch>)],
    folder: &Path,
) -> Result<SessionContext> {
    let config = SessionConfig::new().with_target_partitions(2);
    let state = SessionStateBuilder::new().with_default_features().with_config(config);
    let state = if filters { state.with_physical_optimizer_rule(Arc::new(BloomFilterJoins)) } else { state };
    let context = SessionContext::new_with_state(state.build());
    for (name, batches) in tables {
        if source == Source::Memory {
            let halves = batches.chunks(batches.len().div_ceil(2)).map(<[_]>::to_vec).collect();
            context.register_table(*name, Arc::new(MemTable::try_new(batches[0].schema(), halves)?))?;
        } else {
            let path = folder.join(format!("{name}.parquet"));
            context.register_parquet(*name, path.to_str().unwrap(), ParquetReadOptions::default()).await?;
        }
    }
    Ok(context)
}

/// The seconds that the join takes, and its answer.
async fn run(context: &SessionContext) -> Result<(f64, String)> {
    let begin = Instant::now();
    let answer = context.sql(JOIN).await?.collect().await?;
    Ok((begin.elapsed().as_secs_f64(), pretty_format_batches(&answer)?.to_string()))
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// The medians of both sides, which take turns.
async fn compare(source: Source, tables: &[(&str, Vec<RecordBatch>)]) -> Result<[f64; 2]> {
    let folder = tempfile::tempdir()?;
    if source == Source::Parquet {
        for (name, batches) in tables {
            let path = folder.path().join(format!("{name}.parquet"));
            let table = SessionContext::new().read_batches(batches.clone())?;
            table.write_parquet(path.to_str().unwrap(), Default::default(), None).await?;
        }
    }
    let without = context(source, false, tables, folder.path()).await?;
    let with = context(source, true, tables, folder.path()).await?;
    let mut seconds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let ((first, expected), (second, answer)) = (run(&without).await?, run(&with).await?);
        // Sums of integers below 2^53 are exact, in any order.
        assert_eq!(answer, expected);
        seconds[0].push(first);
        seconds[1].push(second);
    }
    Ok(seconds.map(median))
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    println!("| tables | rows with a partner | DataFusion | with filters | |\n|---|---:|---:|---:|---:|");
    for source in [Source::Memory, Source::Parquet] {
        for share in [0.001, 0.01, 0.1, 0.5, 1.0] {
            let [without, with] = compare(source, &tables(share)).await?;
            let (share, ratio) = (share * 100.0, without / with);
            println!("| {source:?} | {share} % | {without:.2} s | {with:.2} s | {ratio:.1} × |");
        }
    }
    Ok(())
}
