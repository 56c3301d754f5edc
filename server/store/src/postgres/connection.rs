//! Recovery from a lost connection: reconnects, determines whether a commit in doubt was written, and checks that the database
//! still has the published commits.

use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::{Instant, sleep};

use super::epoch;
use super::failure::{self, logged};
use super::fatal::{Failure, Fatal};
use super::meta::random_id;
use super::open::{self, Meta, RETRY};
use super::pending::Pending;
use super::session::{self, BEGIN, Purpose, in_time, run};
use super::writer::{Writer, refuse};
use crate::outage_log::OutageLog;
use crate::submit::{CommitRequest, Results, answer};
use crate::txn::TxnError;

/// Maximum time to resolve a commit in doubt, and to begin a new epoch.
const SETTLE: Duration = Duration::from_secs(10);

impl Writer {
    /// Determines whether a group in doubt was written, and answers its callers.
    pub(super) async fn settle(
        &mut self,
        revision: i64,
        commit_id: i64,
        requests: Vec<CommitRequest>,
        results: Vec<Results>,
    ) -> Result<(), Fatal> {
        let until = Instant::now() + SETTLE;
        let mut outcome = TxnError::Unknown("database connection lost".to_owned());
        while Instant::now() < until {
            match self.outcome(revision, commit_id).await {
                Ok(Some(true)) => {
                    answer(requests, results);
                    return Ok(());
                }
                Ok(None) => break,
                Ok(Some(false)) => {
                    outcome = TxnError::Unavailable("connection lost".to_owned());
                    break;
                }
                Err(Failure::Fatal(fatal)) => return Err(fatal),
                Err(Failure::Database(error)) => {
                    self.reader.pool.outage.failed(&error);
                    sleep(RETRY).await;
                }
                Err(Failure::Standby) => sleep(RETRY).await,
                Err(Failure::Sealed { .. }) => break,
            }
        }
        // Txns may have been rejected because of states that do not exist now.
        let refused = |results: Results| results.into_iter().map(|_| Err(outcome.clone())).collect();
        answer(requests, results.into_iter().map(refused).collect());
        Ok(())
    }

    /// Reconnects and advances the revision: the write of the lost connection, if still running, then fails its check of the
    /// revision. Afterwards the log shows whether the group was written; `None` if its rows may have been deleted since.
    async fn outcome(&mut self, revision: i64, commit_id: i64) -> Result<Option<bool>, Failure> {
        const WRITTEN: &str = "SELECT count(*) > 0, (SELECT s.revision FROM swept s WHERE s.id = 1) >= $1 FROM log \
            WHERE revision = $1 AND commit_id = $2";
        let (by, patience) = (random_id(), self.settings.patience());
        let moved = format!("UPDATE meta SET revision = revision + 1, commit_id = {by} WHERE id = 1");
        let mut connection = self.connect().await?;
        in_time(patience, run(&mut connection, &moved)).await?;
        in_time(patience, run(&mut connection, BEGIN)).await?;
        let query = sqlx::query_as(WRITTEN).bind(revision).bind(commit_id);
        let (is_there, is_swept): (bool, bool) = in_time(patience, query.fetch_one(&mut connection)).await?;
        in_time(patience, run(&mut connection, self.settings.end())).await?;
        self.follow_by(&mut connection).await?;
        self.connection = Some(connection);
        Ok((is_there || !is_swept).then_some(is_there))
    }

    /// Connects, and checks that the database still has the published commits.
    async fn connect(&mut self) -> Result<PgConnection, Failure> {
        let patience = self.settings.patience();
        let mut connection = session::connect(&self.settings, Purpose::Write).await?;
        in_time(patience, run(&mut connection, BEGIN)).await?;
        if in_time(patience, open::is_standby(&mut connection)).await? {
            return Err(Failure::Standby);
        }
        in_time(patience, run(&mut connection, self.settings.end())).await?;
        self.follow_by(&mut connection).await?;
        self.reader.pool.outage.answered();
        Ok(connection)
    }

    /// Reconnects. Returns false if the store closes. Rejects requests in the meantime.
    pub(super) async fn reconnect(&mut self) -> Result<bool, Fatal> {
        let why = match self.connect().await {
            Ok(connection) => {
                self.connection = Some(connection);
                return Ok(true);
            }
            Err(Failure::Fatal(fatal)) => return Err(fatal),
            Err(Failure::Database(error)) => {
                self.reader.pool.outage.failed(&error);
                failure::reason(&error)
            }
            Err(Failure::Standby) => "the server is a standby".to_owned(),
            Err(Failure::Sealed { reason, .. }) => reason,
        };
        let retry = sleep(RETRY);
        tokio::pin!(retry);
        loop {
            tokio::select! {
                () = self.closing.cancelled(), if !self.requests.is_closed() => self.requests.close(),
                request = self.requests.recv() => match request {
                    Some(request) => refuse(Pending::new(request), &TxnError::Unavailable(why.clone())),
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
    ) -> Result<(), Failure> {
        const ROWS: &str =
            "SELECT commit_id FROM log WHERE revision >= $1 AND revision <= $2 ORDER BY revision LIMIT 2";
        let Some((revision, commit_id)) = self.tail.filter(|(revision, _)| *revision > meta.compacted) else {
            return Ok(());
        };
        let select = sqlx::query_scalar(ROWS).bind(revision).bind(self.revision);
        let patience = self.settings.patience();
        let rows: Vec<i64> = in_time(patience, select.fetch_all(&mut *connection)).await?;
        // The row may have been deleted since `meta` was read.
        let is_there =
            rows == [commit_id] || in_time(patience, open::meta(connection)).await?.compacted >= revision;
        if is_there { Ok(()) } else { Err(Failure::Fatal(Fatal::Lost)) }
    }

    /// Begins a new epoch with the state of the database, after every published revision: clients must list again.
    pub(super) async fn begin_epoch(&mut self) {
        let until = Instant::now() + SETTLE;
        let mut outage = OutageLog::default();
        while let Err(error) = self.try_begin_epoch().await {
            if Instant::now() >= until {
                tracing::error!(error = logged(&error), "cannot record the new epoch");
                return;
            }
            if outage.failed().is_some() {
                tracing::error!(error = logged(&error), "cannot record the new epoch, retrying");
            }
            sleep(RETRY).await;
        }
    }

    async fn try_begin_epoch(&self) -> Result<(), sqlx::Error> {
        let patience = self.settings.patience();
        let mut connection = session::connect(&self.settings, Purpose::Write).await?;
        let found = self.identity.epoch;
        in_time(patience, epoch::begin(&mut connection, found, (found, self.revision))).await?;
        session::close(connection, patience).await;
        Ok(())
    }
}
