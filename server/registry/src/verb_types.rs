//! Inputs and results of the typed verbs.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use portico_machinery::UserInfo;
use portico_machinery::user::MASTERS;

use crate::stored_object::StoredObject;

/// Annotations of the request's audit event, collected while the request runs. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Annotations(Arc<Mutex<RequestNotes>>);

#[derive(Debug, Default)]
struct RequestNotes {
    annotations: Vec<(String, String)>,
    webhook_duration: Duration,
}

impl Annotations {
    /// Adds a key and value unless the key exists, as an attempt may be retried.
    pub fn note(&self, key: String, value: String) {
        let recorded = &mut self.0.lock().annotations;
        if !recorded.iter().any(|(other, _)| *other == key) {
            recorded.push((key, value));
        }
    }

    /// Removes and returns all annotations.
    #[must_use]
    pub fn take(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.0.lock().annotations)
    }

    /// Adds a duration to the time spent in webhooks.
    pub(crate) fn add_webhook_duration(&self, duration: Duration) {
        self.0.lock().webhook_duration += duration;
    }

    /// Removes and returns the time spent in webhooks.
    pub(crate) fn take_webhook_duration(&self) -> Duration {
        std::mem::take(&mut self.0.lock().webhook_duration)
    }
}

/// Caller of a typed verb.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// User, already authorized for the verb; authorized again only for a create that results from an update.
    pub user: UserInfo,
    /// User-Agent, from which the field manager is derived.
    pub user_agent: String,
    /// Annotations of the request's audit event.
    pub annotations: Annotations,
    /// True for requests that Portico itself depends on, which admission does not see.
    pub internal: bool,
}

impl Context {
    /// Context of a caller with this User-Agent.
    #[must_use]
    pub fn new(user: UserInfo, user_agent: impl Into<String>) -> Self {
        Self { user, user_agent: user_agent.into(), annotations: Annotations::default(), internal: false }
    }

    /// Context of an internal controller: `system:masters` under this name. Its field manager is the upstream
    /// program of that controller.
    #[must_use]
    pub fn system(name: &str) -> Self {
        Self::new(UserInfo::new(name, [MASTERS]).with_authenticated_group(), program_of(name))
    }

    /// Context for writes that authentication or leader election depends on: webhooks and policies cannot delay or refuse them.
    #[must_use]
    pub fn internal(name: &str) -> Self {
        Self { internal: true, ..Self::system(name) }
    }
}

/// Name of the upstream program that acts as this user; the user name if there is none.
fn program_of(user: &str) -> &str {
    match user {
        "system:apiserver" => "kube-apiserver",
        user if user.starts_with("system:serviceaccount:kube-system:") => "kube-controller-manager",
        user => user,
    }
}

/// Result of a typed write.
#[derive(Clone, Debug)]
pub struct WriteResult {
    /// Object after the write, or for a dry run the object that would be stored.
    pub stored: StoredObject,
    /// True if the object was created; some kinds allow an update to create.
    pub created: bool,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
}

impl WriteResult {
    /// Inserts warnings before the existing ones.
    pub(crate) fn prepend_warnings(mut self, mut warnings: Vec<String>) -> Self {
        warnings.append(&mut self.warnings);
        Self { warnings, ..self }
    }
}

/// Result of a typed delete.
#[derive(Clone, Debug)]
pub struct DeleteResult {
    /// Last state of a removed object, or the current state of an object that finalizers keep.
    pub stored: StoredObject,
    /// True if the object was removed.
    pub is_removed: bool,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
}

impl DeleteResult {
    /// Result without warnings.
    pub(crate) fn new(stored: StoredObject, is_removed: bool) -> Self {
        Self { stored, is_removed, warnings: Vec::new() }
    }
}

/// Page of a typed list.
#[derive(Clone, Debug)]
pub struct ListResult {
    /// Objects, sorted by namespace and name.
    pub items: Vec<StoredObject>,
    /// Revision of all objects.
    pub revision: i64,
    /// Position at which the next page starts; empty on the last page.
    pub continue_token: String,
    /// Number of remaining objects, if known (no selectors).
    pub remaining: Option<u64>,
    /// Number of objects that were omitted because they cannot be read.
    pub unreadable: usize,
}

/// Patch of one of the supported types.
#[derive(Clone, Debug)]
pub enum Patch {
    /// JSON patch (RFC 6902).
    Json(bytes::Bytes),
    /// JSON merge patch (RFC 7386), as JSON.
    Merge(bytes::Bytes),
    /// Strategic merge patch, as JSON.
    Strategic(bytes::Bytes),
}

impl Patch {
    /// Patch as received.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Json(bytes) | Self::Merge(bytes) | Self::Strategic(bytes) => bytes,
        }
    }
}

/// Object or subresource that a write addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectPath<'a> {
    /// Part of the object.
    pub part: ObjectPart<'a>,
    /// Namespace, empty at cluster scope.
    pub namespace: &'a str,
    pub name: &'a str,
}

/// Part of an object that a request addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ObjectPart<'a> {
    /// The object itself.
    #[default]
    Main,
    /// Subresource such as `status` or `finalize`.
    Subresource(&'a str),
}
