//! What `/statusz` shows that does not change while the process runs.

use jiff::Timestamp;

/// Folders of paths that are no help in debugging (`nonDebuggingEndpoints`).
const APIS: [&str; 5] = ["apis", "api", "openid", "openapi", ".well-known"];

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct StatusPage {
    /// When the process was started.
    pub started: Timestamp,
    /// The first folder of each listed path, sorted.
    pub paths: Vec<String>,
}

impl StatusPage {
    /// Of a process that was started at a Unix time, with these listed paths.
    pub fn new<'a>(started: f64, listed: impl IntoIterator<Item = &'a str>) -> Self {
        let folders = listed.into_iter().filter_map(|path| path.split('/').nth(1));
        let mut paths: Vec<String> = folders
            .filter(|folder| !folder.is_empty() && !APIS.contains(folder))
            .map(|folder| format!("/{folder}"))
            .collect();
        paths.sort();
        paths.dedup();
        // Whole seconds, as upstream counts them.
        Self { started: Timestamp::from_second(started as i64).unwrap_or_default(), paths }
    }
}
