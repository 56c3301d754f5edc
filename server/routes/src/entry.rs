//! Entries of the published route table, and their keys.

use std::sync::Arc;

use portico_machinery::resolve::CaBundle;
use portico_machinery::route::Route;

/// Key of an entry. Bundles sort before the routes that refer to them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TableEntryKey {
    /// Hash of a CA bundle.
    Bundle(Arc<str>),
    /// Name of a route's APIService.
    Route(Arc<str>),
}

/// Entry of the published route table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableEntry {
    /// CA bundle, sent once for all routes that refer to its hash.
    Bundle(CaBundle),
    /// Compiled route.
    Route(Arc<Route>),
}
