//! The Common Expression Language (CEL): parse, check, estimate, compile, evaluate.
//!
//! An [`Environment`] says which variables, functions and types an expression may use. It compiles a text to a [`Program`],
//! which is immutable, shared, and evaluated as often as needed.
//!
//! ```
//! use portico_cel::{Environment, Type, Value};
//!
//! let environment = Environment::builder().variable("replicas", Type::Int).build()?;
//! let program = environment.compile("replicas > 0 && replicas <= 5")?;
//! assert_eq!(*program.result_type(), Type::Bool);
//! assert!(program.run(&[("replicas", Value::Int(3))])?.as_bool()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Expressions may come from anybody. Each evaluation has a budget and can be interrupted; what it may cost at most is
//! known before it runs, by what is known of the sizes of its variables ([`Program::estimate`]). No text and no value
//! makes this crate panic, and nothing recurses or runs without a bound. There is no IO and no clock.
//!
//! Semantics, costs and messages are cel-go's, as kube-apiserver configures it.
//!
//! # Functions
//!
//! [`library`] has libraries to add to an environment; [`environment::Builder`] shows how to add closures.
//!
//! # JSON
//!
//! With the feature `json`, `serde_json` values are looked at where they are, without a copy. A [`DeclType`] says how they
//! are read, and lets the checker know fields:
//!
//! ```
//! # #[cfg(feature = "json")] {
//! use portico_cel::value::from_json;
//! use portico_cel::{DeclType, Environment, Type};
//!
//! let environment = Environment::builder().variable("self", Type::Dyn).build()?;
//! let program = environment.compile("self.ports.all(port, port < 1024)")?;
//! let json = serde_json::json!({"ports": [80, 443]});
//! let this = from_json(&json, DeclType::dynamic())?;
//! assert!(program.run(&[("self", this)])?.as_bool()?);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! All are on by default.
//!
//! - `json`: values over `serde_json`.
//! - `regex`: `matches`, `find`, `findAll`, in RE2's syntax.
//! - `kubernetes`: kube-apiserver's libraries (quantities, addresses, networks, URLs, versions, formats, the authorizer)
//!   and [`Language::of_release`](language::Language), the set of each of its releases.

mod ast;
mod check;
mod compile;
mod constants;
pub mod cost;
pub mod decl;
pub mod diagnostics;
pub mod environment;
pub mod error;
mod eval;
pub mod function;
mod identifier;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod language;
pub mod library;
mod macros;
mod meter;
mod parse;
mod plan;
mod program;
#[cfg(feature = "regex")]
pub mod re2;
pub mod size;
pub mod types;
mod validate;
pub mod value;
mod variable;
mod walk;

pub use compile::CompileError;
pub use cost::{AstNode, DeclaredSizes, SizeEstimator};
pub use decl::{DeclType, RESERVED};
pub use diagnostics::{Diagnostic, Diagnostics};
pub use environment::{BuildError, Environment};
pub use error::EvalError;
pub use function::{Call, Function, Overload};
pub use language::Language;
pub use library::Library;
pub use meter::Meter;
pub use program::{DEFAULT_COST_LIMIT, Fields, Program, Variables};
pub use size::{CostEstimate, SizeEstimate};
pub use types::Type;
pub use value::Value;

#[cfg(feature = "json")]
#[cfg(feature = "kubernetes")]
#[cfg(test)]
mod conformance;

/// The examples of README.md, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
