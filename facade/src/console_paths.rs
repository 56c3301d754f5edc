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
pub const HISTORY_STATES: &str = "/grpc/portico.history.v1.History/States";
/// Method with its own authorization, like [`HISTORY_STATES`].
pub const HISTORY_LIST: &str = "/grpc/portico.history.v1.History/List";
/// Method with its own authorization, like [`HISTORY_STATES`].
pub const HISTORY_RESTORE: &str = "/grpc/portico.history.v1.History/Restore";

/// True if the control service itself authorizes requests for this path.
#[must_use]
pub fn is_authorized_by_control_service(path: &str) -> bool {
    matches!(path, HISTORY_STATES | HISTORY_LIST | HISTORY_RESTORE)
}

/// True if responses to long-running requests for this path are streams of the console.
#[must_use]
pub fn is_stream(path: &str) -> bool {
    path.starts_with(DATA) || path == WATCH_FACADES
}

/// Method of the control service whose response is a stream that ends only when the client disconnects.
pub const WATCH_FACADES: &str = "/grpc/portico.config.v1.Config/WatchFacades";
