//! Fields of feature gates. If a gate is off, writes do not set its fields (upstream's `dropDisabledFields` and similar).
//!
//! Contains only gates that the command line or the emulated version can change. Fields of gates that are off by default in all
//! supported releases are dropped when objects of the kinds are prepared.

use portico_machinery::features::FeatureGates;
use portico_registry::ResourceTable;

/// Gate, group and resource, and the paths of the fields.
type GatedFields = (&'static str, (&'static str, &'static str), &'static [&'static str]);

const GATED_FIELDS: [GatedFields; 30] = [
    ("CoordinatedLeaderElection", ("coordination.k8s.io", "leases"), &["spec.strategy"]),
    ("CoordinatedLeaderElection", ("coordination.k8s.io", "leases"), &["spec.preferredHolder"]),
    (
        "HPAConfigurableTolerance",
        ("autoscaling", "horizontalpodautoscalers"),
        &["spec.behavior.scaleUp.tolerance", "spec.behavior.scaleDown.tolerance"],
    ),
    ("VolumeAttributesClass", ("", "persistentvolumes"), &["spec.volumeAttributesClassName"]),
    ("VolumeAttributesClass", ("", "persistentvolumeclaims"), &["spec.volumeAttributesClassName"]),
    ("VolumeAttributesClass", ("", "persistentvolumeclaims"), &["status.currentVolumeAttributesClassName"]),
    ("VolumeAttributesClass", ("", "persistentvolumeclaims"), &["status.modifyVolumeStatus"]),
    ("NodeDeclaredFeatures", ("", "nodes"), &["status.declaredFeatures"]),
    (
        "MutableCSINodeAllocatableCount",
        ("storage.k8s.io", "csidrivers"),
        &["spec.nodeAllocatableUpdatePeriodSeconds"],
    ),
    (
        "MutableCSINodeAllocatableCount",
        ("storage.k8s.io", "volumeattachments"),
        &["status.attachError.errorCode"],
    ),
    (
        "MutableCSINodeAllocatableCount",
        ("storage.k8s.io", "volumeattachments"),
        &["status.detachError.errorCode"],
    ),
    (
        "CSIServiceAccountTokenSecrets",
        ("storage.k8s.io", "csidrivers"),
        &["spec.serviceAccountTokenInSecrets"],
    ),
    ("DeploymentReplicaSetTerminatingReplicas", ("apps", "deployments"), &["status.terminatingReplicas"]),
    ("DeploymentReplicaSetTerminatingReplicas", ("apps", "replicasets"), &["status.terminatingReplicas"]),
    ("DRAExtendedResource", ("resource.k8s.io", "deviceclasses"), &["spec.extendedResourceName"]),
    ("DRAExtendedResource", ("", "pods"), &["status.extendedResourceClaimStatus"]),
    (
        "DRAPrioritizedList",
        ("resource.k8s.io", "resourceclaims"),
        &["spec.devices.requests[].firstAvailable"],
    ),
    (
        "DRAPrioritizedList",
        ("resource.k8s.io", "resourceclaimtemplates"),
        &["spec.spec.devices.requests[].firstAvailable"],
    ),
    (
        "DRAAdminAccess",
        ("resource.k8s.io", "resourceclaims"),
        &["spec.devices.requests[].exactly.adminAccess"],
    ),
    (
        "DRAAdminAccess",
        ("resource.k8s.io", "resourceclaimtemplates"),
        &["spec.spec.devices.requests[].exactly.adminAccess"],
    ),
    (
        "DRADeviceTaints",
        ("resource.k8s.io", "resourceclaims"),
        &[
            "spec.devices.requests[].exactly.tolerations",
            "spec.devices.requests[].firstAvailable[].tolerations",
        ],
    ),
    (
        "DRADeviceTaints",
        ("resource.k8s.io", "resourceclaimtemplates"),
        &[
            "spec.spec.devices.requests[].exactly.tolerations",
            "spec.spec.devices.requests[].firstAvailable[].tolerations",
        ],
    ),
    ("DRADeviceTaints", ("resource.k8s.io", "resourceslices"), &["spec.devices[].taints"]),
    (
        "DRAPartitionableDevices",
        ("resource.k8s.io", "resourceslices"),
        &[
            "spec.sharedCounters",
            "spec.perDeviceNodeSelection",
            "spec.devices[].consumesCounters",
            "spec.devices[].nodeName",
            "spec.devices[].nodeSelector",
            "spec.devices[].allNodes",
        ],
    ),
    (
        "DRADeviceBindingConditions",
        ("resource.k8s.io", "resourceslices"),
        &[
            "spec.devices[].bindingConditions",
            "spec.devices[].bindingFailureConditions",
            "spec.devices[].bindsToNode",
        ],
    ),
    (
        "DRADeviceBindingConditions",
        ("resource.k8s.io", "resourceclaims"),
        &[
            "status.allocation.devices.results[].bindingConditions",
            "status.allocation.devices.results[].bindingFailureConditions",
        ],
    ),
    (
        "DRAConsumableCapacity",
        ("resource.k8s.io", "resourceslices"),
        &["spec.devices[].allowMultipleAllocations"],
    ),
    (
        "DRAConsumableCapacity",
        ("resource.k8s.io", "resourceclaims"),
        &[
            "spec.devices.constraints[].distinctAttribute",
            "spec.devices.requests[].exactly.capacity",
            "spec.devices.requests[].firstAvailable[].capacity",
        ],
    ),
    (
        "DRAConsumableCapacity",
        ("resource.k8s.io", "resourceclaimtemplates"),
        &[
            "spec.spec.devices.constraints[].distinctAttribute",
            "spec.spec.devices.requests[].exactly.capacity",
            "spec.spec.devices.requests[].firstAvailable[].capacity",
        ],
    ),
    (
        "DRAConsumableCapacity",
        ("resource.k8s.io", "resourceclaims"),
        &[
            "status.allocation.devices.results[].shareID",
            "status.allocation.devices.results[].consumedCapacity",
            "status.devices[].shareID",
        ],
    ),
];

/// Gates of pod fields, which apply to every pod spec.
const GATED_POD_FIELDS: [(&str, &[&str]); 5] = [
    ("PodLevelResources", &["resources"]),
    ("HostnameOverride", &["hostnameOverride"]),
    (
        "ContainerRestartRules",
        &[
            "initContainers[].restartPolicyRules",
            "containers[].restartPolicy",
            "containers[].restartPolicyRules",
            "ephemeralContainers[].restartPolicy",
            "ephemeralContainers[].restartPolicyRules",
        ],
    ),
    (
        "EnvFiles",
        &[
            "initContainers[].env[].valueFrom.fileKeyRef",
            "containers[].env[].valueFrom.fileKeyRef",
            "ephemeralContainers[].env[].valueFrom.fileKeyRef",
        ],
    ),
    (
        "DynamicResourceAllocation",
        &["resourceClaims", "initContainers[].resources.claims", "containers[].resources.claims"],
    ),
];

/// Paths of pod specs, by group and resource.
const POD_SPECS: [((&str, &str), &str); 9] = [
    (("", "pods"), "spec"),
    (("", "podtemplates"), "template.spec"),
    (("", "replicationcontrollers"), "spec.template.spec"),
    (("apps", "daemonsets"), "spec.template.spec"),
    (("apps", "deployments"), "spec.template.spec"),
    (("apps", "replicasets"), "spec.template.spec"),
    (("apps", "statefulsets"), "spec.template.spec"),
    (("batch", "jobs"), "spec.template.spec"),
    (("batch", "cronjobs"), "spec.jobTemplate.spec.template.spec"),
];

/// Disables the fields of gates that are off.
pub(crate) fn disable_fields(table: &mut ResourceTable, gates: &FeatureGates) {
    for (_, (group, resource), fields) in GATED_FIELDS.iter().filter(|(gate, ..)| !gates.enabled(gate)) {
        table.turn_off(group, resource, fields.iter().copied());
    }
    for (_, fields) in GATED_POD_FIELDS.iter().filter(|(gate, _)| !gates.enabled(gate)) {
        for ((group, resource), spec) in POD_SPECS {
            let fields: Vec<String> = fields.iter().map(|field| format!("{spec}.{field}")).collect();
            table.turn_off(group, resource, fields.iter().map(String::as_str));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gate_and_resource_of_the_tables_exists() {
        let gates = FeatureGates::default();
        let gate_names: Vec<&str> = gates.iter().map(|(name, ..)| name).collect();
        let used_gates =
            GATED_FIELDS.iter().map(|(gate, ..)| gate).chain(GATED_POD_FIELDS.iter().map(|(gate, _)| gate));
        for gate in used_gates {
            assert!(gate_names.contains(gate), "{gate}");
        }
        let kinds = portico_kinds::Kinds::all().unwrap();
        let placed = GATED_FIELDS.iter().map(|(_, at, _)| at).chain(POD_SPECS.iter().map(|(at, _)| at));
        for (group, resource) in placed {
            assert!(
                kinds.iter().any(|kind| kind.gvk.group == *group && kind.resource == *resource),
                "{resource}"
            );
        }
    }
}
