//! The one place where registry events become facts: follows three resources and hands over what is ready, in batches.

use futures::stream::{BoxStream, SelectAll, StreamExt};
use portico_machinery::resolve::{ServiceKey, Touched, Watched};
use portico_machinery::{Object, Status};
use portico_registry::{Change, Registry, Stored};

use crate::Index;

/// Events applied between two publications, at most.
const BATCH: usize = 512;

/// Why routes can no longer be kept up to date.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// A resource cannot be followed.
    #[error("cannot follow {resource}: {status}")]
    Follow {
        /// The resource.
        resource: String,
        /// Why.
        status: Box<Status>,
    },
    /// The store closed.
    #[error("the store has closed")]
    Closed,
}

/// What happened to which resource, several at once when they come faster than they are compiled.
pub(crate) type Batches = BoxStream<'static, Vec<(Watched, Change)>>;

/// Fills the index with what is there. Answers its revision and everything that happens afterwards.
pub(crate) fn follow(registry: &Registry, index: &mut Index) -> Result<(u64, Batches), FeedError> {
    let mut touched = Touched::new();
    let (mut revision, mut streams) = (0, SelectAll::new());
    for watched in Watched::ALL {
        let resource = watched.resource();
        let followed = registry.follow(&resource).map_err(|status| FeedError::Follow {
            resource: resource.to_string(),
            status,
        })?;
        index.replace(watched, followed.initial.iter().filter_map(decode), &mut touched);
        revision = revision.max(followed.revision);
        streams.push(followed.changes.map(move |change| (watched, change)).boxed());
    }
    Ok((revision, streams.ready_chunks(BATCH).boxed()))
}

/// Applies one change and answers its revision.
pub(crate) fn apply(index: &mut Index, watched: Watched, change: Change, touched: &mut Touched) -> u64 {
    match change {
        Change::Put(stored) => {
            if let Some(object) = decode(&stored) {
                index.put(watched, &object, touched);
            }
            stored.revision()
        }
        Change::Deleted(stored) => {
            if let Some(object) = decode(&stored) {
                index.remove(watched, ServiceKey::new(object.namespace(), object.name()), touched);
            }
            stored.revision()
        }
        Change::Relisted(all, revision) => {
            index.replace(watched, all.iter().filter_map(decode), touched);
            revision
        }
    }
}

/// Decoded here and dropped again: `Stored::object` would keep the tree in the watch cache.
fn decode(stored: &Stored) -> Option<Object> {
    Object::from_json(&stored.json())
        .inspect_err(
            |error| tracing::error!(revision = stored.revision(), %error, "a stored object does not decode"),
        )
        .ok()
}
