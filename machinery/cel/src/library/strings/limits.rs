//! How long a text may become.

/// The most bytes that one call may make of its arguments. Several times what fits into a request.
pub(crate) const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// The error for a longer one.
pub(crate) fn too_long() -> String {
    format!("text is longer than {MAX_TEXT_BYTES} bytes")
}
