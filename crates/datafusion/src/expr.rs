//! `BloomFilterExpr`: a predicate that queries the filter of a join.

use crate::shared::{Selection, SharedFilter};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A predicate that is false for rows of a join's probe side whose keys no row of the build side has. It is true for all rows
/// until the build side has ended, and after too few rows were dropped.
#[derive(Clone, Debug)]
pub struct BloomFilterExpr {
    keys: Vec<PhysicalExprRef>,
    shared: Arc<SharedFilter>,
}

impl BloomFilterExpr {
    pub(crate) fn new(keys: Vec<PhysicalExprRef>, shared: Arc<SharedFilter>) -> Self {
        Self { keys, shared }
    }

    /// Returns the keys of the probe side.
    pub fn keys(&self) -> &[PhysicalExprRef] {
        &self.keys
    }

    /// Returns the predicate for other columns, which have the same values.
    pub(crate) fn with_keys(&self, keys: Vec<PhysicalExprRef>) -> Self {
        Self { keys, shared: Arc::clone(&self.shared) }
    }

    /// Removes rows of a batch from a selection whose keys no row of the build side has.
    pub(crate) fn prune(&self, batch: &RecordBatch, selection: &mut Selection) -> Result<()> {
        self.shared.prune(&self.keys, batch, selection)
    }
}

impl PhysicalExpr for BloomFilterExpr {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let mut selection = Selection::all(batch.num_rows());
        self.prune(batch, &mut selection)?;
        Ok(match selection.is_all() {
            true => ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))),
            false => ColumnarValue::Array(Arc::new(selection.into_array())),
        })
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        self.keys.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<PhysicalExprRef>) -> Result<PhysicalExprRef> {
        Ok(Arc::new(self.with_keys(children)))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for BloomFilterExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys.iter().map(ToString::to_string).collect::<Vec<_>>();
        write!(f, "BloomFilter({})", keys.join(", "))
    }
}

/// Two predicates are equal if they query the same filter for the same keys.
impl PartialEq for BloomFilterExpr {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared) && self.keys == other.keys
    }
}

impl Eq for BloomFilterExpr {}

impl Hash for BloomFilterExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.shared).hash(state);
        self.keys.hash(state);
    }
}
