//! Reads the prior states of a group of writes that are not cached. Uses the writing connection, because no other connection
//! writes to the file.

use std::collections::{BTreeSet, HashMap};

use sqlx::{Row, SqliteConnection};

use super::row;
use super::statement::StatementBatch;
use crate::cache::Cache;
use crate::decode::Decoder;
use crate::key::{Key, split_path};
use crate::prior_states::{PriorState, prior_state};

/// Returns the states of these objects, without those that do not exist.
pub(crate) async fn read_prior_states(
    connection: &mut SqliteConnection,
    decoder: &Decoder<'_>,
    cache: &Cache,
    keys: BTreeSet<Key>,
) -> Result<HashMap<Key, PriorState>, sqlx::Error> {
    let keys: Vec<(i64, Key)> = (0..).zip(keys).collect();
    let mut batch = StatementBatch::default();
    batch.rows(
        "WITH k(at, resource, namespace, name) AS (VALUES ",
        "(?,?,?,?)",
        ") SELECT k.at, l.revision, l.value, l.uid, l.checksum FROM k CROSS JOIN log l ON l.revision = (SELECT n.revision FROM log n \
         WHERE n.resource = k.resource AND n.namespace = k.namespace AND n.name = k.name \
         ORDER BY n.revision DESC LIMIT 1) WHERE l.deleted = 0",
        &keys,
        |batch, (index, key)| {
            let (namespace, name) = split_path(key.path());
            batch.bind(*index)?;
            batch.bind(cache.slot(key.resource()).id)?;
            batch.bind(namespace)?;
            batch.bind(name)
        },
    )?;
    let mut states = HashMap::with_capacity(keys.len());
    for row in batch.fetch(connection).await? {
        let (index, revision): (i64, i64) = (row.try_get_unchecked(0)?, row.try_get(1)?);
        let value: &[u8] = row.try_get_unchecked(2)?;
        let Some((_, key)) = usize::try_from(index).ok().and_then(|index| keys.get(index)) else { continue };
        let read = decoder.decode(key.clone(), revision, value, row::checksum(&row, "checksum")?).await;
        let uid = || Ok(row::text(&row, 3)?.valid().unwrap_or_default().to_owned());
        states.insert(key.clone(), prior_state(read, uid)?);
    }
    Ok(states)
}
