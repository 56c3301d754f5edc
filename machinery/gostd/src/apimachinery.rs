//! Packages of `k8s.io/apimachinery` that only depend on Go's standard library: resource quantities and names.

pub mod quantity;
pub mod validation;

pub use quantity::{Quantity, QuantityError};
