//! The core group, but for the kinds that have a file of their own beside this one.

mod limit_range;
mod pod;
mod pod_template;
mod replication_controller;
mod resource_quota;
mod service_account;

use super::Strategy;

/// The strategy of a resource of the core group.
pub(super) fn of(resource: &str) -> Option<&'static dyn Strategy> {
    Some(match resource {
        "limitranges" => &limit_range::LimitRange,
        "pods" => &pod::Pod,
        "podtemplates" => &pod_template::PodTemplate,
        "replicationcontrollers" => &replication_controller::ReplicationController,
        "resourcequotas" => &resource_quota::ResourceQuota,
        "serviceaccounts" => &service_account::ServiceAccount,
        _ => return None,
    })
}
