//! The Common Expression Language (CEL): parse, check, estimate, compile and evaluate untrusted expressions.
//!
//! An [`Environment`] declares the variables, functions and types that an expression may use. It compiles an expression to a
//! [`Program`], which is immutable, cheap to clone, and can be evaluated any number of times.
//!
//! ```
//! use portico_cel::{Environment, Type, Value};
//!
//! let environment = Environment::builder().variable("replicas", Type::Int).build();
//! let program = environment.compile("replicas > 0 && replicas <= 5")?;
//! assert_eq!(*program.result_type(), Type::Bool);
//! assert_eq!(program.run(&[("replicas", Value::Int(3))])?.as_bool(), Some(true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Semantics, costs and messages are those of cel-go as kube-apiserver configures it.
//!
//! # Untrusted expressions
//!
//! Each evaluation has a budget and can be interrupted ([`Program::evaluate`]); the maximum cost is estimated in advance from the
//! sizes of the variables ([`Program::estimate`]). No expression and no value makes this crate panic, and recursion and loops are
//! bounded. The crate does no IO, reads no clock, and has no global state: compiled regular expressions are cached in the
//! [`PatternCache`] of a [`Language`].
//!
//! # Functions
//!
//! [`library`] has libraries to add to an environment; [`Builder`] shows how to add closures as functions. A [`Language`] is a
//! set of libraries that several environments share.
//!
//! # JSON
//!
//! With the feature `json`, `serde_json` values are read in place. A [`DeclType`] describes them, so that the checker
//! knows their fields:
//!
//! ```
//! # #[cfg(feature = "json")] {
//! use portico_cel::value::from_json;
//! use portico_cel::{DeclType, Environment, Type};
//!
//! let environment = Environment::builder().variable("self", Type::Dyn).build();
//! let program = environment.compile("self.ports.all(port, port < 1024)")?;
//! let json = serde_json::json!({"ports": [80, 443]});
//! let this = from_json(&json, DeclType::dynamic())?;
//! assert_eq!(program.run(&[("self", this)])?.as_bool(), Some(true));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! All features are enabled by default.
//!
//! - `json`: values over `serde_json`.
//! - `regex`: `matches`, `find` and `findAll` in RE2's syntax.
//! - `kubernetes`: libraries of kube-apiserver (quantities, IP addresses, CIDRs, URLs, semantic versions, formats, authorizer)
//!   and [`Language::of_release`](language::Language), the set of each of its releases. Includes `regex`.

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
#[cfg(feature = "regex")]
pub mod pattern_cache;
mod plan;
mod program;
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
pub use environment::{Builder, Environment};
pub use error::EvalError;
pub use function::{Call, Function, Overload};
pub use language::{Language, OverloadCollision};
pub use library::Library;
pub use meter::Meter;
#[cfg(feature = "regex")]
pub use pattern_cache::{PatternCache, PatternError};
pub use program::{DEFAULT_COST_LIMIT, Fields, Program, Variables};
pub use size::{CostEstimate, SizeEstimate};
pub use types::Type;
pub use value::Value;

#[cfg(feature = "json")]
#[cfg(feature = "kubernetes")]
#[cfg(test)]
mod conformance;

/// Examples of README.md, run as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
