//! The writing task: takes queued requests as a group, validates it, makes it durable and visible, and answers the callers.
//!
//! The queue holds [`crate::Settings::write_queue`] requests; further callers wait.

use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use sqlx::SqliteConnection;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::lock::FileLock;
use super::maintenance::{Maintenance, REWRITE_PAGE, Step, compact, restart_log};
use super::mark::{MARK_REVISIONS, Mark};
use super::persistence::{HistoryMode, NewSecond};
use super::reader::{Reader, store_error};
use super::space::{self, Space};
use super::{failure, open, persistence, prior_states, statement};
use crate::archive_rules::ArchiveRules;
use crate::group::Group;
use crate::identity::Identity;
use crate::prior_states::PriorStates;
use crate::publish::Publisher;
use crate::submit::{CommitRequest, Results, send_results};
use crate::subscription::selection::Batch;
use crate::txn::{PreparedTxn, TxnError};
use crate::unix_time;

/// Maximum bytes of values in one transaction, not counting the last request in it.
const GROUP_BYTES: usize = 4 << 20;

/// Number of revisions of history that one step deletes when the disk is full.
const FULL_DISK_REVISIONS: i64 = 16 * 1_024;
/// Divisor of [`FULL_DISK_REVISIONS`] for the next attempt if the log has no blocks for a step.
const FULL_DISK_DIVISOR: i64 = 8;

/// Request to the writer.
pub(crate) enum Request {
    /// Commits transactions, at most a group.
    Commit(CommitRequest),
    /// Runs a small step of compaction or of shrinking the file; commits can run between two steps.
    Maintain(Maintenance),
}

impl From<CommitRequest> for Request {
    fn from(request: CommitRequest) -> Self {
        Self::Commit(request)
    }
}

/// Error after which the database cannot be trusted or reached: the process must end and restart from the disk.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FatalError {
    #[error("the cache and the database hold different states of an object")]
    StateMismatch,
    #[error("cannot use the database any more: {0}")]
    DatabaseLost(sqlx::Error),
}

pub(crate) struct Writer {
    /// Closed by [`Writer::run`] only. If the runtime ends first (a start that failed later), the log must stay, because the mark
    /// records it: the files are then as after a kill.
    pub(crate) connection: ManuallyDrop<SqliteConnection>,
    pub(crate) requests: mpsc::Receiver<Request>,
    pub(crate) publisher: Publisher,
    pub(crate) revision: i64,
    /// Compaction point in the database; that of the hub may be ahead of it.
    pub(crate) compacted: i64,
    pub(crate) reader: Arc<Reader>,
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    /// Revision at which the mark was written, or could not be written.
    pub(crate) marked_revision: i64,
    pub(crate) space: Arc<Space>,
    /// Unix time in seconds of the last group that this process wrote.
    pub(crate) marked_second: Option<i64>,
    /// Resources with archived history.
    pub(crate) archive: ArchiveRules,
    pub(crate) group_operations: usize,
    pub(crate) closing: CancellationToken,
    /// Released after the connection is closed.
    pub(crate) lock: FileLock,
}

impl Writer {
    /// Serves requests until the store closes, then the queued ones, then closes the database.
    pub(crate) async fn run(mut self) -> Result<(), FatalError> {
        let result = self.serve().await;
        // The mark is written before the log is removed with the last connection. Its revision is the last acknowledged one.
        // After `FatalError::DatabaseLost` the database may contain one more group, whose outcome is unknown to its callers:
        // the mark may be behind the database, but never ahead of it.
        let is_marked = self.mark(false).await;
        // The last connection that closes checkpoints the log, which readers cannot do. The lock is released after everything
        // that has the file open, also after an error.
        self.reader.scan_permits.close();
        self.reader.pool.close().await;
        let connection = ManuallyDrop::into_inner(self.connection);
        if is_marked {
            open::close(connection).await;
        } else {
            tracing::warn!(
                "mark file of the database is still open, keeping the write-ahead log for the next start"
            );
            open::close_keeping_log(connection, &self.path).await;
        }
        let (space, is_at_path) = (self.space.clone(), self.lock.is_at(&self.path));
        if is_at_path
            && let Some(Err(error)) = portico_kit::tasks::blocking(move || space.save_reserve()).await
        {
            let error = portico_gostd::os::error_text(&error);
            tracing::warn!(error, "cannot allocate the reserve for deletions");
        }
        drop(self.lock);
        result
    }

    async fn serve(&mut self) -> Result<(), FatalError> {
        if let Some(reason) = self.space.delete_only_reason() {
            self.enter_delete_only(&reason).await;
        }
        while let Some(request) = self.next().await {
            match request {
                Request::Commit(first) => {
                    let (group, maintenance) = self.take_group(first);
                    self.commit(group).await?;
                    if let Some(maintenance) = maintenance {
                        self.maintain(maintenance).await;
                    }
                }
                Request::Maintain(maintenance) => self.maintain(maintenance).await,
            }
            self.publisher.metrics.queue_depth.set(i64::try_from(self.requests.len()).unwrap_or(i64::MAX));
            if self.revision >= self.marked_revision.saturating_add(MARK_REVISIONS) {
                self.mark(true).await;
            }
        }
        Ok(())
    }

    async fn next(&mut self) -> Option<Request> {
        if !self.requests.is_closed() {
            tokio::select! {
                biased;
                request = self.requests.recv() => return request,
                () = self.closing.cancelled() => self.requests.close(),
            }
        }
        self.requests.recv().await
    }

    /// Takes queued requests, up to the operations and bytes of a group, or up to a request that is not a commit.
    fn take_group(&mut self, first: CommitRequest) -> (Vec<CommitRequest>, Option<Maintenance>) {
        let (mut operations, mut bytes) = (first.operations(), first.bytes());
        let mut group = vec![first];
        while operations < self.group_operations && bytes < GROUP_BYTES {
            match self.requests.try_recv() {
                Ok(Request::Commit(next)) => {
                    operations += next.operations();
                    bytes += next.bytes();
                    group.push(next);
                }
                Ok(Request::Maintain(maintenance)) => return (group, Some(maintenance)),
                Err(_) => break,
            }
        }
        (group, None)
    }

    /// Writes the mark of the database. Returns true if it was written. A failure while the database is open has no effect,
    /// since a mark may be behind: it is retried after [`mark::MARK_REVISIONS`] more, or at the next compaction.
    async fn mark(&mut self, open: bool) -> bool {
        self.marked_revision = self.revision;
        if !self.lock.is_at(&self.path) {
            tracing::error!(
                path = %self.path.display(),
                "database file moved while in use, mark file not written"
            );
            return false;
        }
        write_mark(&self.path, open::mark_of(&self.identity, self.revision, open)).await
    }

    /// Commits a group. If there is no space for it, commits only the Txns that delete objects.
    async fn commit(&mut self, mut requests: Vec<CommitRequest>) -> Result<(), FatalError> {
        let txns: Vec<Vec<PreparedTxn>> = requests.iter_mut().map(|r| std::mem::take(&mut r.txns)).collect();
        let freeing_txns = select_freeing(&txns);
        let reason = match self.space.delete_only_reason() {
            Some(reason) => reason,
            None => match self.commit_all(&mut requests, txns).await? {
                Some(reason) => {
                    self.enter_delete_only(&reason).await;
                    reason
                }
                None => return Ok(()),
            },
        };
        let mut results = Vec::with_capacity(requests.len());
        for txns in freeing_txns {
            results.push(self.commit_freeing(txns, &reason).await?);
        }
        send_results(requests, results);
        Ok(())
    }

    /// Commits a group and answers its callers. Returns the reason if there is no space for it.
    async fn commit_all(
        &mut self,
        requests: &mut Vec<CommitRequest>,
        txns: Vec<Vec<PreparedTxn>>,
    ) -> Result<Option<String>, FatalError> {
        let started = Instant::now();
        if self.extend_for_group(&txns).await.is_err_and(|error| failure::is_no_space(&error)) {
            return Ok(Some(failure::NO_SPACE.to_owned()));
        }
        let prior_states = match self.prior_states(&txns).await {
            Ok(states) => states,
            Err(error) => {
                let failure = self.handle_failure(error).await?;
                let refused = txns.iter().map(|txns| vec![Err(failure.clone()); txns.len()]).collect();
                send_results(std::mem::take(requests), refused);
                return Ok(None);
            }
        };
        let txns_by_request = txns.into_iter().map(|txns| txns.into_iter().map(Ok).collect()).collect();
        let (group, mut results) = validate(&prior_states, self.revision, txns_by_request);
        let Err(error) = self.persist(&group, HistoryMode::Keep).await else {
            self.publisher.metrics.commit_seconds.observe(started.elapsed().as_secs_f64());
            let (events, revision) = (Batch::from(group.events), group.revision);
            self.publish(&events, revision, &results);
            send_results(std::mem::take(requests), results);
            self.fan_out(&events, revision);
            return Ok(None);
        };
        match self.handle_failure(error).await? {
            TxnError::Full(reason) => return Ok(Some(reason)),
            // Txns may have been rejected because of states that were not written.
            failure => results.iter_mut().flatten().for_each(|result| *result = Err(failure.clone())),
        }
        send_results(std::mem::take(requests), results);
        Ok(None)
    }

    /// Extends the database file for the pages that a group adds.
    async fn extend_for_group(&mut self, txns: &[Vec<PreparedTxn>]) -> std::io::Result<()> {
        let prepared_txns = || txns.iter().flatten();
        let operations = prepared_txns().map(|prepared| prepared.txn.operations.len()).sum();
        let bytes = prepared_txns().map(PreparedTxn::bytes).sum();
        self.space.extend_for_group(&mut self.connection, operations, bytes).await
    }

    /// Enters delete-only mode: deletes all history, in parts for which the log has blocks.
    async fn enter_delete_only(&mut self, reason: &str) {
        self.space.enter_delete_only(&mut self.connection, reason.to_owned()).await;
        let (mut revisions, mut restarted) = (FULL_DISK_REVISIONS, false);
        while self.compacted < self.revision && revisions > 0 {
            let until = self.revision.min(self.compacted.saturating_add(revisions));
            let compacted = &mut self.compacted;
            match compact(&mut self.connection, compacted, until, &self.publisher, None).await {
                Ok(_) => restarted = false,
                Err(_) if !restarted => restarted = self.restart_log().await,
                Err(error) => {
                    tracing::warn!(
                        error = failure::log_text(&error),
                        revisions,
                        "cannot discard history, retrying in smaller steps"
                    );
                    revisions /= FULL_DISK_DIVISOR;
                    restarted = false;
                }
            }
        }
        if self.compacted >= self.revision {
            self.publisher.history.bytes.store(0, Ordering::Relaxed);
        }
        self.restart_log().await;
    }

    /// Restarts the write-ahead log to reuse its blocks for the next group. Other maintenance runs after that group.
    async fn restart_log(&mut self) -> bool {
        if let Err(error) = restart_log(&mut self.connection).await {
            tracing::warn!(error = failure::log_text(&error), "cannot checkpoint the write-ahead log");
        }
        true
    }

    /// Commits Txns that free space, without history, in groups for which the log has blocks.
    async fn commit_freeing(
        &mut self,
        txns: Vec<Option<PreparedTxn>>,
        reason: &str,
    ) -> Result<Results, FatalError> {
        let (max_operations, max_bytes) = self.space.group_limits();
        let mut results = Vec::with_capacity(txns.len());
        let mut txns = txns.into_iter().peekable();
        while txns.peek().is_some() {
            let (mut operations, mut bytes, mut group) = (0, 0, Vec::new());
            while let Some(txn) = txns.next_if(|_| operations < max_operations && bytes < max_bytes) {
                operations += txn.as_ref().map_or(0, |prepared| prepared.txn.operations.len());
                bytes += txn.as_ref().map_or(0, PreparedTxn::bytes);
                group
                    .push(txn.ok_or_else(|| TxnError::Full(format!("{reason}; only deletions are written"))));
            }
            results.extend(self.commit_delete_only(group).await?);
        }
        Ok(results)
    }

    async fn commit_delete_only(
        &mut self,
        txns: Vec<Result<PreparedTxn, TxnError>>,
    ) -> Result<Results, FatalError> {
        let prepared: Vec<Vec<PreparedTxn>> =
            vec![txns.iter().filter_map(|txn| txn.as_ref().ok()).cloned().collect()];
        // A deletion that adds pages uses free blocks if there are any; it is attempted in any case.
        let _ = self.extend_for_group(&prepared).await;
        let prior_states = match self.prior_states(&prepared).await {
            Ok(states) => states,
            Err(error) => {
                let failure = self.handle_failure(error).await?;
                return Ok(txns
                    .into_iter()
                    .map(|txn| Err(txn.err().unwrap_or_else(|| failure.clone())))
                    .collect());
            }
        };
        let (group, results) = validate(&prior_states, self.revision, vec![txns]);
        let mut results: Results = results.into_iter().flatten().collect();
        for may_retry in [true, false] {
            let previous_compacted = self.compacted;
            self.publisher.hub.compact_reads(group.revision);
            let Err(error) = self.persist(&group, HistoryMode::Discard { since: previous_compacted }).await
            else {
                break;
            };
            self.publisher.hub.undo_compacted(previous_compacted);
            let failure = self.handle_failure(error).await?;
            self.restart_log().await;
            if !may_retry {
                results.iter_mut().for_each(|result| *result = Err(failure.clone()));
                return Ok(results);
            }
        }
        if !group.events.is_empty() {
            let (events, revision) = (Batch::from(group.events), group.revision);
            self.compacted = revision;
            self.publish(&events, revision, std::slice::from_ref(&results));
            self.fan_out(&events, revision);
            self.publisher.history.bytes.store(0, Ordering::Relaxed);
            self.restart_log().await;
        }
        Ok(results)
    }

    /// Returns the prior states for the validation of a group.
    async fn prior_states(&mut self, txns: &[Vec<PreparedTxn>]) -> Result<PriorStates, sqlx::Error> {
        let cache = &self.publisher.cache;
        let (mut prior_states, uncached_keys) = PriorStates::new(cache, txns.iter().flatten());
        if !uncached_keys.is_empty() {
            let decoder = self.reader.decoder();
            prior_states.set_read_states(
                prior_states::read_prior_states(&mut self.connection, &decoder, cache, uncached_keys).await?,
            );
        }
        Ok(prior_states)
    }

    /// Makes a group durable. Writes nothing if all Txns are rejected: the states that they were checked against are those of
    /// the last commit.
    async fn persist(&mut self, group: &Group<'_>, history: HistoryMode) -> Result<(), sqlx::Error> {
        if group.events.is_empty() {
            return Ok(());
        }
        let time = unix_time::now();
        let new_second =
            (self.marked_second != Some(time)).then_some(NewSecond { time, previous: self.revision });
        persistence::commit(&mut self.connection, &self.publisher.cache, group, new_second, history).await?;
        if new_second.is_some() {
            self.marked_second = Some(time);
        }
        Ok(())
    }

    /// Publishes a durable group: updates the cache and the revision. The callers and then the subscriptions follow.
    fn publish(&mut self, events: &Batch, revision: i64, results: &[Results]) {
        let refused = results.iter().flatten().filter(|result| result.is_err()).count();
        self.publisher.metrics.refused.inc_by(refused as u64);
        if !events.is_empty() {
            self.revision = revision;
            self.publisher.publish(events, revision);
        }
    }

    fn fan_out(&self, events: &Batch, revision: i64) {
        if !events.is_empty() {
            self.publisher.fan_out(events, revision);
        }
    }

    /// Rolls back after an error and ensures that no part of the group remains.
    async fn handle_failure(&mut self, error: sqlx::Error) -> Result<TxnError, FatalError> {
        tracing::error!(error = failure::log_text(&error), "database rejected a group of writes");
        self.publisher.metrics.failures.inc();
        statement::rollback(&mut self.connection).await;
        if persistence::is_state_mismatch(&error) {
            return Err(FatalError::StateMismatch);
        }
        let revision = sqlx::query_scalar("SELECT revision FROM meta WHERE id = 1");
        let revision: i64 = match revision.fetch_one(&mut *self.connection).await {
            Ok(revision) => revision,
            Err(error) => return Err(FatalError::DatabaseLost(error)),
        };
        if revision != self.revision {
            // The group failed although its revision is stored: only a restart shows the actual state.
            return Err(FatalError::DatabaseLost(error));
        }
        let is_undone = self.overwrite_log_end().await || failure::is_full(&error);
        let (path, reason) = (self.path.clone(), failure::reason(&error));
        if !is_undone {
            return Ok(TxnError::InDoubt(reason.to_owned()));
        }
        let found = portico_kit::tasks::blocking(move || txn_error(&error, &path)).await;
        Ok(found.unwrap_or_else(|| TxnError::Unavailable(reason.to_owned())))
    }

    /// Overwrites the remains of a failed group at the end of the log. Returns false if it cannot. Otherwise a transaction that
    /// was written completely, but whose sync failed, would be committed after a kill.
    async fn overwrite_log_end(&mut self) -> bool {
        for _ in 0..2 {
            if sqlx::raw_sql(REWRITE_PAGE).execute(&mut *self.connection).await.is_ok() {
                return true;
            }
            statement::rollback(&mut self.connection).await;
            self.restart_log().await;
        }
        false
    }

    async fn maintain(&mut self, maintenance: Maintenance) {
        if matches!(maintenance.step, Step::DeleteMarks { .. }) {
            self.mark(true).await;
        }
        let mut result = self.run_maintenance(&maintenance).await;
        if result.as_ref().is_err_and(failure::is_full) {
            match self.space.delete_only_reason() {
                None => self.enter_delete_only(failure::NO_SPACE).await,
                Some(_) => drop(self.restart_log().await),
            }
            result = self.run_maintenance(&maintenance).await;
        }
        self.space.recount();
        // A caller that is gone does not stop the work.
        let _gone = maintenance.reply.send(result.map_err(store_error));
        self.publisher.metrics.compacted.set(self.publisher.hub.compacted());
        self.publisher.metrics.history_bytes.set(self.publisher.history.bytes.load(Ordering::Relaxed));
    }

    async fn run_maintenance(&mut self, maintenance: &Maintenance) -> Result<i64, sqlx::Error> {
        let (publisher, revision) = (&self.publisher, self.revision);
        let (connection, compacted) = (&mut *self.connection, &mut self.compacted);
        maintenance.run(connection, compacted, revision, publisher, &self.space, &self.archive).await
    }
}

/// Txns by request, or the errors of Txns that were already rejected.
type TxnsByRequest = Vec<Vec<Result<PreparedTxn, TxnError>>>;

/// Returns the Txns that free space, at their positions.
fn select_freeing(txns: &[Vec<PreparedTxn>]) -> Vec<Vec<Option<PreparedTxn>>> {
    let freeing = |prepared: &PreparedTxn| space::frees_space(&prepared.txn).then(|| prepared.clone());
    txns.iter().map(|txns| txns.iter().map(freeing).collect()).collect()
}

fn validate(
    prior_states: &PriorStates,
    revision: i64,
    txns_by_request: TxnsByRequest,
) -> (Group<'_>, Vec<Results>) {
    let mut group = Group::new(prior_states, revision);
    let mut validate_request = |txns: Vec<Result<PreparedTxn, TxnError>>| -> Results {
        txns.into_iter().map(|txn| txn.and_then(|txn| group.validate(txn))).collect()
    };
    let results = txns_by_request.into_iter().map(&mut validate_request).collect();
    (group, results)
}

/// Converts an error of the database. Blocks.
fn txn_error(error: &sqlx::Error, database: &Path) -> TxnError {
    match failure::lacks_space(error, || space::is_disk_full(database)) {
        true => TxnError::Full(failure::NO_SPACE.to_owned()),
        false => TxnError::Unavailable(failure::reason(error).to_owned()),
    }
}

/// Writes a mark. Returns true on success, otherwise logs the reason.
async fn write_mark(database: &Path, mark: Mark) -> bool {
    let path = database.to_owned();
    match portico_kit::tasks::blocking(move || mark.write(&path)).await {
        Some(Ok(())) => return true,
        Some(Err(error)) => tracing::warn!(%error, "cannot write the mark file of the database"),
        None => tracing::warn!("process is stopping, mark file of the database not written"),
    }
    false
}
