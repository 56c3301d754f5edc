//! Kinds of access reviews.

/// Kind of an access review, which determines the reviewed subject and namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessReview {
    /// Of whom the spec names.
    Subject,
    Own,
    /// Of whom the spec names, in the request's namespace.
    Local,
}
