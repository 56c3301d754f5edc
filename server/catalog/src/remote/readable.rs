//! Lists of which some entries cannot be read.

use portico_gostd::json::Readable;

/// The entries of a list that could be read; the others are named in the log.
pub(super) fn passed_over<T>(within: &str, list: Readable<T>) -> Vec<T> {
    if !list.unreadable.is_empty() {
        tracing::warn!(
            parent = within,
            entries = list.unreadable.join(", "),
            "discovery document has unreadable entries, entries skipped"
        );
    }
    list.items
}
