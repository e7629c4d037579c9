//! Criterion's harness: the sides are timed one after another.

use super::paired::Side;
use criterion::{Criterion, SamplingMode, Throughput};
use std::time::Duration;

pub fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(500))
        .nresamples(2000)
        .configure_from_args()
}

/// The sizes that BLOOMLINE_SIZES names; three without it.
pub fn chosen_sizes() -> Vec<(&'static str, usize)> {
    super::sizes(std::env::var("BLOOMLINE_SIZES").as_deref().unwrap_or("256K 16M 256M"))
}

/// Times the sides that the command line does not leave out.
pub fn measure(criterion: &mut Criterion, title: &str, sides: &mut [Side]) {
    let mut group = criterion.benchmark_group(title);
    group.sampling_mode(SamplingMode::Flat);
    for side in sides {
        group.throughput(Throughput::Elements(side.keys as u64)).bench_function(side.name.clone(), |bencher| {
            bencher.iter_custom(|iterations| (0..iterations).map(|_| side.play()).sum());
        });
        if !side.times.is_empty() {
            println!("{:24}true:   {:.3} %", "", side.trues * 100.0);
        }
    }
}
