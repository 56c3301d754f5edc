//! Counts the watches of this server that receive the event of a write (upstream's `WatchTracker`); each adds work to the write.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;
use portico_machinery::RequestInfo;
use portico_machinery::selector::FieldSelector;

/// Resource and field of watches that are not counted: watches of the pods of one node receive few of all events.
const INDEXED_FIELD: (&str, &str) = ("pods", "spec.nodeName");

/// Numbers of watches. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct WatchCounts {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    hasher: RandomState,
    /// Numbers of watches by the hash of group, resource, namespace and name.
    counts: Mutex<HashMap<u64, u32>>,
}

/// Guard that counts a watch until it is dropped.
pub struct WatchGuard {
    inner: Arc<Inner>,
    key: Option<u64>,
}

impl std::fmt::Debug for WatchGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WatchGuard")
    }
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        let mut counts = self.inner.counts.lock();
        if let Some(count) = counts.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&key);
            }
        }
    }
}

impl Inner {
    fn key(&self, info: &RequestInfo, namespace: &str, name: &str) -> u64 {
        self.hasher.hash_one((&info.api_group, &info.resource, namespace, name))
    }
}

impl WatchCounts {
    /// Counts a watch until the guard is dropped.
    pub(crate) fn register(&self, info: &RequestInfo) -> WatchGuard {
        let key = (!selects_node(info)).then(|| self.inner.key(info, &info.namespace, &info.name));
        if let Some(key) = key {
            *self.inner.counts.lock().entry(key).or_default() += 1;
        }
        WatchGuard { inner: Arc::clone(&self.inner), key }
    }

    /// Returns the number of watches that receive the event of this write.
    pub(crate) fn count_interested(&self, info: &RequestInfo) -> u32 {
        let mut keys = vec![self.inner.key(info, "", "")];
        if !info.namespace.is_empty() {
            keys.push(self.inner.key(info, &info.namespace, ""));
        }
        if !info.name.is_empty() {
            keys.push(self.inner.key(info, &info.namespace, &info.name));
        }
        let counts = self.inner.counts.lock();
        keys.iter().filter_map(|key| counts.get(key)).sum()
    }
}

fn selects_node(info: &RequestInfo) -> bool {
    info.resource == INDEXED_FIELD.0
        && FieldSelector::parse(&info.field_selector).is_ok_and(|fields| {
            fields.requires_exact_match(INDEXED_FIELD.1).is_some_and(|node| !node.is_empty())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_of_resource_namespace_and_name_receive_a_write() {
        let watches = WatchCounts::default();
        let info = |method: &str, path: &str, query: &str| RequestInfo::parse(method, path, query).unwrap();
        let watch = |path: &str| watches.register(&info("GET", path, "watch=true"));
        let all = watch("/api/v1/secrets");
        let _here = watch("/api/v1/namespaces/n/secrets");
        let _other_namespace = watch("/api/v1/namespaces/m/secrets");
        let named = "watch=true&fieldSelector=metadata.name%3Ds";
        let _named = watches.register(&info("GET", "/api/v1/namespaces/n/secrets", named));
        let seen = |method: &str, path: &str| watches.count_interested(&info(method, path, ""));
        assert_eq!(seen("PUT", "/api/v1/namespaces/n/secrets/s"), 3);
        assert_eq!(seen("POST", "/api/v1/namespaces/n/secrets"), 2);
        assert_eq!(seen("PUT", "/api/v1/namespaces/n/configmaps/s"), 0);
        drop(all);
        assert_eq!(seen("PUT", "/api/v1/namespaces/n/secrets/s"), 2);
        let of_node = "watch=true&fieldSelector=spec.nodeName%3Dx";
        let _kubelet = watches.register(&info("GET", "/api/v1/pods", of_node));
        assert_eq!(seen("POST", "/api/v1/namespaces/n/pods"), 0);
    }
}
