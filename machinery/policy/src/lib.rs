//! CEL expressions about requests: match conditions of webhooks and admission policies. They are compiled once and evaluated
//! within cost budgets.
//!
//! This crate performs no I/O. The caller passes requests, objects and an authorizer as values. The crate does not depend on
//! the storage of policies.

mod authorizer;
mod budget;
mod compiler;
mod composition;
mod declarations;
mod evaluation_input;
mod expression;
mod match_conditions;
mod mutating;
mod mutation_types;
mod request;
mod type_check;
mod validating;

pub use authorizer::UserAuthorizer;
pub use budget::{DEFAULT_COST_LIMIT, ExpressionBudget};
pub use compiler::{Compiler, Purpose};
pub use composition::MAX_VARIABLE_DEPTH;
pub use declarations::EnvironmentType;
pub use evaluation_input::{EvaluationInput, LazyObject, OwnedEvaluationInput};
pub use expression::{Expression, ExpressionError};
pub use match_conditions::{MatchConditions, MatchResult};
pub use mutating::{MutatingPolicy, MutatingPolicySource, MutationResult, MutationSource};
pub use request::{AdmissionRequest, parse_request};
pub use type_check::TypeChecker;
pub use validating::{
    Denial, MatchState, ValidatingPolicy, ValidatingPolicySource, ValidationOutcome, ValidationSource,
};

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
