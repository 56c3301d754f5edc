//! The work of a request, by its attributes and by what is known of lists and watches (upstream's `workEstimator`).

use portico_gostd::url::Query;
use portico_machinery::RequestInfo;

use crate::controller::Matched;
use crate::level::Wake;
use crate::sizes::{ListSizes, SizeKey};
use crate::watches::Watches;
use crate::work::{Work, of_list, of_write};

/// See the module.
#[derive(Default)]
pub(crate) struct Estimator {
    pub(crate) sizes: ListSizes,
    pub(crate) watches: Watches,
}

impl Estimator {
    /// The work, and where to note the size of the answer.
    pub(crate) fn estimate<W: Wake>(
        &self,
        info: &RequestInfo,
        query: &str,
        matched: &Matched<W>,
    ) -> (Work, Option<SizeKey>) {
        if !info.is_resource_request {
            return (Work::LEAST, None);
        }
        match info.verb.as_str() {
            "list" => self.estimate_list(info, query, matched.max_seats),
            "watch" if begins_with_list(query) => {
                (self.estimate_list(info, query, matched.max_seats).0, None)
            }
            "create" | "update" | "patch" | "delete" if !causes_no_event(info) => {
                let watches = self.watches.interested(info);
                matched.observe_watches(watches);
                (of_write(watches, matched.max_seats), None)
            }
            _ => (Work::LEAST, None),
        }
    }

    fn estimate_list(&self, info: &RequestInfo, query: &str, max_seats: u32) -> (Work, Option<SizeKey>) {
        // One object, named by the path or by a selector.
        if !info.name.is_empty() {
            return (Work::LEAST, None);
        }
        let key = self.sizes.key(info, query);
        let selects = !info.label_selector.is_empty() || !info.field_selector.is_empty();
        (of_list(self.sizes.known(key), max_seats), (!selects).then_some(key))
    }
}

/// Whether a watch shows first what is there.
fn begins_with_list(query: &str) -> bool {
    let query = Query::parse(query);
    let first = |key| query.first(key).unwrap_or_default();
    matches!(first("sendInitialEvents"), "true" | "1") || matches!(first("resourceVersion"), "" | "0")
}

/// A service account's token is no object that anybody watches (upstream's `isRequestExemptFromWatchEvents`).
fn causes_no_event(info: &RequestInfo) -> bool {
    info.resource == "serviceaccounts" && info.subresource == "token"
}
