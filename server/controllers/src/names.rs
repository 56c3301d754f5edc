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
    pub availability: Availability,
    /// Purpose, for the reference.
    pub description: &'static str,
}

/// Effect of enabling a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Started by `*`.
    Runs,
    /// Started only by its name; off by default, as upstream.
    RunsByName,
    /// No effect: the name is accepted, but the controller is not implemented.
    Absent,
}

const fn runs(name: &'static str, alias: &'static str, description: &'static str) -> KnownController {
    KnownController { name, alias, availability: Availability::Runs, description }
}

const fn by_name(name: &'static str, alias: &'static str, description: &'static str) -> KnownController {
    KnownController { name, alias, availability: Availability::RunsByName, description }
}

const fn absent(name: &'static str, alias: &'static str, description: &'static str) -> KnownController {
    KnownController { name, alias, availability: Availability::Absent, description }
}

/// All controllers, sorted by name.
pub const KNOWN: [KnownController; 52] = [
    by_name(
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
    absent(
        "cloud-node-lifecycle-controller",
        "cloud-node-lifecycle",
        "Removes nodes whose cloud instance is gone.",
    ),
    runs(
        "clusterrole-aggregation-controller",
        "clusterrole-aggregation",
        "Combines the rules of aggregated ClusterRoles.",
    ),
    absent("cronjob-controller", "cronjob", "Creates Jobs of CronJobs."),
    absent("daemonset-controller", "daemonset", "Creates the pods of DaemonSets."),
    absent("deployment-controller", "deployment", "Manages the ReplicaSets of Deployments."),
    absent("device-taint-eviction-controller", "", "Evicts pods that use tainted devices."),
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
    absent(
        "ephemeral-volume-controller",
        "ephemeral-volume",
        "Creates the PersistentVolumeClaims of ephemeral volumes.",
    ),
    runs(
        "garbage-collector-controller",
        "garbagecollector",
        "Deletes objects whose owners are gone, and handles foreground and orphan deletion.",
    ),
    absent(
        "horizontal-pod-autoscaler-controller",
        "horizontalpodautoscaling",
        "Scales workloads by metrics.",
    ),
    absent("job-controller", "job", "Creates the pods of Jobs."),
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
    absent("node-ipam-controller", "nodeipam", "Assigns pod address ranges to nodes."),
    absent("node-lifecycle-controller", "nodelifecycle", "Taints nodes that are not ready."),
    absent("node-route-controller", "route", "Configures cloud routes between nodes."),
    absent("persistentvolume-attach-detach-controller", "attachdetach", "Attaches volumes to nodes."),
    absent(
        "persistentvolume-binder-controller",
        "persistentvolume-binder",
        "Binds PersistentVolumeClaims to volumes.",
    ),
    absent("persistentvolume-expander-controller", "persistentvolume-expander", "Expands volumes."),
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
    absent("pod-garbage-collector-controller", "podgc", "Deletes terminated and orphaned pods."),
    absent(
        "podcertificaterequest-cleaner-controller",
        "",
        "Deletes old PodCertificateRequests, an API that is not served.",
    ),
    absent("podgroup-protection-controller", "", "Protects PodGroups in use, an API that is not served."),
    absent("replicaset-controller", "replicaset", "Creates the pods of ReplicaSets."),
    absent(
        "replicationcontroller-controller",
        "replicationcontroller",
        "Creates the pods of ReplicationControllers.",
    ),
    absent(
        "resourceclaim-controller",
        "resource-claim-controller",
        "Creates ResourceClaims of pods and releases them.",
    ),
    absent("resourcepoolstatusrequest-controller", "", "Responds to ResourcePoolStatusRequests."),
    runs("resourcequota-controller", "resourcequota", "Recalculates the usage of ResourceQuotas."),
    runs(
        "root-ca-certificate-publisher-controller",
        "root-ca-cert-publisher",
        "Publishes the CA of the server in the ConfigMap kube-root-ca.crt of every namespace.",
    ),
    absent("selinux-warning-controller", "", "Warns of pods whose SELinux labels conflict on a volume."),
    absent("service-cidr-controller", "", "Maintains ServiceCIDRs and their finalizers."),
    absent("service-lb-controller", "service", "Creates cloud load balancers of Services."),
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
    absent("statefulset-controller", "statefulset", "Creates the pods and claims of StatefulSets."),
    runs(
        "storage-version-migrator-controller",
        "svm",
        "Rewrites stored objects for StorageVersionMigrations, if that API is enabled.",
    ),
    absent(
        "storageversion-garbage-collector-controller",
        "storage-version-gc",
        "Deletes StorageVersions of servers that are gone.",
    ),
    absent("taint-eviction-controller", "", "Evicts pods that do not tolerate the taints of their node."),
    by_name("token-cleaner-controller", "tokencleaner", "Deletes expired bootstrap tokens."),
    runs(
        "ttl-after-finished-controller",
        "ttl-after-finished",
        "Deletes finished Jobs after spec.ttlSecondsAfterFinished.",
    ),
    absent("ttl-controller", "ttl", "Sets the cache TTL annotation of nodes."),
    runs(
        "validatingadmissionpolicy-status-controller",
        "",
        "Type-checks ValidatingAdmissionPolicies and reports warnings in their status.",
    ),
    absent("volumeattributesclass-protection-controller", "", "Protects VolumeAttributesClasses in use."),
];

/// Returns the controller with this name or alias.
#[must_use]
pub fn known(name: &str) -> Option<&'static KnownController> {
    KNOWN.iter().find(|known| !name.is_empty() && [known.name, known.alias].contains(&name))
}

/// Returns the error message for a name for which [`find`] returns `None`. Lists the controllers that can run.
#[must_use]
pub fn unknown(name: &str) -> String {
    let can_run = KNOWN.iter().filter(|controller| controller.availability != Availability::Absent);
    let names: Vec<_> = can_run.map(|controller| controller.name).collect();
    format!("{name:?} is not in the list of known controllers: {}", names.join(", "))
}

/// Returns the names of the controllers that a value of `--controllers` starts. The first mention of a controller decides;
/// `*` covers controllers that are not mentioned (upstream's `IsControllerEnabled`).
#[must_use]
pub fn wanted(listed: &[String]) -> BTreeSet<&'static str> {
    let all = listed.iter().any(|entry| entry == "*");
    let mention = |controller: &KnownController| {
        listed.iter().find_map(|entry| {
            let (name, asked) = entry.strip_prefix('-').map_or((entry.as_str(), true), |name| (name, false));
            known(name).is_some_and(|known| known.name == controller.name).then_some(asked)
        })
    };
    let is_wanted = |controller: &&KnownController| match controller.availability {
        Availability::Runs => mention(controller).unwrap_or(all),
        Availability::RunsByName => mention(controller).unwrap_or(false),
        Availability::Absent => false,
    };
    KNOWN.iter().filter(is_wanted).map(|controller| controller.name).collect()
}

/// Returns group and resource of the kinds that a controller requires, except those of the core group.
#[must_use]
pub fn kinds_read(name: &str) -> &'static [(&'static str, &'static str)] {
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
pub fn absent_of(listed: &[String]) -> impl Iterator<Item = &'static str> {
    let controllers = listed.iter().filter_map(|entry| known(entry));
    controllers.filter(|known| known.availability == Availability::Absent).map(|known| known.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn names_are_sorted_and_neither_names_nor_aliases_repeat() {
        assert!(KNOWN.windows(2).all(|pair| pair[0].name < pair[1].name));
        let mut seen = BTreeSet::new();
        for name in KNOWN.iter().flat_map(|known| [known.name, known.alias]).filter(|n| !n.is_empty()) {
            assert!(seen.insert(name), "{name} stands for two controllers");
        }
    }

    #[test]
    fn the_first_mention_of_a_controller_decides_and_a_star_covers_the_rest() {
        let is_wanted = |text: &str, name: &str| wanted(&listed(text)).contains(name);
        assert!(is_wanted("*", "namespace-controller"));
        assert!(is_wanted("namespace", "namespace-controller"));
        assert!(!is_wanted("*,-namespace", "namespace-controller"));
        assert!(!is_wanted("-namespace-controller,*", "namespace-controller"));
        assert!(is_wanted("namespace,-namespace-controller", "namespace-controller"));
        assert!(!is_wanted("namespace-controller", "serviceaccount-controller"));
        assert_eq!(wanted(&listed("")), BTreeSet::new());
    }

    #[test]
    fn absent_controllers_never_run_and_are_reported_only_if_named() {
        assert!(!wanted(&listed("*,deployment")).contains("deployment-controller"));
        let names: Vec<_> = absent_of(&listed("*,deployment,-job,namespace-controller")).collect();
        assert_eq!(names, ["deployment-controller"]);
    }
}
