//! Table of the controllers of kube-controller-manager, by their names in `--controllers`.
//!
//! Used to parse the command line, to start controllers and to generate docs/reference/controllers.md. Does not depend on
//! the code of controllers.

use std::collections::BTreeSet;

/// A controller of kube-controller-manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownController {
    /// Name (`cmd/kube-controller-manager/names`).
    pub name: &'static str,
    /// Former name, which `--controllers` also accepts; empty if there is none.
    pub alias: &'static str,
    /// Effect of enabling the controller.
    pub start_mode: StartMode,
    /// Purpose, for the reference.
    pub description: &'static str,
}

/// Effect of enabling a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartMode {
    /// Started by `*`.
    Runs,
    /// Started only by its name; off by default, as upstream.
    RunsByName,
    /// No effect: the name is accepted, but the controller is not implemented.
    NotImplemented,
}

const fn runs(name: &'static str, alias: &'static str, description: &'static str) -> KnownController {
    KnownController { name, alias, start_mode: StartMode::Runs, description }
}

const fn runs_by_name(name: &'static str, alias: &'static str, description: &'static str) -> KnownController {
    KnownController { name, alias, start_mode: StartMode::RunsByName, description }
}

const fn not_implemented(
    name: &'static str,
    alias: &'static str,
    description: &'static str,
) -> KnownController {
    KnownController { name, alias, start_mode: StartMode::NotImplemented, description }
}

/// All controllers, sorted by name.
pub const CONTROLLERS: [KnownController; 52] = [
    runs_by_name(
        "bootstrap-signer-controller",
        "bootstrapsigner",
        "Signs the ConfigMap kube-public/cluster-info with bootstrap tokens, for `kubeadm join`.",
    ),
    runs(
        "certificatesigningrequest-approving-controller",
        "csrapproving",
        "Approves client certificates of kubelets.",
    ),
    runs(
        "certificatesigningrequest-cleaner-controller",
        "csrcleaner",
        "Deletes finished and abandoned CertificateSigningRequests.",
    ),
    runs(
        "certificatesigningrequest-signing-controller",
        "csrsigning",
        "Signs approved CertificateSigningRequests with the CAs of --cluster-signing-*.",
    ),
    not_implemented(
        "cloud-node-lifecycle-controller",
        "cloud-node-lifecycle",
        "Removes nodes whose cloud instance is gone.",
    ),
    runs(
        "clusterrole-aggregation-controller",
        "clusterrole-aggregation",
        "Combines the rules of aggregated ClusterRoles.",
    ),
    not_implemented("cronjob-controller", "cronjob", "Creates Jobs of CronJobs."),
    not_implemented("daemonset-controller", "daemonset", "Creates the pods of DaemonSets."),
    not_implemented("deployment-controller", "deployment", "Manages the ReplicaSets of Deployments."),
    not_implemented("device-taint-eviction-controller", "", "Evicts pods that use tainted devices."),
    runs(
        "disruption-controller",
        "disruption",
        "Updates the status of PodDisruptionBudgets, which evictions depend on.",
    ),
    runs("endpoints-controller", "endpoint", "Maintains the Endpoints of Services with a selector."),
    runs(
        "endpointslice-controller",
        "endpointslice",
        "Maintains the EndpointSlices of Services with a selector.",
    ),
    runs(
        "endpointslice-mirroring-controller",
        "endpointslicemirroring",
        "Mirrors the Endpoints of Services without a selector to EndpointSlices.",
    ),
    not_implemented(
        "ephemeral-volume-controller",
        "ephemeral-volume",
        "Creates the PersistentVolumeClaims of ephemeral volumes.",
    ),
    runs(
        "garbage-collector-controller",
        "garbagecollector",
        "Deletes objects whose owners are gone, and handles foreground and orphan deletion.",
    ),
    not_implemented(
        "horizontal-pod-autoscaler-controller",
        "horizontalpodautoscaling",
        "Scales workloads by metrics.",
    ),
    not_implemented("job-controller", "job", "Creates the pods of Jobs."),
    runs(
        "kube-apiserver-serving-clustertrustbundle-publisher-controller",
        "",
        "Publishes the CA of the server as a ClusterTrustBundle, if that API is enabled.",
    ),
    runs(
        "legacy-serviceaccount-token-cleaner-controller",
        "legacy-service-account-token-cleaner",
        "Invalidates and deletes unused token Secrets of service accounts.",
    ),
    runs("namespace-controller", "namespace", "Deletes the content of terminating namespaces."),
    not_implemented("node-ipam-controller", "nodeipam", "Assigns pod address ranges to nodes."),
    not_implemented("node-lifecycle-controller", "nodelifecycle", "Taints nodes that are not ready."),
    not_implemented("node-route-controller", "route", "Configures cloud routes between nodes."),
    not_implemented(
        "persistentvolume-attach-detach-controller",
        "attachdetach",
        "Attaches volumes to nodes.",
    ),
    not_implemented(
        "persistentvolume-binder-controller",
        "persistentvolume-binder",
        "Binds PersistentVolumeClaims to volumes.",
    ),
    not_implemented("persistentvolume-expander-controller", "persistentvolume-expander", "Expands volumes."),
    runs(
        "persistentvolume-protection-controller",
        "pv-protection",
        "Removes the protection finalizer of deleted volumes once they are not bound.",
    ),
    runs(
        "persistentvolumeclaim-protection-controller",
        "pvc-protection",
        "Removes the protection finalizer of deleted claims once no pod uses them.",
    ),
    not_implemented("pod-garbage-collector-controller", "podgc", "Deletes terminated and orphaned pods."),
    not_implemented(
        "podcertificaterequest-cleaner-controller",
        "",
        "Deletes old PodCertificateRequests, an API that is not served.",
    ),
    not_implemented(
        "podgroup-protection-controller",
        "",
        "Protects PodGroups in use, an API that is not served.",
    ),
    not_implemented("replicaset-controller", "replicaset", "Creates the pods of ReplicaSets."),
    not_implemented(
        "replicationcontroller-controller",
        "replicationcontroller",
        "Creates the pods of ReplicationControllers.",
    ),
    not_implemented(
        "resourceclaim-controller",
        "resource-claim-controller",
        "Creates ResourceClaims of pods and releases them.",
    ),
    not_implemented("resourcepoolstatusrequest-controller", "", "Responds to ResourcePoolStatusRequests."),
    runs("resourcequota-controller", "resourcequota", "Recalculates the usage of ResourceQuotas."),
    runs(
        "root-ca-certificate-publisher-controller",
        "root-ca-cert-publisher",
        "Publishes the CA of the server in the ConfigMap kube-root-ca.crt of every namespace.",
    ),
    not_implemented(
        "selinux-warning-controller",
        "",
        "Warns of pods whose SELinux labels conflict on a volume.",
    ),
    not_implemented("service-cidr-controller", "", "Maintains ServiceCIDRs and their finalizers."),
    not_implemented("service-lb-controller", "service", "Creates cloud load balancers of Services."),
    runs(
        "serviceaccount-controller",
        "serviceaccount",
        "Creates the service account `default` of every namespace.",
    ),
    runs(
        "serviceaccount-token-controller",
        "serviceaccount-token",
        "Fills and deletes token Secrets of service accounts.",
    ),
    not_implemented("statefulset-controller", "statefulset", "Creates the pods and claims of StatefulSets."),
    runs(
        "storage-version-migrator-controller",
        "svm",
        "Rewrites stored objects for StorageVersionMigrations, if that API is enabled.",
    ),
    not_implemented(
        "storageversion-garbage-collector-controller",
        "storage-version-gc",
        "Deletes StorageVersions of servers that are gone.",
    ),
    not_implemented(
        "taint-eviction-controller",
        "",
        "Evicts pods that do not tolerate the taints of their node.",
    ),
    runs_by_name("token-cleaner-controller", "tokencleaner", "Deletes expired bootstrap tokens."),
    runs(
        "ttl-after-finished-controller",
        "ttl-after-finished",
        "Deletes finished Jobs after spec.ttlSecondsAfterFinished.",
    ),
    not_implemented("ttl-controller", "ttl", "Sets the cache TTL annotation of nodes."),
    runs(
        "validatingadmissionpolicy-status-controller",
        "",
        "Type-checks ValidatingAdmissionPolicies and reports warnings in their status.",
    ),
    not_implemented(
        "volumeattributesclass-protection-controller",
        "",
        "Protects VolumeAttributesClasses in use.",
    ),
];

/// Returns the controller with this name or alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static KnownController> {
    CONTROLLERS.iter().find(|known| !name.is_empty() && [known.name, known.alias].contains(&name))
}

/// Returns the error message for a name for which [`find`] returns `None`. Lists the controllers that can run.
#[must_use]
pub fn unknown_message(name: &str) -> String {
    let runnable = CONTROLLERS.iter().filter(|controller| controller.start_mode != StartMode::NotImplemented);
    let names: Vec<_> = runnable.map(|controller| controller.name).collect();
    format!("{name:?} is not in the list of known controllers: {}", names.join(", "))
}

/// Returns the names of the controllers that a value of `--controllers` starts. The first mention of a controller decides;
/// `*` covers controllers that are not mentioned (upstream's `IsControllerEnabled`).
#[must_use]
pub fn enabled(listed: &[String]) -> BTreeSet<&'static str> {
    let all = listed.iter().any(|entry| entry == "*");
    let mentioned_state = |controller: &KnownController| {
        listed.iter().find_map(|entry| {
            let (name, is_enabled) =
                entry.strip_prefix('-').map_or((entry.as_str(), true), |name| (name, false));
            find(name).is_some_and(|known| known.name == controller.name).then_some(is_enabled)
        })
    };
    let should_run = |controller: &&KnownController| match controller.start_mode {
        StartMode::Runs => mentioned_state(controller).unwrap_or(all),
        StartMode::RunsByName => mentioned_state(controller).unwrap_or(false),
        StartMode::NotImplemented => false,
    };
    CONTROLLERS.iter().filter(should_run).map(|controller| controller.name).collect()
}

/// Returns group and resource of the kinds that a controller requires, except those of the core group.
#[must_use]
pub fn required_kinds(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "certificatesigningrequest-approving-controller"
        | "certificatesigningrequest-cleaner-controller"
        | "certificatesigningrequest-signing-controller" => {
            &[("certificates.k8s.io", "certificatesigningrequests")]
        }
        "disruption-controller" => &[("policy", "poddisruptionbudgets")],
        "endpointslice-controller" | "endpointslice-mirroring-controller" => {
            &[("discovery.k8s.io", "endpointslices")]
        }
        "kube-apiserver-serving-clustertrustbundle-publisher-controller" => {
            &[("certificates.k8s.io", "clustertrustbundles")]
        }
        "storage-version-migrator-controller" => &[("storagemigration.k8s.io", "storageversionmigrations")],
        "ttl-after-finished-controller" => &[("batch", "jobs")],
        "validatingadmissionpolicy-status-controller" => {
            &[("admissionregistration.k8s.io", "validatingadmissionpolicies")]
        }
        _ => &[],
    }
}

/// Returns the listed controllers that are not implemented.
pub fn not_implemented_in(listed: &[String]) -> impl Iterator<Item = &'static str> {
    let controllers = listed.iter().filter_map(|entry| find(entry));
    controllers.filter(|known| known.start_mode == StartMode::NotImplemented).map(|known| known.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn names_are_sorted_and_neither_names_nor_aliases_repeat() {
        assert!(CONTROLLERS.windows(2).all(|pair| pair[0].name < pair[1].name));
        let mut seen = BTreeSet::new();
        for name in CONTROLLERS.iter().flat_map(|known| [known.name, known.alias]).filter(|n| !n.is_empty()) {
            assert!(seen.insert(name), "{name} names two controllers");
        }
    }

    #[test]
    fn the_first_mention_of_a_controller_decides_and_a_star_covers_the_rest() {
        let is_enabled = |text: &str, name: &str| enabled(&listed(text)).contains(name);
        assert!(is_enabled("*", "namespace-controller"));
        assert!(is_enabled("namespace", "namespace-controller"));
        assert!(!is_enabled("*,-namespace", "namespace-controller"));
        assert!(!is_enabled("-namespace-controller,*", "namespace-controller"));
        assert!(is_enabled("namespace,-namespace-controller", "namespace-controller"));
        assert!(!is_enabled("namespace-controller", "serviceaccount-controller"));
        assert_eq!(enabled(&listed("")), BTreeSet::new());
    }

    #[test]
    fn absent_controllers_never_run_and_are_reported_only_if_named() {
        assert!(!enabled(&listed("*,deployment")).contains("deployment-controller"));
        let names: Vec<_> = not_implemented_in(&listed("*,deployment,-job,namespace-controller")).collect();
        assert_eq!(names, ["deployment-controller"]);
    }
}
