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
