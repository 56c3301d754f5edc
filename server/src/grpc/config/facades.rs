//! Who is connected, at which version, what was refused, and what facades see of backends.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use portico_machinery::time::rfc3339;
use portico_proto::config as pb;
use portico_proto::convert::Version;
use portico_routes::{Ack, Evidence, ReachStage, Reached};

/// Backends that one facade may report on; more of them are not kept.
const OBSERVATIONS_MAX: usize = 20_000;

/// Gets what facades see of backends.
pub(crate) trait Hints: Send + Sync {
    /// A facade reaches the backend of an APIService, or does not.
    fn hint(&self, facade: &str, api_service: &str, reachable: bool, detail: &str);
    /// A facade has left; its words count no more.
    fn forget(&self, facade: &str);
}

/// The connected facades. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Facades {
    connected: Arc<Mutex<State>>,
    hints: Arc<dyn Hints>,
}

#[derive(Default)]
struct State {
    next: u64,
    facades: BTreeMap<u64, Facade>,
}

struct Facade {
    name: String,
    address: String,
    since: String,
    acknowledged: Version,
    refused: Vec<pb::Refusal>,
    observed: HashMap<String, Reached>,
}

/// One facade's place in the list; dropped with its stream.
pub(crate) struct Subscriber {
    facades: Facades,
    id: u64,
}

impl Facades {
    pub(crate) fn new(hints: Arc<dyn Hints>) -> Self {
        Self { connected: Arc::default(), hints }
    }

    /// Seats a facade.
    pub(crate) fn connect(&self, name: String, address: String) -> Subscriber {
        let mut state = self.connected.lock();
        let id = state.next;
        state.next += 1;
        let since = rfc3339(Timestamp::now());
        let (acknowledged, refused, observed) = (Version::default(), Vec::new(), HashMap::new());
        state.facades.insert(id, Facade { name, address, since, acknowledged, refused, observed });
        Subscriber { facades: self.clone(), id }
    }

    /// The list, with how far each is behind this revision.
    pub(crate) fn list(&self, revision: i64) -> Vec<pb::Facade> {
        let state = self.connected.lock();
        let one = |f: &Facade| pb::Facade {
            name: f.name.clone(),
            address: f.address.clone(),
            connected_since: f.since.clone(),
            acknowledged: Some(pb::Version::from(&f.acknowledged)),
            behind: (revision - f.acknowledged.revision).max(0),
            refused: f.refused.clone(),
        };
        state.facades.values().map(one).collect()
    }
}

impl Subscriber {
    fn with<T>(&self, change: impl FnOnce(&mut Facade) -> T) -> Option<T> {
        self.facades.connected.lock().facades.get_mut(&self.id).map(change)
    }

    /// The facade has said what it is called.
    pub(crate) fn rename(&self, name: String) {
        self.with(|f| f.name = name);
    }

    /// The facade has a version in force.
    pub(crate) fn acknowledge(&self, ack: pb::Ack) {
        self.with(|f| {
            f.acknowledged = ack.version.map(Version::from).unwrap_or_default();
            for refusal in &ack.refused {
                tracing::warn!(facade = f.name, key = refusal.key, reason = refusal.reason, "entry refused");
            }
            f.refused = ack.refused;
        });
    }

    /// The facade reports what it observes of backends.
    pub(crate) fn observe(&self, observations: pb::Observations) {
        for o in observations.observations {
            let name = self.with(|f| {
                let known = f.observed.contains_key(&o.api_service);
                if known || f.observed.len() < OBSERVATIONS_MAX {
                    f.observed.insert(o.api_service.clone(), reached(&f.name, &o));
                }
                f.name.clone()
            });
            if let Some(name) = name {
                self.facades.hints.hint(&name, &o.api_service, o.reachable, &o.detail);
            }
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let gone = self.facades.connected.lock().facades.remove(&self.id);
        if let Some(facade) = gone {
            self.facades.hints.forget(&facade.name);
        }
    }
}

fn reached(facade: &str, o: &pb::Observation) -> Reached {
    let failed_at = match o.stage.as_str() {
        _ if o.reachable => None,
        "tls" => Some(ReachStage::Tls),
        "http" => Some(ReachStage::Http),
        _ => Some(ReachStage::Dial),
    };
    let (seen_by, message) = (facade.to_owned(), o.detail.clone());
    Reached { seen_by, failed_at, message, since: rfc3339(Timestamp::now()) }
}

impl Evidence for Facades {
    fn reached(&self, name: &str) -> Vec<Reached> {
        self.connected.lock().facades.values().filter_map(|f| f.observed.get(name).cloned()).collect()
    }

    fn acks(&self, name: &str) -> Vec<Ack> {
        let refused = |f: &Facade| f.refused.iter().find(|r| r.key == name).map(|r| r.reason.clone());
        let ack = |f: &Facade| Ack {
            facade: f.name.clone(),
            revision: f.acknowledged.revision,
            refused: refused(f),
        };
        self.connected.lock().facades.values().map(ack).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Hinted(Mutex<Vec<String>>);

    impl Hints for Hinted {
        fn hint(&self, facade: &str, api_service: &str, reachable: bool, _: &str) {
            self.0.lock().push(format!("{facade} {api_service} {reachable}"));
        }

        fn forget(&self, facade: &str) {
            self.0.lock().push(format!("{facade} left"));
        }
    }

    #[test]
    fn a_facade_that_leaves_takes_its_words_back() {
        let hinted = Arc::new(Hinted::default());
        let facades = Facades::new(Arc::clone(&hinted) as _);
        let subscriber = facades.connect("one".into(), "here".into());
        let observation =
            pb::Observation { api_service: "v1.g".into(), stage: "tls".into(), ..pb::Observation::default() };
        subscriber.observe(pb::Observations { observations: vec![observation] });
        assert_eq!(facades.reached("v1.g")[0].failed_at, Some(ReachStage::Tls));
        assert_eq!(facades.list(7)[0].behind, 7);
        drop(subscriber);
        assert_eq!(*hinted.0.lock(), ["one v1.g false", "one left"]);
        assert!(facades.list(7).is_empty() && facades.acks("v1.g").is_empty());
    }
}
