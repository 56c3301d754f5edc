//! The one place where registry events become facts: follows three resources and hands over what is ready, in batches.

use futures::stream::{BoxStream, SelectAll, StreamExt};
use portico_machinery::resolve::{ServiceKey, Touched, Watched};
use portico_machinery::{GroupResource, Status};
use portico_registry::{Change, Registry};

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
        resource: GroupResource,
        /// Why.
        status: Box<Status>,
    },
    /// The store closed.
    #[error("the store has closed")]
    Closed,
}

/// What happened to which resource, several at once when they come faster than they are compiled.
pub(crate) type Batches = BoxStream<'static, Vec<(Watched, Change)>>;

/// What is there, and everything that happens afterwards.
pub(crate) struct Feed {
    pub(crate) revision: i64,
    pub(crate) initial: Vec<(Watched, Change)>,
    pub(crate) batches: Batches,
}

/// Begins to follow.
pub(crate) async fn follow(registry: &Registry) -> Result<Feed, FeedError> {
    let (mut revision, mut initial, mut streams) = (0, Vec::new(), SelectAll::new());
    for watched in Watched::ALL {
        let resource = watched.resource();
        let followed = registry.follow(&resource).await;
        let followed = followed.map_err(|status| FeedError::Follow { resource, status })?;
        revision = revision.max(followed.revision);
        initial.push((watched, Change::Relisted(followed.initial, followed.revision)));
        streams.push(followed.changes.map(move |change| (watched, change)).boxed());
    }
    Ok(Feed { revision, initial, batches: streams.ready_chunks(BATCH).boxed() })
}

/// Applies one change and answers its revision.
pub(crate) fn apply(index: &mut Index, watched: Watched, change: Change, touched: &mut Touched) -> i64 {
    match change {
        Change::Put(stored) => {
            index.put(watched, stored.object(), touched);
            stored.revision()
        }
        Change::Deleted(stored) => {
            index.remove(watched, ServiceKey::new(stored.namespace(), stored.name()), touched);
            stored.revision()
        }
        Change::Relisted(all, revision) => {
            // One after another: all of them decoded at once would be large.
            index.replace(watched, all.into_iter().map(|stored| stored.object().clone()), touched);
            revision
        }
    }
}
