//! Paths of the console: the page and its assets, which are the same for all users, and the data of this facade.

use portico_gostd::url::first_value;

/// Path of the page.
pub const PAGE: &str = "/console/";
/// Prefix of the assets of the page.
pub const ASSETS: &str = "/console/assets/";
/// Prefix of data about this facade.
pub const DATA: &str = "/console/data/";

/// True if the path is that of the page, redirects to it, or belongs to one of its assets.
#[must_use]
pub fn is_page(path: &str) -> bool {
    path == PAGE || path == PAGE.trim_end_matches('/') || path.starts_with(ASSETS)
}

/// True if the query of a path below [`DATA`] requests a stream that ends only when the client disconnects.
#[must_use]
pub fn is_watch(query: &str) -> bool {
    matches!(first_value(query, "watch").as_deref(), Some("true" | "1"))
}

/// Method of the control service that authorizes its caller itself, because the message names the objects that are read.
pub const STATES: &str = "/grpc/portico.history.v1.History/States";
/// Method with its own authorization, like [`HISTORY_STATES`].
pub const PAST: &str = "/grpc/portico.history.v1.History/List";
/// Method with its own authorization, like [`HISTORY_STATES`].
pub const RESTORE: &str = "/grpc/portico.history.v1.History/Restore";

/// True if the control service itself authorizes requests for this path.
#[must_use]
pub fn is_decided_behind(path: &str) -> bool {
    matches!(path, STATES | PAST | RESTORE)
}

/// True if responses to long-running requests for this path are streams of the console.
#[must_use]
pub fn is_stream(path: &str) -> bool {
    path.starts_with(DATA) || path == WATCH_FACADES
}

/// Method of the control service whose response is a stream that ends only when the client disconnects.
pub const WATCH_FACADES: &str = "/grpc/portico.config.v1.Config/WatchFacades";
