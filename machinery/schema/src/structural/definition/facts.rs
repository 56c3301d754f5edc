//! Facts of a schema that decide how it is validated.

use serde_json::Value;

use super::unsupported;
use super::visit::visit;
use crate::structural::compile_error::CompileError;

/// Facts of a schema that decide how it is validated.
pub(super) struct SchemaFacts {
    /// Reason why upstream cannot compute the structural form, if any.
    pub(super) unsupported: Option<CompileError>,
    /// True if there is a default.
    pub(super) has_defaults: bool,
}

impl SchemaFacts {
    /// Visits every node once.
    pub(super) fn of(schema: &Value) -> Self {
        let mut survey = Self { unsupported: None, has_defaults: false };
        visit(schema, &mut |props| {
            survey.unsupported = survey.unsupported.take().or_else(|| unsupported::unsupported_in(props));
            survey.has_defaults |= props.default.is_some();
        });
        survey
    }
}
