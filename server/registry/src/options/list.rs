//! Options of list and watch, which are also the selection of deletecollection.

use portico_machinery::selector::{FieldSelector, LabelSelector};

/// `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// Exactly the given revision.
    Exact,
    /// The given revision or a newer one.
    NotOlderThan,
}

/// Options of list and watch (`metav1.ListOptions`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Label selector.
    pub labels: LabelSelector,
    /// Field selector.
    pub fields: FieldSelector,
    /// Maximum number of objects on a page; 0 for no limit.
    pub limit: usize,
    /// Position of the page, from the previous response.
    pub continue_token: String,
    /// `resourceVersion`; `None` for the most recent state.
    pub resource_version: Option<i64>,
    /// Interpretation of `resource_version`.
    pub version_match: Option<VersionMatch>,
    /// Watch: start with the existing objects.
    pub send_initial_events: Option<bool>,
    /// Watch: send bookmarks.
    pub allow_bookmarks: bool,
    /// Watch: seconds after which the stream ends; 0 for a duration chosen by the server.
    pub timeout_seconds: u64,
}
