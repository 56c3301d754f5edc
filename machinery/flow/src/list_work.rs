//! Estimates the seats of a list by the number and size of its objects (upstream's `listWorkEstimator`).

use portico_gostd::url::Query;
use portico_machinery::RequestInfo;
use portico_machinery::flow_control::StoredObjects;

use crate::work::{Work, min_limit};

/// Seats of a list.
///
/// Equal to kube-apiserver's `MaximumListSeatsLimit`.
///
/// Limit (Priority and fairness): the list takes this many.
pub const MAX_LIST_SEATS: u32 = 100;
/// Bytes of a list per seat.
const BYTES_PER_SEAT: u64 = 100_000;
/// Bytes of a list from the cache that are in memory at the same time; the list is streamed.
const BYTES_AT_ONCE: u64 = 1_000_000;
/// Bytes of label and field selectors for each seat.
///
/// Selectors are parsed and compared with each object.
///
/// Limit (Priority and fairness, bytes): the request takes a further seat.
const SELECTOR_BYTES_PER_SEAT: usize = 4_096;
/// Assumed size of objects whose size is not known.
const MAX_OBJECT_BYTES: u64 = 1_500_000;

/// Options of a list that influence its cost.
#[derive(Clone, Debug, Default)]
struct ListOptions {
    limit: u64,
    revision: String,
    revision_match: String,
    has_continue_token: bool,
    has_selector: bool,
    selector_bytes: usize,
    send_initial_events: Option<bool>,
}

/// Estimates the work of a list, of a watch that may begin with one, or of the deletion of a collection. Resources that this
/// server does not store cost one seat. In contrast to upstream, long selectors cost further seats. `max_seats` is the limit of
/// the level.
pub(crate) fn estimate_list(
    info: &RequestInfo,
    query: &str,
    stored: Option<StoredObjects>,
    max_seats: u32,
) -> Work {
    let most = min_limit(max_seats, MAX_LIST_SEATS);
    // A request with invalid options fails anyway.
    let Some(options) = ListOptions::parse(query) else { return work_of_seats(u64::MAX, most) };
    let watches = info.verb == "watch";
    let listed = stored.filter(|_| !watches || options.watch_begins_with_list()).map_or(1, |stored| {
        let cached = watches || options.is_from_cache();
        options.bytes(stored, cached, !info.name.is_empty()).div_ceil(BYTES_PER_SEAT)
    });
    let selected = (options.selector_bytes / SELECTOR_BYTES_PER_SEAT) as u64;
    work_of_seats(listed.max(1).saturating_add(selected), most)
}

fn work_of_seats(seats: u64, max: u32) -> Work {
    let initial_seats = u32::try_from(seats).unwrap_or(u32::MAX).clamp(1, max);
    Work { initial_seats, ..Work::ONE_SEAT }
}

impl ListOptions {
    /// Parses the query. Returns `None` if a number is invalid.
    fn parse(query: &str) -> Option<Self> {
        let query = Query::parse(query);
        let text = |key| query.first(key).unwrap_or_default();
        let number = |key| match text(key) {
            "" => Some(0),
            text => text.parse::<i64>().ok(),
        };
        number("timeoutSeconds")?;
        let selector_bytes = text("labelSelector").len() + text("fieldSelector").len();
        let yes = |text: &str| !matches!(text.to_lowercase().as_str(), "false" | "0");
        Some(Self {
            limit: u64::try_from(number("limit")?).unwrap_or(0),
            revision: text("resourceVersion").to_owned(),
            revision_match: text("resourceVersionMatch").to_owned(),
            has_continue_token: !text("continue").is_empty(),
            has_selector: selector_bytes > 0,
            selector_bytes,
            send_initial_events: query.first("sendInitialEvents").map(yes),
        })
    }

    fn watch_begins_with_list(&self) -> bool {
        self.send_initial_events == Some(true) || matches!(self.revision.as_str(), "" | "0")
    }

    /// True if the list is served from memory (the opposite of upstream's `ShouldDelegateListMeta`).
    fn is_from_cache(&self) -> bool {
        match self.revision_match.as_str() {
            "NotOlderThan" => true,
            "" if self.has_continue_token => false,
            "" => self.limit == 0 || matches!(self.revision.as_str(), "" | "0"),
            _ => false,
        }
    }

    /// Returns the number of bytes that are in memory at the same time (`seatsBasedOnObjectSize`).
    fn bytes(&self, stored: StoredObjects, cached: bool, one: bool) -> u64 {
        let StoredObjects { count, average_bytes } = stored;
        let size = if average_bytes == 0 && count > 0 { MAX_OBJECT_BYTES } else { average_bytes };
        let limited = if self.limit > 0 { self.limit.min(count) } else { count };
        let loaded = match (one, cached) {
            (true, _) => 1,
            (false, false) if self.has_selector => limited.max(count / 2),
            (false, _) => limited,
        };
        let bytes = loaded.saturating_mul(size);
        if cached { bytes.min(BYTES_AT_ONCE) } else { bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_STORED: Option<StoredObjects> = None;

    fn stored(count: u64, average_bytes: u64) -> Option<StoredObjects> {
        Some(StoredObjects { count, average_bytes })
    }

    fn seats_of(query: &str, stored: Option<StoredObjects>, max: u32) -> u32 {
        let info = RequestInfo::parse("GET", "/apis/foo.bar/v1/events", query).unwrap();
        estimate_list(&info, query, stored, max).initial_seats
    }

    /// Cases of upstream's `TestWorkEstimator` for an etcd that supports consistent reads from the cache.
    #[test]
    fn lists_take_as_many_seats_as_in_upstream() {
        for (query, stored, max, seats) in [
            ("limit=invalid", stored(799, 10_000), 100, 100),
            ("limit=399&resourceVersion=1", stored(699, 10_000), 100, 40),
            ("resourceVersion=1", stored(699, 10_000), 100, 10),
            ("resourceVersion=1", stored(69, 10_000), 100, 7),
            ("limit=399", stored(699, 10_000), 100, 10),
            ("", stored(399, 10_000), 100, 10),
            ("", NOT_STORED, 100, 1),
            ("continue=token&limit=399", stored(699, 10_000), 100, 40),
            ("limit=299&resourceVersion=0", stored(399, 10_000), 100, 10),
            ("limit=20&resourceVersion=0", stored(399, 10_000), 100, 2),
            ("resourceVersion=0", stored(799, 10_000), 100, 10),
            ("resourceVersion=0", stored(79, 10_000), 100, 8),
            ("resourceVersion=1&resourceVersionMatch=Exact&limit=399", stored(699, 10_000), 100, 40),
            ("resourceVersion=1&resourceVersionMatch=NotOlderThan", stored(799, 10_000), 100, 10),
            ("resourceVersion=1&resourceVersionMatch=NotOlderThan", stored(79, 10_000), 100, 8),
            ("resourceVersion=1&resourceVersionMatch=Exact", stored(5000, 10_000), 20, 20),
            ("resourceVersionMatch=foo", stored(200, 10_000), 100, 20),
            ("resourceVersion=foo&resourceVersionMatch=Exact&limit=399", stored(699, 10_000), 100, 40),
            ("resourceVersion=0", NOT_STORED, 100, 1),
            ("", stored(1, 0), 100, 10),
            ("continue=token", stored(1, 0), 100, 15),
            ("resourceVersion=0&limit=499", stored(1, 0), 100, 10),
            ("fieldSelector=metadata.name%3Dtest", stored(799, 200_000), 100, 2),
            ("fieldSelector=metadata.name%3Dtest", stored(799, 1_500_000), 100, 10),
            ("fieldSelector=metadata.name%3Dtest&limit=500&resourceVersion=0", stored(799, 200_000), 100, 2),
            (
                "fieldSelector=metadata.name%3Dtest&limit=500&resourceVersion=0",
                stored(799, 1_500_000),
                100,
                10,
            ),
            ("continue=t&labelSelector=app%3Dtest", stored(799, 10_000), 100, 80),
            ("continue=t&labelSelector=app%3Dtest&limit=49", stored(799, 10_000), 100, 40),
            ("continue=t&labelSelector=app%3Dtest&limit=699", stored(799, 10_000), 100, 70),
            ("resourceVersion=0&labelSelector=app%3Dtest", stored(799, 10_000), 100, 10),
            ("resourceVersion=0&labelSelector=app%3Dtest&limit=29", stored(799, 10_000), 100, 3),
            ("continue=t", stored(5000, 10_000), 0, 100),
        ] {
            assert_eq!(seats_of(query, stored, max), seats, "{query} {stored:?}");
        }
    }

    #[test]
    fn long_selectors_take_further_seats() {
        let selector: Vec<String> = (0..5_000).map(|at| format!("!zz{at}")).collect();
        let selector = selector.join(",");
        for (query, stored, seats) in [
            (format!("labelSelector={selector}"), NOT_STORED, 1 + 9),
            (format!("fieldSelector={selector}"), stored(69, 10_000), 7 + 9),
            (format!("watch=true&resourceVersion=1&labelSelector={selector}"), stored(69, 10_000), 1 + 9),
            (format!("labelSelector={}", &selector[..4_000]), NOT_STORED, 1),
        ] {
            assert_eq!(seats_of(&query, stored, 100), seats, "{}", &query[..40]);
        }
        assert_eq!(seats_of(&format!("labelSelector={selector}"), NOT_STORED, 5), 5, "at most the level's");
    }

    #[test]
    fn watches_cost_as_much_as_their_initial_events() {
        for (query, seats) in [
            ("watch=true", 8),
            ("watch=true&resourceVersion=0", 8),
            ("watch=true&resourceVersion=1", 1),
            ("watch=true&sendInitialEvents=false", 8),
            ("watch=true&sendInitialEvents=false&resourceVersion=0", 8),
            ("watch=true&sendInitialEvents=false&resourceVersion=1", 1),
            ("watch=true&sendInitialEvents=true", 8),
            ("watch=true&sendInitialEvents=true&resourceVersion=7", 8),
        ] {
            assert_eq!(seats_of(query, stored(799, 1_000), 100), seats, "{query}");
        }
    }
}
