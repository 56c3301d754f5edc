//! Reads the current state of resources, and what they were at an exact revision.
//!
//! Other processes forget history, too: after a read the database is asked, by the connection that has read, how far that has come.

use std::sync::Arc;

use futures::TryStreamExt;
use sqlx::{AssertSqlSafe, Row};
use tokio::sync::{Notify, Semaphore};

use super::failure::failed;
use super::latest;
use super::open::{self, Meta};
use super::pool::{Connections, Lent};
use super::row;
use crate::cache::{Cache, Slot};
use crate::decode::{DecodeError, Decoder};
use crate::error::StoreError;
use crate::exact::Range;
use crate::hub::Hub;
use crate::index::Indexer;
use crate::key::Key;
use crate::latest::{Latest, ask_again};
use crate::metrics::Metrics;
use crate::record::Record;
use crate::seal::Seal;
use crate::snapshot::Snapshot;
use crate::store::{Identity, ListAt, Page};
use crate::submit::Load;
use crate::txn::Txn;
use crate::unreadable::Unreadable;

/// How often a resource is read whose history is forgotten meanwhile.
const LOADS: u32 = 3;

/// What reading needs; shared by the store and its subscriptions.
pub(super) struct Reader {
    pub(super) pool: Arc<Connections>,
    pub(super) identity: Identity,
    /// The writer looks what others have written.
    pub(super) wake: Arc<Notify>,
    pub(super) indexer: Arc<dyn Indexer>,
    pub(super) seal: Arc<Seal>,
    pub(super) cache: Arc<Cache>,
    pub(super) hub: Arc<Hub>,
    pub(super) metrics: Metrics,
    pub(super) latest: Latest,
    /// One permit for each part of history that is read at a time.
    pub(super) resumes: Semaphore,
}

/// The states at a revision (`$2`) of the keys of a resource (`$1`) behind a key (`$3`, `$4`), in key order: of the namespace
/// `$3` or of all. Two texts: a plan that serves both reads all namespaces for one.
fn states(range: &Range) -> String {
    let keys = match range.namespace {
        Some(_) => "namespace = $3 AND name > $4",
        None => "(namespace, name) > ($3, $4)",
    };
    format!(
        "(SELECT DISTINCT ON (namespace, name) namespace, name, revision, deleted FROM log \
         WHERE resource = $1 AND revision <= $2 AND {keys} ORDER BY namespace, name, revision DESC) k"
    )
}

impl Reader {
    /// What reads values.
    pub(super) fn decoder(&self) -> Decoder<'_> {
        Decoder { indexer: &*self.indexer, seal: &self.seal }
    }

    /// The current state of a resource: all that was acknowledged, by whomever, before this is called.
    pub(super) async fn snapshot(&self, slot: &Slot) -> Result<Snapshot, StoreError> {
        self.latest.reach().await?;
        self.ensure_loaded(slot).await?;
        slot.snapshot(self.hub.revision()).ok_or(StoreError::Closed)
    }

    /// What the database says of itself after a read at a revision, by the connection that has read.
    async fn look(&self, lent: &mut Lent<'_>, revision: i64) -> Result<Meta, StoreError> {
        let meta = self.pool.in_time(open::meta(lent)).await.map_err(failed)?;
        latest::check(&meta, &self.identity, revision, &self.pool, &self.wake)?;
        self.hub.set_compacted(meta.compacted.min(self.hub.revision()));
        Ok(meta)
    }

    /// Whether history still goes back to a revision at which something was read; the connection is given back.
    async fn end_exact(&self, mut lent: Lent<'_>, revision: i64) -> Result<(), StoreError> {
        let oldest = self.look(&mut lent, revision).await?.compacted;
        lent.give_back().await.map_err(failed)?;
        if oldest > revision { Err(StoreError::Compacted { oldest }) } else { Ok(()) }
    }

    /// Whether what was read is whole: nothing that was current at a revision, or came later, is gone. The connection is given back.
    pub(super) async fn end_whole(&self, mut lent: Lent<'_>, revision: i64) -> Result<(), StoreError> {
        let meta = self.look(&mut lent, revision).await?;
        lent.give_back().await.map_err(failed)?;
        if meta.swept > revision { Err(StoreError::Compacted { oldest: meta.compacted }) } else { Ok(()) }
    }

    /// The state of a resource at a revision, in key order.
    async fn state(
        &self,
        lent: &mut Lent<'_>,
        slot: &Slot,
        revision: i64,
    ) -> Result<(Vec<Arc<Record>>, Vec<Unreadable>), StoreError> {
        const SELECT: &str = "SELECT l.namespace, l.name, l.revision, l.value, l.uid FROM (\
            SELECT DISTINCT ON (namespace, name) revision, deleted FROM log WHERE resource = $1 AND revision <= $2 \
            ORDER BY namespace, name, revision DESC) k JOIN log l ON l.revision = k.revision WHERE NOT k.deleted";
        let mut rows = sqlx::query(SELECT).bind(slot.resource.to_string()).bind(revision).fetch(&mut **lent);
        let (mut records, mut unreadable) = (Vec::new(), Vec::new());
        while let Some(row) = self.pool.in_time(rows.try_next()).await.map_err(failed)? {
            match self.decoder().pg_state(&slot.resource, &row, 0).await.map_err(undecoded)? {
                Ok(record) => records.push(Arc::new(record)),
                Err(object) => {
                    tracing::error!(
                        object = %object.key(), revision = object.revision(), reason = object.reason(),
                        "a stored object cannot be read: it is left out of lists"
                    );
                    let uid: &str = row.try_get(4).map_err(failed)?;
                    unreadable.push(object.with_uid(&row::from_column(uid)));
                }
            }
        }
        records.sort_by(|a, b| a.key.path().cmp(b.key.path()));
        Ok((records, unreadable))
    }

    /// The answer to an exact read: from memory when nothing has changed since, else from the log.
    pub(super) async fn list_at(&self, query: ListAt) -> Result<Page, StoreError> {
        self.hub.check(query.revision)?;
        let slot = self.cache.slot(&query.scope.resource);
        let snapshot = slot.snapshot(self.hub.revision());
        if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.changed() <= query.revision) {
            return Ok(Page::of(&snapshot, &query));
        }
        let Some(range) = Range::new(&query, row::to_column) else { return Ok(Page::default()) };
        let mut lent = self.pool.take().await.map_err(failed)?;
        let page = self.list_from_log(&mut lent, &slot, range, &query).await?;
        self.end_exact(lent, query.revision).await?;
        Ok(page)
    }

    async fn list_from_log(
        &self,
        lent: &mut Lent<'_>,
        slot: &Slot,
        mut range: Range,
        query: &ListAt,
    ) -> Result<Page, StoreError> {
        let states = states(&range);
        let select = format!(
            "SELECT k.namespace, k.name, k.revision, l.value FROM {states} \
             JOIN log l ON l.revision = k.revision WHERE NOT k.deleted ORDER BY k.namespace, k.name LIMIT $5"
        );
        let mut page = Page::default();
        let resource = slot.resource.to_string();
        // What cannot be read takes no place in the page.
        while query.limit.is_none_or(|limit| page.records.len() < limit) {
            let wanted = query.limit.map(|limit| limit - page.records.len());
            let limit = wanted.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
            let query = sqlx::query(AssertSqlSafe(select.as_str())).bind(&resource).bind(query.revision);
            let query = query.bind(range.after.0.clone()).bind(range.after.1.clone()).bind(limit);
            let mut rows = query.fetch(&mut **lent);
            let mut found = 0;
            while let Some(row) = self.pool.in_time(rows.try_next()).await.map_err(failed)? {
                found += 1;
                range.after = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
                match self.decoder().pg_state(&slot.resource, &row, 0).await.map_err(undecoded)? {
                    Ok(record) => page.records.push(Arc::new(record)),
                    Err(object) => page.unreadable.push(object),
                }
            }
            if wanted != Some(found) {
                return Ok(page);
            }
        }
        let count =
            format!("SELECT count(*) FROM (SELECT 1 FROM {states} WHERE NOT k.deleted LIMIT $5) found");
        let count = sqlx::query_scalar(AssertSqlSafe(count)).bind(&resource).bind(query.revision);
        let most = if query.counted { None } else { Some(1_i64) };
        let count = count.bind(range.after.0).bind(range.after.1).bind(most);
        let remaining: i64 = self.pool.in_time(count.fetch_one(&mut **lent)).await.map_err(failed)?;
        page.remaining = u64::try_from(remaining).unwrap_or(0);
        Ok(page)
    }

    pub(super) async fn get_at(&self, key: &Key, revision: i64) -> Result<Option<Arc<Record>>, StoreError> {
        const SELECT: &str = "SELECT revision, value, deleted FROM log WHERE resource = $1 AND namespace = $2 \
            AND name = $3 AND revision <= $4 ORDER BY revision DESC LIMIT 1";
        self.hub.check(revision)?;
        let (namespace, name) = row::columns(key.path());
        let select = sqlx::query(SELECT).bind(key.resource().to_string()).bind(namespace).bind(name);
        let mut lent = self.pool.take().await.map_err(failed)?;
        let found = self.pool.in_time(select.bind(revision).fetch_optional(&mut *lent));
        let row = found.await.map_err(failed)?;
        self.end_exact(lent, revision).await?;
        let Some(row) = row.filter(|row| !row.get::<bool, _>(2)) else { return Ok(None) };
        let value = row.try_get(1).map_err(failed)?;
        let revision = row.try_get(0).map_err(failed)?;
        let record = self.decoder().value(key.clone(), revision, value).await.map_err(undecoded)?;
        Ok(Some(Arc::new(record.map_err(|object| StoreError::corrupt(&object))?)))
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
        if slot.is_loaded() {
            return Ok(());
        }
        let _one_loads = slot.loading.lock().await;
        let mut last = Ok(());
        for _ in 0..LOADS {
            if slot.is_loaded() {
                return Ok(());
            }
            if last.is_err() {
                // What is in memory is behind what was forgotten.
                ask_again();
                self.latest.reach().await?;
            }
            let mut lent = self.pool.take().await.map_err(failed)?;
            let loading = self.cache.begin_load(slot);
            let (records, unreadable) = self.state(&mut lent, slot, loading.revision).await?;
            last = self.end_whole(lent, loading.revision).await;
            if last.is_ok() {
                if !unreadable.is_empty() {
                    self.metrics.unreadable(&slot.resource, unreadable.len());
                }
                self.cache.end_load(&loading, &records, unreadable);
                return Ok(());
            }
        }
        last
    }
}

/// What a value is to the caller of which nothing can be said.
pub(super) fn undecoded(error: DecodeError) -> StoreError {
    match error {
        DecodeError::Database(error) => failed(error),
        DecodeError::Sealed { key, reason } => StoreError::Sealed { key, reason },
    }
}
