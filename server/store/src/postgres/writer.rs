//! The writing task of this process, which also follows the log: validates queued requests as a group against the state of the
//! database, makes it durable and visible, and answers the callers.
//!
//! A group is validated against the cache, or against the database for uncached states, and written if the revision of
//! the database is still that of the cache. If another process has written, its commits are applied and the group is
//! validated again. For some groups after that, the row that orders all writers is locked first, so that faster processes
//! cannot starve this one.

use std::sync::Arc;
use std::time::Instant;

use sqlx::PgConnection;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::before;
use super::commit::{self, CheckedAt, Statement};
use super::failure::{self, logged};
use super::fatal::{Failure, Fatal};
use super::meta::random_id;
use super::open;
use super::pending::Pending;
use super::read::Reader;
use super::session::{self, in_time, run};
use super::settings::PostgresSettings;
use crate::basis::Basis;
use crate::group::Group;
use crate::publish::Publisher;
use crate::store::Identity;
use crate::submit::{CommitRequest, Results, answer};
use crate::subscription::selection::Batch;
use crate::txn::{Prepared, TxnError};

/// Number of groups that lock first after another process has written.
const WARY: u32 = 64;
/// Number of times that the log is followed before the lock is taken in any case: faster processes must not starve this one.
const FOLLOWS: u32 = 3;
/// Maximum attempts of a group that the database aborts in favor of other transactions.
const ATTEMPTS: u32 = 16;

pub(super) struct Writer {
    pub(super) settings: PostgresSettings,
    pub(super) connection: Option<PgConnection>,
    pub(super) statement: Statement,
    pub(super) requests: mpsc::Receiver<CommitRequest>,
    /// Notified when other processes may have written.
    pub(super) wake: Arc<Notify>,
    pub(super) publisher: Publisher,
    pub(super) reader: Arc<Reader>,
    pub(super) identity: Identity,
    /// Revision up to which everything is applied.
    pub(super) revision: i64,
    /// Commit ID of the revision.
    pub(super) mark: i64,
    /// Last applied row: revision and commit ID.
    pub(super) tail: Option<(i64, i64)>,
    /// Number of groups that still lock first.
    pub(super) wary: u32,
    /// Time of the next attempt to open unreadable objects.
    pub(super) heals_at: Option<Instant>,
    pub(super) group_operations: usize,
    /// Revision and commit ID for the record in the data folder.
    pub(super) head: watch::Sender<(i64, i64)>,
    pub(super) closing: CancellationToken,
}

/// Locking of the row that orders all writers, before a group is validated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Locks {
    No,
    /// Locks if few commits of other processes are to be read, because writers wait in the meantime.
    IfNearlyThere,
    Anyway,
}

/// Selects if a group includes requests that were queued in the meantime.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fills {
    No,
    Yes,
}

/// Result of one attempt to write a group.
enum Tried {
    /// The group is durable. It may have no events.
    Done { events: Batch, revision: i64, results: Vec<Results> },
    /// Other processes have written since the group was validated.
    Behind,
    /// The response was lost. The last revision and the commit ID determine whether the group was written.
    InDoubt { revision: i64, commit_id: i64, results: Vec<Results> },
}

impl Writer {
    /// Serves requests until the store closes, then the queued ones, then closes the connections.
    pub(super) async fn run(mut self) -> Result<(), Fatal> {
        let served = self.serve().await;
        self.record();
        if served.is_err() {
            // The published state differs from the database.
            self.publisher.hub.close();
        }
        if matches!(served, Err(Fatal::Lost)) {
            self.begin_epoch().await;
        }
        if let Some(connection) = self.connection.take() {
            session::close(connection, self.settings.patience()).await;
        }
        self.reader.pool.close().await;
        served
    }

    async fn serve(&mut self) -> Result<(), Fatal> {
        let mut polls = interval(self.settings.poll_interval);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (closing, wake) = (self.closing.clone(), self.wake.clone());
        let mut replaced = self.reader.seal.replaced();
        loop {
            if self.connection.is_none() && !self.reconnect().await? {
                return Ok(());
            }
            tokio::select! {
                biased;
                () = closing.cancelled(), if !self.requests.is_closed() => self.requests.close(),
                request = self.requests.recv() => match request {
                    Some(first) => self.commit(Pending::new(first), Fills::Yes).await?,
                    None => return Ok(()),
                },
                () = wake.notified() => self.follow().await?,
                _ = polls.tick() => {
                    self.follow().await?;
                    if self.heals_at.is_some_and(|at| Instant::now() >= at) {
                        self.heal().await?;
                    }
                }
                Ok(()) = replaced.changed() => self.heal().await?,
            }
            let waiting = i64::try_from(self.requests.len()).unwrap_or(i64::MAX);
            self.publisher.metrics.queue_depth.set(waiting);
            self.record();
        }
    }

    /// Passes the current revision to the record in the data folder.
    fn record(&self) {
        let reached = (self.revision, self.mark);
        self.head.send_if_modified(|head| std::mem::replace(head, reached) != reached);
    }

    /// Applies commits of other processes.
    async fn follow(&mut self) -> Result<(), Fatal> {
        let Some(mut connection) = self.connection.take() else { return Ok(()) };
        match self.follow_by(&mut connection).await {
            Ok(()) => {
                self.reader.pool.outage.answered();
                self.connection = Some(connection);
            }
            Err(failure) => self.failed(failure, connection).await.map(drop)?,
        }
        Ok(())
    }

    /// Commits a group.
    async fn commit(&mut self, mut pending: Pending, fills: Fills) -> Result<(), Fatal> {
        let started = Instant::now();
        for attempt in 0..ATTEMPTS {
            let Some(mut connection) = self.connection.take() else { break };
            let locks = match self.wary > 0 || self.settings.transaction_pooler {
                false => Locks::No,
                true if attempt < FOLLOWS => Locks::IfNearlyThere,
                true => Locks::Anyway,
            };
            let failure = match self.attempt(&mut connection, &mut pending, locks, fills).await {
                Ok(Tried::Done { events, revision, results }) => {
                    self.connection = Some(connection);
                    self.wary = self.wary.saturating_sub(1);
                    self.publisher.metrics.commit_seconds.observe(started.elapsed().as_secs_f64());
                    self.show(events, revision, pending.requests, results);
                    return Ok(());
                }
                Ok(Tried::Behind) => {
                    self.connection = Some(connection);
                    self.wary = WARY;
                    self.follow().await?;
                    continue;
                }
                Ok(Tried::InDoubt { revision, commit_id, results }) => {
                    drop(connection);
                    return self.settle(revision, commit_id, pending.requests, results).await;
                }
                Err(failure) => failure,
            };
            self.publisher.metrics.failures.inc();
            let is = |of: fn(&sqlx::Error) -> bool| matches!(&failure, Failure::Database(error) if of(error));
            let (is_retried, is_of_one) = (is(failure::is_retried), is(failure::is_unacceptable));
            let error = self.failed(failure, connection).await?;
            if is_of_one && pending.requests.len() > 1 {
                return self.commit_each(pending).await;
            }
            if !is_retried {
                refuse(pending, &error);
                return Ok(());
            }
        }
        let busy = TxnError::Unavailable("conflict with a concurrent write, or connection lost".to_owned());
        refuse(pending, &busy);
        Ok(())
    }

    /// Commits requests one by one, because the database rejects a value of one of them.
    async fn commit_each(&mut self, pending: Pending) -> Result<(), Fatal> {
        for alone in pending.each() {
            Box::pin(self.commit(alone, Fills::No)).await?;
        }
        Ok(())
    }

    /// Validates and writes a group once. After an error, nothing of it is written.
    async fn attempt(
        &mut self,
        connection: &mut PgConnection,
        pending: &mut Pending,
        locks: Locks,
        fills: Fills,
    ) -> Result<Tried, Failure> {
        if locks != Locks::No && !self.lock(connection, locks).await? {
            return Ok(Tried::Behind);
        }
        if fills == Fills::Yes {
            // Requests may have arrived while this process waited for the lock.
            pending.fill(&mut self.requests, self.group_operations);
        }
        let basis = self.basis(connection, &pending.txns).await?;
        let mut group = Group::new(&basis, self.revision);
        let of_request =
            |txns: &Vec<Prepared>| -> Results { txns.iter().map(|txn| group.check(txn.clone())).collect() };
        let results: Vec<Results> = pending.txns.iter().map(of_request).collect();
        let (revision, commit_id) = (group.revision, random_id());
        let (epoch, mark) = (self.identity.epoch, self.mark);
        let checked_at = CheckedAt { revision: self.revision, epoch, mark, commit_id };
        let is_empty = group.events.is_empty();
        let patience = self.settings.patience();
        let written = async {
            let moved = match is_empty {
                true => in_time(patience, self.is_current(connection)).await?,
                false => {
                    let written = commit::commit(connection, &self.statement, &checked_at, &group);
                    in_time(patience, written).await?
                }
            };
            if locks != Locks::No {
                in_time(patience, run(connection, self.settings.commit())).await?;
            }
            Ok(moved)
        };
        let written: Result<bool, sqlx::Error> = written.await;
        match written {
            Ok(true) => {
                if !is_empty {
                    (self.mark, self.tail) = (commit_id, Some((revision, commit_id)));
                }
                Ok(Tried::Done { events: group.events.into(), revision, results })
            }
            Ok(false) => Ok(Tried::Behind),
            Err(error) if failure::is_in_doubt(&error) && !is_empty => {
                tracing::error!(error = logged(&error), "connection lost during a commit, outcome unknown");
                Ok(Tried::InDoubt { revision, commit_id, results })
            }
            Err(error) => Err(Failure::Database(error)),
        }
    }

    /// Returns the prior states for the validation of a group.
    async fn basis(
        &self,
        connection: &mut PgConnection,
        txns: &[Vec<Prepared>],
    ) -> Result<Basis, sqlx::Error> {
        let (mut basis, unread) = Basis::new(&self.publisher.cache, txns.iter().flatten());
        if !unread.is_empty() {
            let decoder = self.reader.decoder();
            let read = before::read(connection, &decoder, unread);
            basis.read(in_time(self.settings.patience(), read).await?);
        }
        Ok(basis)
    }

    /// Returns true if no process has written since the state for the validation was applied.
    async fn is_current(&self, connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
        let meta = open::meta(connection).await?;
        Ok(meta.revision == self.revision && meta.mark == self.mark && meta.identity == self.identity)
    }

    /// Begins a transaction with exclusive write access, and applies earlier commits. A process that is cut off or stalls loses
    /// the lock. Returns false if many commits must be read first, which must not happen while other writers wait.
    async fn lock(&mut self, connection: &mut PgConnection, locks: Locks) -> Result<bool, Failure> {
        let patience = self.settings.patience();
        let meta = in_time(patience, open::lock_meta(connection, &self.settings)).await?;
        let was = self.revision;
        let is_there = match locks {
            Locks::IfNearlyThere => self.catch_up_if_little(connection, &meta).await?,
            Locks::No | Locks::Anyway => {
                self.catch_up(connection, &meta).await?;
                true
            }
        };
        if !is_there {
            in_time(patience, run(connection, self.settings.end())).await?;
        } else if self.revision != was {
            self.wary = WARY;
        }
        Ok(is_there)
    }

    /// Publishes a durable group: cache, revision, answers, subscriptions, in this order.
    fn show(&mut self, events: Batch, revision: i64, requests: Vec<CommitRequest>, results: Vec<Results>) {
        let refused = results.iter().flatten().filter(|result| result.is_err()).count();
        self.publisher.metrics.refused.inc_by(refused as u64);
        if events.is_empty() {
            return answer(requests, results);
        }
        self.revision = revision;
        self.publisher.show(&events, revision);
        answer(requests, results);
        self.publisher.dispatch(&events, revision);
    }

    /// Converts a failure for callers. Keeps the connection if it is usable.
    pub(super) async fn failed(
        &mut self,
        failure: Failure,
        mut connection: PgConnection,
    ) -> Result<TxnError, Fatal> {
        let is_lost = matches!(&failure, Failure::Database(error) if failure::is_lost(error));
        let reported = match failure {
            Failure::Fatal(fatal) => return Err(fatal),
            Failure::Standby => TxnError::Unavailable("the server is a standby".to_owned()),
            Failure::Sealed { reason, .. } => TxnError::Sealed(reason),
            Failure::Database(error) => {
                match is_lost {
                    true => self.reader.pool.outage.failed(&error),
                    false => {
                        tracing::error!(error = logged(&error), "database rejected a group of writes");
                    }
                }
                match failure::reason(&error) {
                    reason if failure::lacks_space(&error) => TxnError::Full(reason),
                    reason if failure::is_unacceptable(&error) => TxnError::TooLarge(reason),
                    reason => TxnError::Unavailable(reason),
                }
            }
        };
        // Without an open transaction, this only causes a notice.
        let rollback = in_time(self.settings.patience(), run(&mut connection, self.settings.end()));
        if !is_lost && rollback.await.is_ok() {
            self.connection = Some(connection);
        }
        Ok(reported)
    }
}

/// Rejects all Txns of a group.
pub(super) fn refuse(pending: Pending, error: &TxnError) {
    let all = pending.txns.iter();
    let results = all.map(|txns| txns.iter().map(|_| Err(error.clone())).collect()).collect();
    answer(pending.requests, results);
}
