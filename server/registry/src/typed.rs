//! What typed verbs take and give.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use portico_machinery::UserInfo;
use portico_machinery::user::MASTERS;

use crate::stored::Stored;

/// Annotations of the request's audit event: keys and values, noted while it is carried out. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Annotations(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    annotations: Vec<(String, String)>,
    webhooks_took: Duration,
}

impl Annotations {
    /// Notes a value; what is known already stays, as an attempt may be begun anew.
    pub fn note(&self, key: String, value: String) {
        let known = &mut self.0.lock().annotations;
        if !known.iter().any(|(other, _)| *other == key) {
            known.push((key, value));
        }
    }

    /// Takes all of them.
    #[must_use]
    pub fn take(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.0.lock().annotations)
    }

    /// Notes how long webhooks took, besides what is known.
    pub(crate) fn webhooks_took(&self, took: Duration) {
        self.0.lock().webhooks_took += took;
    }

    /// Takes how long all webhooks took.
    pub(crate) fn take_webhooks(&self) -> Duration {
        std::mem::take(&mut self.0.lock().webhooks_took)
    }
}

/// Who acts through a typed verb, and as what.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Who. Already authorized for the verb; checked again only for what a verb does besides (create on update).
    pub user: UserInfo,
    /// The User-Agent, for the field manager.
    pub user_agent: String,
    /// The annotations of the request's audit event.
    pub annotations: Annotations,
    /// True for what Portico itself depends on: admission does not see it.
    pub internal: bool,
}

impl Context {
    /// A caller with this User-Agent.
    #[must_use]
    pub fn new(user: UserInfo, user_agent: impl Into<String>) -> Self {
        Self { user, user_agent: user_agent.into(), annotations: Annotations::default(), internal: false }
    }

    /// One of our own controllers: `system:masters` under this name. Its field manager is that of the program which runs it upstream.
    #[must_use]
    pub fn system(name: &str) -> Self {
        Self::new(UserInfo::new(name, [MASTERS]).authenticated(), program_of(name))
    }

    /// A copy for writes that authentication or leader election depends on: no webhook or policy can delay or refuse them.
    #[must_use]
    pub fn internal(name: &str) -> Self {
        Self { internal: true, ..Self::system(name) }
    }
}

/// Name of the upstream program that acts as this user; the user's own if there is none.
fn program_of(user: &str) -> &str {
    match user {
        "system:apiserver" => "kube-apiserver",
        user if user.starts_with("system:serviceaccount:kube-system:") => "kube-controller-manager",
        user => user,
    }
}

/// What a typed write gives back.
#[derive(Clone, Debug)]
pub struct Written {
    /// The object as it is now (for a dry run: as it would be).
    pub stored: Stored,
    /// Whether it was created (an update may create, for kinds that do that).
    pub created: bool,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
}

impl Written {
    /// The same with other warnings in front.
    pub(crate) fn with_first(mut self, mut warnings: Vec<String>) -> Self {
        warnings.append(&mut self.warnings);
        Self { warnings, ..self }
    }
}

/// What a typed delete gives back.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// The last state when removed, the marked object when finalizers keep it.
    pub stored: Stored,
    /// Whether it is gone.
    pub removed: bool,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
}

impl Deleted {
    /// A delete that nobody warned of.
    pub(crate) fn new(stored: Stored, removed: bool) -> Self {
        Self { stored, removed, warnings: Vec::new() }
    }
}

/// A page of a typed list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Sorted by namespace and name.
    pub items: Vec<Stored>,
    /// The revision at which all of them were so.
    pub revision: i64,
    /// Where the next page begins; empty on the last.
    pub continue_token: String,
    /// How many remain, when that is known without looking (no selectors).
    pub remaining: Option<u64>,
    /// How many objects were left out because they cannot be read.
    pub unreadable: usize,
}

/// A patch and what kind it is.
#[derive(Clone, Debug)]
pub enum Patch {
    /// RFC 6902, JSON bytes.
    Json(bytes::Bytes),
    /// RFC 7386, JSON bytes.
    Merge(bytes::Bytes),
    /// Strategic merge, JSON bytes.
    Strategic(bytes::Bytes),
}

impl Patch {
    /// The patch as it was sent.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Json(bytes) | Self::Merge(bytes) | Self::Strategic(bytes) => bytes,
        }
    }
}

/// Where a write goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// The object or one of its subresources.
    pub part: Part<'a>,
    /// Its namespace, empty at cluster scope.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// What is patched or updated: the object or one of its subresources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part<'a> {
    /// The object.
    #[default]
    Main,
    /// `status`, `finalize`, ...
    Subresource(&'a str),
}
