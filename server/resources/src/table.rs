//! The one table of built-in resources: a row per resource that code adds something to.
//!
//! A new kind is a data file and, where data cannot say everything, a strategy and a row here.

use portico_registry::{ResourceTable, Row, ScaleSelector};

use crate::actions::access_review::AccessReview;
use crate::actions::binding::Binding;
use crate::actions::eviction::Eviction;
use crate::actions::rules_review::RulesReview;
use crate::connections::Kind;
use crate::escalation::{BindingsGuard, RolesGuard};
use crate::strategies::{
    admissionregistration, apiextensions, apiserverinternal, apiservice, apps, autoscaling, batch,
    certificates, configmap, core, endpoints, endpointslice, event, flowcontrol, lease, namespace,
    networking, node, policy, rbac, resource, scheduling, secret, service, storage, storagemigration,
};

/// All rows.
#[must_use]
pub fn table() -> ResourceTable {
    let mut table = ResourceTable::default();
    for add in GROUPS {
        add(&mut table);
    }
    table
}

/// A function per group adds its rows.
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
    add("componentstatuses", Row::new(&core::component_status::ComponentStatus));
    add("configmaps", Row::new(&configmap::ConfigMap));
    add("endpoints", Row::new(&endpoints::Endpoints));
    add("events", Row::new(&event::Event));
    add("limitranges", Row::new(&core::limit_range::LimitRange));
    add("namespaces", Row::new(&namespace::Namespace));
    add("nodes", Row::new(&core::node::Node).connection("proxy", Kind::Node));
    add("persistentvolumeclaims", Row::new(&core::persistent_volume_claim::PersistentVolumeClaim));
    add("persistentvolumes", Row::new(&core::persistent_volume::PersistentVolume));
    add(
        "pods",
        Row::new(&core::pod::Pod)
            .action("binding", Binding)
            .action("eviction", Eviction)
            .connection("log", Kind::Log)
            .connection("exec", Kind::Exec)
            .connection("attach", Kind::Attach)
            .connection("portforward", Kind::Ports)
            .connection("proxy", Kind::Pod),
    );
    add("podtemplates", Row::new(&core::pod_template::PodTemplate));
    add(
        "replicationcontrollers",
        Row::new(&core::replication_controller::ReplicationController).scale(ScaleSelector::Map),
    );
    add("resourcequotas", Row::new(&core::resource_quota::ResourceQuota));
    add("secrets", Row::new(&secret::Secret));
    add("serviceaccounts", Row::new(&core::service_account::ServiceAccount));
    add(
        "services",
        Row::new(&service::Service).hooks(&service::Allocation).connection("proxy", Kind::Service),
    );
}

fn admissionregistration_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("admissionregistration.k8s.io", resource, row);
    add("mutatingadmissionpolicies", Row::new(&admissionregistration::Policy { mutates: true }));
    add("mutatingadmissionpolicybindings", Row::new(&admissionregistration::Binding { mutates: true }));
    add("mutatingwebhookconfigurations", Row::new(&admissionregistration::WebhookConfiguration));
    add("validatingadmissionpolicies", Row::new(&admissionregistration::Policy { mutates: false }));
    add("validatingadmissionpolicybindings", Row::new(&admissionregistration::Binding { mutates: false }));
    add("validatingwebhookconfigurations", Row::new(&admissionregistration::WebhookConfiguration));
}

fn apiextensions_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("apiextensions.k8s.io", resource, row);
    add("customresourcedefinitions", Row::new(&apiextensions::CustomResourceDefinition));
}

fn apiregistration_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("apiregistration.k8s.io", resource, row);
    add("apiservices", Row::new(&apiservice::ApiService));
}

fn apps_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("apps", resource, row);
    add("controllerrevisions", Row::new(&apps::ControllerRevision));
    add("daemonsets", Row::new(&apps::DaemonSet));
    add("deployments", Row::new(&apps::Deployment).scale(ScaleSelector::Labels));
    add("replicasets", Row::new(&apps::ReplicaSet).scale(ScaleSelector::Labels));
    add("statefulsets", Row::new(&apps::StatefulSet).scale(ScaleSelector::Labels));
}

fn authorization_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("authorization.k8s.io", resource, row);
    add("localsubjectaccessreviews", Row::default().action("", AccessReview::Local));
    add("selfsubjectaccessreviews", Row::default().action("", AccessReview::Own));
    add("selfsubjectrulesreviews", Row::default().action("", RulesReview));
    add("subjectaccessreviews", Row::default().action("", AccessReview::Subject));
}

fn autoscaling_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("autoscaling", resource, row);
    add("horizontalpodautoscalers", Row::new(&autoscaling::HorizontalPodAutoscaler));
}

fn batch_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("batch", resource, row);
    add("cronjobs", Row::new(&batch::CronJob));
    add("jobs", Row::new(&batch::Job));
}

fn certificates_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("certificates.k8s.io", resource, row);
    add("certificatesigningrequests", Row::new(&certificates::SigningRequest));
}

fn coordination_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("coordination.k8s.io", resource, row);
    add("leases", Row::new(&lease::Lease));
}

fn discovery_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("discovery.k8s.io", resource, row);
    add("endpointslices", Row::new(&endpointslice::EndpointSlice));
}

fn events_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("events.k8s.io", resource, row);
    add("events", Row::new(&event::StrictEvent));
}

fn flowcontrol_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("flowcontrol.apiserver.k8s.io", resource, row);
    add("flowschemas", Row::new(&flowcontrol::FlowSchema));
    add("prioritylevelconfigurations", Row::new(&flowcontrol::PriorityLevel));
}

fn internal_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("internal.apiserver.k8s.io", resource, row);
    add("storageversions", Row::new(&apiserverinternal::StorageVersion));
}

fn networking_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("networking.k8s.io", resource, row);
    add("ingressclasses", Row::new(&networking::IngressClass));
    add("ingresses", Row::new(&networking::Ingress).hooks(&networking::Ingress));
    add("ipaddresses", Row::new(&networking::IpAddress));
    add("networkpolicies", Row::new(&networking::NetworkPolicy));
    add("servicecidrs", Row::new(&networking::ServiceCidr));
}

fn node_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("node.k8s.io", resource, row);
    add("runtimeclasses", Row::new(&node::RuntimeClass));
}

fn policy_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("policy", resource, row);
    add("poddisruptionbudgets", Row::new(&policy::PodDisruptionBudget));
}

fn rbac_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("rbac.authorization.k8s.io", resource, row);
    add("clusterrolebindings", Row::new(&rbac::Binding { namespaced: false }).guard(&BindingsGuard));
    add("clusterroles", Row::new(&rbac::Role { namespaced: false }).guard(&RolesGuard));
    add("rolebindings", Row::new(&rbac::Binding { namespaced: true }).guard(&BindingsGuard));
    add("roles", Row::new(&rbac::Role { namespaced: true }).guard(&RolesGuard));
}

fn resource_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("resource.k8s.io", resource, row);
    add("deviceclasses", Row::new(&resource::DeviceClass));
    add("resourceclaims", Row::new(&resource::ResourceClaim).hooks(&resource::ResourceClaim));
    add(
        "resourceclaimtemplates",
        Row::new(&resource::ResourceClaimTemplate).hooks(&resource::ResourceClaimTemplate),
    );
    add("resourceslices", Row::new(&resource::ResourceSlice));
}

fn scheduling_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("scheduling.k8s.io", resource, row);
    add("priorityclasses", Row::new(&scheduling::PriorityClass));
}

fn storage_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("storage.k8s.io", resource, row);
    add("csidrivers", Row::new(&storage::CsiDriver));
    add("csinodes", Row::new(&storage::CsiNode));
    add("csistoragecapacities", Row::new(&storage::CsiStorageCapacity));
    add("storageclasses", Row::new(&storage::StorageClass));
    add("volumeattachments", Row::new(&storage::VolumeAttachment));
    add("volumeattributesclasses", Row::new(&storage::VolumeAttributesClass));
}

fn storagemigration_group(table: &mut ResourceTable) {
    let mut add = |resource, row| table.add("storagemigration.k8s.io", resource, row);
    add("storageversionmigrations", Row::new(&storagemigration::StorageVersionMigration));
}
