//! Core group, except for the kinds that have a separate module.

pub(crate) mod component_status;
pub(crate) mod limit_range;
pub(crate) mod node;
pub(crate) mod persistent_volume;
pub(crate) mod persistent_volume_claim;
pub(crate) mod pod;
pub(crate) mod pod_template;
pub(crate) mod replication_controller;
pub(crate) mod resource_quota;
pub(crate) mod service_account;
pub(crate) mod storage_cells;
