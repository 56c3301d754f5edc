//! What decides how a schema is validated.

use serde_json::Value;

use super::refused;
use super::visit::visit;
use crate::structural::compile_error::CompileError;

/// What decides how a schema is validated.
pub(super) struct Survey {
    /// Why upstream cannot make its structural form at all.
    pub(super) refused: Option<CompileError>,
    /// Whether there is a default.
    pub(super) defaults: bool,
}

impl Survey {
    /// Looks at every node once.
    pub(super) fn of(schema: &Value) -> Self {
        let mut survey = Self { refused: None, defaults: false };
        visit(schema, &mut |props| {
            survey.refused = survey.refused.take().or_else(|| refused::of_node(props));
            survey.defaults |= props.default.is_some();
        });
        survey
    }
}
