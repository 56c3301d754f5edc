//! How long the answers to lists were: what the next one like it is taken to cost.
//!
//! Upstream counts the objects of its own store. Who has none remembers the last answer for the same resource,
//! namespace and limit; what was never seen costs least.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use parking_lot::RwLock;
use portico_gostd::url::Query;
use portico_machinery::RequestInfo;

/// Lists that are remembered; when there are more, all are forgotten.
const MAX_LISTS: usize = 4096;

/// A list, by its hash: two that fall together cost each other a wrong guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SizeKey(u64);

/// See the module.
#[derive(Default)]
pub(crate) struct ListSizes {
    hasher: RandomState,
    bytes: RwLock<HashMap<SizeKey, u64>>,
}

impl ListSizes {
    pub(crate) fn key(&self, info: &RequestInfo, query: &str) -> SizeKey {
        let query = Query::parse(query);
        let limit = query.first("limit").unwrap_or_default();
        SizeKey(self.hasher.hash_one((&info.api_group, &info.resource, &info.namespace, limit)))
    }

    pub(crate) fn known(&self, key: SizeKey) -> Option<u64> {
        self.bytes.read().get(&key).copied()
    }

    pub(crate) fn note(&self, key: SizeKey, bytes: u64) {
        if self.known(key) == Some(bytes) {
            return;
        }
        let mut all = self.bytes.write();
        if all.len() >= MAX_LISTS && !all.contains_key(&key) {
            all.clear();
        }
        all.insert(key, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_costs_what_the_last_one_like_it_was_long() {
        let sizes = ListSizes::default();
        let info = |path: &str| RequestInfo::parse("GET", path, "").unwrap();
        let key = |path: &str, query: &str| sizes.key(&info(path), query);
        assert_eq!(sizes.known(key("/api/v1/pods", "")), None);
        sizes.note(key("/api/v1/pods", ""), 7);
        sizes.note(key("/api/v1/pods", "limit=5"), 2);
        assert_eq!(sizes.known(key("/api/v1/pods", "labelSelector=a")), Some(7));
        assert_eq!(sizes.known(key("/api/v1/pods", "limit=5&continue=x")), Some(2));
        assert_eq!(sizes.known(key("/api/v1/namespaces/n/pods", "")), None);
        for number in 0..MAX_LISTS as u64 {
            sizes.note(SizeKey(number), number);
        }
        assert!(sizes.bytes.read().len() <= MAX_LISTS);
    }
}
