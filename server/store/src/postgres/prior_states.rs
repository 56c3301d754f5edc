//! Reads the prior states of a group of writes that are not cached. Uses the writing connection. If another process writes
//! concurrently, the group is not written.

use std::collections::{BTreeSet, HashMap};

use sqlx::{PgConnection, Row};

use super::row;
use crate::decode::Decoder;
use crate::key::Key;
use crate::prior_states::{PriorState, prior_state};

/// Returns the states of these objects, without those that do not exist.
pub(super) async fn read_prior_states(
    connection: &mut PgConnection,
    decoder: &Decoder<'_>,
    keys: BTreeSet<Key>,
) -> Result<HashMap<Key, PriorState>, sqlx::Error> {
    const SELECT: &str = "SELECT k.at, l.revision, l.value, l.uid, l.checksum \
        FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k(resource, namespace, name, at) \
        CROSS JOIN LATERAL (SELECT n.revision, n.value, n.uid, n.deleted, n.checksum FROM log n WHERE n.resource = k.resource \
        AND n.namespace = k.namespace AND n.name = k.name ORDER BY n.revision DESC LIMIT 1) l WHERE NOT l.deleted";
    let keys: Vec<Key> = keys.into_iter().collect();
    let (mut resources, mut namespaces, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for key in &keys {
        let (namespace, name) = row::columns(key.path());
        resources.push(key.resource().to_string());
        namespaces.push(namespace.into_owned());
        names.push(name.into_owned());
    }
    let select = sqlx::query(SELECT).bind(resources).bind(namespaces).bind(names);
    let mut states = HashMap::with_capacity(keys.len());
    for row in select.fetch_all(connection).await? {
        let (ordinal, revision, value): (i64, i64, &[u8]) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        // Ordinals start at 1.
        let Some(key) = usize::try_from(ordinal - 1).ok().and_then(|index| keys.get(index)) else { continue };
        let read = decoder.decode(key.clone(), revision, value, row.try_get("checksum")?).await;
        let uid = || Ok(row::from_column(row.try_get(3)?).into_owned());
        states.insert(key.clone(), prior_state(read, uid)?);
    }
    Ok(states)
}
