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
use crate::current::{Found, State};
use crate::decode::{DecodeError, Decoder};
use crate::error::StoreError;
use crate::exact::{self, Range};
use crate::hub::Hub;
use crate::index::Indexer;
use crate::key::Key;
use crate::latest::Latest;
use crate::metrics::Metrics;
use crate::record::Record;
use crate::seal::Seal;
use crate::store::{Identity, ListAt, Page};
use crate::submit::Load;
use crate::unreadable::Unreadable;

/// How often an object is read whose history is forgotten meanwhile.
const READS: u32 = 3;

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
        // Not `namespace = $3 AND name > $4`: the database would not see then that the index has the order of keys.
        Some(_) => "(namespace, name) > ($3, $4) AND namespace <= $3",
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

    /// Where the current state of a resource is: all that was acknowledged, by whomever, before this is called.
    pub(super) async fn current(&self, slot: &Slot) -> Result<State, StoreError> {
        self.latest.reach().await?;
        self.ensure_loaded(slot).await?;
        let revision = self.hub.revision();
        Ok(slot.snapshot(revision).map_or(State::Stored(revision), State::Held))
    }

    /// An object as it is now.
    pub(super) async fn find(&self, key: &Key) -> Result<Found, StoreError> {
        self.latest.reach().await?;
        let slot = self.cache.slot(key.resource());
        self.ensure_loaded(&slot).await?;
        if let Some(snapshot) = slot.snapshot(self.hub.revision()) {
            return Ok(Found::in_snapshot(&snapshot, key));
        }
        self.metrics.reads_past_cache.inc();
        let mut last = StoreError::Closed;
        for _ in 0..READS {
            let revision = self.hub.revision();
            match self.read_at(key, revision).await {
                Ok(object) => {
                    if let Some(Err(object)) = &object {
                        self.cache.note_unreadable(&slot, revision, std::slice::from_ref(object));
                    }
                    return Ok(Found { revision, object });
                }
                Err(error @ StoreError::Compacted { .. }) => last = error,
                Err(error) => return Err(error),
            }
            // What is shown here is behind what was forgotten.
            self.latest.reach_again().await?;
        }
        Err(last)
    }

    /// What the database says of itself after a read at a revision, by the connection that has read.
    async fn look(&self, lent: &mut Lent<'_>, revision: i64) -> Result<Meta, StoreError> {
        let meta = self.pool.in_time(open::meta(lent)).await.map_err(failed)?;
        latest::check(&meta, &self.identity, revision, &self.pool, &self.wake)?;
        self.hub.set_compacted(meta.compacted.min(self.hub.revision()));
        Ok(meta)
    }

    /// Whether history still goes back to a revision at which something was read; the connection is given back.
    pub(super) async fn end_exact(&self, mut lent: Lent<'_>, revision: i64) -> Result<(), StoreError> {
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
            "SELECT k.namespace, k.name, k.revision, l.value FROM (SELECT * FROM {states} WHERE NOT k.deleted \
             ORDER BY k.namespace, k.name LIMIT $5) k JOIN log l ON l.revision = k.revision ORDER BY k.namespace, k.name"
        );
        let (mut page, mut seen) = (Page::default(), 0);
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
            seen += found;
            if wanted != Some(found) {
                return Ok(page);
            }
        }
        let select =
            format!("SELECT count(*) FROM (SELECT 1 FROM {states} WHERE NOT k.deleted LIMIT $5) found");
        let count = async |most: Option<i64>| {
            let count = sqlx::query_scalar(AssertSqlSafe(select)).bind(&resource).bind(query.revision);
            let count = count.bind(range.after.0).bind(range.after.1).bind(most);
            self.pool.in_time(count.fetch_one(&mut **lent)).await.map_err(failed)
        };
        page.remaining = exact::remaining(&self.cache, slot, query, &page, seen, count).await?;
        Ok(page)
    }

    pub(super) async fn get_at(&self, key: &Key, revision: i64) -> Result<Option<Arc<Record>>, StoreError> {
        self.hub.check(revision)?;
        match self.read_at(key, revision).await? {
            Some(Ok(record)) => Ok(Some(record)),
            Some(Err(object)) => Err(StoreError::corrupt(&object)),
            None => Ok(None),
        }
    }

    /// Reads an object as of a revision.
    async fn read_at(
        &self,
        key: &Key,
        revision: i64,
    ) -> Result<Option<Result<Arc<Record>, Unreadable>>, StoreError> {
        const SELECT: &str = "SELECT revision, value, deleted, uid FROM log WHERE resource = $1 AND namespace = $2 \
            AND name = $3 AND revision <= $4 ORDER BY revision DESC LIMIT 1";
        let (namespace, name) = row::columns(key.path());
        let select = sqlx::query(SELECT).bind(key.resource().to_string()).bind(namespace).bind(name);
        let mut lent = self.pool.take().await.map_err(failed)?;
        let found = self.pool.in_time(select.bind(revision).fetch_optional(&mut *lent));
        let row = found.await.map_err(failed)?;
        self.end_exact(lent, revision).await?;
        let Some(row) = row.filter(|row| !row.get::<bool, _>(2)) else { return Ok(None) };
        let (revision, value) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
        let uid: &str = row.try_get(3).map_err(failed)?;
        let decoded = self.decoder().value(key.clone(), revision, value).await.map_err(undecoded)?;
        Ok(Some(decoded.map(Arc::new).map_err(|object| object.with_uid(&row::from_column(uid)))))
    }
}

/// What a value is to the caller of which nothing can be said.
pub(super) fn undecoded(error: DecodeError) -> StoreError {
    match error {
        DecodeError::Database(error) => failed(error),
        DecodeError::Sealed { key, reason } => StoreError::Sealed { key, reason },
    }
}
