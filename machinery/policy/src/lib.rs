//! Expressions about requests: match conditions of webhooks, and admission policies, compiled once and evaluated within budgets.
//!
//! Pure: what is decided about comes as values, and so does who answers for the authorizer. It must not know where policies are
//! kept, and does no IO.

mod authorizer;
mod budget;
mod changing;
mod compiler;
mod composition;
mod conditions;
mod declarations;
mod expression;
mod mutating;
mod request;
mod subject;
mod type_check;
mod validating;

pub use authorizer::UserAuthorizer;
pub use budget::{DEFAULT_COST_LIMIT, ExpressionBudget};
pub use compiler::{Compiler, Purpose};
pub use composition::MAX_VARIABLE_DEPTH;
pub use conditions::{Conditions, Matched};
pub use declarations::Release;
pub use expression::{Expression, Problem};
pub use mutating::{Change, MutatingPolicy, MutatingSource, MutationSource};
pub use request::{Request, read_request};
pub use subject::{LazyObject, OwnedSubject, Subject};
pub use type_check::TypeCheck;
pub use validating::{Concerned, Denial, ValidatingPolicy, ValidatingSource, ValidationSource, Verdict};

/// What one condition or policy may cost in all, for one request (upstream's `RuntimeCELCostBudget`).
pub const POLICY_BUDGET: u64 = 10_000_000;
/// A message of a validation that is longer is not used (`MaxEvaluatedMessageExpressionSizeBytes`).
pub const MAX_MESSAGE_BYTES: usize = 5 << 10;
/// What the match conditions of a webhook or policy may cost together (`RuntimeCELCostBudgetMatchConditions`).
pub const CONDITIONS_BUDGET: u64 = 2_500_000;
