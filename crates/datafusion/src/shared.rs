//! The filter of a join: partitions of the build side write it, and partitions of the probe side read it.

use bloomline::{BloomFilter, Hashes};
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use datafusion::common::hash_utils::{QualityRandomState, with_hashes};
use datafusion::common::{NullEquality, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr_common::utils::evaluate_expressions_to_arrays;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

/// The share of rows without a partner that pass.
const FALSE_POSITIVE_RATE: f64 = 0.01;

/// The filter pays if it drops one of this number of rows.
const ROWS_PER_PRUNED: isize = 5;

/// The number of rows from which the filter is judged, and the number of rows that pass without a query if it does not pay.
const SAMPLE: isize = 4 * 8192;
const REST: isize = 8 * SAMPLE;

/// Hashes keys as the join does, under a seed of their own: keys that the join takes for equal have equal hashes.
const HASH: QualityRandomState = QualityRandomState::with_seed(0x626c_6f6f_6d6c_696e);

/// The filter of a join and its state. Until all keys of the build side are in it, all rows pass.
#[derive(Debug)]
pub(crate) struct SharedFilter {
    null_equality: NullEquality,
    build: Mutex<Build>,
    filter: OnceLock<(BloomFilter, MemoryReservation)>,
    off: AtomicBool,
    /// The rows that the filter pruned, weighted, less those that it was queried for. At most a sample, so that the filter is
    /// judged by the last rows.
    credit: AtomicIsize,
    /// The rows that still pass without a query.
    rest: AtomicIsize,
    keys: Count,
    tested: Count,
    pruned: Count,
}

/// The state of the build side.
#[derive(Debug)]
struct Build {
    /// The partitions that were executed.
    begun: Vec<bool>,
    /// The keys of the partitions that have ended.
    ended: Vec<(Vec<u64>, MemoryReservation)>,
}

impl SharedFilter {
    pub(crate) fn new(partitions: usize, null_equality: NullEquality, metrics: &ExecutionPlanMetricsSet) -> Self {
        let counter = |name: &'static str| MetricBuilder::new(metrics).global_counter(name);
        Self {
            null_equality,
            build: Mutex::new(Build { begun: vec![false; partitions], ended: Vec::new() }),
            filter: OnceLock::new(),
            off: AtomicBool::new(false),
            credit: AtomicIsize::new(0),
            rest: AtomicIsize::new(0),
            keys: counter("filter_keys"),
            tested: counter("rows_tested"),
            pruned: counter("rows_pruned"),
        }
    }

    /// Begins a partition of the build side. A plan that is executed again may read other rows, so its filter is turned off for
    /// good.
    pub(crate) fn begin(
        self: &Arc<Self>,
        partition: usize,
        keys: Vec<PhysicalExprRef>,
        context: &TaskContext,
    ) -> Option<PartitionKeys> {
        if mem::replace(&mut self.build.lock().unwrap().begun[partition], true) {
            self.turn_off();
            return None;
        }
        let reservation = MemoryConsumer::new(format!("BloomFilter[{partition}]")).register(context.memory_pool());
        Some(PartitionKeys { shared: Arc::clone(self), keys, hashes: Vec::new(), reservation })
    }

    /// Lets all rows pass.
    pub(crate) fn turn_off(&self) {
        self.off.store(true, Relaxed);
    }

    /// Makes the filter of the keys of all partitions.
    fn publish(&self, partitions: Vec<(Vec<u64>, MemoryReservation)>) {
        let keys = partitions.iter().map(|(hashes, _)| hashes.len()).sum::<usize>();
        let Ok(mut filter) = BloomFilter::new(keys.max(1) as u64, FALSE_POSITIVE_RATE) else {
            return;
        };
        let mut new = [false; 8192];
        for chunk in partitions.iter().flat_map(|(hashes, _)| hashes.chunks(8192)) {
            filter.insert_hashes(chunk, &mut new[..chunk.len()]);
        }
        let reservation = partitions[0].1.new_empty();
        drop(partitions);
        if reservation.try_grow(filter.memory_bytes()).is_ok() {
            self.keys.add(keys);
            let _ = self.filter.set((filter, reservation));
        }
    }

    /// Removes rows of a batch from a selection whose keys no row of the build side has. `keys` are the columns of the keys.
    pub(crate) fn prune(&self, keys: &[PhysicalExprRef], batch: &RecordBatch, selection: &mut Selection) -> Result<()> {
        let Some((filter, _)) = self.filter.get() else { return Ok(()) };
        if self.off.load(Relaxed) || self.rest.load(Relaxed) > 0 {
            self.rest.fetch_sub(selection.rows as isize, Relaxed);
            return Ok(());
        }
        let keys = evaluate_expressions_to_arrays(keys, batch)?;
        let tested = selection.selected;
        if let Some(valid) = self.matchable(&keys) {
            let valid = valid.inner().bit_chunks();
            selection.bits.iter_mut().zip(valid.iter_padded()).for_each(|(bits, valid)| *bits &= valid);
        }
        selection.selected =
            with_hashes(&keys, &HASH, |hashes| Ok(filter.prune_bitmap(&Hashes::new(hashes), &mut selection.bits)))?;
        let pruned = tested - selection.selected;
        self.tested.add(tested);
        self.pruned.add(pruned);
        self.judge(ROWS_PER_PRUNED * pruned as isize - tested as isize);
        Ok(())
    }

    /// Suspends queries of the filter if it did not pay.
    fn judge(&self, gain: isize) {
        let credit = self.credit.fetch_add(gain, Relaxed) + gain;
        if credit <= -SAMPLE {
            self.credit.store(0, Relaxed);
            self.rest.store(REST, Relaxed);
        } else if credit > SAMPLE {
            self.credit.store(SAMPLE, Relaxed);
        }
    }

    /// Returns the rows whose keys may equal others; `None` for all.
    fn matchable(&self, keys: &[ArrayRef]) -> Option<NullBuffer> {
        match self.null_equality {
            NullEquality::NullEqualsNothing => {
                let nulls = keys.iter().map(|keys| keys.logical_nulls());
                nulls.fold(None, |all, nulls| NullBuffer::union(all.as_ref(), nulls.as_ref()))
            }
            NullEquality::NullEqualsNull => None,
        }
    }
}

/// The hashes of the keys of a partition of the build side. They are kept until their number is known, which is the size of the
/// filter.
pub(crate) struct PartitionKeys {
    shared: Arc<SharedFilter>,
    keys: Vec<PhysicalExprRef>,
    hashes: Vec<u64>,
    reservation: MemoryReservation,
}

impl PartitionKeys {
    /// Adds the keys of a batch. If the memory pool has no room for them, there is no filter.
    pub(crate) fn insert(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.shared.off.load(Relaxed) {
            return Ok(());
        }
        let keys = evaluate_expressions_to_arrays(&self.keys, batch)?;
        with_hashes(&keys, &HASH, |hashes| {
            let len = self.hashes.len() + hashes.len();
            if len > self.hashes.capacity() {
                let capacity = len.max(2 * self.hashes.capacity());
                if self.reservation.try_resize(capacity * size_of::<u64>()).is_err() {
                    self.shared.turn_off();
                    self.hashes = Vec::new();
                    self.reservation.free();
                    return Ok(());
                }
                self.hashes.reserve_exact(capacity - self.hashes.len());
            }
            match self.shared.matchable(&keys) {
                Some(valid) => self.hashes.extend(valid.valid_indices().map(|row| hashes[row])),
                None => self.hashes.extend_from_slice(hashes),
            }
            Ok(())
        })
    }

    /// Ends the partition. The filter takes effect with the last one.
    pub(crate) fn end(self) {
        let mut build = self.shared.build.lock().unwrap();
        build.ended.push((self.hashes, self.reservation));
        if build.ended.len() == build.begun.len() {
            let ended = mem::take(&mut build.ended);
            drop(build);
            if !self.shared.off.load(Relaxed) {
                self.shared.publish(ended);
            }
        }
    }
}

/// Rows of a batch: bit `i % 64` of word `i / 64` is set if row i is selected.
pub(crate) struct Selection {
    bits: Vec<u64>,
    selected: usize,
    rows: usize,
}

impl Selection {
    pub(crate) fn all(rows: usize) -> Self {
        Self { bits: vec![!0; rows.div_ceil(64)], selected: rows, rows }
    }

    pub(crate) fn is_all(&self) -> bool {
        self.selected == self.rows
    }

    pub(crate) fn into_array(self) -> BooleanArray {
        let bits = self.bits.into_iter().map(u64::to_le).collect::<Vec<_>>();
        BooleanArray::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, self.rows), None)
    }
}
