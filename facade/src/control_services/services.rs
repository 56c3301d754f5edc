//! All control services of a store: which one is in use, how far each has come, and what was shown of them.

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

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct ControlServices(Arc<Inner>);

struct Inner {
    members: Vec<Arc<Member>>,
    in_use: watch::Sender<InUse>,
    /// How long one may be silent.
    silence: Duration,
    /// The highest revision that was shown to anybody, of the epoch below.
    shown: AtomicI64,
    /// Whose revisions those are.
    life: Mutex<Life>,
    metrics: Mutex<Option<Metrics>>,
}

/// Which store it is, and since which restore of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Life {
    store_id: Option<String>,
    epoch: Option<String>,
}

impl From<ControlTransport> for ControlServices {
    /// The only one there is: in this process, or the only one that is known.
    fn from(transport: ControlTransport) -> Self {
        Self::of(vec![("the control service".to_owned(), transport)], Duration::MAX, None)
    }
}

impl ControlServices {
    /// Several, named by their addresses, in the order in which they are preferred where they are equally near. One that is
    /// silent for `silence` is left. `store_id` is that of the store they serve, where it is known; else the first one that
    /// is met is the one.
    ///
    /// # Panics
    /// Without any.
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

    /// Whether there is no choice.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.0.members.len() == 1
    }

    /// All, in order.
    pub(crate) fn members(&self) -> &[Arc<Member>] {
        &self.0.members
    }

    /// Calls from now on go over new connections, with other credentials: one for each control service, in order.
    ///
    /// # Errors
    /// [`ConnectError`]; what could not be replaced stays.
    pub fn reconnect(&self, connections: &[Connection]) -> Result<(), ConnectError> {
        for (member, connection) in self.0.members.iter().zip(connections) {
            member.transport.reconnect(connection)?;
        }
        Ok(())
    }

    /// The one in use.
    pub(crate) fn current(&self) -> Arc<Member> {
        match &self.0.members[..] {
            [only] => Arc::clone(only),
            members => Arc::clone(&members[self.0.in_use.borrow().current()]),
        }
    }

    /// Which one is in use, and how all are, as that changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<InUse> {
        self.0.in_use.subscribe()
    }

    /// Which one is in use, and how many serve, for people.
    pub(crate) fn described(&self) -> String {
        let now = self.0.in_use.borrow();
        let (current, all) = (&self.0.members[now.current()], self.0.members.len());
        let state = now.state(current.index).as_str();
        format!("{} in use ({state}), {} of {all} serve", current.name, now.serving())
    }

    /// How long one may be silent.
    pub(super) fn silence(&self) -> Duration {
        self.0.silence
    }

    /// Counts from now on.
    pub(super) fn count_in(&self, metrics: Metrics) {
        *self.0.metrics.lock() = Some(metrics);
    }

    /// Changes which one is in use, or how one is.
    /// `change` says whether that is news; so does the answer.
    pub(super) fn change(&self, change: impl FnOnce(&mut InUse) -> bool) -> bool {
        self.0.in_use.send_if_modified(change)
    }

    /// Counts something, where anything is counted.
    pub(super) fn count(&self, counted: impl FnOnce(&Metrics)) {
        if let Some(metrics) = &*self.0.metrics.lock() {
            counted(metrics);
        }
    }

    /// A control service has shown this version of its store. False when it is another store: it must not be used.
    pub(crate) fn is_of_the_store(&self, member: &Member, version: &Version) -> bool {
        if self.is_one() {
            return true;
        }
        let mut life = self.0.life.lock();
        if *life.store_id.get_or_insert_with(|| version.store_id.clone()) != version.store_id {
            return false;
        }
        if life.epoch.as_ref() != Some(&version.epoch) {
            // Restored: revisions of before mean nothing.
            if life.epoch.replace(version.epoch.clone()).is_some() {
                self.0.shown.store(0, Ordering::Release);
                self.0.members.iter().for_each(|member| member.forget_revision());
            }
        }
        drop(life);
        member.has_reached(version.revision);
        true
    }

    /// An answer of this control service shows the store at this revision, or something that was written there.
    pub(crate) fn has_shown(&self, member: &Member, revision: i64) {
        if !self.is_one() && revision > 0 {
            member.has_reached(revision);
            self.0.shown.fetch_max(revision, Ordering::AcqRel);
        }
    }

    /// The highest revision that was shown.
    pub(super) fn shown(&self) -> i64 {
        self.0.shown.load(Ordering::Acquire)
    }

    /// Whether it is to be used.
    pub(crate) fn serves(&self, member: &Member) -> bool {
        self.is_one() || self.0.in_use.borrow().state(member.index) == State::Serving
    }

    /// Waits until this control service is lost and another one is in use. For ever where there is no choice.
    pub(crate) async fn lost(&self, member: &Member) {
        self.left_when(member, |state| state == State::Lost).await;
    }

    /// Waits until this control service should not be used any longer and another one is in use.
    pub(crate) async fn left(&self, member: &Member) {
        self.left_when(member, |state| state != State::Serving).await;
    }

    /// Waits until another control service is in use, whatever has become of this one.
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
            // The sender is here.
            std::future::pending().await
        }
    }
}
