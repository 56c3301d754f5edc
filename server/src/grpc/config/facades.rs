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
use portico_routes::{FacadeAck, MirrorReport};
use tokio::sync::watch;

use super::facade_reports::{FacadeReports, SentPosition};

/// Mirrors that one facade reports on.
///
/// Limit (Facades and control services): further ones are ignored.
const MIRRORS_MAX: usize = 20_000;

/// Receiver of the observations of facades.
pub(crate) trait ObservationSink: Send + Sync {
    /// A facade reaches the backend of an APIService, or fails at a stage.
    fn observe(&self, facade: &str, api_service: &str, failed_at: Option<ProbeStage>, detail: &str);
    /// A facade has disconnected; its observations no longer count.
    fn forget(&self, facade: &str);
}

/// Connected facades. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Facades {
    connected: Arc<Mutex<FacadesState>>,
    observation_sink: Arc<dyn ObservationSink>,
    draining: Signal,
    /// Number of connected facades that could use another control service.
    movable: watch::Sender<usize>,
    /// Notified when a facade connects, disconnects or reports.
    reports: watch::Sender<()>,
}

#[derive(Default)]
struct FacadesState {
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
    can_move: bool,
    reports: FacadeReports,
}

/// Registration of one facade; dropped with its stream.
pub(crate) struct FacadeRegistration {
    facades: Facades,
    id: u64,
}

impl Facades {
    pub(crate) fn new(observation_sink: Arc<dyn ObservationSink>) -> Self {
        let (draining, movable) = (Signal::new("Draining"), watch::channel(0).0);
        Self { connected: Arc::default(), observation_sink, draining, movable, reports: watch::channel(()).0 }
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
        let _infallible = movable.wait_for(|movable| *movable == 0).await;
    }

    /// Registers a facade.
    pub(crate) fn connect(&self, name: String, address: String) -> FacadeRegistration {
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
            can_move: false,
            reports: FacadeReports::default(),
        };
        state.facades.insert(id, facade);
        drop(state);
        self.reports.send_replace(());
        FacadeRegistration { facades: self.clone(), id }
    }

    /// Lists the facades, with the number of revisions by which each is behind.
    pub(crate) fn list(&self, revision: i64) -> Vec<pb::Facade> {
        let state = self.connected.lock();
        state.facades.values().map(|facade| facade.to_proto(revision)).collect()
    }

    /// Subscribes to connections, disconnections and reports of facades.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.reports.subscribe()
    }

    /// Returns the reports that a watcher has not received yet. `sent` records those that it has.
    pub(super) fn unsent_reports(
        &self,
        sent: &mut BTreeMap<u64, Option<SentPosition>>,
        revision: i64,
    ) -> Vec<pb::WatchFacadesResponse> {
        let state = self.connected.lock();
        let mut messages = Vec::new();
        sent.retain(|id, _| {
            let is_connected = state.facades.contains_key(id);
            if !is_connected {
                messages.push(pb::WatchFacadesResponse { id: *id, left: true, ..Default::default() });
            }
            is_connected
        });
        for (id, facade) in &state.facades {
            let before = sent.entry(*id).or_default();
            if let Some((position, message)) = facade.reports.unsent_report(*before) {
                *before = Some(position);
                let facade = Some(facade.to_proto(revision));
                messages.push(pb::WatchFacadesResponse { id: *id, facade, ..message });
            }
        }
        messages
    }
}

impl Facade {
    /// Describes the facade, with the number of revisions by which it is behind.
    fn to_proto(&self, revision: i64) -> pb::Facade {
        pb::Facade {
            name: self.name.clone(),
            address: self.address.clone(),
            connected_since: self.since.clone(),
            acknowledged: Some(pb::Version::from(&self.acknowledged)),
            behind: (revision - self.acknowledged.revision).max(0),
            refused: self.refused.clone(),
            build: self.build.clone(),
            has_others: self.can_move,
        }
    }

    /// Returns the name, with a note that facades which use another control service are not listed.
    fn display_name(&self) -> String {
        match self.can_move {
            true => format!("{} (selected from several control services)", self.name),
            false => self.name.clone(),
        }
    }
}

impl FacadeRegistration {
    fn update<T>(&self, change: impl FnOnce(&mut Facade) -> T) -> Option<T> {
        self.facades.connected.lock().facades.get_mut(&self.id).map(change)
    }

    /// Handles the introduction of the facade.
    pub(crate) fn introduce(&self, hello: pb::Hello) {
        let could_move = self.update(|f| {
            if !hello.name.is_empty() {
                f.name = hello.name;
            }
            f.build = hello.build;
            std::mem::replace(&mut f.can_move, hello.has_others)
        });
        if could_move == Some(false) && hello.has_others {
            self.facades.movable.send_modify(|movable| *movable += 1);
        }
    }

    /// Handles an acknowledgement: the facade uses a version.
    pub(crate) fn acknowledge(&self, ack: pb::Ack) {
        self.update(|f| {
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
        self.update(|f| f.reports.add(report));
        self.facades.reports.send_replace(());
    }

    /// Handles observations of backends.
    pub(crate) fn observe(&self, observations: pb::Observations) {
        let name = self.update(|f| {
            for o in observations.mirrors {
                if f.mirrored.contains_key(&o.api_service) || f.mirrored.len() < MIRRORS_MAX {
                    f.mirrored.insert(o.api_service.clone(), o);
                }
            }
            f.name.clone()
        });
        let Some(name) = name else { return };
        for o in observations.observations {
            self.facades.observation_sink.observe(&name, &o.api_service, failed_at(&o), &o.detail);
        }
    }
}

impl Drop for FacadeRegistration {
    fn drop(&mut self) {
        let removed = self.facades.connected.lock().facades.remove(&self.id);
        if let Some(facade) = removed {
            if facade.can_move {
                self.facades.movable.send_modify(|movable| *movable -= 1);
            }
            self.facades.observation_sink.forget(&facade.name);
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
    pub(crate) fn mirror_reports(&self, name: &str) -> Vec<MirrorReport> {
        let state = self.connected.lock();
        let describe = |f: &Facade| {
            let o = f.mirrored.get(name)?;
            let (facade, failure) = (f.name.clone(), o.failure.clone());
            Some(MirrorReport { facade, sent: o.sent, dropped: o.dropped, failed: o.failed, failure })
        };
        state.facades.values().filter_map(describe).collect()
    }

    /// Returns the version of each facade, and its refusal of the route of an APIService.
    pub(crate) fn acks(&self, name: &str) -> Vec<FacadeAck> {
        let refused = |f: &Facade| f.refused.iter().find(|r| r.key == name).map(|r| r.reason.clone());
        let ack = |f: &Facade| FacadeAck {
            facade: f.display_name(),
            revision: f.acknowledged.revision,
            refused: refused(f),
        };
        self.connected.lock().facades.values().map(ack).collect()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[derive(Default)]
    struct RecordedObservations(Mutex<Vec<String>>);

    impl ObservationSink for RecordedObservations {
        fn observe(&self, facade: &str, api_service: &str, failed_at: Option<ProbeStage>, _: &str) {
            self.0.lock().push(format!("{facade} {api_service} {failed_at:?}"));
        }

        fn forget(&self, facade: &str) {
            self.0.lock().push(format!("{facade} left"));
        }
    }

    #[tokio::test]
    async fn a_drain_waits_for_facades_that_can_move() {
        let facades = Facades::new(Arc::new(RecordedObservations::default()) as _);
        let hello =
            |name: &str, has_others| pb::Hello { name: name.into(), has_others, ..Default::default() };
        let (fixed, movable) =
            (facades.connect("a".into(), "".into()), facades.connect("b".into(), "".into()));
        fixed.introduce(hello("stays", false));
        movable.introduce(hello("moves", true));
        movable.introduce(hello("moves", true));
        assert!(facades.acks("v1.g").iter().any(|ack| ack.facade.starts_with("moves (selected")));
        let mut drained = std::pin::pin!(facades.drain());
        assert!(drained.as_mut().now_or_never().is_none());
        assert!(facades.draining().is_signaled());
        drop(movable);
        drained.await;
        drop(fixed);
    }

    #[test]
    fn observations_end_when_a_facade_disconnects() {
        let observations = Arc::new(RecordedObservations::default());
        let facades = Facades::new(Arc::clone(&observations) as _);
        let subscriber = facades.connect("one".into(), "here".into());
        let observation =
            pb::Observation { api_service: "v1.g".into(), stage: "tls".into(), ..pb::Observation::default() };
        subscriber
            .observe(pb::Observations { observations: vec![observation], ..pb::Observations::default() });
        assert_eq!(facades.list(7)[0].behind, 7);
        drop(subscriber);
        assert_eq!(*observations.0.lock(), ["one v1.g Some(Tls)", "one left"]);
        assert!(facades.list(7).is_empty() && facades.acks("v1.g").is_empty());
    }
}
