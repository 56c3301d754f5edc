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
use super::maintenance::{Maintenance, Step};
use super::mark::{MARK_REVISIONS, Mark};
use super::read::Reader;
use super::space::{self, Space};
use super::{before, failure, open, persist};
use crate::archive_rules::ArchiveRules;
use crate::basis::Basis;
use crate::group::Group;
use crate::identity::Identity;
use crate::publish::Publisher;
use crate::submit::{CommitRequest, Results, answer};
use crate::subscription::selection::Batch;
use crate::txn::{Prepared, TxnError};
use crate::unix_time;

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

/// When the last group was written.
#[derive(Default)]
pub(crate) struct CommitClock {
    /// In Unix seconds, and its revision.
    last: (i64, i64),
}

impl CommitClock {
    /// Of a group that is written now.
    fn tick(&self) -> persist::Tick {
        let (at, (last, revision)) = (unix_time::now(), self.last);
        persist::Tick { at, moves: (at == last).then_some(revision) }
    }
}

/// The database can no longer be trusted or reached: the process must end, and start again from the disk.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fatal {
    #[error("the cache and the database hold different states of an object")]
    Disagree,
    #[error("the database is lost: {0}")]
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
    /// Notes when what was written, where history is kept longer.
    pub(crate) clock: Option<CommitClock>,
    /// Whose history that is.
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
        let mut marked = self.mark(false).await;
        let released = !marked && self.space.release();
        if released {
            marked = self.mark(false).await;
        }
        // The last connection that closes moves the log into the file, and readers cannot. After an error, too, the lock is let
        // go of after everything that has the file open.
        self.reader.pool.close().await;
        let connection = ManuallyDrop::into_inner(self.connection);
        if marked {
            open::close(connection).await;
        } else {
            tracing::warn!(
                "the database's mark does not say that it is closed: its log is kept for the next start"
            );
            open::close_keeping_log(connection, &self.path).await;
        }
        if released {
            let space = self.space.clone();
            if let Some(Err(error)) = portico_kit::tasks::blocking(move || space.replenish()).await {
                let error = portico_gostd::os::error_text(&error);
                tracing::warn!(error, "there is no space for the reserve");
            }
        }
        drop(self.lock);
        served
    }

    async fn serve(&mut self) -> Result<(), Fatal> {
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

    /// What is queued now, up to a group's worth of operations, or up to a request that is no commit.
    fn take_group(&mut self, first: CommitRequest) -> (Vec<CommitRequest>, Option<Maintenance>) {
        let mut operations = first.operations();
        let mut group = vec![first];
        while operations < self.group_operations {
            match self.requests.try_recv() {
                Ok(Request::Commit(next)) => {
                    operations += next.operations();
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
        write_mark(&self.path, open::mark_of(&self.identity, self.revision, open)).await
    }

    /// Commits a group. When there is no space for it what makes objects go is tried again, without the rest.
    async fn commit(&mut self, mut requests: Vec<CommitRequest>) -> Result<(), Fatal> {
        let started = Instant::now();
        let txns: Vec<Vec<Prepared>> = requests.iter_mut().map(|r| std::mem::take(&mut r.txns)).collect();
        let basis = match self.basis(&txns).await {
            Ok(basis) => basis,
            Err(error) => {
                let (failure, refuse) = (self.failed(error).await?, |txns: &Vec<Prepared>| txns.len());
                let refused = txns.iter().map(refuse).map(|count| vec![Err(failure.clone()); count]);
                answer(requests, refused.collect());
                return Ok(());
            }
        };
        let (mut offered, mut freeing) = match (self.space.full(), freeing(&txns)) {
            (Some(why), freeing) => (only(freeing, &why), None),
            (None, freeing) => {
                (txns.into_iter().map(|txns| txns.into_iter().map(Ok).collect()).collect(), Some(freeing))
            }
        };
        loop {
            let (group, mut results) = check(&basis, self.revision, offered);
            let Err(error) = self.persist(&group).await else {
                self.publisher.metrics.commit_seconds.observe(started.elapsed().as_secs_f64());
                self.visible(group, requests, results);
                return Ok(());
            };
            let failure = self.failed(error).await?;
            self.publisher.metrics.failures.inc();
            match (&failure, freeing.take()) {
                (TxnError::Full(why), Some(freeing)) => {
                    self.space.exhausted(&mut self.connection, why.clone()).await;
                    offered = only(freeing, why);
                }
                _ => {
                    // Refusals, too, may have been checked by what is not there now.
                    results.iter_mut().flatten().for_each(|result| *result = Err(failure.clone()));
                    answer(requests, results);
                    return Ok(());
                }
            }
        }
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
    async fn persist(&mut self, group: &Group<'_>) -> Result<(), sqlx::Error> {
        if group.events.is_empty() {
            return Ok(());
        }
        let tick = self.clock.as_ref().map(CommitClock::tick);
        persist::commit(&mut self.connection, &self.publisher.cache, group, tick).await?;
        if let (Some(clock), Some(tick)) = (&mut self.clock, tick) {
            clock.last = (tick.at, group.revision);
        }
        Ok(())
    }

    /// The group is durable: cache, revision, answers, subscriptions, in this order.
    fn visible(&mut self, group: Group<'_>, requests: Vec<CommitRequest>, results: Vec<Results>) {
        let refused = results.iter().flatten().filter(|result| result.is_err()).count();
        self.publisher.metrics.refused.inc_by(refused as u64);
        if group.events.is_empty() {
            return answer(requests, results);
        }
        let revision = group.revision;
        let events: Batch = group.events.into();
        self.revision = revision;
        self.publisher.show(&events, revision);
        answer(requests, results);
        self.publisher.dispatch(&events, revision);
    }

    /// Rolls back after an error and makes sure that nothing of the group is there.
    async fn failed(&mut self, error: sqlx::Error) -> Result<TxnError, Fatal> {
        tracing::error!(error = failure::logged(&error), "the database refused a group of writes");
        persist::rollback(&mut self.connection).await;
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
        let (path, reason) = (self.path.clone(), failure::reason(&error));
        let found = portico_kit::tasks::blocking(move || txn_error(&error, &path)).await;
        Ok(found.unwrap_or_else(|| TxnError::Unavailable(reason.to_owned())))
    }

    async fn maintain(&mut self, maintenance: Maintenance) {
        if matches!(maintenance.step, Step::Mark { .. }) {
            self.mark(true).await;
        }
        let (publisher, space) = (&self.publisher, self.space.clone());
        let (connection, compacted) = (&mut *self.connection, &mut self.compacted);
        maintenance.run(connection, compacted, self.revision, publisher, &space, &self.archive).await;
        publisher.metrics.compacted.set(publisher.hub.compacted());
        publisher.metrics.history_bytes.set(publisher.history.bytes.load(Ordering::Relaxed));
    }
}

/// Txns by request: to be checked, or refused already.
type Offered = Vec<Vec<Result<Prepared, TxnError>>>;

/// Those that make objects go, in their places.
fn freeing(txns: &[Vec<Prepared>]) -> Vec<Vec<Option<Prepared>>> {
    let freeing = |prepared: &Prepared| space::frees(&prepared.txn).then(|| prepared.clone());
    txns.iter().map(|txns| txns.iter().map(freeing).collect()).collect()
}

/// Refuses the others for lack of space.
fn only(freeing: Vec<Vec<Option<Prepared>>>, why: &str) -> Offered {
    let full = || TxnError::Full(format!("{why}; only deletions are written"));
    let of_request = |txns: Vec<Option<Prepared>>| txns.into_iter().map(|txn| txn.ok_or_else(full)).collect();
    freeing.into_iter().map(of_request).collect()
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
        Some(Err(error)) => tracing::warn!(%error, "the database's mark cannot be written"),
        None => tracing::warn!("the database's mark was not written: the process is ending"),
    }
    false
}
