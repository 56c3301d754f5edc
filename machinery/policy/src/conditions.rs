//! Match conditions: what must hold of a request before a webhook or policy is asked about it (upstream's `matchconditions`).

use portico_cel::Value;
use portico_machinery::aggregate;

use crate::CONDITIONS_BUDGET;
use crate::compiler::{Compiler, Purpose};
use crate::composition::{Composition, Evaluation};
use crate::expression::{Expression, Problem};
use crate::subject::Subject;

/// Conditions of which all must hold.
#[derive(Clone, Debug, Default)]
pub struct Conditions(Box<[Expression]>);

/// What conditions say of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matched {
    /// All hold.
    Yes,
    /// One does not hold.
    No,
    /// None is known not to hold, and some failed: their texts, each once, in order.
    Failed(String),
}

impl Conditions {
    /// Compiles conditions.
    #[must_use]
    pub fn compile<'c>(compiler: &Compiler, conditions: impl Iterator<Item = &'c str>) -> Self {
        Self(conditions.map(|text| compiler.compile(Purpose::Condition, text)).collect())
    }

    /// Whether there are none, so that all requests match.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The conditions.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.0.iter()
    }

    /// Whether they hold of a request. One that does not hold decides, whatever else fails.
    #[must_use]
    pub fn evaluate(&self, subject: &Subject<'_>) -> Matched {
        self.evaluate_with(&Composition::default(), subject)
    }

    /// The same with variables.
    pub(crate) fn evaluate_with(&self, composition: &Composition, subject: &Subject<'_>) -> Matched {
        if self.0.is_empty() {
            return Matched::Yes;
        }
        let mut evaluation = Evaluation::new(composition, subject, CONDITIONS_BUDGET);
        let mut failed = Vec::new();
        for condition in &self.0 {
            match evaluation.evaluate(condition) {
                Ok(Value::Bool(false)) => return Matched::No,
                Ok(_) => {}
                Err(Problem::OutOfBudget) => {
                    return Matched::Failed(Problem::OutOfBudget.message().to_owned());
                }
                Err(problem) => failed.push(problem.message().to_owned()),
            }
        }
        if failed.is_empty() { Matched::Yes } else { Matched::Failed(aggregate(&failed)) }
    }
}
