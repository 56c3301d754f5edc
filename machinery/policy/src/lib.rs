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

/// Cost of all expressions of one policy for one request.
///
/// `RuntimeCELCostBudget` of kube-apiserver.
///
/// Limit (Expressions, cost units): the expression fails.
pub const POLICY_BUDGET: u64 = 10_000_000;
/// Size of a message that a policy expression returns, which must be one line.
///
/// `MaxEvaluatedMessageExpressionSizeBytes` of kube-apiserver.
///
/// Limit (Expressions, bytes): the fixed message is used.
pub const MAX_MESSAGE_BYTES: usize = 5 << 10;
/// Cost of the match conditions of one webhook or policy for one request.
///
/// `RuntimeCELCostBudgetMatchConditions` of kube-apiserver.
///
/// Limit (Expressions, cost units): the condition fails.
pub const CONDITIONS_BUDGET: u64 = 2_500_000;
