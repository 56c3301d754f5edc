//! Managed fields: who owns which fields of an object, kept on every write.
//!
//! The algorithm is the schema engine's ([`portico_schema::apply`]); here is what upstream wraps around it: names of
//! managers, where entries are taken from, what nobody owns, the cap, and the rules of client-side apply.

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

/// Upstream keeps this many updaters apart.
const MAX_UPDATERS: usize = 10;

/// Who gets what older updaters owned.
const BUCKET: &str = "ancient-changes";

/// What nobody ever owns.
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
