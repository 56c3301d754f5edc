//! Rewrites objects with no-op updates, using the verbs of users.

use futures::stream::{self, StreamExt};
use portico_machinery::{GroupResource, Reason, Status};
use portico_registry::{Context, ListOptions, ObjectPart, Registry, StoredObject, UpdateOptions};

/// Verbs that a resource must support to be migrated.
pub(super) const VERBS: [&str; 3] = ["update", "patch", "list"];

/// Number of objects per page of a list.
const PAGE_SIZE: usize = 500;
/// Maximum number of concurrent writes, which share commits.
const MAX_CONCURRENT_WRITES: usize = 32;

/// Result of rewriting all objects.
#[derive(Debug)]
pub(super) enum RewriteOutcome {
    /// All objects are rewritten or deleted.
    Done,
    /// An object cannot be written, and a retry would not succeed.
    Refused(Box<Status>),
}

/// Rewrites all objects last written at or before a revision. Later writes use the current version already.
///
/// # Errors
/// Returns temporary errors, which are worth a retry.
pub(super) async fn rewrite_all(
    registry: &Registry,
    context: &Context,
    resource: &GroupResource,
    max_revision: i64,
) -> Result<RewriteOutcome, Box<Status>> {
    let mut page = ListOptions { limit: PAGE_SIZE, ..ListOptions::default() };
    loop {
        let listed = registry.list(resource, "", &page).await?;
        let outdated = listed.items.into_iter().filter(|object| object.revision() <= max_revision);
        let mut written = stream::iter(outdated)
            .map(|object| async move { rewrite_object(registry, context, resource, &object).await })
            .buffer_unordered(MAX_CONCURRENT_WRITES);
        while let Some(written) = written.next().await {
            match written {
                Err(status) if is_temporary(&status) => return Err(status),
                Err(status) => return Ok(RewriteOutcome::Refused(status)),
                Ok(()) => {}
            }
        }
        if listed.continue_token.is_empty() {
            return Ok(RewriteOutcome::Done);
        }
        page.continue_token = listed.continue_token;
    }
}

/// Rewrites an object. Conflicts are ignored: another client has rewritten or deleted the object.
async fn rewrite_object(
    registry: &Registry,
    context: &Context,
    resource: &GroupResource,
    object: &StoredObject,
) -> Result<(), Box<Status>> {
    let (object, options) = (object.object().clone(), UpdateOptions::default());
    match registry.update(context, resource, ObjectPart::Main, object, &options).await {
        Err(status) if matches!(status.reason(), Reason::Conflict | Reason::NotFound) => Ok(()),
        written => written.map(drop),
    }
}

fn is_temporary(status: &Status) -> bool {
    use Reason::{InternalError, ServerTimeout, ServiceUnavailable, Timeout, TooManyRequests};
    matches!(status.reason(), InternalError | ServerTimeout | ServiceUnavailable | Timeout | TooManyRequests)
}
