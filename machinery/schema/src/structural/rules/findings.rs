//! What rules find wrong with an object.

use portico_machinery::field::Error;

/// What rules say of an object.
#[derive(Debug, Default)]
pub struct Findings {
    /// What is wrong with it.
    pub errors: Vec<Error>,
    /// What is wrong with it but was before: reported, not refused.
    pub warnings: Vec<String>,
}
