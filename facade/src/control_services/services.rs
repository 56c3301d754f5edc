//! All control services of a store: the one in use, their revisions, and the highest revision that was shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use portico_proto::client::{ConnectError, Connection};
use portico_proto::convert::Version;
use tokio::sync::watch;

use super::member::{Member, MemberState};
use super::member_states::MemberStates;
use super::metrics::Metrics;
use crate::transport::ControlTransport;

/// All control services of a store. Cheap to clone.
#[derive(Clone)]
pub struct ControlServices(Arc<Inner>);

struct Inner {
    members: Vec<Arc<Member>>,
    in_use: watch::Sender<MemberStates>,
    /// Time without a response after which a control service counts as lost.
    max_silence: Duration,
    /// Highest revision that was shown to a client, within the epoch in `store_epoch`.
    max_shown_revision: AtomicI64,
    /// Epoch to which these revisions belong.
    store_epoch: Mutex<StoreEpoch>,
    metrics: Mutex<Option<Metrics>>,
}

/// ID and epoch of the store, as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StoreEpoch {
    store_id: Option<String>,
    epoch: Option<String>,
}

impl From<ControlTransport> for ControlServices {
    /// Wraps a single control service: in this process, or the only one in the settings.
    fn from(transport: ControlTransport) -> Self {
        Self::new(vec![("the control service".to_owned(), transport)], Duration::MAX, None)
    }
}

impl ControlServices {
    /// Creates a set of control services, named by their addresses, in order of preference if equally near. One that does not
    /// respond within `max_silence` counts as lost. `store_id` is the ID of their store; if `None`, that of the first one
    /// to respond.
    ///
    /// # Panics
    /// Panics if `transports` is empty.
    #[must_use]
    pub fn new(
        transports: Vec<(String, ControlTransport)>,
        max_silence: Duration,
        store_id: Option<String>,
    ) -> Self {
        assert!(!transports.is_empty(), "at least one control service is required");
        let members: Vec<_> = transports
            .into_iter()
            .enumerate()
            .map(|(index, (name, transport))| Arc::new(Member::new(index, name, transport)))
            .collect();
        let in_use = watch::channel(MemberStates::new(members.len())).0;
        Self(Arc::new(Inner {
            members,
            in_use,
            max_silence,
            max_shown_revision: AtomicI64::new(0),
            store_epoch: Mutex::new(StoreEpoch { store_id, epoch: None }),
            metrics: Mutex::new(None),
        }))
    }

    /// True if there is only one control service.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.0.members.len() == 1
    }

    /// All control services, in order.
    pub(crate) fn members(&self) -> &[Arc<Member>] {
        &self.0.members
    }

    /// Replaces the connections for further calls, with other credentials: one connection for each control service, in order.
    ///
    /// # Errors
    /// [`ConnectError`]; connections that could not be replaced stay in use.
    pub fn reconnect(&self, connections: &[Connection]) -> Result<(), ConnectError> {
        for (member, connection) in self.0.members.iter().zip(connections) {
            member.transport.reconnect(connection)?;
        }
        Ok(())
    }

    /// Control service in use.
    pub(crate) fn current(&self) -> Arc<Member> {
        match &self.0.members[..] {
            [only] => Arc::clone(only),
            members => Arc::clone(&members[self.0.in_use.borrow().current()]),
        }
    }

    /// Subscribes to changes of the states and of the control service in use.
    pub(crate) fn subscribe(&self) -> watch::Receiver<MemberStates> {
        self.0.in_use.subscribe()
    }

    /// Describes the control service in use and the number of those that serve.
    pub(crate) fn describe(&self) -> String {
        let states = self.0.in_use.borrow();
        let (current, all) = (&self.0.members[states.current()], self.0.members.len());
        let state = states.state(current.index).as_str();
        format!("{} in use ({state}), {} of {all} serve", current.name, states.serving_count())
    }

    /// Time without a response after which a control service counts as lost.
    pub(super) fn max_silence(&self) -> Duration {
        self.0.max_silence
    }

    /// Sets the metrics to update.
    pub(super) fn set_metrics(&self, metrics: Metrics) {
        *self.0.metrics.lock() = Some(metrics);
    }

    /// Changes the states or the control service in use. `change` returns true if it changed anything, and so does this function.
    pub(super) fn change_states(&self, change: impl FnOnce(&mut MemberStates) -> bool) -> bool {
        self.0.in_use.send_if_modified(change)
    }

    /// Updates metrics, if there are any.
    pub(super) fn count(&self, update: impl FnOnce(&Metrics)) {
        if let Some(metrics) = &*self.0.metrics.lock() {
            update(metrics);
        }
    }

    /// Checks the version of a control service's store. Returns false if it is another store: the control service must
    /// not be used.
    pub(crate) fn check_store(&self, member: &Member, version: &Version) -> bool {
        if self.is_single() {
            return true;
        }
        let mut store_epoch = self.0.store_epoch.lock();
        if *store_epoch.store_id.get_or_insert_with(|| version.store_id.clone()) != version.store_id {
            return false;
        }
        if store_epoch.epoch.as_ref() != Some(&version.epoch) {
            // The store was restored: revisions of the previous epoch do not count.
            if store_epoch.epoch.replace(version.epoch.clone()).is_some() {
                self.0.max_shown_revision.store(0, Ordering::Release);
                self.0.members.iter().for_each(|member| member.reset_revision());
            }
        }
        drop(store_epoch);
        member.record_revision(version.revision);
        true
    }

    /// Records that a response of this control service showed this revision, or the revision of a write.
    pub(crate) fn record_shown(&self, member: &Member, revision: i64) {
        if !self.is_single() && revision > 0 {
            member.record_revision(revision);
            self.0.max_shown_revision.fetch_max(revision, Ordering::AcqRel);
        }
    }

    /// Highest revision that was shown.
    pub(super) fn max_shown_revision(&self) -> i64 {
        self.0.max_shown_revision.load(Ordering::Acquire)
    }

    /// True if the control service can be used.
    pub(crate) fn is_serving(&self, member: &Member) -> bool {
        self.is_single() || self.0.in_use.borrow().state(member.index) == MemberState::Serving
    }

    /// Waits until this control service is lost and another one is in use. Never resolves if there is only one.
    pub(crate) async fn until_lost(&self, member: &Member) {
        self.until_switched_when(member, |state| state == MemberState::Lost).await;
    }

    /// Waits until this control service no longer serves and another one is in use.
    pub(crate) async fn until_not_serving(&self, member: &Member) {
        self.until_switched_when(member, |state| state != MemberState::Serving).await;
    }

    /// Waits until another control service is in use.
    pub(crate) async fn until_switched(&self, member: &Member) {
        self.until_switched_when(member, |_| true).await;
    }

    async fn until_switched_when(&self, member: &Member, is_reason: impl Fn(MemberState) -> bool) {
        if self.is_single() {
            return std::future::pending().await;
        }
        let mut states = self.subscribe();
        let switched = |current_states: &MemberStates| {
            current_states.current() != member.index && is_reason(current_states.state(member.index))
        };
        if states.wait_for(switched).await.is_err() {
            // The sender lives as long as `self`.
            std::future::pending().await
        }
    }
}
