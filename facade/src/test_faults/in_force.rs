//! The faults that are set: they are listed, removed, and claimed by the requests to which they apply.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use serde::Serialize;
use tokio::sync::watch;

use super::fault::{Fault, Rule};
use super::requests::Asked;

/// Test faults that are set, including used ones.
///
/// Limit (Serving): the request to set one fails.
pub const MAX_FAULTS: usize = 100;

/// Error: the maximum number of faults is set.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the limit of {MAX_FAULTS} faults is reached: remove a fault first")]
pub struct TooMany;

/// The faults that are set.
#[derive(Debug)]
pub struct FaultsInForce {
    entries: watch::Sender<Arc<[Arc<Entry>]>>,
    last_id: AtomicU64,
}

/// One fault that is set.
#[derive(Debug)]
struct Entry {
    id: u64,
    rule: Rule,
    /// Number of requests that have claimed the fault and not returned it.
    taken: AtomicU32,
    /// Number of requests to which the fault was applied.
    hits: AtomicU32,
}

/// A fault as listed by the API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    id: String,
    #[serde(flatten)]
    rule: Rule,
    hits: u32,
}

impl Default for FaultsInForce {
    fn default() -> Self {
        Self { entries: watch::Sender::new(Arc::from([])), last_id: AtomicU64::new(0) }
    }
}

impl FaultsInForce {
    /// True if no fault is set.
    pub fn is_empty(&self) -> bool {
        self.entries.borrow().is_empty()
    }

    /// Sets a fault. If several match a request, the oldest one applies.
    ///
    /// # Errors
    /// [`TooManyFaults`].
    pub fn set(&self, rule: Rule) -> Result<Listed, TooMany> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let entry = Arc::new(Entry { id, rule, taken: AtomicU32::new(0), hits: AtomicU32::new(0) });
        let set = self.entries.send_if_modified(|entries| {
            let has_room = entries.len() < MAX_FAULTS;
            if has_room {
                *entries = entries.iter().chain([&entry]).cloned().collect();
            }
            has_room
        });
        if set { Ok(entry.listed()) } else { Err(TooMany) }
    }

    /// All faults, oldest first.
    pub fn list(&self) -> Vec<Listed> {
        self.entries.borrow().iter().map(|entry| entry.listed()).collect()
    }

    /// Returns the fault with this ID, if it is set.
    pub fn get(&self, id: &str) -> Option<Listed> {
        self.list().into_iter().find(|listed| listed.id == id)
    }

    /// Removes a fault and returns its final state.
    pub fn remove(&self, id: &str) -> Option<Listed> {
        let mut removed = None;
        self.entries.send_if_modified(|entries| {
            let at = entries.iter().position(|entry| entry.id.to_string() == id);
            removed = at.map(|at| entries[at].clone());
            if at.is_some() {
                *entries = entries.iter().filter(|entry| entry.id.to_string() != id).cloned().collect();
            }
            at.is_some()
        });
        removed.map(|entry| entry.listed())
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
    pub fn claim(&self, asked: &Asked, happens: impl Fn(&Fault) -> bool) -> Option<Claim> {
        let entries = Arc::clone(&self.entries.borrow());
        let mut meant = entries.iter().filter(|e| happens(&e.rule.fault) && e.rule.requests.takes(asked));
        meant.find_map(Entry::claim)
    }

    /// True if the claimed fault is still set.
    pub fn has(&self, claim: &Claim) -> bool {
        self.entries.borrow().iter().any(|entry| Arc::ptr_eq(entry, &claim.entry))
    }
}

impl Entry {
    fn claim(self: &Arc<Self>) -> Option<Claim> {
        let most = self.rule.times.unwrap_or(u32::MAX);
        let one_more = |taken: u32| (taken < most).then(|| taken.saturating_add(1));
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.is_ok().then(|| Claim { entry: Arc::clone(self), happened: false })
    }

    fn listed(&self) -> Listed {
        Listed { id: self.id.to_string(), rule: self.rule.clone(), hits: self.hits.load(Ordering::Relaxed) }
    }
}

/// A fault that is reserved for one request. If it is dropped before it was applied, the fault becomes available again.
#[derive(Debug)]
pub struct Claim {
    entry: Arc<Entry>,
    happened: bool,
}

impl Claim {
    /// Returns the fault.
    pub fn fault(&self) -> &Fault {
        &self.entry.rule.fault
    }

    /// Records that the fault is applied.
    pub fn hit(&mut self) {
        if !std::mem::replace(&mut self.happened, true) {
            self.entry.hits.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.happened {
            self.entry.taken.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::RequestInfo;

    use super::*;

    fn asked() -> Asked {
        let info = RequestInfo::parse("GET", "/api/v1/namespaces/a/pods/b", "").unwrap();
        Asked { info: info.into(), ..Asked::default() }
    }

    fn rule(text: &str) -> Rule {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_fault_happens_as_often_as_it_was_asked_for_and_a_claim_that_was_not_used_is_given_back() {
        let faults = FaultsInForce::default();
        faults.set(rule(r#"{"times": 1, "fault": {"dropRequest": {}}}"#)).unwrap();
        faults.set(rule(r#"{"fault": {"dropAnswer": {}}}"#)).unwrap();
        let first = faults.claim(&asked(), |_| true).unwrap();
        assert_eq!(first.fault(), &Fault::DropRequest {});
        assert_eq!(faults.claim(&asked(), |_| true).unwrap().fault(), &Fault::DropAnswer {});
        drop(first);
        faults.claim(&asked(), |_| true).unwrap().hit();
        assert_eq!(faults.claim(&asked(), |_| true).unwrap().fault(), &Fault::DropAnswer {});
        let hits: Vec<u32> = faults.list().iter().map(|listed| listed.hits).collect();
        assert_eq!(hits, [1, 0]);
    }

    #[test]
    fn faults_are_removed_one_by_one_or_all_and_there_is_no_room_for_very_many() {
        let faults = FaultsInForce::default();
        let one = || rule(r#"{"fault": {"dropAnswer": {}}}"#);
        for _ in 0..MAX_FAULTS {
            faults.set(one()).unwrap();
        }
        assert_eq!(faults.set(one()), Err(TooMany));
        let claim = faults.claim(&asked(), |_| true).unwrap();
        assert!(faults.has(&claim));
        assert_eq!(faults.remove("1").unwrap().id, "1");
        assert!(!faults.has(&claim) && faults.remove("1").is_none());
        assert_eq!(faults.list().len(), MAX_FAULTS - 1);
        faults.clear();
        assert!(faults.is_empty() && faults.claim(&asked(), |_| true).is_none());
    }
}
