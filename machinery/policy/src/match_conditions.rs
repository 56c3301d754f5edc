//! Match conditions: conditions that a request must satisfy before a webhook or policy handles it (upstream's `matchconditions`).

use portico_cel::Value;
use portico_machinery::aggregate;

use crate::CONDITIONS_BUDGET;
use crate::compiler::{Compiler, Purpose};
use crate::composition::{ComposedVariables, Evaluation};
use crate::evaluation_input::EvaluationInput;
use crate::expression::{Expression, ExpressionError};

/// List of conditions, all of which must be true.
#[derive(Clone, Debug, Default)]
pub struct MatchConditions(Box<[Expression]>);

/// Result of the match conditions for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchResult {
    /// All conditions are true.
    Yes,
    /// At least one condition is false.
    No,
    /// No condition is false, and some failed. Contains their distinct errors, in order.
    Failed(String),
}

impl MatchConditions {
    /// Compiles conditions.
    #[must_use]
    pub fn compile<'c>(compiler: &Compiler, conditions: impl Iterator<Item = &'c str>) -> Self {
        Self(conditions.map(|text| compiler.compile(Purpose::Condition, text)).collect())
    }

    /// True if there are no conditions, so that all requests match.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the expressions of the conditions.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.0.iter()
    }

    /// Evaluates the conditions for a request. If one is false, errors of the others are ignored.
    #[must_use]
    pub fn evaluate(&self, input: &EvaluationInput<'_>) -> MatchResult {
        self.evaluate_with(&ComposedVariables::default(), input)
    }

    /// Evaluates the conditions for a request with composed variables.
    pub(crate) fn evaluate_with(
        &self,
        composition: &ComposedVariables,
        input: &EvaluationInput<'_>,
    ) -> MatchResult {
        if self.0.is_empty() {
            return MatchResult::Yes;
        }
        let mut evaluation = Evaluation::new(composition, input, CONDITIONS_BUDGET);
        let mut failed = Vec::new();
        for condition in &self.0 {
            match evaluation.evaluate(condition) {
                Ok(Value::Bool(false)) => return MatchResult::No,
                Ok(_) => {}
                Err(ExpressionError::OutOfBudget) => {
                    return MatchResult::Failed(ExpressionError::OutOfBudget.message().to_owned());
                }
                Err(problem) => failed.push(problem.message().to_owned()),
            }
        }
        if failed.is_empty() { MatchResult::Yes } else { MatchResult::Failed(aggregate(&failed)) }
    }
}
