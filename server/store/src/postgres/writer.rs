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

use super::commit::{self, CommitPosition, CommitStatement};
use super::failure::{self, log_text};
use super::fatal::{FatalError, WriterFailure};
use super::meta::random_id;
use super::open;
use super::pending_group::PendingGroup;
use super::prior_states;
use super::reader::Reader;
use super::session::{self, run, with_timeout};
use super::settings::PostgresSettings;
use crate::group::Group;
use crate::prior_states::PriorStates;
use crate::publish::Publisher;
use crate::store::Identity;
use crate::submit::{CommitRequest, Results, send_results};
use crate::subscription::selection::Batch;
use crate::txn::{PreparedTxn, TxnError};

/// Number of groups that lock first after another process has written.
const PESSIMISTIC_ROUNDS: u32 = 64;
/// Number of times that the log is followed before the lock is taken in any case: faster processes must not starve this one.
const MAX_FOLLOW_ROUNDS: u32 = 3;
/// Maximum attempts of a group that the database aborts in favor of other transactions.
const MAX_ATTEMPTS: u32 = 16;

pub(super) struct Writer {
    pub(super) settings: PostgresSettings,
    pub(super) connection: Option<PgConnection>,
    pub(super) statement: CommitStatement,
    pub(super) requests: mpsc::Receiver<CommitRequest>,
    /// Notified when other processes may have written.
    pub(super) wake: Arc<Notify>,
    pub(super) publisher: Publisher,
    pub(super) reader: Arc<Reader>,
    pub(super) identity: Identity,
    /// Revision up to which everything is applied.
    pub(super) revision: i64,
    /// Commit ID of the revision.
    pub(super) head_commit_id: i64,
    /// Last applied row: revision and commit ID.
    pub(super) tail: Option<(i64, i64)>,
    /// Number of groups that still lock first.
    pub(super) pessimistic_rounds: u32,
    /// Time of the next attempt to open unreadable objects.
    pub(super) retry_unreadable_at: Option<Instant>,
    pub(super) group_operations: usize,
    /// Revision and commit ID for the record in the data folder.
    pub(super) head: watch::Sender<(i64, i64)>,
    pub(super) closing: CancellationToken,
}

/// Locking of the row that orders all writers, before a group is validated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LockMode {
    Optimistic,
    /// Locks if few commits of other processes are to be read, because writers wait in the meantime.
    IfShortLag,
    Always,
}

/// Selects if a group includes requests that were queued in the meantime.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FillMode {
    No,
    Yes,
}

/// Result of one attempt to write a group.
enum AttemptOutcome {
    /// The group is durable. It may have no events.
    Committed { events: Batch, revision: i64, results: Vec<Results> },
    /// Other processes have written since the group was validated.
    Behind,
    /// The response was lost. The last revision and the commit ID determine whether the group was written.
    InDoubt { revision: i64, commit_id: i64, results: Vec<Results> },
}

impl Writer {
    /// Serves requests until the store closes, then the queued ones, then closes the connections.
    pub(super) async fn run(mut self) -> Result<(), FatalError> {
        let result = self.serve().await;
        self.record_head();
        if result.is_err() {
            // The published state differs from the database.
            self.publisher.hub.close();
        }
        if matches!(result, Err(FatalError::CommitsLost)) {
            self.begin_epoch().await;
        }
        if let Some(connection) = self.connection.take() {
            session::close(connection, self.settings.step_timeout()).await;
        }
        self.reader.pool.close().await;
        result
    }

    async fn serve(&mut self) -> Result<(), FatalError> {
        let mut polls = interval(self.settings.poll_interval);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (closing, wake) = (self.closing.clone(), self.wake.clone());
        let mut replaced = self.reader.seal.rules_replaced();
        loop {
            if self.connection.is_none() && !self.reconnect().await? {
                return Ok(());
            }
            tokio::select! {
                biased;
                () = closing.cancelled(), if !self.requests.is_closed() => self.requests.close(),
                request = self.requests.recv() => match request {
                    Some(first) => self.commit(PendingGroup::new(first), FillMode::Yes).await?,
                    None => return Ok(()),
                },
                () = wake.notified() => self.follow().await?,
                _ = polls.tick() => {
                    self.follow().await?;
                    if self.retry_unreadable_at.is_some_and(|retry_at| Instant::now() >= retry_at) {
                        self.retry_unreadable().await?;
                    }
                }
                Ok(()) = replaced.changed() => self.retry_unreadable().await?,
            }
            let queue_depth = i64::try_from(self.requests.len()).unwrap_or(i64::MAX);
            self.publisher.metrics.queue_depth.set(queue_depth);
            self.record_head();
        }
    }

    /// Passes the current revision to the record in the data folder.
    fn record_head(&self) {
        let head = (self.revision, self.head_commit_id);
        self.head.send_if_modified(|recorded| std::mem::replace(recorded, head) != head);
    }

    /// Applies commits of other processes.
    async fn follow(&mut self) -> Result<(), FatalError> {
        let Some(mut connection) = self.connection.take() else { return Ok(()) };
        match self.follow_log(&mut connection).await {
            Ok(()) => {
                self.reader.pool.outage.record_success();
                self.connection = Some(connection);
            }
            Err(failure) => self.handle_failure(failure, connection).await.map(drop)?,
        }
        Ok(())
    }

    /// Commits a group.
    async fn commit(&mut self, mut pending: PendingGroup, fills: FillMode) -> Result<(), FatalError> {
        let started = Instant::now();
        for attempt in 0..MAX_ATTEMPTS {
            let Some(mut connection) = self.connection.take() else { break };
            let locks = match self.pessimistic_rounds > 0 || self.settings.transaction_pooler {
                false => LockMode::Optimistic,
                true if attempt < MAX_FOLLOW_ROUNDS => LockMode::IfShortLag,
                true => LockMode::Always,
            };
            let failure = match self.attempt(&mut connection, &mut pending, locks, fills).await {
                Ok(AttemptOutcome::Committed { events, revision, results }) => {
                    self.connection = Some(connection);
                    self.pessimistic_rounds = self.pessimistic_rounds.saturating_sub(1);
                    self.publisher.metrics.commit_seconds.observe(started.elapsed().as_secs_f64());
                    self.publish(events, revision, pending.requests, results);
                    return Ok(());
                }
                Ok(AttemptOutcome::Behind) => {
                    self.connection = Some(connection);
                    self.pessimistic_rounds = PESSIMISTIC_ROUNDS;
                    self.follow().await?;
                    continue;
                }
                Ok(AttemptOutcome::InDoubt { revision, commit_id, results }) => {
                    drop(connection);
                    return self.resolve_in_doubt(revision, commit_id, pending.requests, results).await;
                }
                Err(failure) => failure,
            };
            self.publisher.metrics.failures.inc();
            let is = |predicate: fn(&sqlx::Error) -> bool| matches!(&failure, WriterFailure::Database(error) if predicate(error));
            let (is_retried, is_of_one) = (is(failure::is_retryable), is(failure::is_invalid_value));
            let error = self.handle_failure(failure, connection).await?;
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
    async fn commit_each(&mut self, pending: PendingGroup) -> Result<(), FatalError> {
        for alone in pending.split() {
            Box::pin(self.commit(alone, FillMode::No)).await?;
        }
        Ok(())
    }

    /// Validates and writes a group once. After an error, nothing of it is written.
    async fn attempt(
        &mut self,
        connection: &mut PgConnection,
        pending: &mut PendingGroup,
        locks: LockMode,
        fills: FillMode,
    ) -> Result<AttemptOutcome, WriterFailure> {
        if locks != LockMode::Optimistic && !self.lock(connection, locks).await? {
            return Ok(AttemptOutcome::Behind);
        }
        if fills == FillMode::Yes {
            // Requests may have arrived while this process waited for the lock.
            pending.fill(&mut self.requests, self.group_operations);
        }
        let prior = self.prior_states(connection, &pending.txns).await?;
        let mut group = Group::new(&prior, self.revision);
        let validate_request = |txns: &Vec<PreparedTxn>| -> Results {
            txns.iter().map(|txn| group.validate(txn.clone())).collect()
        };
        let results: Vec<Results> = pending.txns.iter().map(validate_request).collect();
        let (revision, commit_id) = (group.revision, random_id());
        let (epoch, head_commit_id) = (self.identity.epoch, self.head_commit_id);
        let checked_at = CommitPosition { revision: self.revision, epoch, head_commit_id, commit_id };
        let is_empty = group.events.is_empty();
        let step_timeout = self.settings.step_timeout();
        let written = async {
            let moved = match is_empty {
                true => with_timeout(step_timeout, self.is_current(connection)).await?,
                false => {
                    let written = commit::commit(connection, &self.statement, &checked_at, &group);
                    with_timeout(step_timeout, written).await?
                }
            };
            if locks != LockMode::Optimistic {
                with_timeout(step_timeout, run(connection, self.settings.commit_sql())).await?;
            }
            Ok(moved)
        };
        let written: Result<bool, sqlx::Error> = written.await;
        match written {
            Ok(true) => {
                if !is_empty {
                    (self.head_commit_id, self.tail) = (commit_id, Some((revision, commit_id)));
                }
                Ok(AttemptOutcome::Committed { events: group.events.into(), revision, results })
            }
            Ok(false) => Ok(AttemptOutcome::Behind),
            Err(error) if failure::is_in_doubt(&error) && !is_empty => {
                tracing::error!(error = log_text(&error), "connection lost during a commit, outcome unknown");
                Ok(AttemptOutcome::InDoubt { revision, commit_id, results })
            }
            Err(error) => Err(WriterFailure::Database(error)),
        }
    }

    /// Returns the prior states for the validation of a group.
    async fn prior_states(
        &self,
        connection: &mut PgConnection,
        txns: &[Vec<PreparedTxn>],
    ) -> Result<PriorStates, sqlx::Error> {
        let (mut prior_states, unread) = PriorStates::new(&self.publisher.cache, txns.iter().flatten());
        if !unread.is_empty() {
            let decoder = self.reader.decoder();
            let read = prior_states::read_prior_states(connection, &decoder, unread);
            prior_states.set_read_states(with_timeout(self.settings.step_timeout(), read).await?);
        }
        Ok(prior_states)
    }

    /// Returns true if no process has written since the state for the validation was applied.
    async fn is_current(&self, connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
        let meta = open::meta(connection).await?;
        Ok(meta.revision == self.revision
            && meta.head_commit_id == self.head_commit_id
            && meta.identity == self.identity)
    }

    /// Begins a transaction with exclusive write access, and applies earlier commits. A process that is cut off or stalls loses
    /// the lock. Returns false if many commits must be read first, which must not happen while other writers wait.
    async fn lock(&mut self, connection: &mut PgConnection, locks: LockMode) -> Result<bool, WriterFailure> {
        let step_timeout = self.settings.step_timeout();
        let meta = with_timeout(step_timeout, open::lock_meta(connection, &self.settings)).await?;
        let previous_revision = self.revision;
        let has_caught_up = match locks {
            LockMode::IfShortLag => self.catch_up_if_short(connection, &meta).await?,
            LockMode::Optimistic | LockMode::Always => {
                self.catch_up(connection, &meta).await?;
                true
            }
        };
        if !has_caught_up {
            with_timeout(step_timeout, run(connection, self.settings.end_sql())).await?;
        } else if self.revision != previous_revision {
            self.pessimistic_rounds = PESSIMISTIC_ROUNDS;
        }
        Ok(has_caught_up)
    }

    /// Publishes a durable group: cache, revision, answers, subscriptions, in this order.
    fn publish(&mut self, events: Batch, revision: i64, requests: Vec<CommitRequest>, results: Vec<Results>) {
        let refused = results.iter().flatten().filter(|result| result.is_err()).count();
        self.publisher.metrics.refused.inc_by(refused as u64);
        if events.is_empty() {
            return send_results(requests, results);
        }
        self.revision = revision;
        self.publisher.publish(&events, revision);
        send_results(requests, results);
        self.publisher.fan_out(&events, revision);
    }

    /// Converts a failure for callers. Keeps the connection if it is usable.
    pub(super) async fn handle_failure(
        &mut self,
        failure: WriterFailure,
        mut connection: PgConnection,
    ) -> Result<TxnError, FatalError> {
        let is_lost =
            matches!(&failure, WriterFailure::Database(error) if failure::is_connection_lost(error));
        let reported = match failure {
            WriterFailure::Fatal(fatal) => return Err(fatal),
            WriterFailure::Standby => TxnError::Unavailable("the server is a standby".to_owned()),
            WriterFailure::Sealed { reason, .. } => TxnError::Sealed(reason),
            WriterFailure::Database(error) => {
                match is_lost {
                    true => self.reader.pool.outage.record_failure(&error),
                    false => {
                        tracing::error!(error = log_text(&error), "database rejected a group of writes");
                    }
                }
                match failure::reason(&error) {
                    reason if failure::lacks_space(&error) => TxnError::Full(reason),
                    reason if failure::is_invalid_value(&error) => TxnError::TooLarge(reason),
                    reason => TxnError::Unavailable(reason),
                }
            }
        };
        // Without an open transaction, this only causes a notice.
        let rollback =
            with_timeout(self.settings.step_timeout(), run(&mut connection, self.settings.end_sql()));
        if !is_lost && rollback.await.is_ok() {
            self.connection = Some(connection);
        }
        Ok(reported)
    }
}

/// Rejects all Txns of a group.
pub(super) fn refuse(pending: PendingGroup, error: &TxnError) {
    let txns_by_request = pending.txns.iter();
    let results = txns_by_request.map(|txns| txns.iter().map(|_| Err(error.clone())).collect()).collect();
    send_results(pending.requests, results);
}
