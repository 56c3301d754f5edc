//! Encodes quotas for the store.

use std::sync::Arc;

use jiff::Timestamp;
use portico_machinery::{Object, Status};
use portico_registry::managed_fields::{self, KindVersions};
use portico_registry::{Clock, ResourceIndex, ServedResource, encoding};
use portico_store::Value;

use crate::resource_quota::usage::MANAGER;

/// Encoder of quotas for the store.
#[derive(Clone)]
pub(crate) struct Encoder {
    pub(crate) kind: Arc<ServedResource>,
    pub(crate) catalogue: Arc<ResourceIndex>,
    pub(crate) clock: Clock,
}

impl Encoder {
    /// Encodes a quota with updated usage in its stored form.
    pub(super) fn encode(&self, before: &Object, quota: &mut Object) -> Result<Value, Box<Status>> {
        let versions = KindVersions::of_builtin(&self.kind, "status", &self.catalogue);
        let now: Timestamp = (self.clock)();
        managed_fields::track(&versions, before, quota, MANAGER, now);
        self.kind.stored_info().schema.normalize(quota);
        encoding::encode(&self.kind, quota)
    }
}
