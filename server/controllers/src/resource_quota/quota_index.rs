//! Index of quotas, so that a change of an object in a namespace without quotas costs one lookup.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use portico_machinery::GroupResource;
use portico_quota::may_match_resource;
use portico_registry::StoredObject;
use tokio::time::Instant;

use super::decision;

/// Time after a change of limits during which new objects are also recounted: a write admitted before the change may commit
/// within this time. Equal to the default request timeout.
const SETTLING_TIME: Duration = Duration::from_secs(60);

pub(super) fn quotas() -> GroupResource {
    GroupResource::new("", "resourcequotas")
}

/// Namespace and name of a quota.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct QuotaKey {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// A quota in its last state seen in the log.
pub(super) struct WatchedQuota {
    pub(super) stored: StoredObject,
    /// Names of limited resources.
    names: BTreeSet<String>,
    /// End of the time during which new objects are recounted.
    settles_at: Option<Instant>,
    /// Duration of the last count.
    count_duration: Duration,
}

/// A quota that a change may affect.
pub(super) struct AffectedQuota {
    pub(super) stored: StoredObject,
    /// True if uncounted writes that were admitted earlier may still commit.
    pub(super) is_settling: bool,
    /// Duration of the last count.
    pub(super) count_duration: Duration,
}

/// All quotas, by namespace and name.
#[derive(Default)]
pub(super) struct QuotaIndex {
    namespaces: HashMap<String, HashMap<String, WatchedQuota>>,
}

impl WatchedQuota {
    /// Returns true if objects of a kind may use a resource that the quota limits.
    pub(super) fn may_count(&self, resource: &GroupResource) -> bool {
        self.names.iter().any(|name| may_match_resource(resource, name))
    }

    /// Returns the facts that are needed after the lock is released.
    pub(super) fn snapshot_at(&self, now: Instant) -> AffectedQuota {
        let is_settling = self.settles_at.is_some_and(|settled_at| now < settled_at);
        AffectedQuota { stored: self.stored.clone(), is_settling, count_duration: self.count_duration }
    }
}

impl QuotaIndex {
    /// Stores the state of a quota. Returns true if its limits are new.
    pub(super) fn put(&mut self, stored: StoredObject, now: Instant) -> bool {
        let names = decision::limited_resources(stored.object());
        let quotas = self.namespaces.entry(stored.namespace().to_owned()).or_default();
        let before = quotas.get(stored.name());
        let is_new = before.is_none_or(|before| {
            before.names != names
                || decision::enforced_resources(before.stored.object())
                    != decision::enforced_resources(stored.object())
        });
        let settles_at =
            if is_new { Some(now + SETTLING_TIME) } else { before.and_then(|before| before.settles_at) };
        let count_duration = before.map(|before| before.count_duration).unwrap_or_default();
        let name = stored.name().to_owned();
        quotas.insert(name, WatchedQuota { stored, names, settles_at, count_duration });
        is_new
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) {
        let Some(quotas) = self.namespaces.get_mut(namespace) else { return };
        quotas.remove(name);
        if quotas.is_empty() {
            self.namespaces.remove(namespace);
        }
    }

    pub(super) fn clear(&mut self) {
        self.namespaces.clear();
    }

    /// Returns the quotas of a namespace.
    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &WatchedQuota> {
        self.namespaces.get(namespace).into_iter().flat_map(HashMap::values)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &WatchedQuota> {
        self.namespaces.values().flat_map(HashMap::values)
    }

    /// Records the duration of a count.
    pub(super) fn set_count_duration(&mut self, key: &QuotaKey, took: Duration) {
        let quota = self.namespaces.get_mut(&key.namespace).and_then(|quotas| quotas.get_mut(&key.name));
        if let Some(quota) = quota {
            quota.count_duration = took;
        }
    }
}

impl QuotaKey {
    pub(super) fn of(stored: &StoredObject) -> Self {
        Self { namespace: stored.namespace().to_owned(), name: stored.name().to_owned() }
    }
}
