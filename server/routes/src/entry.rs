//! Entries of the published table, and their keys.

use std::sync::Arc;

use portico_machinery::resolve::CaBundle;
use portico_machinery::route::Route;

/// What an entry is about. Bundles sort before the routes that name them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKey {
    /// A CA bundle by its hash.
    Bundle(Arc<str>),
    /// A route by its APIService's name.
    Route(Arc<str>),
}

/// An entry of the published table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A CA bundle, sent once for all routes that name its hash.
    Bundle(CaBundle),
    /// A route.
    Route(Arc<Route>),
}
