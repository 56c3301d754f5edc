//! Compiled expressions.

use std::sync::Arc;

use crate::ast::{Expr, ExprKind, operator};
use crate::check::CheckedAst;
use crate::cost::{self, SizeEstimator};
use crate::error::EvalError;
use crate::eval::Evaluator;
pub use crate::eval::{Fields, Variables};
use crate::meter::Meter;
use crate::plan::Plan;
use crate::size::CostEstimate;
pub use crate::size::DEFAULT_COST_LIMIT;
use crate::types::Type;
use crate::value::Value;
use crate::walk;

/// A compiled expression. Immutable and cheap to clone; evaluate it any number of times, on any thread.
///
/// Variables without a value are absent: an expression that reads one fails with `no such attribute(s)`.
#[derive(Clone, Debug)]
pub struct Program {
    plan: Arc<Plan>,
    names: Arc<[Arc<str>]>,
    result: Type,
    tree: Option<Arc<CheckedAst>>,
}

impl Program {
    pub(crate) fn new(names: Arc<[Arc<str>]>, checked: CheckedAst, plan: Plan) -> Self {
        let result = checked.result_type().clone();
        Self { plan: Arc::new(plan), names, result, tree: Some(Arc::new(checked)) }
    }

    /// Returns the type of the result.
    #[must_use]
    pub fn result_type(&self) -> &Type {
        &self.result
    }

    /// True if the expression uses a variable of its environment.
    #[must_use]
    pub fn uses(&self, variable: &str) -> bool {
        self.names.iter().zip(&self.plan.uses).any(|(name, used)| *used && **name == *variable)
    }

    /// True if the expression selects a field of a variable: `variable.field`, `has(variable.field)` or `variable.?field`.
    /// Always false after [`without_tree`](Self::without_tree).
    #[must_use]
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        let mut found = false;
        let mut visit = |expr: &Expr| found |= selects(expr, variable, field);
        if let Some(tree) = &self.tree {
            walk::visit_nodes(&tree.expr, &mut visit);
        }
        found
    }

    /// Estimates the cost of a run from the sizes of variables. The maximum is unbounded after
    /// [`without_tree`](Self::without_tree).
    #[must_use]
    pub fn estimate(&self, sizes: &dyn SizeEstimator) -> CostEstimate {
        self.tree.as_ref().map_or(CostEstimate::new(0, u64::MAX), |tree| cost::estimate(tree, sizes))
    }

    /// Drops the syntax tree, which only [`estimate`](Self::estimate) and [`selects`](Self::selects) need, to save memory.
    #[must_use]
    pub fn without_tree(self) -> Self {
        Self { tree: None, ..self }
    }

    /// Evaluates the expression with a budget of [`DEFAULT_COST_LIMIT`].
    ///
    /// # Errors
    /// The expression fails for these values, or exceeds the budget.
    pub fn run<'v>(&self, variables: &[(&str, Value<'v>)]) -> Result<Value<'v>, EvalError> {
        self.evaluate(variables, DEFAULT_COST_LIMIT, &|| false).0
    }

    /// Evaluates the expression until its cost exceeds `budget` or `interrupted` returns true. Returns the result and the cost,
    /// which is also known if the evaluation fails.
    pub fn evaluate<'v>(
        &self,
        variables: &[(&str, Value<'v>)],
        budget: u64,
        interrupted: &dyn Fn() -> bool,
    ) -> (Result<Value<'v>, EvalError>, u64) {
        self.evaluate_metered(variables, (budget, &Meter::new(u64::MAX)), interrupted)
    }

    /// Evaluates like [`evaluate`](Self::evaluate), and charges a meter that several evaluations share. The meter excludes costs
    /// of overloads declared with [`external`](crate::Overload::external).
    pub fn evaluate_metered<'v>(
        &self,
        variables: &[(&str, Value<'v>)],
        limits: (u64, &Meter),
        interrupted: &dyn Fn() -> bool,
    ) -> (Result<Value<'v>, EvalError>, u64) {
        let named = |name: &str| {
            let found = variables.iter().rfind(|(variable, _)| *variable == name);
            found.map(|(_, value)| value.clone())
        };
        self.evaluate_with(&named, &|_, _| None, limits, interrupted)
    }

    /// Evaluates like [`evaluate_metered`](Self::evaluate_metered), with variables from a function and with lazy fields: if a
    /// variable has no value, its fields are requested one by one when the expression reads them.
    pub fn evaluate_with<'v>(
        &self,
        variables: &Variables<'_, 'v>,
        fields: &Fields<'_, 'v>,
        (budget, meter): (u64, &Meter),
        interrupted: &dyn Fn() -> bool,
    ) -> (Result<Value<'v>, EvalError>, u64) {
        let mut evaluator = Evaluator::new(variables, &self.names, fields, budget, meter, interrupted);
        let result = evaluator.evaluate(&self.plan.root);
        let cost = evaluator.cost();
        (result, cost)
    }
}

fn selects(expr: &Expr, variable: &str, field: &str) -> bool {
    let named = |expr: &Expr| matches!(&expr.kind, ExprKind::Ident(name) if **name == *variable);
    match &expr.kind {
        ExprKind::Select { operand, field: selected, .. } => named(operand) && **selected == *field,
        ExprKind::Call { function, target: None, arguments } if **function == *operator::OPTIONAL_FIELD => {
            let [operand, selected] = &arguments[..] else { return false };
            let literal = |expr: &Expr| matches!(&expr.kind, ExprKind::Literal(Value::String(text)) if **text == *field);
            named(operand) && literal(selected)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::environment::Environment;

    #[test]
    fn selections_of_a_variable_are_found_at_any_depth() {
        let environment = Environment::builder().variable("claims", Type::Dyn).build();
        for (text, expected) in [
            ("claims.email", true),
            ("[claims.email.x].exists(e, e == '')", true),
            ("has(claims.email) ? 'a' : 'b'", true),
            ("claims['email']", false),
            ("claims.sub.email", false),
        ] {
            let program = environment.compile(text).unwrap();
            assert_eq!(program.selects("claims", "email"), expected, "{text}");
            assert!(!program.without_tree().selects("claims", "email"));
        }
    }

    #[test]
    fn escaped_names_of_members_are_unescaped_where_the_environment_says_so() {
        let environment = Environment::builder().variable("claims", Type::Dyn).unescape_fields().build();
        let program = environment.compile("claims.a__dot__b.c__dash__d == 1").unwrap();
        assert!(program.selects("claims", "a.b"));
    }

    #[test]
    fn lazy_fields_are_evaluated_on_access() {
        let environment = Environment::builder().variable("variables", Type::Dyn).build();
        let program = environment.compile("variables.a == 1 || variables.b.c == 2").unwrap();
        let run = |a: i64| {
            let calls = Cell::new(0);
            let fields = |variable: &str, field: &str| {
                calls.set(calls.get() + 1);
                match (variable, field) {
                    ("variables", "a") => Some(Ok(Value::Int(a))),
                    _ => Some(Err(EvalError::new("not this one"))),
                }
            };
            let (result, cost) =
                program.evaluate_with(&|_| None, &fields, (100, &Meter::new(100)), &|| false);
            (result.map(|value| value.as_bool().unwrap()).map_err(|e| e.to_string()), cost, calls.get())
        };
        assert_eq!(run(1), (Ok(true), 3, 1));
        assert_eq!(run(2), (Err("not this one".to_owned()), 6, 2));
    }
}
