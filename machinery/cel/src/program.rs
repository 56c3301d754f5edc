//! Compiled expressions: shared, immutable, run as often as needed.

use std::sync::Arc;

use smallvec::smallvec;

use crate::check::Checked;
use crate::cost::{self, SizeEstimator};
use crate::error::EvalError;
use crate::eval::{Evaluator, Slots};
use crate::plan::Plan;
use crate::size::CostEstimate;
use crate::types::Type;
use crate::value::Value;

/// What one [`Program::run`] may cost: as much as kube-apiserver lets one expression cost.
pub const DEFAULT_COST_LIMIT: u64 = 1_000_000;

/// A compiled expression. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Program {
    plan: Arc<Plan>,
    names: Arc<[Arc<str>]>,
    result: Type,
    tree: Option<Arc<Checked>>,
}

impl Program {
    pub(crate) fn new(names: Arc<[Arc<str>]>, checked: Checked, plan: Plan) -> Self {
        let result = checked.result_type().clone();
        Self { plan: Arc::new(plan), names, result, tree: Some(Arc::new(checked)) }
    }

    /// The type of what it evaluates to.
    #[must_use]
    pub fn result_type(&self) -> &Type {
        &self.result
    }

    /// Whether it mentions a variable of its environment.
    #[must_use]
    pub fn uses(&self, variable: &str) -> bool {
        self.names.iter().zip(&self.plan.uses).any(|(name, used)| *used && **name == *variable)
    }

    /// What one run may cost, by what is known of sizes. Unbounded once the tree is dropped.
    #[must_use]
    pub fn estimate(&self, sizes: &dyn SizeEstimator) -> CostEstimate {
        self.tree.as_ref().map_or(CostEstimate::new(0, u64::MAX), |tree| cost::estimate(tree, sizes))
    }

    /// The same without the tree, which only estimates need: what is kept as long as a definition is.
    #[must_use]
    pub fn without_tree(self) -> Self {
        Self { tree: None, ..self }
    }

    /// Runs it over these variables (unnamed ones are absent), at most for [`DEFAULT_COST_LIMIT`].
    ///
    /// # Errors
    /// The expression fails for these values, or costs more.
    pub fn run<'v>(&self, variables: &[(&str, Value<'v>)]) -> Result<Value<'v>, EvalError> {
        self.evaluate(variables, DEFAULT_COST_LIMIT, &|| false).0
    }

    /// Runs it over these variables (unnamed ones are absent), at most for `budget`, until `interrupted` returns true. Returns what
    /// it cost, too, also when it failed.
    pub fn evaluate<'v>(
        &self,
        variables: &[(&str, Value<'v>)],
        budget: u64,
        interrupted: &dyn Fn() -> bool,
    ) -> (Result<Value<'v>, EvalError>, u64) {
        let mut slots: Slots<'v> = smallvec![None; self.names.len()];
        for (name, value) in variables {
            if let Some(slot) = self.names.iter().rposition(|known| **known == **name) {
                slots[slot] = Some(value.clone());
            }
        }
        let mut evaluator = Evaluator::new(&slots, &self.names, budget, interrupted);
        let result = evaluator.run(&self.plan.root);
        let cost = evaluator.cost();
        (result, cost)
    }
}
