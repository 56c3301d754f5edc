//! The one task that writes: takes what is queued as a group, checks it, makes it durable, makes it visible, answers.
//!
//! The queue holds [`crate::Settings::write_queue`] requests; a caller beyond that waits for room.

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

/// Bytes of values that one transaction has at most, but for the last request in it.
const GROUP_BYTES: usize = 4 << 20;

/// Revisions of history that are forgotten at a time when the disk is full, ...
const SHORT_REVISIONS: i64 = 16 * 1_024;
/// ... and part of them that is tried when the log has no blocks for more.
const SHORT_PART: i64 = 8;

/// What the writer is asked to do.
pub(crate) enum Request {
    /// Transactions, at most a group's worth.
    Commit(CommitRequest),
    /// A small step of compaction or of giving back pages; between two of them commits have their turn.
    Maintain(Maintenance),
}

impl From<CommitRequest> for Request {
    fn from(request: CommitRequest) -> Self {
        Self::Commit(request)
    }
}

/// The database can no longer be trusted or reached: the process must end, and start again from the disk.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fatal {
    #[error("the cache and the database hold different states of an object")]
    Disagree,
    #[error("cannot use the database any more: {0}")]
    Lost(sqlx::Error),
}

pub(crate) struct Writer {
    /// Closed by [`Writer::run`] alone. When the runtime ends first (a start that failed later than here), the log must stay for a mark
    /// that says that there is one: what is left then is what a kill leaves.
    pub(crate) connection: ManuallyDrop<SqliteConnection>,
    pub(crate) requests: mpsc::Receiver<Request>,
    pub(crate) publisher: Publisher,
    pub(crate) revision: i64,
    /// The compaction point in the database; the hub's may be ahead of it.
    pub(crate) compacted: i64,
    pub(crate) reader: Arc<Reader>,
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    /// The revision at which the database's mark was written, or could not be written.
    pub(crate) marked: i64,
    pub(crate) space: Arc<Space>,
    /// The second of the last group that this process wrote, in Unix time.
    pub(crate) marked_second: Option<i64>,
    /// Resources whose history is kept longer.
    pub(crate) archive: ArchiveRules,
    pub(crate) group_operations: usize,
    pub(crate) closing: CancellationToken,
    /// Let go of when the connection is closed.
    pub(crate) lock: FileLock,
}

impl Writer {
    /// Serves requests until the store closes, then those that are queued, then closes the database.
    pub(crate) async fn run(mut self) -> Result<(), Fatal> {
        let served = self.serve().await;
        // Before the log goes, as it does with the last connection. The revision is the last one that was answered. After
        // `Fatal::Lost` the database may hold one more group, whose outcome is unknown to its callers: the mark is behind the
        // database then, which is allowed, and never ahead of it.
        let marked = self.mark(false).await;
        // The last connection that closes moves the log into the file, and readers cannot. After an error, too, the lock is let
        // go of after everything that has the file open.
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

    /// Takes the queued requests, up to a group's worth of operations and bytes, or up to a request that is not a commit.
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

    /// Writes the database's mark; whether it is written. While the database is open a failure costs nothing, since a mark
    /// may stay behind: it is tried again when as many revisions have passed, or at the next compaction.
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

    /// Commits a group. When there is no space for it, what makes objects go is committed without the rest.
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

    /// Commits a group and answers it; returns why there is no space for it, if there is none.
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
            // Refusals, too, may have been checked against states that were not written.
            failure => results.iter_mut().flatten().for_each(|result| *result = Err(failure.clone())),
        }
        answer(std::mem::take(requests), results);
        Ok(None)
    }

    /// Gives the database's file blocks for what a group adds.
    async fn cover(&mut self, txns: &[Vec<Prepared>]) -> std::io::Result<()> {
        let all = || txns.iter().flatten();
        let operations = all().map(|prepared| prepared.txn.operations.len()).sum();
        let bytes = all().map(Prepared::bytes).sum();
        self.space.cover(&mut self.connection, operations, bytes).await
    }

    /// Goes over to writing deletions alone: forgets all history, in parts that the log has blocks for.
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

    /// Makes the blocks of the write-ahead log free for the next group. The rest is done after that group.
    async fn restart_log(&mut self) -> bool {
        if let Err(error) = restart(&mut self.connection).await {
            tracing::warn!(error = failure::logged(&error), "cannot checkpoint the write-ahead log");
        }
        true
    }

    /// Commits what makes objects go, without history, in groups that the log has blocks for.
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
        // A deletion that adds pages after all finds blocks if there are any; without them it is tried.
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

    /// What a group is checked by.
    async fn basis(&mut self, txns: &[Vec<Prepared>]) -> Result<Basis, sqlx::Error> {
        let cache = &self.publisher.cache;
        let (mut basis, unread) = Basis::new(cache, txns.iter().flatten());
        if !unread.is_empty() {
            let decoder = self.reader.decoder();
            basis.read(before::read(&mut self.connection, &decoder, cache, unread).await?);
        }
        Ok(basis)
    }

    /// Makes a group durable. When all are refused nothing is written: what they were checked by is what the last commit
    /// has left.
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

    /// A group is durable: the cache and the revision follow. Then its callers are answered, then subscriptions.
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

    /// Rolls back after an error and makes sure that nothing of the group is there.
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
            // It failed, and its revision is there: only a fresh start shows what holds.
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

    /// Overwrites what a group that failed has left at the end of the log; returns false if it cannot. A transaction that was
    /// written whole, and whose sync failed, would be committed after a kill.
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
        // A caller that has gone away does not stop the work.
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

/// Txns by request: to be checked, or refused already.
type Offered = Vec<Vec<Result<Prepared, TxnError>>>;

/// Those that make objects go, in their places.
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

/// Which of the refusals an error of the database is. Blocks.
fn txn_error(error: &sqlx::Error, database: &Path) -> TxnError {
    match failure::lacks_space(error, || space::none_left(database)) {
        true => TxnError::Full(failure::NO_SPACE.to_owned()),
        false => TxnError::Unavailable(failure::reason(error).to_owned()),
    }
}

/// Whether it is written; the log says why not.
async fn write_mark(database: &Path, mark: Mark) -> bool {
    let path = database.to_owned();
    match portico_kit::tasks::blocking(move || mark.write(&path)).await {
        Some(Ok(())) => return true,
        Some(Err(error)) => tracing::warn!(%error, "cannot write the mark file of the database"),
        None => tracing::warn!("process is stopping, mark file of the database not written"),
    }
    false
}
