//! Facts of a schema that decide how it is validated.

use serde_json::Value;

use super::refused;
use super::visit::visit;
use crate::structural::compile_error::CompileError;

/// Facts of a schema that decide how it is validated.
pub(super) struct Survey {
    /// Reason why upstream cannot compute the structural form, if any.
    pub(super) refused: Option<CompileError>,
    /// True if there is a default.
    pub(super) defaults: bool,
}

impl Survey {
    /// Visits every node once.
    pub(super) fn of(schema: &Value) -> Self {
        let mut survey = Self { refused: None, defaults: false };
        visit(schema, &mut |props| {
            survey.refused = survey.refused.take().or_else(|| refused::of_node(props));
            survey.defaults |= props.default.is_some();
        });
        survey
    }
}
