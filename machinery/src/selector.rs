//! Label and field selectors: parse once, match often.
//!
//! Grammar and messages follow upstream's packages `labels` and `fields`; untrusted input never causes a panic.

mod combined;
mod field;
mod label;
mod object;
mod parse;
mod requirement;

pub use field::{FieldSelector, FieldTerm, InvalidFieldSelector};
pub use label::{InvalidLabelSelector, LabelSelector, Operator, Requirement};
pub use object::{labels_cell, selector_cell};
