//! Views: subresources that show a part of an object as an object of another kind (`scale`).
//!
//! A view is computed from its parent and written back into it. Only the parent is stored, by a regular update
//! that validates the result.

use portico_kinds::ColumnRule;
use portico_machinery::Object;
use portico_validation::Errors;

/// Reason for which a view cannot be computed from its parent, with upstream's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ViewProblem {
    /// A field of the parent has a wrong type.
    TypeMismatch(String),
    /// A required field of the parent is absent, which is an error only when the view is written.
    Absent(String),
}

/// Conversion between a part of an object and its view.
pub(crate) trait View: Send + Sync {
    /// Fills in the fields of the view except its metadata; absent fields stay empty.
    fn fill(&self, parent: &Object, view: &mut Object);

    /// Problem that prevents the view from being computed.
    fn problem(&self, _parent: &Object) -> Option<ViewProblem> {
        None
    }

    /// Sets a placeholder for the field of [`ViewProblem::Absent`], to detect a change of the view that does not set the field.
    fn set_placeholder(&self, _view: &mut Object) {}

    /// Error for a written view that still contains the placeholder, with upstream's message.
    fn placeholder_error(&self, _view: &Object) -> Option<String> {
        None
    }

    /// True for views of built-in kinds, which are validated on their own and can be encoded as protobuf; other views are
    /// validated with the resulting parent.
    fn is_builtin_kind(&self) -> bool {
        true
    }

    /// Validates a received view, without its metadata.
    fn validate(&self, view: &Object, errors: &mut Errors);

    /// Writes the content of a view into its parent.
    fn write(&self, view: &Object, parent: &mut Object);

    /// Field that managers own through the view: dotted paths in the parent and in the view.
    fn field(&self) -> (&str, &str);

    /// Columns of the view's table.
    fn columns(&self) -> Vec<ColumnRule>;
}
