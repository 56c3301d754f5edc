//! Results of the rules of an object.

use portico_machinery::field::Error;

/// Results of the rules of an object.
#[derive(Debug, Default)]
pub struct RuleFindings {
    /// Errors of new or changed values.
    pub errors: Vec<Error>,
    /// Errors of unchanged values, which are reported and do not reject the object.
    pub warnings: Vec<String>,
}
