//! Defaults of a pod spec that depend on other fields. The kinds data contains the constant ones.

use portico_machinery::{Object, Quantity};

use super::images::pull_policy;

/// Lists of containers in a spec.
pub const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// Alpha and beta annotations of init containers, which no release uses any more.
const OLD_ANNOTATIONS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-container-statuses",
];

/// Removes annotations that contained init containers in old releases.
pub fn drop_old_annotations(object: &mut Object) {
    for key in OLD_ANNOTATIONS {
        object.remove(&["metadata", "annotations", key]);
    }
}

/// Sets the defaults of a pod spec, in pods and templates.
pub fn default_spec(spec: &mut Object) {
    for list in CONTAINER_LISTS {
        spec.edit_each(&[list], container);
    }
    spec.edit_each(&["volumes"], volume);
    for field in ["limits", "requests"] {
        round_to_milli(spec, &["resources", field]);
    }
    round_to_milli(spec, &["overhead"]);
    // `serviceAccount` is a deprecated alias of `serviceAccountName`, on input and output.
    let alias = spec.str_at("serviceAccount").to_owned();
    if !alias.is_empty() {
        spec.set_if_empty(&["serviceAccountName"], &alias);
    }
    alias_service_account(spec);
    drop_gated_fields(spec);
}

/// Copies `serviceAccountName` to its deprecated alias `serviceAccount`.
pub fn alias_service_account(spec: &mut Object) {
    match spec.str_at("serviceAccountName").to_owned() {
        name if name.is_empty() => {
            spec.remove(&["serviceAccount"]);
        }
        name => spec.set(&["serviceAccount"], name),
    }
}

/// Removes fields of features that are off by default.
fn drop_gated_fields(spec: &mut Object) {
    spec.remove(&["schedulingGroup"]);
    spec.edit_each(&["volumes"], |volume| {
        volume.edit_each(&["projected", "sources"], |source| {
            source.remove(&["clusterTrustBundle"]);
            source.remove(&["podCertificate"]);
        });
    });
    for list in CONTAINER_LISTS {
        spec.edit_each(&[list], |container| {
            let had = container.remove(&["lifecycle", "stopSignal"]).is_some();
            if had && container.at(&["lifecycle"]).is_empty() {
                container.remove(&["lifecycle"]);
            }
        });
    }
}

fn container(container: &mut Object) {
    let policy = pull_policy(container.str_at("image"));
    container.set_if_empty(&["imagePullPolicy"], policy);
    for field in ["limits", "requests"] {
        round_to_milli(container, &["resources", field]);
    }
}

fn volume(volume: &mut Object) {
    let has_source = volume.cursor().entries().any(|(field, value)| field != "name" && value.is_present());
    if !has_source {
        volume.put(&["emptyDir"], Object::default().into_node());
    }
    if volume.at(&["image"]).is_present() {
        // Only a template may omit the reference, which is filled in later.
        let policy = match volume.str_at("image.reference") {
            "" => "IfNotPresent",
            reference => pull_policy(reference),
        };
        volume.set_if_empty(&["image", "pullPolicy"], policy);
    }
}

/// Rounds the quantities of a resource list to milli units, as upstream stores them.
pub fn round_to_milli(object: &mut Object, path: &[&str]) {
    object.edit_strings(path, |text| {
        let quantity = text.parse::<Quantity>().ok().filter(|quantity| !quantity.is_milli())?;
        Some(quantity.rounded_to_milli().to_string())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_depend_on_other_fields() {
        let json = br#"{"serviceAccount":"sa","volumes":[{"name":"v"}],
            "containers":[{"name":"c","image":"a:1","resources":{"limits":{"cpu":"100u"}},"lifecycle":{"stopSignal":"SIGTERM"}}]}"#;
        let mut spec = Object::from_json(json).unwrap();
        default_spec(&mut spec);
        assert_eq!(spec.str_at("serviceAccountName"), "sa");
        let container = spec.at(&["containers"]).items().next().unwrap();
        assert_eq!(container.field("imagePullPolicy").str(), "IfNotPresent");
        assert_eq!(container.field("resources").field("limits").field("cpu").str(), "1m");
        assert!(!container.field("lifecycle").is_present());
        assert!(spec.at(&["volumes"]).items().next().unwrap().field("emptyDir").is_present());
    }
}
