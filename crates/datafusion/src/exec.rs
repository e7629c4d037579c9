//! `BloomFilterExec`: an operator that inserts the keys of a join's build side, or drops rows of its probe side.

use crate::expr::BloomFilterExpr;
use crate::shared::{PartitionKeys, Selection, SharedFilter};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::coalesce::LimitedBatchCoalescer;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    ReplaceChildrenOptions, apply_expression_roots,
};
use futures::{TryStreamExt, stream};
use std::fmt;
use std::sync::Arc;

/// An operator with the columns and the order of its input, on either side of a join. On the build side, its metrics
/// are the filter's, for queries anywhere in the plan.
#[derive(Clone, Debug)]
pub struct BloomFilterExec {
    input: Arc<dyn ExecutionPlan>,
    role: Role,
    metrics: ExecutionPlanMetricsSet,
}

/// The side of the join.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// Passes on all rows, and inserts their keys.
    Build(Vec<PhysicalExprRef>, Arc<SharedFilter>),
    /// Drops rows for which one of these predicates is false.
    Probe(Vec<BloomFilterExpr>),
}

impl BloomFilterExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, role: Role, metrics: ExecutionPlanMetricsSet) -> Self {
        Self { input, role, metrics }
    }

    /// True on the build side of a join.
    pub fn is_build(&self) -> bool {
        matches!(self.role, Role::Build(..))
    }

    /// Returns the predicates that rows of the probe side have to pass.
    pub fn filters(&self) -> &[BloomFilterExpr] {
        match &self.role {
            Role::Build(..) => &[],
            Role::Probe(filters) => filters,
        }
    }
}

impl DisplayAs for BloomFilterExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |parts: Vec<String>, between| parts.join(between);
        match &self.role {
            Role::Build(keys, _) => {
                let keys = join(keys.iter().map(ToString::to_string).collect(), ", ");
                write!(f, "BloomFilterExec: build=[{keys}]")
            }
            Role::Probe(filters) => {
                let filters = join(filters.iter().map(ToString::to_string).collect(), " AND ");
                write!(f, "BloomFilterExec: {filters}")
            }
        }
    }
}

impl ExecutionPlan for BloomFilterExec {
    fn name(&self) -> &str {
        "BloomFilterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&PhysicalExprRef) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        match &self.role {
            Role::Build(keys, _) => apply_expression_roots(keys, f),
            Role::Probe(filters) => {
                apply_expression_roots(filters.iter().map(|filter| Arc::new(filter.clone()) as PhysicalExprRef), f)
            }
        }
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.swap_remove(0);
        let partitions = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().partition_count();
        // The filter waits for the partitions that it was made for.
        if let Role::Build(_, shared) = &self.role
            && partitions(&input) != partitions(&self.input)
        {
            shared.turn_off();
        }
        Ok(Arc::new(Self { input, ..Self::clone(&self) }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batch_size = context.session_config().batch_size();
        match &self.role {
            Role::Build(keys, shared) => {
                let inserted = shared.begin(partition, keys.clone(), &context);
                Ok(build(self.input.execute(partition, context)?, inserted, metrics))
            }
            Role::Probe(filters) => {
                Ok(probe(self.input.execute(partition, context)?, filters.clone().into(), batch_size, metrics))
            }
        }
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

fn build(
    input: SendableRecordBatchStream,
    keys: Option<PartitionKeys>,
    metrics: BaselineMetrics,
) -> SendableRecordBatchStream {
    let schema = input.schema();
    let batches = stream::try_unfold((input, keys, metrics), async |(mut input, mut keys, metrics)| {
        let next = input.try_next().await?;
        let timer = metrics.elapsed_compute().timer();
        let Some(batch) = next else {
            keys.into_iter().for_each(PartitionKeys::end);
            return Ok(None);
        };
        keys.iter_mut().try_for_each(|keys| keys.insert(&batch))?;
        metrics.record_output(batch.num_rows());
        drop(timer);
        Ok(Some((batch, (input, keys, metrics))))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

fn probe(
    input: SendableRecordBatchStream,
    filters: Arc<[BloomFilterExpr]>,
    batch_size: usize,
    metrics: BaselineMetrics,
) -> SendableRecordBatchStream {
    let schema = input.schema();
    // Few rows of each batch may be left, and the operators above are made for large batches.
    let output = LimitedBatchCoalescer::new(input.schema(), batch_size, None);
    let state = (Some(input), output, filters, metrics);
    let batches = stream::try_unfold(state, async |(mut input, mut output, filters, metrics)| {
        loop {
            if let Some(batch) = output.next_completed_batch() {
                metrics.record_output(batch.num_rows());
                return Ok(Some((batch, (input, output, filters, metrics))));
            }
            let Some(stream) = &mut input else { return Ok(None) };
            let next = stream.try_next().await?;
            let _timer = metrics.elapsed_compute().timer();
            match next {
                Some(batch) => {
                    output.push_batch(prune(&filters, batch)?)?;
                }
                None => {
                    output.finish()?;
                    input = None;
                }
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// Returns the rows of a batch that pass all filters.
fn prune(filters: &[BloomFilterExpr], batch: RecordBatch) -> Result<RecordBatch> {
    let mut selection = Selection::all(batch.num_rows());
    filters.iter().try_for_each(|filter| filter.prune(&batch, &mut selection))?;
    Ok(if selection.is_all() { batch } else { filter_record_batch(&batch, &selection.into_array())? })
}
