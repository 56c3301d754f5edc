//! The core group, but for the kinds that have a file of their own beside this one.

mod pod;
mod pod_template;
mod replication_controller;

use super::Strategy;

/// The strategy of a resource of the core group.
pub(super) fn of(resource: &str) -> Option<&'static dyn Strategy> {
    Some(match resource {
        "pods" => &pod::Pod,
        "podtemplates" => &pod_template::PodTemplate,
        "replicationcontrollers" => &replication_controller::ReplicationController,
        _ => return None,
    })
}
