//! Options of the verbs. `options/decode.rs` decodes them from a query or a body.

mod decode;
mod delete;
mod list;
mod validate;
mod write;

pub(crate) use delete::IGNORE_READ_ERROR;
pub use delete::{DeleteOptions, Preconditions, Propagation};
pub use list::{ListOptions, VersionMatch};
pub use write::{CreateOptions, FieldValidation, PatchOptions, UpdateOptions};

pub use decode::Query;
pub use validate::number_error;
