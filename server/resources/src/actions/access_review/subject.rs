//! Kinds of access reviews.

/// Kind of an access review, which determines the reviewed subject and namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessReview {
    /// Access of the user and groups in the spec.
    Subject,
    /// Access of the caller.
    SelfSubject,
    /// Access of the user and groups in the spec, in the namespace of the request.
    LocalSubject,
}
