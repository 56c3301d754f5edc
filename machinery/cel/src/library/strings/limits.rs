//! Maximum size of strings.

/// Size of the text that one function of an expression returns.
///
/// Several times the size of a request.
///
/// Limit (Expressions, bytes): the expression fails.
pub(crate) const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// Returns the error for a longer string.
pub(crate) fn too_long() -> String {
    format!("text is longer than {MAX_TEXT_BYTES} bytes")
}
