//! Whose access a review is about.

/// Whose access is reviewed, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessReview {
    /// Of whom the spec names.
    Subject,
    /// Of the caller.
    Own,
    /// Of whom the spec names, in the request's namespace.
    Local,
}
