//! Options of list, watch and the selecting half of deletecollection.

use portico_machinery::selector::{FieldSelector, LabelSelector};

/// `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// Exactly that revision.
    Exact,
    /// That revision or a newer one.
    NotOlderThan,
}

/// Options of list and watch (`metav1.ListOptions`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// By labels.
    pub labels: LabelSelector,
    /// By fields.
    pub fields: FieldSelector,
    /// Most objects on a page; 0 is all.
    pub limit: usize,
    /// Where the page before ended, as the answer gave it.
    pub continue_token: String,
    /// `resourceVersion`; nothing means "most recent".
    pub resource_version: Option<i64>,
    /// What the revision means.
    pub version_match: Option<VersionMatch>,
    /// Watch: begin with the objects that are there.
    pub send_initial_events: Option<bool>,
    /// Watch: bookmarks are welcome.
    pub allow_bookmarks: bool,
    /// Watch: seconds after which the stream ends; 0 leaves it to the server.
    pub timeout_seconds: u64,
}
