//! All control services of a store: the one in use, their revisions, and the highest revision that was shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use portico_proto::client::{ConnectError, Connection};
use portico_proto::convert::Version;
use tokio::sync::watch;

use super::in_use::InUse;
use super::member::{Member, State};
use super::metrics::Metrics;
use crate::transport::ControlTransport;

/// All control services of a store. Cheap to clone.
#[derive(Clone)]
pub struct ControlServices(Arc<Inner>);

struct Inner {
    members: Vec<Arc<Member>>,
    in_use: watch::Sender<InUse>,
    /// Time without a response after which a control service counts as lost.
    silence: Duration,
    /// Highest revision that was shown to a client, within the epoch in `store_epoch`.
    shown: AtomicI64,
    /// Epoch to which these revisions belong.
    life: Mutex<Life>,
    metrics: Mutex<Option<Metrics>>,
}

/// ID and epoch of the store, as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Life {
    store_id: Option<String>,
    epoch: Option<String>,
}

impl From<ControlTransport> for ControlServices {
    /// Wraps a single control service: in this process, or the only one in the settings.
    fn from(transport: ControlTransport) -> Self {
        Self::of(vec![("the control service".to_owned(), transport)], Duration::MAX, None)
    }
}

impl ControlServices {
    /// Creates a set of control services, named by their addresses, in order of preference if equally near. One that does not
    /// respond within `silence` counts as lost. `store_id` is the ID of their store; if `None`, that of the first one
    /// to respond.
    ///
    /// # Panics
    /// Panics if `transports` is empty.
    #[must_use]
    pub fn of(
        transports: Vec<(String, ControlTransport)>,
        silence: Duration,
        store_id: Option<String>,
    ) -> Self {
        assert!(!transports.is_empty(), "there is a control service");
        let members: Vec<_> = transports
            .into_iter()
            .enumerate()
            .map(|(index, (name, transport))| Arc::new(Member::new(index, name, transport)))
            .collect();
        let in_use = watch::channel(InUse::new(members.len())).0;
        Self(Arc::new(Inner {
            members,
            in_use,
            silence,
            shown: AtomicI64::new(0),
            life: Mutex::new(Life { store_id, epoch: None }),
            metrics: Mutex::new(None),
        }))
    }

    /// True if there is only one control service.
    #[must_use]
    pub fn is_one(&self) -> bool {
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
    pub(crate) fn subscribe(&self) -> watch::Receiver<InUse> {
        self.0.in_use.subscribe()
    }

    /// Describes the control service in use and the number of those that serve.
    pub(crate) fn described(&self) -> String {
        let now = self.0.in_use.borrow();
        let (current, all) = (&self.0.members[now.current()], self.0.members.len());
        let state = now.state(current.index).as_str();
        format!("{} in use ({state}), {} of {all} serve", current.name, now.serving())
    }

    /// Time without a response after which a control service counts as lost.
    pub(super) fn silence(&self) -> Duration {
        self.0.silence
    }

    /// Sets the metrics to update.
    pub(super) fn count_in(&self, metrics: Metrics) {
        *self.0.metrics.lock() = Some(metrics);
    }

    /// Changes the states or the control service in use. `change` returns true if it changed anything, and so does this function.
    pub(super) fn change(&self, change: impl FnOnce(&mut InUse) -> bool) -> bool {
        self.0.in_use.send_if_modified(change)
    }

    /// Updates metrics, if there are any.
    pub(super) fn count(&self, counted: impl FnOnce(&Metrics)) {
        if let Some(metrics) = &*self.0.metrics.lock() {
            counted(metrics);
        }
    }

    /// Checks the version of a control service's store. Returns false if it is another store: the control service must
    /// not be used.
    pub(crate) fn is_of_the_store(&self, member: &Member, version: &Version) -> bool {
        if self.is_one() {
            return true;
        }
        let mut life = self.0.life.lock();
        if *life.store_id.get_or_insert_with(|| version.store_id.clone()) != version.store_id {
            return false;
        }
        if life.epoch.as_ref() != Some(&version.epoch) {
            // The store was restored: revisions of the previous epoch do not count.
            if life.epoch.replace(version.epoch.clone()).is_some() {
                self.0.shown.store(0, Ordering::Release);
                self.0.members.iter().for_each(|member| member.forget_revision());
            }
        }
        drop(life);
        member.has_reached(version.revision);
        true
    }

    /// Records that a response of this control service showed this revision, or the revision of a write.
    pub(crate) fn has_shown(&self, member: &Member, revision: i64) {
        if !self.is_one() && revision > 0 {
            member.has_reached(revision);
            self.0.shown.fetch_max(revision, Ordering::AcqRel);
        }
    }

    /// Highest revision that was shown.
    pub(super) fn shown(&self) -> i64 {
        self.0.shown.load(Ordering::Acquire)
    }

    /// True if the control service can be used.
    pub(crate) fn serves(&self, member: &Member) -> bool {
        self.is_one() || self.0.in_use.borrow().state(member.index) == State::Serving
    }

    /// Waits until this control service is lost and another one is in use. Never resolves if there is only one.
    pub(crate) async fn lost(&self, member: &Member) {
        self.left_when(member, |state| state == State::Lost).await;
    }

    /// Waits until this control service no longer serves and another one is in use.
    pub(crate) async fn left(&self, member: &Member) {
        self.left_when(member, |state| state != State::Serving).await;
    }

    /// Waits until another control service is in use.
    pub(crate) async fn moved_from(&self, member: &Member) {
        self.left_when(member, |_| true).await;
    }

    async fn left_when(&self, member: &Member, is_over: impl Fn(State) -> bool) {
        if self.is_one() {
            return std::future::pending().await;
        }
        let mut in_use = self.subscribe();
        let moved = |now: &InUse| now.current() != member.index && is_over(now.state(member.index));
        if in_use.wait_for(moved).await.is_err() {
            // The sender lives as long as `self`.
            std::future::pending().await
        }
    }
}
