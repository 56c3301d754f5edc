//! Compares the states in the file with those in the index of keys, through which all reads find them.

use std::collections::BTreeMap;

use super::failure::{self, is_damage};
use super::reader::{Reader, store_error};
use crate::error::StoreError;
use crate::unreadable::MissingStates;

/// Rows of the file that one step reads: other scans wait for it, and the write-ahead log cannot restart.
const STEP_ROWS: i64 = 10_000;

/// Numbers of states by resource ID.
type StateCounts = BTreeMap<i64, i64>;

impl Reader {
    /// Determines the resources for which the file and the index have different numbers of states up to a revision. The result
    /// is [`MissingStates::Unknown`] if history was compacted in the meantime, so that the numbers are from different times, or
    /// if the comparison ended early because `should_continue` returned false between two steps.
    pub(super) async fn find_missing_states(
        &self,
        until: i64,
        should_continue: &(dyn Fn() -> bool + Sync),
    ) -> Result<MissingStates, StoreError> {
        match self.differences(until, should_continue).await {
            Ok(None) => Ok(MissingStates::Unknown),
            Ok(Some(different)) => Ok(self.report(&different)),
            Err(error) if is_damage(&error) => {
                let error = failure::log_text(&error);
                tracing::error!(
                    error,
                    "database file is damaged, lists may be incomplete; run `portico doctor`"
                );
                Ok(MissingStates::Any)
            }
            Err(error) => Err(store_error(error)),
        }
    }

    /// Returns the IDs of the resources that differ, if the comparison is valid.
    async fn differences(
        &self,
        until: i64,
        should_continue: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Vec<i64>>, sqlx::Error> {
        let compacted = self.stored_compacted().await?;
        let stored = self.stored_states(until, should_continue).await?;
        let indexed = self.indexed_states(until, should_continue).await?;
        let (Some(stored), Some(indexed)) = (stored, indexed) else { return Ok(None) };
        if self.stored_compacted().await? != compacted {
            return Ok(None);
        }
        let differs = |id: &&i64| stored.get(id) != indexed.get(id);
        let different = stored
            .keys()
            .chain(indexed.keys().filter(|id| !stored.contains_key(id)))
            .filter(differs)
            .copied()
            .collect();
        Ok(Some(different))
    }

    fn report(&self, different: &[i64]) -> MissingStates {
        if different.is_empty() {
            return MissingStates::None;
        }
        let name = |id: &i64| self.cache.by_id(*id).map(|slot| slot.resource.clone());
        // States with an unknown resource ID may belong to any resource.
        let incomplete = different
            .iter()
            .map(name)
            .collect::<Option<_>>()
            .map_or(MissingStates::Any, MissingStates::Resources);
        let display_name =
            |id: &i64| name(id).map_or_else(|| format!("number {id}"), |resource| resource.to_string());
        let resources = different.iter().map(display_name).collect::<Vec<_>>().join(", ");
        tracing::error!(
            resources,
            "states are missing from the database file or the index, lists may be incomplete; run `portico doctor`"
        );
        incomplete
    }

    async fn stored_compacted(&self) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar("SELECT compacted FROM meta WHERE id = 1").fetch_one(&self.pool).await
    }

    /// Counts the states in the file in short steps: its pages contain the values as well.
    async fn stored_states(
        &self,
        until: i64,
        should_continue: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<StateCounts>, sqlx::Error> {
        const STEP: &str = "SELECT CAST(resource AS INTEGER) AS id, count(*), max(revision) FROM (\
            SELECT resource, revision FROM log NOT INDEXED WHERE revision > ? AND revision <= ? ORDER BY revision LIMIT ?) GROUP BY id";
        let (mut counts, mut after) = (StateCounts::new(), i64::MIN);
        while should_continue() {
            let permit = self.scan_permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
            let step = sqlx::query_as(STEP).bind(after).bind(until).bind(STEP_ROWS);
            let found: Vec<(i64, i64, i64)> = step.fetch_all(&self.pool).await?;
            drop(permit);
            let Some(last) = found.iter().map(|(_, _, last)| *last).max() else { return Ok(Some(counts)) };
            after = last;
            found.into_iter().for_each(|(id, count, _)| *counts.entry(id).or_default() += count);
        }
        Ok(None)
    }

    /// Counts the states in the index, one resource per step.
    async fn indexed_states(
        &self,
        until: i64,
        should_continue: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<StateCounts>, sqlx::Error> {
        const STEP: &str = "SELECT r.id, (SELECT count(*) FROM log INDEXED BY log_key WHERE resource = r.id AND revision <= ?2) \
            FROM (SELECT min(resource) AS id FROM log INDEXED BY log_key \
            WHERE resource > ?1 AND typeof(resource) = 'integer') r WHERE r.id IS NOT NULL";
        let (mut counts, mut after) = (StateCounts::new(), i64::MIN);
        while should_continue() {
            let permit = self.scan_permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
            let step = sqlx::query_as(STEP).bind(after).bind(until).fetch_optional(&self.pool);
            let found: Option<(i64, i64)> = step.await?;
            drop(permit);
            let Some((id, count)) = found else { return Ok(Some(counts)) };
            after = id;
            if count > 0 {
                counts.insert(id, count);
            }
        }
        Ok(None)
    }
}
