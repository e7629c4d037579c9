//! The layouts beside the classic one, by size and share of hits: through the trait `LayoutFilter`, as `compare` has them.
//!
//! ```text
//! cargo bench -p bloomline-benches --bench layouts -- --quick              256 KiB, 16 MiB and 256 MiB (two minutes, 5 GiB)
//! BLOOMLINE_SIZES=16M cargo bench -p bloomline-benches --bench layouts     other sizes
//! BLOOMLINE_SIZES=16M cargo bench -p bloomline-benches --bench layouts -- insert    the groups or layouts of that name
//! ```
//!
//! All have the same memory, 12 bits a key, the probes that are best for that, and the load they are planned for. Criterion
//! times them one after another; the table below each of its groups is of rounds in which they take turns, and × is the
//! ratio to the classic layout. All inserts of `register` are atomic.

use bloomline::variants::{
    AtomicClassicBloomFilter, ClassicBloomFilter, CountingBloomFilter, RegisterBloomFilter, SplitBlockBloomFilter,
    TwoBlockBloomFilter,
};
use bloomline::{AtomicBloomFilter, BloomFilter, Kernel};
use bloomline_benches::filters::filled;
use bloomline_benches::hashes::probe_keys;
use bloomline_benches::layout::LayoutFilter;
use bloomline_benches::rivals::fresh;
use bloomline_benches::turns::{Side, duel};
use bloomline_benches::{HITS, ROUND_KEYS, chunks, held_keys, planned_keys, sizes};
use criterion::{Criterion, SamplingMode, Throughput};
use std::convert::identity;
use std::time::Duration;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(500))
        .nresamples(2000)
        .configure_from_args();
    for (name, bytes) in sizes(std::env::var("BLOOMLINE_SIZES").as_deref().unwrap_or("256K 16M 256M")) {
        let layouts = layouts(bytes);
        for (percent, kind) in HITS {
            let hashes = probe_keys(ROUND_KEYS, held_keys(bytes), percent);
            let sides = layouts.iter().map(|layout| layout.queries(&hashes)).collect();
            compare(&mut criterion, &format!("{name}, query, {kind}"), sides);
        }
        let mut sides: Vec<_> = layouts.into_iter().map(|layout| layout.inserts(bytes)).collect();
        let words4 = filled(bytes, Kernel::detect());
        let mut new = vec![false; ROUND_KEYS];
        sides.push(fresh("atomic words4", bytes, words4, AtomicBloomFilter::from, move |filter, hashes| {
            filter.insert_hashes(hashes, &mut new[..hashes.len()])
        }));
        compare(&mut criterion, &format!("{name}, insert, fresh"), sides);
    }
    criterion.final_summary();
}

/// Times the sides by criterion. Then the first side and all that the command line chose take turns.
fn compare(criterion: &mut Criterion, title: &str, mut sides: Vec<Side>) {
    let mut group = criterion.benchmark_group(title);
    group.sampling_mode(SamplingMode::Flat);
    for side in &mut sides {
        group.throughput(Throughput::Elements(side.keys as u64)).bench_function(side.name.clone(), |bencher| {
            bencher.iter_custom(|iterations| (0..iterations).map(|_| side.run_round()).sum());
        });
    }
    group.finish();
    let mut first = true;
    sides.retain(|side| std::mem::take(&mut first) || !side.times.is_empty());
    if sides.len() > 1 {
        duel(&format!("{title}, in turns"), sides);
    }
}

/// All layouts at their planned load, the classic one first.
fn layouts(bytes: usize) -> Vec<Box<dyn Sides>> {
    fn alone<L: LayoutFilter + Clone + 'static>(filter: L) -> Box<dyn Sides> {
        Box::new(Filled { name: L::NAME, filter, save: identity, make: identity })
    }
    let classic: ClassicBloomFilter = at_load(bytes);
    let atomic_classic = Filled {
        name: "atomic classic",
        filter: AtomicClassicBloomFilter::from(classic.clone()),
        save: ClassicBloomFilter::from,
        make: AtomicClassicBloomFilter::from,
    };
    let register = Filled {
        name: RegisterBloomFilter::NAME,
        filter: at_load(bytes),
        save: written,
        make: |file| RegisterBloomFilter::read_from(&file[..]).unwrap(),
    };
    vec![
        alone(classic),
        alone::<BloomFilter>(at_load(bytes)),
        alone::<TwoBlockBloomFilter>(at_load(bytes)),
        alone::<SplitBlockBloomFilter>(at_load(bytes)),
        alone::<CountingBloomFilter>(at_load(bytes)),
        Box::new(register),
        Box::new(atomic_classic),
    ]
}

fn at_load<L: LayoutFilter>(bytes: usize) -> L {
    let mut filter = L::for_memory(bytes, planned_keys(bytes)).unwrap();
    chunks(0, planned_keys(bytes), |hashes| {
        filter.insert_hashes(hashes, &mut vec![false; hashes.len()]);
    });
    filter
}

/// A filter that threads share is not `Clone`, so its file stands in for it.
fn written(filter: RegisterBloomFilter) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&mut file).unwrap();
    file
}

/// The sides of a filter at its planned load.
trait Sides {
    fn queries<'a>(&'a self, hashes: &'a [u64]) -> Side<'a>;

    /// Takes the filter, so that it need not be filled again.
    fn inserts(self: Box<Self>, bytes: usize) -> Side<'static>;
}

/// A filter at its planned load. `save` turns it into something that can be cloned, and `make` turns that into a filter.
struct Filled<L, S> {
    name: &'static str,
    filter: L,
    save: fn(L) -> S,
    make: fn(S) -> L,
}

impl<L: LayoutFilter + 'static, S: Clone + 'static> Sides for Filled<L, S> {
    fn queries<'a>(&'a self, hashes: &'a [u64]) -> Side<'a> {
        let mut found = vec![false; hashes.len()];
        Side::passing(self.name, hashes, move |hashes| self.filter.contains_hashes(hashes, &mut found))
    }

    fn inserts(self: Box<Self>, bytes: usize) -> Side<'static> {
        let Self { name, filter, save, make } = *self;
        let mut new = vec![false; ROUND_KEYS];
        fresh(name, bytes, save(filter), make, move |filter, hashes| {
            filter.insert_hashes(hashes, &mut new[..hashes.len()])
        })
    }
}
