//! Table of built-in resources that have code.
//!
//! A new kind is a data file. If data cannot express its behavior, the kind also has a strategy and a row in this table.

use portico_machinery::features::FeatureGates;
use portico_registry::{ResourceTable, Row, ScaleSelector};

use crate::actions::access_review::AccessReview;
use crate::actions::binding::Binding;
use crate::actions::eviction::Eviction;
use crate::actions::rules_review::RulesReview;
use crate::connections::ConnectionKind;
use crate::escalation::{BindingsGuard, RolesGuard};
use crate::gated_fields;
use crate::strategies::{
    admissionregistration, apiextensions, apiserverinternal, apiservice, apps, autoscaling, batch,
    certificates, configmap, core, endpoints, endpointslice, event, flowcontrol, lease, namespace,
    networking, node, policy, rbac, resource, scheduling, secret, service, storage, storagemigration,
};

/// Row of a kind whose strategy implements these traits in addition to creates and updates.
macro_rules! row {
    ($strategy:expr $(, $part:ident)*) => {
        Row::new(&$strategy)$(.$part(&$strategy))*
    };
}

/// Returns all rows, with the fields of features that are on by default.
#[must_use]
pub fn table() -> ResourceTable {
    table_with_gates(&FeatureGates::default())
}

/// Returns all rows. Fields of features that are off are disabled.
#[must_use]
pub fn table_with_gates(gates: &FeatureGates) -> ResourceTable {
    let mut table = ResourceTable::default();
    for add in GROUPS {
        add(&mut table);
    }
    gated_fields::disable_fields(&mut table, gates);
    table
}

/// Functions that add the rows of one group each.
const GROUPS: [fn(&mut ResourceTable); 22] = [
    core_group,
    admissionregistration_group,
    apiextensions_group,
    apiregistration_group,
    apps_group,
    authorization_group,
    autoscaling_group,
    batch_group,
    certificates_group,
    coordination_group,
    discovery_group,
    events_group,
    flowcontrol_group,
    internal_group,
    networking_group,
    node_group,
    policy_group,
    rbac_group,
    resource_group,
    scheduling_group,
    storage_group,
    storagemigration_group,
];

fn core_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("", resource, row);
    add("bindings", Row::default().action("", Binding));
    add("componentstatuses", row!(core::component_status::ComponentStatus, table, with_computed));
    add("configmaps", row!(configmap::ConfigMap));
    add("endpoints", row!(endpoints::Endpoints, table));
    add("events", row!(event::Event, fields, table));
    add("limitranges", row!(core::limit_range::LimitRange, decode));
    add("namespaces", row!(namespace::Namespace, decode, subresources, delete));
    add(
        "nodes",
        row!(core::node::Node, decode, subresources, fields, table)
            .connection("proxy", ConnectionKind::NodeProxy),
    );
    add(
        "persistentvolumeclaims",
        row!(core::persistent_volume_claim::PersistentVolumeClaim, decode, subresources, table),
    );
    add("persistentvolumes", row!(core::persistent_volume::PersistentVolume, decode, table));
    add(
        "pods",
        row!(core::pod::Pod, decode, subresources, delete, fields, table)
            .action("binding", Binding)
            .action("eviction", Eviction)
            .connection("log", ConnectionKind::Log)
            .connection("exec", ConnectionKind::Exec)
            .connection("attach", ConnectionKind::Attach)
            .connection("portforward", ConnectionKind::PortForward)
            .connection("proxy", ConnectionKind::PodProxy),
    );
    add("podtemplates", row!(core::pod_template::PodTemplate, decode));
    add(
        "replicationcontrollers",
        row!(core::replication_controller::ReplicationController, decode, subresources, fields)
            .scale(ScaleSelector::Map),
    );
    add("resourcequotas", row!(core::resource_quota::ResourceQuota, decode, subresources, table));
    add("secrets", row!(secret::Secret, decode));
    add("serviceaccounts", row!(core::service_account::ServiceAccount));
    add(
        "services",
        row!(service::Service, decode, subresources, table)
            .hooks(&service::AllocationHooks)
            .connection("proxy", ConnectionKind::ServiceProxy),
    );
}

fn admissionregistration_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("admissionregistration.k8s.io", resource, row);
    add(
        "mutatingadmissionpolicies",
        row!(admissionregistration::Policy { mutates: true }, subresources, permissions, table),
    );
    add(
        "mutatingadmissionpolicybindings",
        row!(admissionregistration::Binding { mutates: true }, permissions, table),
    );
    add("mutatingwebhookconfigurations", row!(admissionregistration::WebhookConfiguration));
    add(
        "validatingadmissionpolicies",
        row!(admissionregistration::Policy { mutates: false }, subresources, permissions, table),
    );
    add(
        "validatingadmissionpolicybindings",
        row!(admissionregistration::Binding { mutates: false }, permissions, table),
    );
    add("validatingwebhookconfigurations", row!(admissionregistration::WebhookConfiguration));
}

fn apiextensions_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("apiextensions.k8s.io", resource, row);
    add(
        "customresourcedefinitions",
        row!(apiextensions::CustomResourceDefinition, decode, subresources, delete),
    );
}

fn apiregistration_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("apiregistration.k8s.io", resource, row);
    add("apiservices", row!(apiservice::ApiService, subresources, table));
}

fn apps_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("apps", resource, row);
    add("controllerrevisions", row!(apps::ControllerRevision, table));
    add("daemonsets", row!(apps::DaemonSet, decode, subresources, table));
    add("deployments", row!(apps::Deployment, decode, subresources, table).scale(ScaleSelector::Labels));
    add("replicasets", row!(apps::ReplicaSet, decode, subresources).scale(ScaleSelector::Labels));
    add("statefulsets", row!(apps::StatefulSet, decode, subresources, table).scale(ScaleSelector::Labels));
}

fn authorization_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("authorization.k8s.io", resource, row);
    add("localsubjectaccessreviews", Row::default().action("", AccessReview::LocalSubject));
    add("selfsubjectaccessreviews", Row::default().action("", AccessReview::SelfSubject));
    add("selfsubjectrulesreviews", Row::default().action("", RulesReview));
    add("subjectaccessreviews", Row::default().action("", AccessReview::Subject));
}

fn autoscaling_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("autoscaling", resource, row);
    add("horizontalpodautoscalers", row!(autoscaling::HorizontalPodAutoscaler, decode, subresources, table));
}

fn batch_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("batch", resource, row);
    add("cronjobs", row!(batch::CronJob, decode, table));
    add("jobs", row!(batch::Job, decode, subresources, delete, fields, table));
}

fn certificates_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("certificates.k8s.io", resource, row);
    add("certificatesigningrequests", row!(certificates::SigningRequest, subresources, table));
}

fn coordination_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("coordination.k8s.io", resource, row);
    add("leases", row!(lease::Lease));
    add("leasecandidates", row!(lease::LeaseCandidate));
}

fn discovery_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("discovery.k8s.io", resource, row);
    add("endpointslices", row!(endpointslice::EndpointSlice, table));
}

fn events_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("events.k8s.io", resource, row);
    add("events", row!(event::StrictEvent, decode, fields, table));
}

fn flowcontrol_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("flowcontrol.apiserver.k8s.io", resource, row);
    add("flowschemas", row!(flowcontrol::FlowSchema, subresources, table));
    add("prioritylevelconfigurations", row!(flowcontrol::PriorityLevel, decode, subresources));
}

fn internal_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("internal.apiserver.k8s.io", resource, row);
    add("storageversions", row!(apiserverinternal::StorageVersion, subresources));
}

fn networking_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("networking.k8s.io", resource, row);
    add("ingressclasses", row!(networking::IngressClass, decode, table));
    add("ingresses", row!(networking::Ingress, subresources, table).hooks(&networking::Ingress));
    add("ipaddresses", row!(networking::IpAddress, table));
    add("networkpolicies", row!(networking::NetworkPolicy, decode));
    add("servicecidrs", row!(networking::ServiceCidr, table));
}

fn node_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("node.k8s.io", resource, row);
    add("runtimeclasses", row!(node::RuntimeClass));
}

fn policy_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("policy", resource, row);
    add("poddisruptionbudgets", row!(policy::PodDisruptionBudget, decode, subresources, table));
}

fn rbac_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("rbac.authorization.k8s.io", resource, row);
    add(
        "clusterrolebindings",
        row!(rbac::Binding { namespaced: false }, decode, table).guard(&BindingsGuard),
    );
    add("clusterroles", row!(rbac::Role { namespaced: false }).guard(&RolesGuard));
    add("rolebindings", row!(rbac::Binding { namespaced: true }, decode, table).guard(&BindingsGuard));
    add("roles", row!(rbac::Role { namespaced: true }).guard(&RolesGuard));
}

fn resource_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("resource.k8s.io", resource, row);
    add("deviceclasses", row!(resource::DeviceClass));
    add(
        "resourceclaims",
        row!(resource::ResourceClaim, decode, subresources, permissions, table)
            .hooks(&resource::ResourceClaim),
    );
    add(
        "resourceclaimtemplates",
        row!(resource::ResourceClaimTemplate, decode).hooks(&resource::ResourceClaimTemplate),
    );
    add("resourceslices", row!(resource::ResourceSlice, decode, fields));
}

fn scheduling_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("scheduling.k8s.io", resource, row);
    add("priorityclasses", row!(scheduling::PriorityClass, delete, table));
}

fn storage_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("storage.k8s.io", resource, row);
    add("csidrivers", row!(storage::CsiDriver, table));
    add("csinodes", row!(storage::CsiNode));
    add("csistoragecapacities", row!(storage::CsiStorageCapacity));
    add("storageclasses", row!(storage::StorageClass, table));
    add("volumeattachments", row!(storage::VolumeAttachment, subresources));
    add("volumeattributesclasses", row!(storage::VolumeAttributesClass));
}

fn storagemigration_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("storagemigration.k8s.io", resource, row);
    add("storageversionmigrations", row!(storagemigration::StorageVersionMigration, subresources, table));
}
