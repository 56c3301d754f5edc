//! Preparation of a new pod: initial status, merged label keys, profiles of annotations.

use jiff::Timestamp;
use portico_machinery::{Object, time};
use serde::Serialize;

use portico_validation::pod_spec::qos;
use portico_validation::pod_spec::{APPARMOR, CONTAINER_LISTS};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Requirement to add to a label selector.
#[derive(Serialize)]
struct Requirement<'a> {
    key: &'a str,
    operator: &'a str,
    values: [&'a str; 1],
}

/// Condition of a new pod.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: &'static str,
    status: &'static str,
    last_transition_time: String,
    reason: &'static str,
    message: &'static str,
}

/// Prepares a new pod.
pub(super) fn prepare(pod: &mut Object, now: Timestamp) {
    let class = match pod.at(&["status", "qosClass"]).str() {
        "" => qos::qos_class(&pod.at(&["spec"])).to_owned(),
        profile => profile.to_owned(),
    };
    pod.remove(&["status"]);
    pod.set(&["status", "phase"], "Pending");
    pod.set(&["status", "qosClass"], class);
    if !pod.at(&["spec", "schedulingGates"]).is_empty() {
        pod.push(
            &["status", "conditions"],
            Condition {
                kind: "PodScheduled",
                status: "False",
                last_transition_time: time::rfc3339(now),
                reason: "SchedulingGated",
                message: "Scheduling is blocked due to non-empty scheduling gates",
            },
        );
    }
    merge_label_keys(pod);
    copy_apparmor(pod);
}

/// Merges `matchLabelKeys` and similar keys into the selectors of their terms, with the values of the labels of the pod.
fn merge_label_keys(pod: &mut Object) {
    let labels = pod.labels();
    for kind in ["podAffinity", "podAntiAffinity"] {
        pod.edit_each(&["spec", "affinity", kind, REQUIRED], |term| merge_into(term, &labels));
        pod.edit_each(&["spec", "affinity", kind, PREFERRED], |term| {
            term.edit(&["podAffinityTerm"], |term| merge_into(term, &labels));
        });
    }
    pod.edit_each(&["spec", "topologySpreadConstraints"], |term| merge_into(term, &labels));
}

fn merge_into(term: &mut Object, labels: &std::collections::BTreeMap<String, String>) {
    if !term.at(&["labelSelector"]).is_present() {
        return;
    }
    for (list, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys: Vec<String> = term.at(&[list]).items().map(|key| key.str().to_owned()).collect();
        for key in keys {
            if let Some(value) = labels.get(&key) {
                let requirement = Requirement { key: &key, operator, values: [value] };
                term.push(&["labelSelector", "matchExpressions"], requirement);
            }
        }
    }
}

/// Copies AppArmor profiles from annotations to the fields that replaced them, if the fields are absent.
fn copy_apparmor(pod: &mut Object) {
    if pod.str_at("spec.os.name") == "windows" {
        return;
    }
    let profiles: Vec<(String, String)> = pod
        .metadata()
        .field("annotations")
        .entries()
        .filter_map(|(key, value)| Some((key.strip_prefix(APPARMOR)?.to_owned(), value.str().to_owned())))
        .collect();
    if profiles.is_empty() {
        return;
    }
    let of_pod = pod.get(&["spec", "securityContext", "appArmorProfile"]);
    for list in CONTAINER_LISTS {
        pod.edit_each(&["spec", list], |container| {
            let name = container.str_at("name").to_owned();
            let Some((_, annotated)) = profiles.iter().find(|(container, _)| *container == name) else {
                return;
            };
            let path = ["securityContext", "appArmorProfile"];
            if container.at(&path).is_present() {
                return;
            }
            let Some(profile) = profile(annotated) else { return };
            if of_pod.as_ref() != Some(&profile.to_node()) {
                container.put(&path, profile.into_node());
            }
        });
    }
}

fn profile(annotation: &str) -> Option<Object> {
    let mut profile = Object::default();
    match annotation.strip_prefix("localhost/") {
        Some(local) => {
            profile.set(&["type"], "Localhost");
            profile.set(&["localhostProfile"], local);
        }
        None if annotation == "unconfined" => profile.set(&["type"], "Unconfined"),
        None if annotation == "runtime/default" => profile.set(&["type"], "RuntimeDefault"),
        None => return None,
    }
    Some(profile)
}
