//! Managed fields: ownership of an object's fields, updated by every write.
//!
//! The algorithm is part of the schema engine ([`portico_schema::apply`]). This module contains upstream's wrapper around it:
//! names of managers, the source of entries, fields without owners, the limit of entries, and the rules of client-side apply.

mod apply;
mod conflict;
mod last_applied;
mod manager_name;
mod update;
mod versions;
mod view;

pub(crate) use apply::{ApplyRequest, apply, mismatch_status, type_of};
pub use manager_name::manager_name;
pub use update::{FieldTracking, track};
pub use versions::KindVersions;
pub(crate) use view::SharedField;

use std::sync::LazyLock;

use portico_schema::fields::FieldSet;

/// Maximum number of updaters with separate entries, as upstream.
const MAX_UPDATERS: usize = 10;

/// Manager that receives the fields of older updaters.
const OLD_UPDATERS_MANAGER: &str = "ancient-changes";

/// Fields that never have owners.
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::from_dotted_paths([
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
