//! Storing objects anew: a write that changes nothing, by the verbs of users.

use futures::stream::{self, StreamExt};
use portico_machinery::{GroupResource, Reason, Status};
use portico_registry::{Context, ListOptions, Part, Registry, Stored, UpdateOptions};

/// What a resource must have to be migrated.
pub(super) const VERBS: [&str; 3] = ["update", "patch", "list"];

/// Objects read at a time.
const PAGE: usize = 500;
/// Objects written at a time: writes that are under way together share one commit.
const TOGETHER: usize = 32;

/// How it ended.
#[derive(Debug)]
pub(super) enum Rewritten {
    /// All objects that there were are stored anew, or gone.
    Done,
    /// An object cannot be written, and trying again will not help.
    Refused(Box<Status>),
}

/// Stores all objects anew that were written up to a revision; what was written later is so already.
///
/// # Errors
/// What may be better after a while.
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

/// Whoever was faster has stored it anew, or deleted it.
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
