//! Reads a resource whole: into memory where there is room for it, or for one caller.

use futures::TryStreamExt;
use sqlx::Row;

use super::failure::failed;
use super::pool::Lent;
use super::read::{Reader, undecoded};
use super::row;
use crate::cache::{Cache, Intake, Slot, average_weight};
use crate::error::StoreError;
use crate::snapshot::Snapshot;
use crate::submit::Load;
use crate::txn::Txn;

/// How often a resource is read whose history is forgotten meanwhile.
const LOADS: u32 = 3;

impl Reader {
    /// The current state of a resource, whole: all that was acknowledged, by whomever, before this is called.
    pub(super) async fn snapshot(&self, slot: &Slot) -> Result<Snapshot, StoreError> {
        self.latest.reach().await?;
        self.ensure_loaded(slot).await?;
        match slot.snapshot(self.hub.revision()) {
            Some(snapshot) => Ok(snapshot),
            None => self.read_whole(slot).await,
        }
    }

    /// Reads one that is not in memory. One connection is left for other reads.
    async fn read_whole(&self, slot: &Slot) -> Result<Snapshot, StoreError> {
        self.metrics.reads_past_cache.inc();
        let _permit = self.resumes.acquire().await.map_err(|_| StoreError::Closed)?;
        let mut last = StoreError::Closed;
        for _ in 0..LOADS {
            let mut lent = self.pool.take().await.map_err(failed)?;
            let (begun, mut intake) = (self.cache.begin_read(slot), self.cache.intake_for_caller());
            // For a caller there is room.
            let _is_whole = self.read_state(&mut lent, slot, begun.revision, &mut intake).await?;
            match self.end_whole(lent, begun.revision).await {
                Ok(()) => return Ok(self.cache.snapshot_of(slot, &begun, intake)),
                Err(error) => last = error,
            }
            // What is shown here is behind what was forgotten.
            self.latest.reach_again().await?;
        }
        Err(last)
    }

    /// Reads the state of a resource at a revision; false when there is no room for all of it.
    async fn read_state(
        &self,
        lent: &mut Lent<'_>,
        slot: &Slot,
        revision: i64,
        intake: &mut Intake,
    ) -> Result<bool, StoreError> {
        const SELECT: &str = "SELECT l.namespace, l.name, l.revision, l.value, l.uid FROM (\
            SELECT DISTINCT ON (namespace, name) revision, deleted FROM log WHERE resource = $1 AND revision <= $2 \
            ORDER BY namespace, name, revision DESC) k JOIN log l ON l.revision = k.revision WHERE NOT k.deleted";
        let mut rows = sqlx::query(SELECT).bind(slot.resource.to_string()).bind(revision).fetch(&mut **lent);
        while let Some(row) = self.pool.in_time(rows.try_next()).await.map_err(failed)? {
            let mut read = self.decoder().pg_state(&slot.resource, &row, 0).await.map_err(undecoded)?;
            if let Err(object) = &mut read {
                tracing::error!(
                    object = %object.key(), revision = object.revision(), reason = object.reason(),
                    "a stored object cannot be read: it is left out of lists"
                );
                let uid: &str = row.try_get(4).map_err(failed)?;
                *object = object.clone().with_uid(&row::from_column(uid));
            }
            if !intake.take(read) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// About how many bytes the objects of a resource would take in memory; of those beyond `most` one alone is counted.
    async fn estimate(&self, slot: &Slot, most: i64) -> Result<i64, StoreError> {
        const AVERAGE: &str = "SELECT avg(bytes)::bigint FROM (SELECT octet_length(value) AS bytes FROM log \
            WHERE resource = $1 AND NOT deleted LIMIT 128) few";
        const COUNT: &str = "SELECT count(*) FROM (SELECT 1 FROM (SELECT DISTINCT ON (namespace, name) deleted FROM log \
            WHERE resource = $1 ORDER BY namespace, name, revision DESC) k WHERE NOT k.deleted LIMIT $2) found";
        let resource = slot.resource.to_string();
        let average = sqlx::query_scalar(AVERAGE).bind(&resource);
        let average: Option<i64> =
            self.pool.read(async |c| average.fetch_one(c).await).await.map_err(failed)?;
        let each = average_weight(average.unwrap_or_default());
        if let Some(count) = slot.count() {
            return Ok(i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(each));
        }
        let count = sqlx::query_scalar(COUNT).bind(&resource).bind(most / each + 1);
        let count: i64 = self.pool.read(async |c| count.fetch_one(c).await).await.map_err(failed)?;
        Ok(count.saturating_mul(each))
    }
}

impl Load for Reader {
    fn cache(&self) -> &Cache {
        &self.cache
    }

    fn unacceptable(&self, txn: &Txn) -> Option<String> {
        txn.operations.iter().find_map(row::beyond_index)
    }

    async fn ensure_loaded(&self, slot: &Slot) -> Result<(), StoreError> {
        if slot.is_settled() {
            return Ok(());
        }
        let Some(_turn) = slot.turn_to_load().await else { return Ok(()) };
        let mut last = Ok(());
        for _ in 0..LOADS {
            if slot.is_settled() {
                return Ok(());
            }
            if last.is_err() {
                // What is in memory is behind what was forgotten.
                self.latest.reach_again().await?;
            }
            if let Some(most) = self.cache.most(slot) {
                let bytes = self.estimate(slot, most).await?;
                if !self.cache.make_room(slot, bytes) {
                    return Ok(());
                }
            }
            let mut lent = self.pool.take().await.map_err(failed)?;
            let loading = self.cache.begin_load(slot);
            let mut intake = self.cache.intake(slot);
            if !self.read_state(&mut lent, slot, loading.revision, &mut intake).await? {
                self.cache.leave(slot, intake.bytes());
                // The rest of the answer is of no use: the connection is not, either.
                return Ok(());
            }
            last = self.end_whole(lent, loading.revision).await;
            if last.is_ok() {
                if intake.has_unreadable() {
                    self.metrics.unreadable(&slot.resource, intake.unreadable_mut().len());
                }
                self.cache.end_load(&loading, intake);
                return Ok(());
            }
        }
        last
    }
}
