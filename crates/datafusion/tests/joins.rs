//! Answers of joins with and without filters, and the plans.

use bloomline_datafusion::{BloomFilterExec, BloomFilterJoins};
use datafusion::arrow::array::{ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch, new_null_array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, Schema, TimeUnit};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryPool, MemoryReservation, UnboundedMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SessionStateBuilder, TaskContext};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions, collect, displayable};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext, col};
use std::fmt::{Display, Formatter};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// A table as partitions of batches.
type Table = (&'static str, Vec<Vec<RecordBatch>>);

fn config(partitions: usize) -> SessionConfig {
    SessionConfig::new().with_target_partitions(partitions).with_batch_size(64)
}

fn context(filters: bool, config: SessionConfig, tables: &[Table]) -> SessionContext {
    let state = SessionStateBuilder::new().with_default_features().with_config(config);
    let state = if filters { state.with_physical_optimizer_rule(Arc::new(BloomFilterJoins)) } else { state };
    let context = SessionContext::new_with_state(state.build());
    for (name, partitions) in tables {
        let table = MemTable::try_new(partitions[0][0].schema(), partitions.clone()).unwrap();
        context.register_table(*name, Arc::new(table)).unwrap();
    }
    context
}

async fn plan(context: &SessionContext, sql: &str) -> Result<Arc<dyn ExecutionPlan>> {
    context.sql(sql).await?.create_physical_plan().await
}

fn explain(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(true).to_string()
}

/// The rows of a plan, sorted.
async fn rows(context: &SessionContext, plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<String>> {
    let batches = collect(Arc::clone(plan), context.task_ctx()).await?;
    let mut rows: Vec<String> = pretty_format_batches(&batches)?.to_string().lines().map(str::to_owned).collect();
    rows.sort_unstable();
    Ok(rows)
}

/// The sum of a metric of all filters in a plan.
fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let metrics = if plan.is::<BloomFilterExec>() { plan.metrics() } else { None };
    let own = metrics.and_then(|metrics| Some(metrics.sum_by_name(name)?.as_usize())).unwrap_or(0);
    own + plan.children().into_iter().map(|child| metric(child, name)).sum::<usize>()
}

/// Runs a query with and without filters. Returns the plan with filters, after it has run.
async fn same_answers(config: SessionConfig, tables: &[Table], sql: &str) -> Arc<dyn ExecutionPlan> {
    let without = context(false, config.clone(), tables);
    let expected = plan(&without, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let expected = rows(&without, &expected).await.unwrap();
    let with = context(true, config, tables);
    let plan = plan(&with, sql).await.unwrap();
    assert_eq!(rows(&with, &plan).await.unwrap(), expected, "{sql}\n{}", explain(&plan));
    plan
}

/// The types of keys.
fn key_types() -> Vec<DataType> {
    use DataType::*;
    let mut types = vec![
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float32,
        Float64,
        Boolean,
        Date32,
        Date64,
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
        FixedSizeBinary(2),
        Decimal128(20, 2),
        Decimal256(40, 2),
        Interval(IntervalUnit::MonthDayNano),
        Null,
    ];
    types.extend([TimeUnit::Second, TimeUnit::Nanosecond].map(|unit| Timestamp(unit, None)));
    types.extend([Timestamp(TimeUnit::Microsecond, Some("+02:00".into())), Time32(TimeUnit::Second)]);
    types.extend([Time64(TimeUnit::Nanosecond), Duration(TimeUnit::Millisecond)]);
    types.extend([Utf8, LargeUtf8, Int64].map(|value| Dictionary(Int32.into(), value.into())));
    types
}

/// A column of few different values: those of a range, and special ones.
fn column(random: &mut Random, ty: &DataType, rows: usize, values: &Range<u64>, nulls: bool) -> ArrayRef {
    let null = |random: &mut Random| nulls && random.below(5) == 0;
    let number = |random: &mut Random| match random.below(4) {
        0 => 10 + random.below(4),
        _ => values.start + random.below(values.end - values.start),
    };
    let numbers: Vec<Option<i64>> = (0..rows).map(|_| (!null(random)).then(|| number(random) as i64)).collect();
    // Zeros of both signs and different NaNs, beside numbers.
    let float = |number: i64| match number {
        10 => 0.0,
        11 => -0.0,
        12 => f64::NAN,
        13 => -f64::NAN,
        number => number as f64 / 2.0,
    };
    match ty {
        DataType::Float64 => Arc::new(numbers.iter().map(|number| number.map(float)).collect::<Float64Array>()),
        DataType::Float32 => Arc::new(numbers.iter().map(|n| n.map(|n| float(n) as f32)).collect::<Float32Array>()),
        DataType::Null => new_null_array(ty, rows),
        DataType::Boolean => convert(&Int64Array::from_iter(numbers.iter().map(|n| n.map(|n| n % 2))), ty),
        _ => convert(&Int64Array::from(numbers), ty),
    }
}

/// Integers as another type.
fn convert(numbers: &Int64Array, ty: &DataType) -> ArrayRef {
    use DataType::*;
    let via = match ty {
        Date32 | Time32(_) => vec![Int32],
        Interval(_) => vec![Duration(TimeUnit::Second)],
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => vec![Utf8, Binary],
        Utf8View | Dictionary(..) => vec![Utf8],
        _ => vec![],
    };
    let options = CastOptions { safe: false, ..Default::default() };
    let convert = |array: ArrayRef, ty: &DataType| cast_with_options(&array, ty, &options).unwrap();
    convert(via.iter().fold(Arc::new(numbers.clone()), convert), ty)
}

/// A table of key columns `k0`, `k1` … and a column `v` of the row's number, in partitions of one or more batches.
fn table(
    random: &mut Random,
    name: &'static str,
    types: &[DataType],
    rows: u64,
    values: Range<u64>,
    nulls: bool,
) -> Table {
    let mut fields: Vec<Field> =
        types.iter().enumerate().map(|(i, ty)| Field::new(format!("k{i}"), ty.clone(), true)).collect();
    fields.push(Field::new("v", DataType::Int64, false));
    let schema = Arc::new(Schema::new(fields));
    let mut first = 0;
    let mut batch = |random: &mut Random| {
        let rows = random.below(rows + 1) as usize;
        let mut columns: Vec<ArrayRef> = types.iter().map(|ty| column(random, ty, rows, &values, nulls)).collect();
        columns.push(Arc::new((first..).take(rows).collect::<Int64Array>()));
        first += rows as i64;
        RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
    };
    let partitions = 1 + random.below(3);
    (name, (0..partitions).map(|_| (0..1 + random.below(3)).map(|_| batch(random)).collect()).collect())
}

/// Joins of `a` and `b` on conditions of all their keys.
fn queries(equal: &str) -> Vec<String> {
    let mut queries = Vec::new();
    for kind in ["INNER", "LEFT", "RIGHT", "FULL"] {
        queries.push(format!("SELECT * FROM a {kind} JOIN b ON {equal}"));
        queries.push(format!("SELECT * FROM a {kind} JOIN b ON {equal} AND a.v % 3 < b.v % 4"));
    }
    for kind in ["LEFT SEMI", "RIGHT SEMI", "LEFT ANTI", "RIGHT ANTI"] {
        queries.push(format!("SELECT * FROM a {kind} JOIN b ON {equal}"));
    }
    // Anti joins in which nulls count, and mark joins.
    queries.push("SELECT v FROM a WHERE k0 NOT IN (SELECT k0 FROM b)".into());
    queries.push("SELECT v FROM a WHERE v < 9 OR k0 IN (SELECT k0 FROM b)".into());
    queries
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_do_not_depend_on_filters() {
    let types = key_types();
    let count = types.len() as u64;
    let mut pruned = vec![0; types.len()];
    for seed in 0..2 * count {
        let random = &mut Random(seed);
        // First one key of each type, and then two keys, of any type, or an empty side.
        let (ty, two) = ((seed % count) as usize, seed >= count);
        let mut keys = vec![types[ty].clone()];
        keys.extend(two.then(|| types[random.below(count) as usize].clone()));
        let nulls = random.below(3) > 0;
        let rows = if two { [0, 40, 200][random.below(3) as usize] } else { 200 };
        let tables = [table(random, "a", &keys, rows, 14..26, nulls), table(random, "b", &keys, 200, 20..50, nulls)];
        let equal = ["=", "IS NOT DISTINCT FROM"][usize::from(random.below(3) == 0)];
        let equal: Vec<String> = (0..keys.len()).map(|i| format!("(a.k{i} {equal} b.k{i})")).collect();
        for (i, sql) in queries(&equal.join(" AND ")).iter().enumerate() {
            if i > 0 && random.below(3) > 0 {
                continue;
            }
            let mut config = config(1 + random.below(3) as usize);
            let options = config.options_mut();
            // Build sides are collected or partitioned.
            let threshold = if i == 0 || random.below(2) == 0 { usize::MAX } else { 0 };
            options.optimizer.hash_join_single_partition_threshold = threshold;
            options.optimizer.hash_join_single_partition_threshold_rows = threshold;
            options.optimizer.enable_join_dynamic_filter_pushdown = random.below(2) == 0;
            let plan = same_answers(config, &tables, sql).await;
            pruned[ty] += metric(&plan, "rows_pruned");
        }
    }
    // Both sides have both boolean values, and a join of nulls alone does not read its probe side.
    let without: Vec<&DataType> =
        types.iter().zip(pruned).filter(|(_, pruned)| *pruned == 0).map(|(ty, _)| ty).collect();
    let expected = without.iter().filter(|ty| matches!(ty, DataType::Boolean | DataType::Null)).count();
    assert_eq!(without.len(), expected, "no filter dropped a row of {without:?}");
}

/// A table of one batch of a partition: `k0` counts from `first`, and `v` from 0.
fn numbers(name: &'static str, first: i64, rows: i64) -> Table {
    keyed(name, (first..first + rows).collect())
}

/// A table of one batch of a partition, in which `v` counts from 0.
fn keyed(name: &'static str, keys: Int64Array) -> Table {
    let schema = Schema::new(vec![Field::new("k0", DataType::Int64, false), Field::new("v", DataType::Int64, false)]);
    let numbers: Int64Array = (0..keys.len() as i64).collect();
    let columns = [keys, numbers].map(|column| Arc::new(column) as ArrayRef);
    (name, vec![vec![RecordBatch::try_new(Arc::new(schema), columns.into()).unwrap()]])
}

/// Joins of two partitions, which are not collected on one side.
fn partitioned(batch_size: usize) -> SessionConfig {
    let mut config = config(2).with_batch_size(batch_size);
    config.options_mut().optimizer.hash_join_single_partition_threshold = 0;
    config.options_mut().optimizer.hash_join_single_partition_threshold_rows = 0;
    config
}

const JOIN: &str = "SELECT a.v, b.v FROM a JOIN b ON a.k0 = b.k0";

/// The operators and what they show, from the root, without the join's own.
fn operators(plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    let names = ["HashJoinExec", "RepartitionExec", "DataSourceExec"];
    let text = explain(plan);
    let line = |line: &str| {
        let line = line.trim_start();
        names.iter().find(|name| line.starts_with(*name)).map_or(line.to_owned(), |name| (*name).to_owned())
    };
    text.lines().map(line).collect()
}

#[tokio::test]
async fn filters_are_placed_below_the_partitioning() {
    let tables = [numbers("a", 0, 100), numbers("b", 50, 1000)];
    let plan = same_answers(partitioned(64), &tables, JOIN).await;
    let expected = [
        "HashJoinExec",
        "BloomFilterExec: build=[k0@0]",
        "RepartitionExec",
        "DataSourceExec",
        "RepartitionExec",
        "BloomFilterExec: BloomFilter(k0@0)",
        "DataSourceExec",
    ];
    assert_eq!(operators(&plan), expected, "{}", explain(&plan));
    // Of the 950 rows without a partner, 1 % pass.
    assert_eq!((metric(&plan, "filter_keys"), metric(&plan, "rows_tested")), (100, 1000));
    let pruned = metric(&plan, "rows_pruned");
    assert!((920..=950).contains(&pruned), "{pruned}");
}

#[tokio::test]
async fn filters_of_several_joins_are_placed_at_the_scan() {
    // The filter of `c` takes the column `v` of `b` from the join with `a`, which has a column of this name, too.
    let tables = [numbers("a", 0, 100), numbers("b", 50, 1000), numbers("c", 40, 500)];
    let sql = "SELECT a.v, b.v FROM c JOIN (a JOIN b ON a.k0 = b.k0) ON c.k0 = b.v";
    let plan = same_answers(partitioned(64), &tables, sql).await;
    let expected = [
        "HashJoinExec",
        "BloomFilterExec: build=[k0@0]",
        "RepartitionExec",
        "DataSourceExec",
        "RepartitionExec",
        "HashJoinExec",
        "BloomFilterExec: build=[k0@0]",
        "RepartitionExec",
        "DataSourceExec",
        "RepartitionExec",
        "BloomFilterExec: BloomFilter(v@1) AND BloomFilter(k0@0)",
        "DataSourceExec",
    ];
    assert_eq!(operators(&plan), expected, "{}", explain(&plan));
}

/// The Parquet file of a table.
fn path(folder: &Path, name: &str) -> String {
    folder.join(format!("{name}.parquet")).to_str().unwrap().to_owned()
}

/// Writes tables to Parquet files. Returns a context that has them in memory.
async fn write(folder: &Path, tables: &[Table]) -> SessionContext {
    let mut config = config(1);
    config.options_mut().execution.parquet.max_row_group_size = 100;
    let writer = context(false, config, tables);
    for (name, _) in tables {
        let table = writer.table(*name).await.unwrap();
        table.write_parquet(&path(folder, name), Default::default(), None).await.unwrap();
    }
    writer
}

/// A context with filters and the Parquet files `a` and `b`.
async fn read(folder: &Path, config: SessionConfig, options: ParquetReadOptions<'_>) -> SessionContext {
    let context = context(true, config, &[]);
    for name in ["a", "b"] {
        context.register_parquet(name, path(folder, name), options.clone()).await.unwrap();
    }
    context
}

#[tokio::test]
async fn sources_accept_filters() {
    let folder = tempfile::tempdir().unwrap();
    let tables = [numbers("a", 0, 100), numbers("b", 50, 1000)];
    let writer = write(folder.path(), &tables).await;
    let expected = rows(&writer, &plan(&writer, JOIN).await.unwrap()).await.unwrap();
    for (pushdown, dynamic) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut config = partitioned(64);
        config.options_mut().execution.parquet.pushdown_filters = pushdown;
        config.options_mut().optimizer.enable_join_dynamic_filter_pushdown = dynamic;
        let with = read(folder.path(), config, ParquetReadOptions::default()).await;
        let plan = plan(&with, JOIN).await.unwrap();
        let text = explain(&plan);
        let scanned = text.lines().any(|line| line.contains("DataSourceExec") && line.contains("BloomFilter(k0@0)"));
        assert_eq!(scanned, pushdown, "{text}");
        assert_eq!(text.contains("BloomFilterExec: BloomFilter(k0@0)"), !pushdown, "{text}");
        assert_eq!(rows(&with, &plan).await.unwrap(), expected);
        // DataFusion's own predicate, the bounds of the build side and its hash table, drops these rows before.
        let pruned = metric(&plan, "rows_pruned");
        assert!(pruned >= 920 || dynamic && pushdown, "{pruned}");
    }
}

/// A filter that drops rows before a limit would let other rows pass it.
#[tokio::test]
async fn limits_count_rows_that_filters_would_drop() {
    let random = &mut Random(5);
    let mut answers = 0;
    for case in 0..60 {
        let folder = tempfile::tempdir().unwrap();
        // In the first case, no row of the limited scan has a partner.
        let mut keys = |rows: u64| (0..rows).map(|_| random.below(500) as i64).collect();
        let tables = match case {
            0 => [numbers("a", 900, 100), numbers("b", 0, 1000)],
            _ => [keyed("a", keys(40)), keyed("b", keys(1000))],
        };
        let memory = write(folder.path(), &tables).await;
        let mut pick = |choices: &[&str]| match case {
            0 => choices[0].to_owned(),
            _ => choices[random.below(choices.len() as u64) as usize].to_owned(),
        };
        let kind = pick(&["INNER", "INNER", "LEFT", "RIGHT", "LEFT SEMI", "RIGHT SEMI"]);
        let source = pick(&["b", "b WHERE v % 3 > 0", "b JOIN (SELECT k0 AS k FROM a) c ON k0 = k"]);
        let order = pick(&["", "ORDER BY v", "ORDER BY v DESC", "ORDER BY k0, v"]);
        let skip = pick(&["", "OFFSET 7"]);
        let limited = format!("(SELECT k0, v FROM {source} {order} LIMIT {} {skip})", pick(&["400", "10", "150"]));
        let sides = [("a".to_owned(), limited.clone()), (limited, "a".to_owned())];
        let (left, right) = &sides[usize::from(pick(&["a", "b"]) == "b")];
        let sql = format!("SELECT * FROM {left} l {kind} JOIN {right} r ON l.k0 = r.k0");
        let expected = rows(&memory, &plan(&memory, &sql).await.unwrap()).await.unwrap();
        answers += expected.len();
        for pushdown in [false, true] {
            // Without an order, several partitions may choose other rows, and so may a join.
            let ordered = order.contains("v");
            let mut config = if ordered { partitioned(64) } else { config(1) };
            config.options_mut().execution.parquet.pushdown_filters = pushdown;
            // DataFusion's own predicate drops rows before the limit of a scan.
            config.options_mut().optimizer.enable_join_dynamic_filter_pushdown = false;
            let sorted = if ordered { vec![vec![col("v").sort(true, false)]] } else { Vec::new() };
            let with = read(folder.path(), config, ParquetReadOptions::default().file_sort_order(sorted)).await;
            let plan = plan(&with, &sql).await.unwrap();
            if ordered || !source.contains("JOIN") {
                assert_eq!(rows(&with, &plan).await.unwrap(), expected, "{sql}\n{}", explain(&plan));
            }
        }
    }
    assert!(answers > 1000, "{answers}");
}

#[tokio::test]
async fn filters_pause_while_few_rows_are_dropped() {
    let sql = "SELECT count(*), sum(a.v), sum(b.v) FROM a JOIN b ON a.k0 = b.k0";
    // All rows of the probe side have a partner.
    let tables = [numbers("a", 0, 200_000), numbers("b", 0, 200_000)];
    let plan = same_answers(partitioned(8192), &tables, sql).await;
    let tested = metric(&plan, "rows_tested");
    assert!((32_768..65_536).contains(&tested), "{tested}");
    // The first 40 thousand rows have a partner, and the others do not.
    let tables = [numbers("a", 0, 100_000), numbers("b", 60_000, 400_000)];
    let plan = same_answers(partitioned(8192), &tables, sql).await;
    let (tested, pruned) = (metric(&plan, "rows_tested"), metric(&plan, "rows_pruned"));
    assert!(tested < 200_000 && pruned > 50_000, "{tested} {pruned}");
}

#[tokio::test]
async fn plans_that_run_again_have_no_filter() {
    let tables = [numbers("a", 0, 100), numbers("b", 50, 1000)];
    let context = context(true, partitioned(64), &tables);
    let plan = plan(&context, JOIN).await.unwrap();
    let first = rows(&context, &plan).await.unwrap();
    let tested = metric(&plan, "rows_tested");
    assert_eq!(tested, 1000);
    let again = reset_plan_states(plan).unwrap();
    assert_eq!(rows(&context, &again).await.unwrap(), first);
    assert_eq!(metric(&again, "rows_tested"), tested);
}

#[tokio::test]
async fn filters_do_not_miss_partitions_that_other_rules_add() {
    let tables = [numbers("a", 0, 100), numbers("b", 50, 1000)];
    let context = context(true, partitioned(64), &tables);
    let plan = plan(&context, JOIN).await.unwrap();
    let build = Arc::clone(plan.children()[0]);
    let input = Arc::new(CoalescePartitionsExec::new(Arc::clone(build.children()[0])));
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    build.replace_children(vec![input], recompute).unwrap();
    collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    assert_eq!(metric(&plan, "rows_tested"), 0);
}

/// A pool that has no room for filters.
#[derive(Debug, Default)]
struct NoFilters(UnboundedMemoryPool);

impl Display for NoFilters {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("no filters")
    }
}

impl MemoryPool for NoFilters {
    fn name(&self) -> &str {
        "no_filters"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.0.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.0.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        match reservation.consumer().name().starts_with("BloomFilter") {
            true => Err(DataFusionError::ResourcesExhausted("filter".into())),
            false => self.0.try_grow(reservation, additional),
        }
    }

    fn reserved(&self) -> usize {
        self.0.reserved()
    }
}

#[tokio::test]
async fn joins_run_without_filters_if_there_is_no_memory_for_them() {
    let tables = [numbers("a", 0, 100), numbers("b", 50, 1000)];
    let context = context(true, partitioned(64), &tables);
    let plan = plan(&context, JOIN).await.unwrap();
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(NoFilters::default())).build_arc().unwrap();
    let task = TaskContext::default().with_session_config(partitioned(64)).with_runtime(runtime);
    let batches = collect(Arc::clone(&plan), Arc::new(task)).await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 50);
    assert_eq!(metric(&plan, "rows_tested"), 0);
}
