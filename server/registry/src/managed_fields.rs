//! Managed fields: ownership of an object's fields, updated by every write.
//!
//! The algorithm is part of the schema engine ([`portico_schema::apply`]). This module contains upstream's wrapper around it:
//! names of managers, the source of entries, fields without owners, the limit of entries, and the rules of client-side apply.

mod apply;
mod conflict;
mod last_applied;
mod update;
mod versions;
mod view;
mod writer_name;

pub(crate) use apply::{Applying, apply, type_of, unfit};
pub use update::{Tracked, track};
pub use versions::KindVersions;
pub(crate) use view::Shared;
pub use writer_name::manager_name;

use std::sync::LazyLock;

use portico_schema::fields::Set;

/// Maximum number of updaters with separate entries, as upstream.
const MAX_UPDATERS: usize = 10;

/// Manager that receives the fields of older updaters.
const BUCKET: &str = "ancient-changes";

/// Fields that never have owners.
static UNOWNED: LazyLock<Set> = LazyLock::new(|| {
    Set::of_fields([
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.clusterName",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ])
});
