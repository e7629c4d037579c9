//! `BloomFilterJoins`: the optimizer rule, which gives joins their filters.

use crate::exec::{BloomFilterExec, Role};
use crate::expr::BloomFilterExpr;
use crate::shared::SharedFilter;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, JoinType, Result};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterPushdownResult, ChildPushdownResult, FilterPushdownPhase, PushedDown,
};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::build_join_schema;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, Partitioning, ReplaceChildrenOptions,
};
use std::sync::Arc;

type Plan = Arc<dyn ExecutionPlan>;

/// Adds a Bloom filter to each hash join that drops rows of its probe side without a partner. Add it behind the rules of
/// DataFusion, as [`with_physical_optimizer_rule`] does.
///
/// [`with_physical_optimizer_rule`]: datafusion::execution::SessionStateBuilder::with_physical_optimizer_rule
#[derive(Clone, Copy, Debug, Default)]
pub struct BloomFilterJoins;

impl PhysicalOptimizerRule for BloomFilterJoins {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|plan| match plan.downcast_ref::<HashJoinExec>() {
            Some(join) if takes_filter(join)? => Ok(Transformed::yes(add_filter(&plan, join, config)?)),
            _ => Ok(Transformed::no(plan)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "bloom_filter_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// True if rows of the probe side without a partner do not affect the join, and equal keys have equal hashes.
fn takes_filter(join: &HashJoinExec) -> Result<bool> {
    let (_, drops_unmatched) = join.join_type().on_lr_is_preserved();
    // `NOT IN` depends on whether the probe side has rows.
    if !drops_unmatched || join.null_aware || join.left().is::<BloomFilterExec>() {
        return Ok(false);
    }
    for (left, right) in join.on() {
        let types = (left.data_type(&join.left().schema())?, right.data_type(&join.right().schema())?);
        let columns = left.is::<Column>() && right.is::<Column>();
        if !columns || types.0 != types.1 || types.0.is_nested() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn add_filter(plan: &Plan, join: &HashJoinExec, config: &ConfigOptions) -> Result<Plan> {
    let (left, right) = join.on().iter().cloned().unzip();
    let metrics = ExecutionPlanMetricsSet::new();
    let partitions = join.left().output_partitioning().partition_count();
    let shared = Arc::new(SharedFilter::new(partitions, join.null_equality(), &metrics));
    let filter = BloomFilterExpr::new(right, Arc::clone(&shared));
    let probe = push(join.right(), &filter, config)?.unwrap_or_else(|| filtered(join.right(), vec![filter]));
    let build = BloomFilterExec::new(Arc::clone(join.left()), Role::Build(left, shared), metrics);
    with_children(plan, vec![Arc::new(build), probe])
}

fn with_children(plan: &Plan, children: Vec<Plan>) -> Result<Plan> {
    Arc::clone(plan).replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

fn filtered(input: &Plan, filters: Vec<BloomFilterExpr>) -> Plan {
    Arc::new(BloomFilterExec::new(Arc::clone(input), Role::Probe(filters), ExecutionPlanMetricsSet::new()))
}

/// Moves a filter into a plan: to its source if that evaluates predicates for each row, or else below the operators that cost
/// most. `None` if it would gain nothing below the root.
fn push(plan: &Plan, filter: &BloomFilterExpr, config: &ConfigOptions) -> Result<Option<Plan>> {
    // An operator or a source with a limit would pass other rows in place of those that the filter drops.
    if plan.fetch().is_some() {
        return Ok(None);
    }
    let children = plan.children();
    if let Some(probe) = plan.downcast_ref::<BloomFilterExec>()
        && !probe.is_build()
    {
        return Ok(Some(filtered(children[0], [probe.filters(), &[filter.clone()]].concat())));
    }
    if children.is_empty() {
        return push_to_source(plan, filter, config);
    }
    let Some((index, keys)) = child_keys(plan, filter.keys()) else { return Ok(None) };
    let filter = filter.with_keys(keys);
    let child = match push(children[index], &filter, config)? {
        Some(child) => child,
        None if is_expensive(plan) => filtered(children[index], vec![filter]),
        None => return Ok(None),
    };
    let mut children = children.into_iter().cloned().collect::<Vec<_>>();
    children[index] = child;
    Ok(Some(with_children(plan, children)?))
}

/// Offers a filter to a source, in the way of DataFusion's own rule.
fn push_to_source(source: &Plan, filter: &BloomFilterExpr, config: &ConfigOptions) -> Result<Option<Plan>> {
    let filter = ChildFilterPushdownResult { filter: Arc::new(filter.clone()), child_results: Vec::new() };
    let offer = ChildPushdownResult { parent_filters: vec![filter], self_filters: Vec::new() };
    let result = source.handle_child_pushdown_result(FilterPushdownPhase::Post, offer, config)?;
    Ok(match result.filters.first() {
        Some(PushedDown::Yes) => result.updated_node,
        _ => None,
    })
}

/// True if an operator does more for each row than a query of the filter.
fn is_expensive(plan: &Plan) -> bool {
    match plan.downcast_ref::<RepartitionExec>() {
        Some(repartition) => !matches!(repartition.partitioning(), Partitioning::RoundRobinBatch(_)),
        None => !(plan.is::<FilterExec>() || plan.is::<ProjectionExec>() || plan.is::<CooperativeExec>()),
    }
}

/// Returns the child that the rows of an operator come from, and the columns there that have the values of `keys`. `None` if
/// rows of the child that lack these keys affect other rows of the operator, as in an aggregation.
fn child_keys(plan: &Plan, keys: &[PhysicalExprRef]) -> Option<(usize, Vec<PhysicalExprRef>)> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return join_keys(join, keys);
    }
    let child = plan.children().first()?.schema();
    let column = |index: usize| -> PhysicalExprRef { Arc::new(Column::new(child.field(index).name(), index)) };
    let map = |index: &dyn Fn(usize) -> Option<PhysicalExprRef>| {
        let keys = keys.iter().map(|key| index(key.downcast_ref::<Column>()?.index()));
        Some((0, keys.collect::<Option<Vec<_>>>()?))
    };
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return map(&|index| {
            let expr = &projection.expr()[index].expr;
            expr.is::<Column>().then(|| Arc::clone(expr))
        });
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return map(&|index| Some(column(filter.projection().as_ref().map_or(index, |columns| columns[index]))));
    }
    let passes = plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<BloomFilterExec>();
    passes.then(|| (0, keys.to_vec()))
}

/// Returns the side of a join whose rows each stand for themselves, if all keys are of that side.
fn join_keys(join: &HashJoinExec, keys: &[PhysicalExprRef]) -> Option<(usize, Vec<PhysicalExprRef>)> {
    let (left, right) = (join.left().schema(), join.right().schema());
    let (_, columns) = build_join_schema(&left, &right, join.join_type());
    let mut side = None;
    let keys = keys.iter().map(|key| -> Option<PhysicalExprRef> {
        let index = key.downcast_ref::<Column>()?.index();
        let column = &columns[join.projection.as_ref().map_or(index, |columns| columns[index])];
        let schema = if column.side == JoinSide::Left { &left } else { &right };
        (*side.get_or_insert(column.side) == column.side)
            .then(|| Arc::new(Column::new(schema.field(column.index).name(), column.index)) as _)
    });
    let keys = keys.collect::<Option<Vec<_>>>()?;
    use JoinType::*;
    match (side?, join.join_type()) {
        (JoinSide::Left, Inner | Left | LeftSemi | LeftAnti | LeftMark) => Some((0, keys)),
        (JoinSide::Right, Inner | Right | RightSemi | RightAnti | RightMark) => Some((1, keys)),
        _ => None,
    }
}
