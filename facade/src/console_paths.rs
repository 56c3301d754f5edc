//! Where the console is: the page and its assets, which are the same for everybody, and what it shows of this facade.

use portico_gostd::url::first_value;

/// The page.
pub const PAGE: &str = "/console/";
/// Below it lies what the page loads.
pub const ASSETS: &str = "/console/assets/";
/// Prefix of this facade's own state.
pub const DATA: &str = "/console/data/";

/// Whether a path is that of the page, or leads to it, or is of something that it loads.
#[must_use]
pub fn is_page(path: &str) -> bool {
    path == PAGE || path == PAGE.trim_end_matches('/') || path.starts_with(ASSETS)
}

/// True if the query of a path below [`DATA`] asks for a stream that goes on until the client ends it.
#[must_use]
pub fn is_watch(query: &str) -> bool {
    matches!(first_value(query, "watch").as_deref(), Some("true" | "1"))
}

/// A method of the control service that asks itself what somebody may of what its message names: nobody else can know.
pub const STATES: &str = "/grpc/portico.history.v1.History/States";
/// As [`STATES`].
pub const PAST: &str = "/grpc/portico.history.v1.History/List";
/// As [`STATES`].
pub const RESTORE: &str = "/grpc/portico.history.v1.History/Restore";

/// Whether a path is one of which the control service itself decides who may.
#[must_use]
pub fn is_decided_behind(path: &str) -> bool {
    matches!(path, STATES | PAST | RESTORE)
}

/// True if responses to long-running requests for this path are streams that the console follows.
#[must_use]
pub fn is_stream(path: &str) -> bool {
    path.starts_with(DATA) || path == WATCH_FACADES
}

/// A method of the control service whose answer goes on until somebody ends it.
pub const WATCH_FACADES: &str = "/grpc/portico.config.v1.Config/WatchFacades";
