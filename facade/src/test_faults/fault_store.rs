//! Store of the faults that tests have set. Requests claim the faults that apply to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use serde::Serialize;
use tokio::sync::watch;

use super::fault::{Fault, Rule};
use super::requests::MatchedRequest;

/// Test faults that are set, including used ones.
///
/// Limit (Serving): the request to set one fails.
pub const MAX_FAULTS: usize = 100;

/// Error: the maximum number of faults is set.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the limit of {MAX_FAULTS} faults is reached: remove a fault first")]
pub struct TooManyFaults;

/// Store of the faults that are set.
#[derive(Debug)]
pub struct FaultStore {
    entries: watch::Sender<Arc<[Arc<FaultEntry>]>>,
    last_id: AtomicU64,
}

/// One fault that is set.
#[derive(Debug)]
struct FaultEntry {
    id: u64,
    rule: Rule,
    /// Number of requests that have claimed the fault and not returned it.
    claimed: AtomicU32,
    /// Number of requests to which the fault was applied.
    hits: AtomicU32,
}

/// A fault as listed by the API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedFault {
    id: String,
    #[serde(flatten)]
    rule: Rule,
    hits: u32,
}

impl Default for FaultStore {
    fn default() -> Self {
        Self { entries: watch::Sender::new(Arc::from([])), last_id: AtomicU64::new(0) }
    }
}

impl FaultStore {
    /// True if no fault is set.
    pub fn is_empty(&self) -> bool {
        self.entries.borrow().is_empty()
    }

    /// Sets a fault. If several match a request, the oldest one applies.
    ///
    /// # Errors
    /// [`TooManyFaults`].
    pub fn set(&self, rule: Rule) -> Result<ListedFault, TooManyFaults> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let entry = Arc::new(FaultEntry { id, rule, claimed: AtomicU32::new(0), hits: AtomicU32::new(0) });
        let is_added = self.entries.send_if_modified(|entries| {
            let has_room = entries.len() < MAX_FAULTS;
            if has_room {
                *entries = entries.iter().chain([&entry]).cloned().collect();
            }
            has_room
        });
        if is_added { Ok(entry.to_listed_fault()) } else { Err(TooManyFaults) }
    }

    /// All faults, oldest first.
    pub fn list(&self) -> Vec<ListedFault> {
        self.entries.borrow().iter().map(|entry| entry.to_listed_fault()).collect()
    }

    /// Returns the fault with this ID, if it is set.
    pub fn get(&self, id: &str) -> Option<ListedFault> {
        self.list().into_iter().find(|fault| fault.id == id)
    }

    /// Removes a fault and returns its final state.
    pub fn remove(&self, id: &str) -> Option<ListedFault> {
        let mut removed = None;
        self.entries.send_if_modified(|entries| {
            let at = entries.iter().position(|entry| entry.id.to_string() == id);
            removed = at.map(|at| entries[at].clone());
            if at.is_some() {
                *entries = entries.iter().filter(|entry| entry.id.to_string() != id).cloned().collect();
            }
            at.is_some()
        });
        removed.map(|entry| entry.to_listed_fault())
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.entries.send_replace(Arc::from([]));
    }

    /// Subscribes to changes of the set of faults.
    pub fn changes(&self) -> watch::Receiver<impl Clone + Send + Sync + 'static + use<>> {
        self.entries.subscribe()
    }

    /// Claims the first fault that matches the request, is not used up, and is accepted by `can_apply`.
    pub fn claim(&self, request: &MatchedRequest, can_apply: impl Fn(&Fault) -> bool) -> Option<Claim> {
        let entries = Arc::clone(&self.entries.borrow());
        let mut matching =
            entries.iter().filter(|e| can_apply(&e.rule.fault) && e.rule.requests.matches(request));
        matching.find_map(FaultEntry::claim)
    }

    /// True if the claimed fault is still set.
    pub fn is_set(&self, claim: &Claim) -> bool {
        self.entries.borrow().iter().any(|entry| Arc::ptr_eq(entry, &claim.entry))
    }
}

impl FaultEntry {
    fn claim(self: &Arc<Self>) -> Option<Claim> {
        let max_claims = self.rule.times.unwrap_or(u32::MAX);
        let increment = |count: u32| (count < max_claims).then(|| count.saturating_add(1));
        let claimed = self.claimed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, increment);
        claimed.is_ok().then(|| Claim { entry: Arc::clone(self), is_applied: false })
    }

    fn to_listed_fault(&self) -> ListedFault {
        ListedFault {
            id: self.id.to_string(),
            rule: self.rule.clone(),
            hits: self.hits.load(Ordering::Relaxed),
        }
    }
}

/// A fault that is reserved for one request. If it is dropped before it was applied, the fault becomes available again.
#[derive(Debug)]
pub struct Claim {
    entry: Arc<FaultEntry>,
    is_applied: bool,
}

impl Claim {
    /// Returns the fault.
    pub fn fault(&self) -> &Fault {
        &self.entry.rule.fault
    }

    /// Records that the fault is applied.
    pub fn mark_applied(&mut self) {
        if !std::mem::replace(&mut self.is_applied, true) {
            self.entry.hits.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_applied {
            self.entry.claimed.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::RequestInfo;

    use super::*;

    fn matched_request() -> MatchedRequest {
        let info = RequestInfo::parse("GET", "/api/v1/namespaces/a/pods/b", "").unwrap();
        MatchedRequest { info: info.into(), ..MatchedRequest::default() }
    }

    fn rule(text: &str) -> Rule {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_fault_applies_as_often_as_set_and_unused_claims_are_returned() {
        let faults = FaultStore::default();
        faults.set(rule(r#"{"times": 1, "fault": {"dropRequest": {}}}"#)).unwrap();
        faults.set(rule(r#"{"fault": {"dropAnswer": {}}}"#)).unwrap();
        let first = faults.claim(&matched_request(), |_| true).unwrap();
        assert_eq!(first.fault(), &Fault::DropRequest {});
        assert_eq!(faults.claim(&matched_request(), |_| true).unwrap().fault(), &Fault::DropAnswer {});
        drop(first);
        faults.claim(&matched_request(), |_| true).unwrap().mark_applied();
        assert_eq!(faults.claim(&matched_request(), |_| true).unwrap().fault(), &Fault::DropAnswer {});
        let hits: Vec<u32> = faults.list().iter().map(|fault| fault.hits).collect();
        assert_eq!(hits, [1, 0]);
    }

    #[test]
    fn faults_are_removed_one_by_one_or_all_and_their_number_is_limited() {
        let faults = FaultStore::default();
        let drop_answer = || rule(r#"{"fault": {"dropAnswer": {}}}"#);
        for _ in 0..MAX_FAULTS {
            faults.set(drop_answer()).unwrap();
        }
        assert_eq!(faults.set(drop_answer()), Err(TooManyFaults));
        let claim = faults.claim(&matched_request(), |_| true).unwrap();
        assert!(faults.is_set(&claim));
        assert_eq!(faults.remove("1").unwrap().id, "1");
        assert!(!faults.is_set(&claim) && faults.remove("1").is_none());
        assert_eq!(faults.list().len(), MAX_FAULTS - 1);
        faults.clear();
        assert!(faults.is_empty() && faults.claim(&matched_request(), |_| true).is_none());
    }
}
