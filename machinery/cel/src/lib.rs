//! The Common Expression Language (CEL) as kube-apiserver speaks it: parse, check, estimate, evaluate.
//!
//! Without IO, clocks or knowledge of schemas: who embeds it describes the variables (`decl`), picks a set of
//! libraries (`environment`) and evaluates compiled programs over borrowed JSON. Nothing here panics on any text or
//! value, and nothing recurses or runs without a bound.

pub mod ast;
pub mod check;
pub mod cost;
pub mod decl;
pub mod environment;
pub mod error;
mod eval;
pub mod function;
pub mod library;
pub mod macros;
pub mod parse;
mod plan;
mod program;
pub mod re2;
pub mod size;
pub mod source;
pub mod types;
mod validators;
pub mod value;
mod walk;

pub use cost::{AstNode, DeclaredSizes, SizeEstimator};
pub use decl::{DeclType, RESERVED};
pub use environment::{CompileError, Environment, Language};
pub use error::EvalError;
pub use function::{Call, Function, Overload};
pub use library::Library;
pub use program::Program;
pub use size::{CostEstimate, SizeEstimate};
pub use types::Type;
pub use value::Value;

#[cfg(test)]
mod conformance;
