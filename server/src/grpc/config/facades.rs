//! Connected facades: their versions, refused entries, and observations of backends.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use portico_controllers::availability::ProbeStage;
use portico_kit::lifecycle::Signal;
use portico_machinery::time::rfc3339;
use portico_proto::config as pb;
use portico_proto::convert::Version;
use portico_routes::{Ack, Mirrored};
use tokio::sync::watch;

use super::reported::{Reported, Sent};

/// Mirrors that one facade reports on.
///
/// Limit (Facades and control services): further ones are ignored.
const MIRRORS_MAX: usize = 20_000;

/// Receiver of the observations of facades.
pub(crate) trait Hints: Send + Sync {
    /// A facade reaches the backend of an APIService, or fails at a stage.
    fn hint(&self, facade: &str, api_service: &str, failed_at: Option<ProbeStage>, detail: &str);
    /// A facade has disconnected; its observations no longer count.
    fn forget(&self, facade: &str);
}

/// Connected facades. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Facades {
    connected: Arc<Mutex<State>>,
    hints: Arc<dyn Hints>,
    draining: Signal,
    /// Number of connected facades that could use another control service.
    movable: watch::Sender<usize>,
    /// Notified when a facade connects, disconnects or reports.
    reports: watch::Sender<()>,
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
    mirrored: HashMap<String, pb::MirrorObservation>,
    build: String,
    has_others: bool,
    reported: Reported,
}

/// Registration of one facade; dropped with its stream.
pub(crate) struct Subscriber {
    facades: Facades,
    id: u64,
}

impl Facades {
    pub(crate) fn new(hints: Arc<dyn Hints>) -> Self {
        let (draining, movable) = (Signal::new("Draining"), watch::channel(0).0);
        Self { connected: Arc::default(), hints, draining, movable, reports: watch::channel(()).0 }
    }

    /// Signaled when facades should move to other control services.
    pub(crate) fn draining(&self) -> &Signal {
        &self.draining
    }

    /// Requests facades to move, and waits until all that can have done so.
    pub(crate) async fn drain(&self) {
        self.draining.signal();
        let mut movable = self.movable.subscribe();
        // `self` owns the sender, so the wait cannot fail.
        let _never_gone = movable.wait_for(|movable| *movable == 0).await;
    }

    /// Registers a facade.
    pub(crate) fn connect(&self, name: String, address: String) -> Subscriber {
        let mut state = self.connected.lock();
        let id = state.next;
        state.next += 1;
        let since = rfc3339(Timestamp::now());
        let facade = Facade {
            name,
            address,
            since,
            acknowledged: Version::default(),
            refused: Vec::new(),
            mirrored: HashMap::new(),
            build: String::new(),
            has_others: false,
            reported: Reported::default(),
        };
        state.facades.insert(id, facade);
        drop(state);
        self.reports.send_replace(());
        Subscriber { facades: self.clone(), id }
    }

    /// Lists the facades, with the number of revisions by which each is behind.
    pub(crate) fn list(&self, revision: i64) -> Vec<pb::Facade> {
        let state = self.connected.lock();
        state.facades.values().map(|facade| facade.described(revision)).collect()
    }

    /// Subscribes to connections, disconnections and reports of facades.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.reports.subscribe()
    }

    /// Returns the reports that a watcher has not received yet. `sent` records those that it has.
    pub(super) fn news(
        &self,
        sent: &mut BTreeMap<u64, Option<Sent>>,
        revision: i64,
    ) -> Vec<pb::WatchFacadesResponse> {
        let state = self.connected.lock();
        let mut news = Vec::new();
        sent.retain(|id, _| {
            let is_here = state.facades.contains_key(id);
            if !is_here {
                news.push(pb::WatchFacadesResponse { id: *id, left: true, ..Default::default() });
            }
            is_here
        });
        for (id, facade) in &state.facades {
            let before = sent.entry(*id).or_default();
            if let Some((now, message)) = facade.reported.news(*before) {
                *before = Some(now);
                let facade = Some(facade.described(revision));
                news.push(pb::WatchFacadesResponse { id: *id, facade, ..message });
            }
        }
        news
    }
}

impl Facade {
    /// Describes the facade, with the number of revisions by which it is behind.
    fn described(&self, revision: i64) -> pb::Facade {
        pb::Facade {
            name: self.name.clone(),
            address: self.address.clone(),
            connected_since: self.since.clone(),
            acknowledged: Some(pb::Version::from(&self.acknowledged)),
            behind: (revision - self.acknowledged.revision).max(0),
            refused: self.refused.clone(),
            build: self.build.clone(),
            has_others: self.has_others,
        }
    }

    /// Returns the name, with a note that facades which use another control service are not listed.
    fn shown(&self) -> String {
        match self.has_others {
            true => format!("{} (selected from several control services)", self.name),
            false => self.name.clone(),
        }
    }
}

impl Subscriber {
    fn with<T>(&self, change: impl FnOnce(&mut Facade) -> T) -> Option<T> {
        self.facades.connected.lock().facades.get_mut(&self.id).map(change)
    }

    /// Handles the introduction of the facade.
    pub(crate) fn introduce(&self, hello: pb::Hello) {
        let could_move = self.with(|f| {
            if !hello.name.is_empty() {
                f.name = hello.name;
            }
            f.build = hello.build;
            std::mem::replace(&mut f.has_others, hello.has_others)
        });
        if could_move == Some(false) && hello.has_others {
            self.facades.movable.send_modify(|movable| *movable += 1);
        }
    }

    /// Handles an acknowledgement: the facade uses a version.
    pub(crate) fn acknowledge(&self, ack: pb::Ack) {
        self.with(|f| {
            f.acknowledged = ack.version.map(Version::from).unwrap_or_default();
            for refusal in &ack.refused {
                tracing::warn!(
                    facade = f.name,
                    key = refusal.key,
                    error = refusal.reason,
                    "facade refused an entry"
                );
            }
            f.refused = ack.refused;
        });
    }

    /// Handles a report about the state of the facade.
    pub(crate) fn report(&self, report: pb::Report) {
        self.with(|f| f.reported.add(report));
        self.facades.reports.send_replace(());
    }

    /// Handles observations of backends.
    pub(crate) fn observe(&self, observations: pb::Observations) {
        let name = self.with(|f| {
            for o in observations.mirrors {
                if f.mirrored.contains_key(&o.api_service) || f.mirrored.len() < MIRRORS_MAX {
                    f.mirrored.insert(o.api_service.clone(), o);
                }
            }
            f.name.clone()
        });
        let Some(name) = name else { return };
        for o in observations.observations {
            self.facades.hints.hint(&name, &o.api_service, failed_at(&o), &o.detail);
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let gone = self.facades.connected.lock().facades.remove(&self.id);
        if let Some(facade) = gone {
            if facade.has_others {
                self.facades.movable.send_modify(|movable| *movable -= 1);
            }
            self.facades.hints.forget(&facade.name);
            self.facades.reports.send_replace(());
        }
    }
}

fn failed_at(o: &pb::Observation) -> Option<ProbeStage> {
    match o.stage.as_str() {
        _ if o.reachable => None,
        "tls" => Some(ProbeStage::Tls),
        "http" => Some(ProbeStage::Http),
        _ => Some(ProbeStage::Dial),
    }
}

/// Facts for Explain.
impl Facades {
    /// Returns the requests that each facade has sent to the mirror of an APIService's backend.
    pub(crate) fn mirrored(&self, name: &str) -> Vec<Mirrored> {
        let state = self.connected.lock();
        let one = |f: &Facade| {
            let o = f.mirrored.get(name)?;
            let (facade, failure) = (f.name.clone(), o.failure.clone());
            Some(Mirrored { facade, sent: o.sent, dropped: o.dropped, failed: o.failed, failure })
        };
        state.facades.values().filter_map(one).collect()
    }

    /// Returns the version of each facade, and its refusal of the route of an APIService.
    pub(crate) fn acks(&self, name: &str) -> Vec<Ack> {
        let refused = |f: &Facade| f.refused.iter().find(|r| r.key == name).map(|r| r.reason.clone());
        let ack =
            |f: &Facade| Ack { facade: f.shown(), revision: f.acknowledged.revision, refused: refused(f) };
        self.connected.lock().facades.values().map(ack).collect()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[derive(Default)]
    struct Hinted(Mutex<Vec<String>>);

    impl Hints for Hinted {
        fn hint(&self, facade: &str, api_service: &str, failed_at: Option<ProbeStage>, _: &str) {
            self.0.lock().push(format!("{facade} {api_service} {failed_at:?}"));
        }

        fn forget(&self, facade: &str) {
            self.0.lock().push(format!("{facade} left"));
        }
    }

    #[tokio::test]
    async fn a_drain_waits_for_facades_that_can_be_elsewhere() {
        let facades = Facades::new(Arc::new(Hinted::default()) as _);
        let hello =
            |name: &str, has_others| pb::Hello { name: name.into(), has_others, ..Default::default() };
        let (stays, moves) = (facades.connect("a".into(), "".into()), facades.connect("b".into(), "".into()));
        stays.introduce(hello("stays", false));
        moves.introduce(hello("moves", true));
        moves.introduce(hello("moves", true));
        assert!(facades.acks("v1.g").iter().any(|ack| ack.facade.starts_with("moves (selected")));
        let mut drained = std::pin::pin!(facades.drain());
        assert!(drained.as_mut().now_or_never().is_none());
        assert!(facades.draining().is_signaled());
        drop(moves);
        drained.await;
        drop(stays);
    }

    #[test]
    fn a_facade_that_leaves_takes_its_words_back() {
        let hinted = Arc::new(Hinted::default());
        let facades = Facades::new(Arc::clone(&hinted) as _);
        let subscriber = facades.connect("one".into(), "here".into());
        let observation =
            pb::Observation { api_service: "v1.g".into(), stage: "tls".into(), ..pb::Observation::default() };
        subscriber
            .observe(pb::Observations { observations: vec![observation], ..pb::Observations::default() });
        assert_eq!(facades.list(7)[0].behind, 7);
        drop(subscriber);
        assert_eq!(*hinted.0.lock(), ["one v1.g Some(Tls)", "one left"]);
        assert!(facades.list(7).is_empty() && facades.acks("v1.g").is_empty());
    }
}
