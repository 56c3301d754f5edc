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
use super::maintenance::{Maintenance, SAME_PAGE, Step, compact, restart};
use super::mark::{MARK_REVISIONS, Mark};
use super::persist::{History, Tick};
use super::read::{Reader, failed};
use super::space::{self, Space};
use super::{before, failure, open, persist, statement};
use crate::archive_rules::ArchiveRules;
use crate::basis::Basis;
use crate::group::Group;
use crate::identity::Identity;
use crate::publish::Publisher;
use crate::submit::{CommitRequest, Results, answer};
use crate::subscription::selection::Batch;
use crate::txn::{Prepared, TxnError};
use crate::unix_time;

/// Maximum bytes of values in one transaction, not counting the last request in it.
const GROUP_BYTES: usize = 4 << 20;

/// Revisions of history that are deleted at a time when the disk is full, ...
const SHORT_REVISIONS: i64 = 16 * 1_024;
/// ... and divisor of this number for the next attempt if the log has no blocks for more.
const SHORT_PART: i64 = 8;

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
pub(crate) enum Fatal {
    #[error("the cache and the database hold different states of an object")]
    Disagree,
    #[error("cannot use the database any more: {0}")]
    Lost(sqlx::Error),
}

pub(crate) struct Writer {
    /// Closed by [`Writer::run`] only. If the runtime ends first (a start that failed later), the log must stay, because the mark
    /// says that there is one: the files are then as after a kill.
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
    pub(crate) marked: i64,
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
    pub(crate) async fn run(mut self) -> Result<(), Fatal> {
        let served = self.serve().await;
        // The mark is written before the log is removed with the last connection. Its revision is the last acknowledged one.
        // After `FatalError::DatabaseLost` the database may contain one more group, whose outcome is unknown to its callers:
        // the mark may be behind the database, but never ahead of it.
        let marked = self.mark(false).await;
        // The last connection that closes checkpoints the log, which readers cannot do. The lock is released after everything
        // that has the file open, also after an error.
        self.reader.scans.close();
        self.reader.pool.close().await;
        let connection = ManuallyDrop::into_inner(self.connection);
        if marked {
            open::close(connection).await;
        } else {
            tracing::warn!(
                "mark file of the database is still open, keeping the write-ahead log for the next start"
            );
            open::close_keeping_log(connection, &self.path).await;
        }
        let (space, is_there) = (self.space.clone(), self.lock.is_at(&self.path));
        if is_there && let Some(Err(error)) = portico_kit::tasks::blocking(move || space.keep()).await {
            let error = portico_gostd::os::error_text(&error);
            tracing::warn!(error, "cannot allocate the reserve for deletions");
        }
        drop(self.lock);
        served
    }

    async fn serve(&mut self) -> Result<(), Fatal> {
        if let Some(why) = self.space.full() {
            self.run_short(&why).await;
        }
        while let Some(request) = self.next().await {
            match request {
                Request::Commit(first) => {
                    let (group, other) = self.take_group(first);
                    self.commit(group).await?;
                    if let Some(maintenance) = other {
                        self.maintain(maintenance).await;
                    }
                }
                Request::Maintain(maintenance) => self.maintain(maintenance).await,
            }
            self.publisher.metrics.queue_depth.set(i64::try_from(self.requests.len()).unwrap_or(i64::MAX));
            if self.revision >= self.marked.saturating_add(MARK_REVISIONS) {
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
        self.marked = self.revision;
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
    async fn commit(&mut self, mut requests: Vec<CommitRequest>) -> Result<(), Fatal> {
        let txns: Vec<Vec<Prepared>> = requests.iter_mut().map(|r| std::mem::take(&mut r.txns)).collect();
        let freeing = freeing(&txns);
        let why = match self.space.full() {
            Some(why) => why,
            None => match self.commit_all(&mut requests, txns).await? {
                Some(why) => {
                    self.run_short(&why).await;
                    why
                }
                None => return Ok(()),
            },
        };
        let mut results = Vec::with_capacity(requests.len());
        for txns in freeing {
            results.push(self.commit_freeing(txns, &why).await?);
        }
        answer(requests, results);
        Ok(())
    }

    /// Commits a group and answers its callers. Returns the reason if there is no space for it.
    async fn commit_all(
        &mut self,
        requests: &mut Vec<CommitRequest>,
        txns: Vec<Vec<Prepared>>,
    ) -> Result<Option<String>, Fatal> {
        let started = Instant::now();
        if self.cover(&txns).await.is_err_and(|error| failure::is_lack(&error)) {
            return Ok(Some(failure::NO_SPACE.to_owned()));
        }
        let basis = match self.basis(&txns).await {
            Ok(basis) => basis,
            Err(error) => {
                let failure = self.failed(error).await?;
                let refused = txns.iter().map(|txns| vec![Err(failure.clone()); txns.len()]).collect();
                answer(std::mem::take(requests), refused);
                return Ok(None);
            }
        };
        let offered = txns.into_iter().map(|txns| txns.into_iter().map(Ok).collect()).collect();
        let (group, mut results) = check(&basis, self.revision, offered);
        let Err(error) = self.persist(&group, History::Kept).await else {
            self.publisher.metrics.commit_seconds.observe(started.elapsed().as_secs_f64());
            let (events, revision) = (Batch::from(group.events), group.revision);
            self.show(&events, revision, &results);
            answer(std::mem::take(requests), results);
            self.dispatch(&events, revision);
            return Ok(None);
        };
        match self.failed(error).await? {
            TxnError::Full(why) => return Ok(Some(why)),
            // Txns may have been rejected because of states that were not written.
            failure => results.iter_mut().flatten().for_each(|result| *result = Err(failure.clone())),
        }
        answer(std::mem::take(requests), results);
        Ok(None)
    }

    /// Extends the database file for the pages that a group adds.
    async fn cover(&mut self, txns: &[Vec<Prepared>]) -> std::io::Result<()> {
        let all = || txns.iter().flatten();
        let operations = all().map(|prepared| prepared.txn.operations.len()).sum();
        let bytes = all().map(Prepared::bytes).sum();
        self.space.cover(&mut self.connection, operations, bytes).await
    }

    /// Enters delete-only mode: deletes all history, in parts for which the log has blocks.
    async fn run_short(&mut self, why: &str) {
        self.space.exhausted(&mut self.connection, why.to_owned()).await;
        let (mut revisions, mut restarted) = (SHORT_REVISIONS, false);
        while self.compacted < self.revision && revisions > 0 {
            let until = self.revision.min(self.compacted.saturating_add(revisions));
            let compacted = &mut self.compacted;
            match compact(&mut self.connection, compacted, until, &self.publisher, None).await {
                Ok(_) => restarted = false,
                Err(_) if !restarted => restarted = self.restart_log().await,
                Err(error) => {
                    tracing::warn!(
                        error = failure::logged(&error),
                        revisions,
                        "cannot discard history, retrying in smaller steps"
                    );
                    revisions /= SHORT_PART;
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
        if let Err(error) = restart(&mut self.connection).await {
            tracing::warn!(error = failure::logged(&error), "cannot checkpoint the write-ahead log");
        }
        true
    }

    /// Commits Txns that free space, without history, in groups for which the log has blocks.
    async fn commit_freeing(&mut self, txns: Vec<Option<Prepared>>, why: &str) -> Result<Results, Fatal> {
        let (most_operations, most_bytes) = self.space.group_limits();
        let mut results = Vec::with_capacity(txns.len());
        let mut txns = txns.into_iter().peekable();
        while txns.peek().is_some() {
            let (mut operations, mut bytes, mut group) = (0, 0, Vec::new());
            while let Some(txn) = txns.next_if(|_| operations < most_operations && bytes < most_bytes) {
                operations += txn.as_ref().map_or(0, |prepared| prepared.txn.operations.len());
                bytes += txn.as_ref().map_or(0, Prepared::bytes);
                group.push(txn.ok_or_else(|| TxnError::Full(format!("{why}; only deletions are written"))));
            }
            results.extend(self.commit_short(group).await?);
        }
        Ok(results)
    }

    async fn commit_short(&mut self, txns: Vec<Result<Prepared, TxnError>>) -> Result<Results, Fatal> {
        let prepared: Vec<Vec<Prepared>> =
            vec![txns.iter().filter_map(|txn| txn.as_ref().ok()).cloned().collect()];
        // A deletion that adds pages uses free blocks if there are any; it is attempted in any case.
        let _ = self.cover(&prepared).await;
        let basis = match self.basis(&prepared).await {
            Ok(basis) => basis,
            Err(error) => {
                let failure = self.failed(error).await?;
                return Ok(txns
                    .into_iter()
                    .map(|txn| Err(txn.err().unwrap_or_else(|| failure.clone())))
                    .collect());
            }
        };
        let (group, results) = check(&basis, self.revision, vec![txns]);
        let mut results: Results = results.into_iter().flatten().collect();
        for again in [true, false] {
            let since = self.compacted;
            self.publisher.hub.compact_reads(group.revision);
            let Err(error) = self.persist(&group, History::Forgotten { since }).await else { break };
            self.publisher.hub.undo_compacted(since);
            let failure = self.failed(error).await?;
            self.restart_log().await;
            if !again {
                results.iter_mut().for_each(|result| *result = Err(failure.clone()));
                return Ok(results);
            }
        }
        if !group.events.is_empty() {
            let (events, revision) = (Batch::from(group.events), group.revision);
            self.compacted = revision;
            self.show(&events, revision, std::slice::from_ref(&results));
            self.dispatch(&events, revision);
            self.publisher.history.bytes.store(0, Ordering::Relaxed);
            self.restart_log().await;
        }
        Ok(results)
    }

    /// Returns the prior states for the validation of a group.
    async fn basis(&mut self, txns: &[Vec<Prepared>]) -> Result<Basis, sqlx::Error> {
        let cache = &self.publisher.cache;
        let (mut basis, unread) = Basis::new(cache, txns.iter().flatten());
        if !unread.is_empty() {
            let decoder = self.reader.decoder();
            basis.read(before::read(&mut self.connection, &decoder, cache, unread).await?);
        }
        Ok(basis)
    }

    /// Makes a group durable. Writes nothing if all Txns are rejected: the states that they were checked against are those of
    /// the last commit.
    async fn persist(&mut self, group: &Group<'_>, history: History) -> Result<(), sqlx::Error> {
        if group.events.is_empty() {
            return Ok(());
        }
        let at = unix_time::now();
        let tick = (self.marked_second != Some(at)).then_some(Tick { at, previous: self.revision });
        persist::commit(&mut self.connection, &self.publisher.cache, group, tick, history).await?;
        if tick.is_some() {
            self.marked_second = Some(at);
        }
        Ok(())
    }

    /// Publishes a durable group: updates the cache and the revision. The callers and then the subscriptions follow.
    fn show(&mut self, events: &Batch, revision: i64, results: &[Results]) {
        let refused = results.iter().flatten().filter(|result| result.is_err()).count();
        self.publisher.metrics.refused.inc_by(refused as u64);
        if !events.is_empty() {
            self.revision = revision;
            self.publisher.show(events, revision);
        }
    }

    fn dispatch(&self, events: &Batch, revision: i64) {
        if !events.is_empty() {
            self.publisher.dispatch(events, revision);
        }
    }

    /// Rolls back after an error and ensures that no part of the group remains.
    async fn failed(&mut self, error: sqlx::Error) -> Result<TxnError, Fatal> {
        tracing::error!(error = failure::logged(&error), "database rejected a group of writes");
        self.publisher.metrics.failures.inc();
        statement::rollback(&mut self.connection).await;
        if persist::disagreed(&error) {
            return Err(Fatal::Disagree);
        }
        let revision = sqlx::query_scalar("SELECT revision FROM meta WHERE id = 1");
        let revision: i64 = match revision.fetch_one(&mut *self.connection).await {
            Ok(revision) => revision,
            Err(error) => return Err(Fatal::Lost(error)),
        };
        if revision != self.revision {
            // The group failed although its revision is stored: only a restart shows the actual state.
            return Err(Fatal::Lost(error));
        }
        let is_undone = self.overwrite().await || failure::is_full(&error);
        let (path, reason) = (self.path.clone(), failure::reason(&error));
        if !is_undone {
            return Ok(TxnError::Unknown(reason.to_owned()));
        }
        let found = portico_kit::tasks::blocking(move || txn_error(&error, &path)).await;
        Ok(found.unwrap_or_else(|| TxnError::Unavailable(reason.to_owned())))
    }

    /// Overwrites the remains of a failed group at the end of the log. Returns false if it cannot. Otherwise a transaction that
    /// was written completely, but whose sync failed, would be committed after a kill.
    async fn overwrite(&mut self) -> bool {
        for _ in 0..2 {
            if sqlx::raw_sql(SAME_PAGE).execute(&mut *self.connection).await.is_ok() {
                return true;
            }
            statement::rollback(&mut self.connection).await;
            self.restart_log().await;
        }
        false
    }

    async fn maintain(&mut self, maintenance: Maintenance) {
        if matches!(maintenance.step, Step::ForgetMarks { .. }) {
            self.mark(true).await;
        }
        let mut done = self.run_maintenance(&maintenance).await;
        if done.as_ref().is_err_and(failure::is_full) {
            match self.space.full() {
                None => self.run_short(failure::NO_SPACE).await,
                Some(_) => drop(self.restart_log().await),
            }
            done = self.run_maintenance(&maintenance).await;
        }
        self.space.recount();
        // A caller that is gone does not stop the work.
        let _gone = maintenance.reply.send(done.map_err(failed));
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
type Offered = Vec<Vec<Result<Prepared, TxnError>>>;

/// Returns the Txns that free space, at their positions.
fn freeing(txns: &[Vec<Prepared>]) -> Vec<Vec<Option<Prepared>>> {
    let freeing = |prepared: &Prepared| space::frees(&prepared.txn).then(|| prepared.clone());
    txns.iter().map(|txns| txns.iter().map(freeing).collect()).collect()
}

fn check(basis: &Basis, revision: i64, offered: Offered) -> (Group<'_>, Vec<Results>) {
    let mut group = Group::new(basis, revision);
    let mut of_request = |txns: Vec<Result<Prepared, TxnError>>| -> Results {
        txns.into_iter().map(|txn| txn.and_then(|txn| group.check(txn))).collect()
    };
    let results = offered.into_iter().map(&mut of_request).collect();
    (group, results)
}

/// Converts an error of the database. Blocks.
fn txn_error(error: &sqlx::Error, database: &Path) -> TxnError {
    match failure::lacks_space(error, || space::none_left(database)) {
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
