//! The core group, but for the kinds that have a file of their own beside this one.

mod component_status;
mod limit_range;
mod node;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_template;
mod replication_controller;
mod resource_quota;
mod service_account;
mod storage_cells;

use super::Strategy;

/// The strategy of a resource of the core group.
pub(super) fn of(resource: &str) -> Option<&'static dyn Strategy> {
    Some(match resource {
        "componentstatuses" => &component_status::ComponentStatus,
        "limitranges" => &limit_range::LimitRange,
        "nodes" => &node::Node,
        "persistentvolumeclaims" => &persistent_volume_claim::PersistentVolumeClaim,
        "persistentvolumes" => &persistent_volume::PersistentVolume,
        "pods" => &pod::Pod,
        "podtemplates" => &pod_template::PodTemplate,
        "replicationcontrollers" => &replication_controller::ReplicationController,
        "resourcequotas" => &resource_quota::ResourceQuota,
        "serviceaccounts" => &service_account::ServiceAccount,
        _ => return None,
    })
}
