//! Where the console is: the page and its assets, which are the same for everybody, and what it shows of this facade.

/// The page.
pub const PAGE: &str = "/console/";
/// Below it lies what the page loads.
pub const ASSETS: &str = "/console/assets/";
/// Below it lies what this facade says of itself. Streams among it go on until somebody ends them.
pub const DATA: &str = "/console/data/";

/// Whether a path is that of the page, or leads to it, or is of something that it loads.
#[must_use]
pub fn is_page(path: &str) -> bool {
    path == PAGE || path == PAGE.trim_end_matches('/') || path.starts_with(ASSETS)
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

/// A method of the control service whose answer goes on until somebody ends it.
pub const WATCH_FACADES: &str = "/grpc/portico.config.v1.Config/WatchFacades";
