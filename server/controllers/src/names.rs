//! Controllers of kube-controller-manager by the names that `--controllers` accepts: one table for parsing the command line,
//! for starting controllers, and for docs/reference/controllers.md.
//!
//! Does not depend on the code of any controller.

use std::collections::BTreeSet;

/// A controller of kube-controller-manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownController {
    /// Its name (`cmd/kube-controller-manager/names`).
    pub name: &'static str,
    /// The name it had once, which `--controllers` takes as well.
    pub alias: &'static str,
    /// What asking for it does here.
    pub availability: Availability,
}

/// What asking for a controller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// `*` starts it.
    Runs,
    /// Only its name starts it: upstream has it off, too.
    RunsByName,
    /// The name is accepted and nothing is started.
    Absent,
}

const fn runs(name: &'static str, alias: &'static str) -> KnownController {
    KnownController { name, alias, availability: Availability::Runs }
}

const fn by_name(name: &'static str, alias: &'static str) -> KnownController {
    KnownController { name, alias, availability: Availability::RunsByName }
}

const fn absent(name: &'static str, alias: &'static str) -> KnownController {
    KnownController { name, alias, availability: Availability::Absent }
}

/// All of them, sorted by name; an empty alias is none.
pub const KNOWN: [KnownController; 52] = [
    by_name("bootstrap-signer-controller", "bootstrapsigner"),
    runs("certificatesigningrequest-approving-controller", "csrapproving"),
    runs("certificatesigningrequest-cleaner-controller", "csrcleaner"),
    runs("certificatesigningrequest-signing-controller", "csrsigning"),
    absent("cloud-node-lifecycle-controller", "cloud-node-lifecycle"),
    runs("clusterrole-aggregation-controller", "clusterrole-aggregation"),
    absent("cronjob-controller", "cronjob"),
    absent("daemonset-controller", "daemonset"),
    absent("deployment-controller", "deployment"),
    absent("device-taint-eviction-controller", ""),
    runs("disruption-controller", "disruption"),
    runs("endpoints-controller", "endpoint"),
    runs("endpointslice-controller", "endpointslice"),
    runs("endpointslice-mirroring-controller", "endpointslicemirroring"),
    absent("ephemeral-volume-controller", "ephemeral-volume"),
    runs("garbage-collector-controller", "garbagecollector"),
    absent("horizontal-pod-autoscaler-controller", "horizontalpodautoscaling"),
    absent("job-controller", "job"),
    runs("kube-apiserver-serving-clustertrustbundle-publisher-controller", ""),
    runs("legacy-serviceaccount-token-cleaner-controller", "legacy-service-account-token-cleaner"),
    runs("namespace-controller", "namespace"),
    absent("node-ipam-controller", "nodeipam"),
    absent("node-lifecycle-controller", "nodelifecycle"),
    absent("node-route-controller", "route"),
    absent("persistentvolume-attach-detach-controller", "attachdetach"),
    absent("persistentvolume-binder-controller", "persistentvolume-binder"),
    absent("persistentvolume-expander-controller", "persistentvolume-expander"),
    runs("persistentvolume-protection-controller", "pv-protection"),
    runs("persistentvolumeclaim-protection-controller", "pvc-protection"),
    absent("pod-garbage-collector-controller", "podgc"),
    absent("podcertificaterequest-cleaner-controller", ""),
    absent("podgroup-protection-controller", ""),
    absent("replicaset-controller", "replicaset"),
    absent("replicationcontroller-controller", "replicationcontroller"),
    absent("resourceclaim-controller", "resource-claim-controller"),
    absent("resourcepoolstatusrequest-controller", ""),
    runs("resourcequota-controller", "resourcequota"),
    runs("root-ca-certificate-publisher-controller", "root-ca-cert-publisher"),
    absent("selinux-warning-controller", ""),
    absent("service-cidr-controller", ""),
    absent("service-lb-controller", "service"),
    runs("serviceaccount-controller", "serviceaccount"),
    runs("serviceaccount-token-controller", "serviceaccount-token"),
    absent("statefulset-controller", "statefulset"),
    runs("storage-version-migrator-controller", "svm"),
    absent("storageversion-garbage-collector-controller", "storage-version-gc"),
    absent("taint-eviction-controller", ""),
    by_name("token-cleaner-controller", "tokencleaner"),
    runs("ttl-after-finished-controller", "ttl-after-finished"),
    absent("ttl-controller", "ttl"),
    runs("validatingadmissionpolicy-status-controller", ""),
    absent("volumeattributesclass-protection-controller", ""),
];

/// The controller of this name, or of this alias.
#[must_use]
pub fn known(name: &str) -> Option<&'static KnownController> {
    KNOWN.iter().find(|known| !name.is_empty() && [known.name, known.alias].contains(&name))
}

/// The controllers that an argument of `--controllers` starts here. The first mention of a controller decides, `*` about those
/// that are not mentioned (upstream's `IsControllerEnabled`).
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

/// The group and resource of each kind that a controller cannot do without, beyond those of the core group.
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

/// The controllers that are asked for by name and that are not here.
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
    fn the_first_mention_of_a_controller_decides_and_a_star_about_the_rest() {
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
    fn what_is_absent_never_runs_and_is_named_when_asked_for_by_name_only() {
        assert!(!wanted(&listed("*,deployment")).contains("deployment-controller"));
        let names: Vec<_> = absent_of(&listed("*,deployment,-job,namespace-controller")).collect();
        assert_eq!(names, ["deployment-controller"]);
    }
}
