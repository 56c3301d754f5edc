//! Content of `/statusz` that is constant while the process runs.

use jiff::Timestamp;

/// First path segments that are not useful for debugging (`nonDebuggingEndpoints`).
const APIS: [&str; 5] = ["apis", "api", "openid", "openapi", ".well-known"];

/// Constant content of `/statusz`.
#[derive(Clone, Debug, Default)]
pub struct StatusPage {
    /// Start time of the process.
    pub started: Timestamp,
    /// First segments of the listed paths, sorted.
    pub paths: Vec<String>,
}

impl StatusPage {
    /// Creates the content for a process that started at a Unix time, with these listed paths.
    pub fn new<'a>(started: f64, listed: impl IntoIterator<Item = &'a str>) -> Self {
        let folders = listed.into_iter().filter_map(|path| path.split('/').nth(1));
        let mut paths: Vec<String> = folders
            .filter(|folder| !folder.is_empty() && !APIS.contains(folder))
            .map(|folder| format!("/{folder}"))
            .collect();
        paths.sort();
        paths.dedup();
        // Full seconds, as upstream.
        Self { started: Timestamp::from_second(started as i64).unwrap_or_default(), paths }
    }
}
