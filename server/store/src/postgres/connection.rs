//! Recovery from a lost connection: reconnects, determines whether a commit in doubt was written, and checks that the database
//! still has the published commits.

use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::{Instant, sleep};

use super::epoch;
use super::failure::{self, log_text};
use super::fatal::{FatalError, WriterFailure};
use super::meta::random_id;
use super::open::{self, Meta, RETRY_DELAY};
use super::pending_group::PendingGroup;
use super::session::{self, BEGIN, Purpose, run, with_timeout};
use super::writer::{Writer, refuse};
use crate::outage_log::OutageLog;
use crate::submit::{CommitRequest, Results, send_results};
use crate::txn::TxnError;

/// Maximum time to resolve a commit in doubt, and to begin a new epoch.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

impl Writer {
    /// Determines whether a group in doubt was written, and answers its callers.
    pub(super) async fn resolve_in_doubt(
        &mut self,
        revision: i64,
        commit_id: i64,
        requests: Vec<CommitRequest>,
        results: Vec<Results>,
    ) -> Result<(), FatalError> {
        let deadline = Instant::now() + RESOLVE_TIMEOUT;
        let mut outcome = TxnError::InDoubt("database connection lost".to_owned());
        while Instant::now() < deadline {
            match self.find_outcome(revision, commit_id).await {
                Ok(Some(true)) => {
                    send_results(requests, results);
                    return Ok(());
                }
                Ok(None) => break,
                Ok(Some(false)) => {
                    outcome = TxnError::Unavailable("connection lost".to_owned());
                    break;
                }
                Err(WriterFailure::Fatal(fatal)) => return Err(fatal),
                Err(WriterFailure::Database(error)) => {
                    self.reader.pool.outage.record_failure(&error);
                    sleep(RETRY_DELAY).await;
                }
                Err(WriterFailure::Standby) => sleep(RETRY_DELAY).await,
                Err(WriterFailure::Sealed { .. }) => break,
            }
        }
        // Txns may have been rejected because of states that do not exist now.
        let refused = |results: Results| results.into_iter().map(|_| Err(outcome.clone())).collect();
        send_results(requests, results.into_iter().map(refused).collect());
        Ok(())
    }

    /// Reconnects and advances the revision: the write of the lost connection, if still running, then fails its check of the
    /// revision. Afterwards the log shows whether the group was written; `None` if its rows may have been deleted since.
    async fn find_outcome(&mut self, revision: i64, commit_id: i64) -> Result<Option<bool>, WriterFailure> {
        const WRITTEN: &str = "SELECT count(*) > 0, (SELECT s.revision FROM swept s WHERE s.id = 1) >= $1 FROM log \
            WHERE revision = $1 AND commit_id = $2";
        let (new_commit_id, step_timeout) = (random_id(), self.settings.step_timeout());
        let advance =
            format!("UPDATE meta SET revision = revision + 1, commit_id = {new_commit_id} WHERE id = 1");
        let mut connection = self.connect().await?;
        with_timeout(step_timeout, run(&mut connection, &advance)).await?;
        with_timeout(step_timeout, run(&mut connection, BEGIN)).await?;
        let query = sqlx::query_as(WRITTEN).bind(revision).bind(commit_id);
        let (is_written, is_swept): (bool, bool) =
            with_timeout(step_timeout, query.fetch_one(&mut connection)).await?;
        with_timeout(step_timeout, run(&mut connection, self.settings.end_sql())).await?;
        self.follow_log(&mut connection).await?;
        self.connection = Some(connection);
        Ok((is_written || !is_swept).then_some(is_written))
    }

    /// Connects, and checks that the database still has the published commits.
    async fn connect(&mut self) -> Result<PgConnection, WriterFailure> {
        let step_timeout = self.settings.step_timeout();
        let mut connection = session::connect(&self.settings, Purpose::Write).await?;
        with_timeout(step_timeout, run(&mut connection, BEGIN)).await?;
        if with_timeout(step_timeout, open::is_standby(&mut connection)).await? {
            return Err(WriterFailure::Standby);
        }
        with_timeout(step_timeout, run(&mut connection, self.settings.end_sql())).await?;
        self.follow_log(&mut connection).await?;
        self.reader.pool.outage.record_success();
        Ok(connection)
    }

    /// Reconnects. Returns false if the store closes. Rejects requests in the meantime.
    pub(super) async fn reconnect(&mut self) -> Result<bool, FatalError> {
        let reason = match self.connect().await {
            Ok(connection) => {
                self.connection = Some(connection);
                return Ok(true);
            }
            Err(WriterFailure::Fatal(fatal)) => return Err(fatal),
            Err(WriterFailure::Database(error)) => {
                self.reader.pool.outage.record_failure(&error);
                failure::reason(&error)
            }
            Err(WriterFailure::Standby) => "the server is a standby".to_owned(),
            Err(WriterFailure::Sealed { reason, .. }) => reason,
        };
        let retry = sleep(RETRY_DELAY);
        tokio::pin!(retry);
        loop {
            tokio::select! {
                () = self.closing.cancelled(), if !self.requests.is_closed() => self.requests.close(),
                request = self.requests.recv() => match request {
                    Some(request) => refuse(PendingGroup::new(request), &TxnError::Unavailable(reason.clone())),
                    None => return Ok(false),
                },
                () = &mut retry => return Ok(true),
            }
        }
    }

    /// Checks that the published commits still exist: the last applied row, and no later row up to the current revision of this
    /// process. The result is unknown once that row is compacted.
    pub(super) async fn check_tail(
        &mut self,
        connection: &mut PgConnection,
        meta: &Meta,
    ) -> Result<(), WriterFailure> {
        const ROWS: &str =
            "SELECT commit_id FROM log WHERE revision >= $1 AND revision <= $2 ORDER BY revision LIMIT 2";
        let Some((revision, commit_id)) = self.tail.filter(|(revision, _)| *revision > meta.compacted) else {
            return Ok(());
        };
        let select = sqlx::query_scalar(ROWS).bind(revision).bind(self.revision);
        let step_timeout = self.settings.step_timeout();
        let rows: Vec<i64> = with_timeout(step_timeout, select.fetch_all(&mut *connection)).await?;
        // The row may have been deleted since `meta` was read.
        let is_present = rows == [commit_id]
            || with_timeout(step_timeout, open::meta(connection)).await?.compacted >= revision;
        if is_present { Ok(()) } else { Err(WriterFailure::Fatal(FatalError::CommitsLost)) }
    }

    /// Begins a new epoch with the state of the database, after every published revision: clients must list again.
    pub(super) async fn begin_epoch(&mut self) {
        let deadline = Instant::now() + RESOLVE_TIMEOUT;
        let mut outage = OutageLog::default();
        while let Err(error) = self.try_begin_epoch().await {
            if Instant::now() >= deadline {
                tracing::error!(error = log_text(&error), "cannot record the new epoch");
                return;
            }
            if outage.record_failure().is_some() {
                tracing::error!(error = log_text(&error), "cannot record the new epoch, retrying");
            }
            sleep(RETRY_DELAY).await;
        }
    }

    async fn try_begin_epoch(&self) -> Result<(), sqlx::Error> {
        let step_timeout = self.settings.step_timeout();
        let mut connection = session::connect(&self.settings, Purpose::Write).await?;
        let found = self.identity.epoch;
        with_timeout(step_timeout, epoch::begin(&mut connection, found, (found, self.revision))).await?;
        session::close(connection, step_timeout).await;
        Ok(())
    }
}
