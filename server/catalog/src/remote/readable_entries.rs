//! Handles lists with entries that cannot be decoded.

use portico_gostd::json::Readable;

/// Returns the decoded entries of a list, and logs the others.
pub(super) fn readable_entries<T>(within: &str, list: Readable<T>) -> Vec<T> {
    if !list.unreadable.is_empty() {
        tracing::warn!(
            parent = within,
            entries = list.unreadable.join(", "),
            "discovery document has unreadable entries, entries skipped"
        );
    }
    list.items
}
