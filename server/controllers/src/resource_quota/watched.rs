//! Which quotas there are, so that a change of an object in a namespace without one costs one look.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use portico_machinery::GroupResource;
use portico_quota::may_count;
use portico_registry::Stored;
use tokio::time::Instant;

use super::decide;

/// For so long after a quota has begun to limit something, new objects are counted again, too: a write that was admitted
/// before may be committed so much later. As long as a request may take by default.
const SETTLING: Duration = Duration::from_secs(60);

/// The resource of quotas.
pub(super) fn quotas() -> GroupResource {
    GroupResource::new("", "resourcequotas")
}

/// Where a quota lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct QuotaKey {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// A quota as the log showed it last.
pub(super) struct WatchedQuota {
    pub(super) stored: Stored,
    /// What it limits.
    names: BTreeSet<String>,
    /// Until then new objects are counted again.
    settled_at: Option<Instant>,
    /// How long counting took last.
    took: Duration,
}

/// A quota that a change may concern.
pub(super) struct ConcernedQuota {
    pub(super) stored: Stored,
    /// Whether writes may still be on their way that the quota did not count.
    pub(super) is_settling: bool,
    /// How long counting took last.
    pub(super) took: Duration,
}

/// All quotas, by namespace and name.
#[derive(Default)]
pub(super) struct Watched {
    namespaces: HashMap<String, HashMap<String, WatchedQuota>>,
}

impl WatchedQuota {
    /// Whether objects of a kind may use anything that the quota limits.
    pub(super) fn concerns(&self, resource: &GroupResource) -> bool {
        self.names.iter().any(|name| may_count(resource, name))
    }

    /// What is to be known of it beyond the lock.
    pub(super) fn as_of(&self, now: Instant) -> ConcernedQuota {
        let is_settling = self.settled_at.is_some_and(|settled_at| now < settled_at);
        ConcernedQuota { stored: self.stored.clone(), is_settling, took: self.took }
    }
}

impl Watched {
    /// Takes the state of a quota; whether what it limits is new.
    pub(super) fn put(&mut self, stored: Stored, now: Instant) -> bool {
        let names = decide::limited(stored.object());
        let quotas = self.namespaces.entry(stored.namespace().to_owned()).or_default();
        let before = quotas.get(stored.name());
        let is_new = before.is_none_or(|before| {
            before.names != names
                || decide::in_force(before.stored.object()) != decide::in_force(stored.object())
        });
        let settled_at =
            if is_new { Some(now + SETTLING) } else { before.and_then(|before| before.settled_at) };
        let took = before.map(|before| before.took).unwrap_or_default();
        let name = stored.name().to_owned();
        quotas.insert(name, WatchedQuota { stored, names, settled_at, took });
        is_new
    }

    /// Forgets a quota.
    pub(super) fn remove(&mut self, namespace: &str, name: &str) {
        let Some(quotas) = self.namespaces.get_mut(namespace) else { return };
        quotas.remove(name);
        if quotas.is_empty() {
            self.namespaces.remove(namespace);
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.namespaces.clear();
    }

    /// The quotas of a namespace.
    pub(super) fn of(&self, namespace: &str) -> impl Iterator<Item = &WatchedQuota> {
        self.namespaces.get(namespace).into_iter().flat_map(HashMap::values)
    }

    /// All quotas.
    pub(super) fn all(&self) -> impl Iterator<Item = &WatchedQuota> {
        self.namespaces.values().flat_map(HashMap::values)
    }

    /// Keeps how long counting a quota took.
    pub(super) fn counted(&mut self, key: &QuotaKey, took: Duration) {
        let quota = self.namespaces.get_mut(&key.namespace).and_then(|quotas| quotas.get_mut(&key.name));
        if let Some(quota) = quota {
            quota.took = took;
        }
    }
}

impl QuotaKey {
    pub(super) fn of(stored: &Stored) -> Self {
        Self { namespace: stored.namespace().to_owned(), name: stored.name().to_owned() }
    }
}
