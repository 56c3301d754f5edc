//! Views: subresources that show a part of an object as an object of a kind of their own (`scale`).
//!
//! A view is read off its parent and written back into it. What is stored is the parent, by its own update, which has the
//! last word.

use portico_kinds::ColumnRule;
use portico_machinery::Object;
use portico_validation::Errors;

/// What keeps a view from being read off its parent, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// A part of it is of another type.
    TypeMismatch(String),
    /// What the view is about is not there. The writer of the view reports that.
    Absent(String),
}

/// How a part of an object becomes an object of its own, and how it goes back.
pub(crate) trait View: Send + Sync {
    /// Fills in what the view shows of its parent besides the metadata; what is not there shows as nothing.
    fn show(&self, parent: &Object, view: &mut Object);

    /// What keeps it from being read.
    fn gap(&self, _parent: &Object) -> Option<Gap> {
        None
    }

    /// Marks what [`Gap::Absent`] is about, so that a change of the view that leaves it alone is detected.
    fn leave_open(&self, _view: &mut Object) {}

    /// Why a view in which the mark still stands cannot be written, in upstream's words.
    fn still_open(&self, _view: &Object) -> Option<String> {
        None
    }

    /// Whether the view is a kind among built-in ones, which is validated by itself and can be written as protobuf; others
    /// are validated with the parent that comes of them.
    fn stands_alone(&self) -> bool {
        true
    }

    /// Validates a view that was sent, metadata aside.
    fn validate(&self, view: &Object, errors: &mut Errors);

    /// Writes the content of a view into its parent.
    fn write(&self, view: &Object, parent: &mut Object);

    /// The field that managers own through the view: dotted paths in the parent and in the view.
    fn field(&self) -> (&str, &str);

    /// The columns of its Table form.
    fn columns(&self) -> Vec<ColumnRule>;
}
