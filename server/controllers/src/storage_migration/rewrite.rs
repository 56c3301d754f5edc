//! Rewrites objects with no-op updates, using the verbs of users.

use futures::stream::{self, StreamExt};
use portico_machinery::{GroupResource, Reason, Status};
use portico_registry::{Context, ListOptions, Part, Registry, Stored, UpdateOptions};

/// Verbs that a resource must support to be migrated.
pub(super) const VERBS: [&str; 3] = ["update", "patch", "list"];

/// Number of objects per page of a list.
const PAGE: usize = 500;
/// Maximum number of concurrent writes, which share commits.
const TOGETHER: usize = 32;

/// Result of rewriting all objects.
#[derive(Debug)]
pub(super) enum Rewritten {
    /// All objects are rewritten or deleted.
    Done,
    /// An object cannot be written, and a retry would not succeed.
    Refused(Box<Status>),
}

/// Rewrites all objects last written at or before a revision. Later writes use the current version already.
///
/// # Errors
/// Returns temporary errors, which are worth a retry.
pub(super) async fn all(
    registry: &Registry,
    context: &Context,
    resource: &GroupResource,
    upto: i64,
) -> Result<Rewritten, Box<Status>> {
    let mut page = ListOptions { limit: PAGE, ..ListOptions::default() };
    loop {
        let listed = registry.list(resource, "", &page).await?;
        let older = listed.items.into_iter().filter(|object| object.revision() <= upto);
        let mut written = stream::iter(older)
            .map(|object| async move { store(registry, context, resource, &object).await })
            .buffer_unordered(TOGETHER);
        while let Some(written) = written.next().await {
            match written {
                Err(status) if is_passing(&status) => return Err(status),
                Err(status) => return Ok(Rewritten::Refused(status)),
                Ok(()) => {}
            }
        }
        if listed.continue_token.is_empty() {
            return Ok(Rewritten::Done);
        }
        page.continue_token = listed.continue_token;
    }
}

/// Rewrites an object. Conflicts are ignored: another client has rewritten or deleted the object.
async fn store(
    registry: &Registry,
    context: &Context,
    resource: &GroupResource,
    object: &Stored,
) -> Result<(), Box<Status>> {
    let (object, options) = (object.object().clone(), UpdateOptions::default());
    match registry.update(context, resource, Part::Main, object, &options).await {
        Err(status) if matches!(status.reason(), Reason::Conflict | Reason::NotFound) => Ok(()),
        written => written.map(drop),
    }
}

fn is_passing(status: &Status) -> bool {
    use Reason::{InternalError, ServerTimeout, ServiceUnavailable, Timeout, TooManyRequests};
    matches!(status.reason(), InternalError | ServerTimeout | ServiceUnavailable | Timeout | TooManyRequests)
}
