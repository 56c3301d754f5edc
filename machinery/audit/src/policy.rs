//! The audit policy: an ordered list of rules, of which the first that matches a request decides.
//!
//! Upstream: `policyRuleEvaluator`. A request without a matching rule is not recorded.

mod document;
mod file;
mod matching;
mod rules;
#[cfg(test)]
mod tests;
mod validation;

pub use file::PolicyError;
pub use rules::{AuditConfig, Policy};
