//! Estimates the work of a request by its attributes, stored objects and watches (upstream's `workEstimator`).

use std::collections::HashMap;

use parking_lot::RwLock;
use portico_machinery::RequestInfo;
use portico_machinery::flow_control::StoredObjects;
use portico_machinery::gvk::GroupResource;

use crate::controller::MatchedSchema;
use crate::level::Wake;
use crate::list_work::estimate_list;
use crate::watches::WatchCounts;
use crate::work::{Work, estimate_write};

/// Estimator of the work of requests.
#[derive(Default)]
pub(crate) struct WorkEstimator {
    /// Numbers and sizes of stored objects, by `resource.group`.
    stored: RwLock<HashMap<String, StoredObjects>>,
    pub(crate) watches: WatchCounts,
}

impl WorkEstimator {
    /// Sets the numbers and sizes of stored objects.
    pub(crate) fn set_stored(&self, stored: HashMap<String, StoredObjects>) {
        *self.stored.write() = stored;
    }

    pub(crate) fn estimate<W: Wake>(
        &self,
        info: &RequestInfo,
        query: &str,
        matched: &MatchedSchema<W>,
    ) -> Work {
        if !info.is_resource_request {
            return Work::ONE_SEAT;
        }
        match info.verb.as_str() {
            "list" | "watch" | "deletecollection" => {
                estimate_list(info, query, self.stored_objects(info), matched.max_seats)
            }
            "create" | "update" | "patch" | "delete" if !causes_no_event(info) => {
                let watches = self.watches.count_interested(info);
                matched.observe_watches(watches);
                estimate_write(watches, matched.max_seats)
            }
            _ => Work::ONE_SEAT,
        }
    }

    fn stored_objects(&self, info: &RequestInfo) -> Option<StoredObjects> {
        let key = GroupResource::new(info.api_group.as_str(), info.resource.as_str()).to_string();
        self.stored.read().get(&key).copied()
    }
}

/// True for token requests of service accounts, which change no watched object (upstream's `isRequestExemptFromWatchEvents`).
fn causes_no_event(info: &RequestInfo) -> bool {
    info.resource == "serviceaccounts" && info.subresource == "token"
}
