//! The Common Expression Language (CEL) as kube-apiserver speaks it: parse, check, estimate, evaluate.
//!
//! Without IO, clocks or knowledge of schemas: who embeds it describes the variables (`decl`), picks a set of
//! libraries (`environment`) and evaluates compiled programs over borrowed JSON. Nothing here panics on any text or
//! value, and nothing recurses or runs without a bound.

pub mod decl;
pub mod error;
pub mod function;
pub mod library;
pub mod size;
pub mod types;
pub mod value;

pub use decl::DeclType;
pub use error::EvalError;
pub use function::{Call, Function, Overload};
pub use library::Library;
pub use size::{CostEstimate, SizeEstimate};
pub use types::Type;
pub use value::Value;
