//! Compiled expressions: shared, immutable, run as often as needed.

use std::sync::Arc;

use crate::ast::{Expr, ExprKind, operator};
use crate::check::Checked;
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

    /// Whether it selects this field of this variable (`variable.field`, `has(variable.field)`, `variable.?field`). Nothing is known
    /// of it once the tree is dropped.
    #[must_use]
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        let mut found = false;
        let mut visit = |expr: &Expr| found |= selects(expr, variable, field);
        if let Some(tree) = &self.tree {
            walk::each(&tree.expr, &mut visit);
        }
        found
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
        self.evaluate_metered(variables, (budget, &Meter::new(u64::MAX)), interrupted)
    }

    /// Evaluates within a budget and within the rest of a meter that several evaluations share. The meter counts all costs but those
    /// of overloads that ask ([`crate::Overload::asks`]).
    pub fn evaluate_metered<'v>(
        &self,
        variables: &[(&str, Value<'v>)],
        limits: (u64, &Meter),
        interrupted: &dyn Fn() -> bool,
    ) -> (Result<Value<'v>, EvalError>, u64) {
        let named = |name: &str| {
            let found = variables.iter().rfind(|(known, _)| *known == name);
            found.map(|(_, value)| value.clone())
        };
        self.evaluate_with(&named, &|_, _| None, limits, interrupted)
    }

    /// The same with variables that are asked for wherever the expression names them, and with fields of further variables, which
    /// are made when the expression reads them.
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
    fn selections_of_a_variable_are_found_wherever_they_are() {
        let environment = Environment::builder().variable("claims", Type::Dyn).build().unwrap();
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
        let environment = Environment::builder().variable("claims", Type::Dyn).build().unwrap();
        let program = environment.unescaping().compile("claims.a__dot__b.c__dash__d == 1").unwrap();
        assert!(program.selects("claims", "a.b"));
    }

    #[test]
    fn fields_of_a_variable_are_made_when_somebody_asks_for_them() {
        let environment = Environment::builder().variable("variables", Type::Dyn).build().unwrap();
        let program = environment.compile("variables.a == 1 || variables.b.c == 2").unwrap();
        let run = |a: i64| {
            let asked = Cell::new(0);
            let fields = |variable: &str, field: &str| {
                asked.set(asked.get() + 1);
                match (variable, field) {
                    ("variables", "a") => Some(Ok(Value::Int(a))),
                    _ => Some(Err(EvalError::new("not this one"))),
                }
            };
            let (result, cost) =
                program.evaluate_with(&|_| None, &fields, (100, &Meter::new(100)), &|| false);
            (result.map(|value| value.as_bool().unwrap()).map_err(|e| e.to_string()), cost, asked.get())
        };
        assert_eq!(run(1), (Ok(true), 3, 1));
        assert_eq!(run(2), (Err("not this one".to_owned()), 6, 2));
    }
}
