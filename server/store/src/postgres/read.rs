//! Reads the current state of resources, and what they were at an exact revision.
//!
//! Other processes forget history, too: after a read the database is asked how far that has come ([`Reader::whole`]).

use std::cmp::Ordering;
use std::sync::Arc;

use futures::TryStreamExt;
use sqlx::Row;
use sqlx::postgres::PgPool;
use tokio::sync::Semaphore;

use super::failure::failed;
use super::latest::Latest;
use super::open;
use super::row;
use crate::cache::{Cache, Slot};
use crate::decode::{DecodeError, Decoder};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::index::Indexer;
use crate::key::Key;
use crate::metrics::Metrics;
use crate::record::Record;
use crate::seal::Seal;
use crate::snapshot::Snapshot;
use crate::store::{ListAt, Page};
use crate::submit::Load;
use crate::unreadable::Unreadable;

/// How often a resource is read whose history is forgotten meanwhile.
const LOADS: u32 = 3;

/// What reading needs; shared by the store and its subscriptions.
pub(super) struct Reader {
    pub(super) pool: PgPool,
    pub(super) indexer: Arc<dyn Indexer>,
    pub(super) seal: Arc<Seal>,
    pub(super) cache: Arc<Cache>,
    pub(super) hub: Arc<Hub>,
    pub(super) metrics: Metrics,
    pub(super) latest: Latest,
    /// One permit for each part of history that is read at a time.
    pub(super) resumes: Semaphore,
}

/// What an exact read looks at.
struct Range {
    /// With its closing '/'; None: all.
    namespace: Option<String>,
    /// Only what follows this namespace and name.
    after: (String, String),
}

/// The states at a revision (`$2`) of the keys of a resource (`$1`) behind a key (`$4`, `$5`) in a namespace (`$3`) or all, in
/// key order.
macro_rules! states {
    () => {
        "(SELECT DISTINCT ON (namespace, name) namespace, name, revision, deleted FROM log \
         WHERE resource = $1 AND revision <= $2 AND ($3::text IS NULL OR namespace = $3) \
         AND (namespace, name) > ($4, $5) ORDER BY namespace, name, revision DESC) k"
    };
}

impl Reader {
    /// What reads values.
    pub(super) fn decoder(&self) -> Decoder<'_> {
        Decoder { indexer: &*self.indexer, seal: &self.seal }
    }

    /// The current state of a resource: all that was acknowledged, by whomever, before this is called.
    pub(super) async fn snapshot(&self, slot: &Slot) -> Result<Snapshot, StoreError> {
        self.latest.reach(&self.hub).await?;
        self.ensure_loaded(slot).await?;
        slot.snapshot(self.hub.revision()).ok_or(StoreError::Closed)
    }

    /// Whether nothing has been forgotten that a read at this revision needed; the read is over.
    pub(super) async fn whole(&self, revision: i64) -> Result<(), StoreError> {
        let meta = open::meta(&self.pool).await.map_err(failed)?;
        self.hub.set_compacted(meta.compacted);
        self.hub.check(revision)
    }

    /// The state of a resource at a revision, in key order.
    async fn state(
        &self,
        slot: &Slot,
        revision: i64,
    ) -> Result<(Vec<Arc<Record>>, Vec<Unreadable>), StoreError> {
        const SELECT: &str = "SELECT l.namespace, l.name, l.revision, l.value, l.uid FROM (\
            SELECT DISTINCT ON (namespace, name) revision, deleted FROM log WHERE resource = $1 AND revision <= $2 \
            ORDER BY namespace, name, revision DESC) k JOIN log l ON l.revision = k.revision WHERE NOT k.deleted";
        let mut rows = sqlx::query(SELECT).bind(slot.resource.to_string()).bind(revision).fetch(&self.pool);
        let (mut records, mut unreadable) = (Vec::new(), Vec::new());
        while let Some(row) = rows.try_next().await.map_err(failed)? {
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
        let page = self.list_from_log(&slot, &query).await?;
        self.whole(query.revision).await?;
        Ok(page)
    }

    async fn list_from_log(&self, slot: &Slot, query: &ListAt) -> Result<Page, StoreError> {
        const SELECT: &str = concat!(
            "SELECT k.namespace, k.name, k.revision, l.value FROM ",
            states!(),
            " JOIN log l ON l.revision = k.revision WHERE NOT k.deleted ORDER BY k.namespace, k.name LIMIT $6"
        );
        const COUNT: &str = concat!(
            "SELECT count(*) FROM (SELECT 1 FROM ",
            states!(),
            " WHERE NOT k.deleted LIMIT $6) found"
        );
        let mut page = Page::default();
        let Some(mut range) = Range::new(query) else { return Ok(page) };
        let resource = slot.resource.to_string();
        // What cannot be read takes no place in the page.
        while query.limit.is_none_or(|limit| page.records.len() < limit) {
            let wanted = query.limit.map(|limit| limit - page.records.len());
            let limit = wanted.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
            let select =
                sqlx::query(SELECT).bind(&resource).bind(query.revision).bind(range.namespace.clone());
            let select = select.bind(range.after.0.clone()).bind(range.after.1.clone()).bind(limit);
            let mut rows = select.fetch(&self.pool);
            let mut found = 0;
            while let Some(row) = rows.try_next().await.map_err(failed)? {
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
        let count = sqlx::query_scalar(COUNT).bind(&resource).bind(query.revision).bind(range.namespace);
        let most = if query.counted { None } else { Some(1_i64) };
        let count = count.bind(range.after.0).bind(range.after.1).bind(most);
        let remaining: i64 = count.fetch_one(&self.pool).await.map_err(failed)?;
        page.remaining = u64::try_from(remaining).unwrap_or(0);
        Ok(page)
    }

    pub(super) async fn get_at(&self, key: &Key, revision: i64) -> Result<Option<Arc<Record>>, StoreError> {
        const SELECT: &str = "SELECT revision, value, deleted FROM log WHERE resource = $1 AND namespace = $2 \
            AND name = $3 AND revision <= $4 ORDER BY revision DESC LIMIT 1";
        self.hub.check(revision)?;
        let (namespace, name) = row::columns(key.path());
        let select = sqlx::query(SELECT).bind(key.resource().to_string()).bind(namespace).bind(name);
        let row = select.bind(revision).fetch_optional(&self.pool).await.map_err(failed)?;
        self.whole(revision).await?;
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
            let loading = self.cache.begin_load(slot);
            let (records, unreadable) = self.state(slot, loading.revision).await?;
            last = self.whole(loading.revision).await;
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

impl Range {
    /// None when nothing can be in it.
    fn new(query: &ListAt) -> Option<Self> {
        let (namespace, name) = row::columns(query.after.as_deref().unwrap_or_default());
        let (namespace, name) = (namespace.into_owned(), name.into_owned());
        let Some(only) = query.scope.namespace.as_ref().map(|only| format!("{}/", row::to_column(only)))
        else {
            return Some(Self { namespace: None, after: (namespace, name) });
        };
        let after = match namespace.cmp(&only) {
            Ordering::Less => String::new(),
            Ordering::Equal => name,
            Ordering::Greater => return None,
        };
        Some(Self { after: (only.clone(), after), namespace: Some(only) })
    }
}

/// What a value is to the caller of which nothing can be said.
pub(super) fn undecoded(error: DecodeError) -> StoreError {
    match error {
        DecodeError::Database(error) => failed(error),
        DecodeError::Sealed { key, reason } => StoreError::Sealed { key, reason },
    }
}
