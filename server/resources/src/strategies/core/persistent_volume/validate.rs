//! Validation of volumes and of their updates.

use portico_machinery::field::{Error, ErrorType, Path};
use portico_machinery::{Cursor, Object, names};

use super::warnings::MOUNT_OPTIONS_ANNOTATION;
use portico_validation::Errors;
use portico_validation::pod_spec::access_modes;
use portico_validation::volume_source::{self, SOURCES};
use portico_validation::{checks, node_selector};

/// Volume sources that support mount options.
const SUPPORTS_MOUNT_OPTIONS: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];
/// Node labels that an update may rename: deprecated label and its replacement.
const RENAMED_LABELS: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

/// Validates a whole volume.
pub(super) fn validate_volume(volume: &Object, errors: &mut Errors) {
    let spec = volume.at(&["spec"]);
    let modes = spec.field("accessModes");
    checks::not_empty(&modes, errors);
    access_modes(&modes, errors);
    validate_capacity(&spec.field("capacity"), errors);
    let policy = spec.field("persistentVolumeReclaimPolicy");
    if !policy.str().is_empty() {
        checks::one_of(&policy, &["Delete", "Recycle", "Retain"], errors);
    }
    validate_node_affinity(&spec.field("nodeAffinity"), errors);
    volume_source::validate(&spec, volume.name(), errors);
    let root = spec.field("hostPath").field("path").str();
    if is_root(root) && policy.str() == "Recycle" {
        errors.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
    checks::optional(&spec.field("storageClassName"), names::dns1123_subdomain, errors);
    checks::one_of(&spec.field("volumeMode"), &["Block", "Filesystem"], errors);
    validate_attributes_class(&spec, errors);
    let takes_options = SUPPORTS_MOUNT_OPTIONS.iter().any(|field| spec.field(field).is_present());
    if volume.annotation(MOUNT_OPTIONS_ANNOTATION).is_some() && !takes_options {
        let path = Path::new(format!("metadata.annotations.{MOUNT_OPTIONS_ANNOTATION}"));
        errors.push(Error::forbidden(&path, "may not specify mount options for this volume type"));
    }
}

fn validate_capacity(list: &Cursor<'_>, errors: &mut Errors) {
    if list.is_empty() {
        errors.push(list.required(""));
    }
    if list.len() != 1 || !list.key("storage").is_present() {
        let printed = if list.is_present() { list.printed() } else { "null".to_owned() };
        errors.push(Error {
            kind: ErrorType::NotSupported,
            path: list.path(),
            body: format!("Unsupported value: {printed}: supported values: \"storage\""),
        });
    }
    for (_, value) in list.entries() {
        let Some(amount) = value.quantity() else { continue };
        if amount.is_negative() {
            errors.push(Error::invalid(&value.path(), amount.value(), "must be a valid resource quantity"));
        }
        if !amount.is_positive() {
            errors.push(Error::invalid(&value.path(), amount.to_string(), "must be greater than zero"));
        }
    }
}

fn validate_node_affinity(affinity: &Cursor<'_>, errors: &mut Errors) {
    if !affinity.is_present() {
        return;
    }
    let required = affinity.field("required");
    if required.is_present() {
        node_selector::validate(&required, errors);
    } else {
        errors.push(required.required("must specify required node constraints"));
    }
}

fn validate_attributes_class(spec: &Cursor<'_>, errors: &mut Errors) {
    let class = spec.field("volumeAttributesClassName");
    if !class.is_present() {
        return;
    }
    if class.str().is_empty() {
        errors.push(class.required("an empty string is disallowed"));
    }
    checks::optional(&class, names::dns1123_subdomain, errors);
    if !spec.field("csi").is_present() {
        errors.push(spec.field("csi").required("has to be specified when using volumeAttributesClassName"));
    }
}

/// True if the cleaned path is `/`.
fn is_root(path: &str) -> bool {
    path.starts_with('/') && path.split('/').all(|part| matches!(part, "" | "." | ".."))
}

/// Validates an update.
pub(super) fn validate_change(new: &Object, old: &Object, errors: &mut Errors) {
    let (spec, before) = (new.at(&["spec"]), old.at(&["spec"]));
    if !is_same_source(new, old) {
        let path = Path::new("spec.persistentvolumesource".to_owned());
        errors.push(Error::forbidden(&path, "spec.persistentvolumesource is immutable after creation"));
    }
    let mode = spec.field("volumeMode");
    if !checks::is_same(&mode, &before.field("volumeMode")) {
        let path = Path::new("volumeMode".to_owned());
        errors.push(Error::invalid_printed(&path, &mode.printed(), checks::IMMUTABLE));
    }
    let (affinity, old_affinity) = (new.at(&["spec", "nodeAffinity"]), old.at(&["spec", "nodeAffinity"]));
    if old_affinity.is_present()
        && !affinity.same_as(&old_affinity)
        && !is_same_except_renamed_labels(new, old)
    {
        let path = Path::new("nodeAffinity".to_owned());
        let text = "field is immutable, except for updating from beta label to GA";
        errors.push(Error::invalid_printed(&path, &affinity.printed(), text));
    }
    let class = spec.field("volumeAttributesClassName");
    if before.field("volumeAttributesClassName").is_present() && !class.is_present() {
        errors.push(class.forbidden("update from non-nil value to nil is forbidden"));
    }
}

/// True if the source is unchanged, except for the addition of a secret that expands the volume.
fn is_same_source(new: &Object, old: &Object) -> bool {
    const EXPAND: [&str; 3] = ["spec", "csi", "controllerExpandSecretRef"];
    let mut new = new.clone();
    if !old.at(&EXPAND).is_present() {
        new.remove(&EXPAND);
    }
    SOURCES.iter().all(|field| checks::is_same(&new.at(&["spec", field]), &old.at(&["spec", field])))
}

/// True if the constraints are equal after deprecated labels in the old ones are renamed.
fn is_same_except_renamed_labels(new: &Object, old: &Object) -> bool {
    let renamed = rename_labels(old, new);
    renamed.at(&["spec", "nodeAffinity"]).same_as(&new.at(&["spec", "nodeAffinity"]))
}

/// Returns the old volume with those label keys renamed that the new volume has renamed.
fn rename_labels(old: &Object, new: &Object) -> Object {
    const TERMS: [&str; 4] = ["spec", "nodeAffinity", "required", "nodeSelectorTerms"];
    let expected: Vec<Vec<String>> = new
        .at(&TERMS)
        .items()
        .map(|term| term.field("matchExpressions").items().map(|e| e.field("key").str().to_owned()).collect())
        .collect();
    let mut renamed = old.clone();
    let mut terms = expected.into_iter();
    renamed.edit_each(&TERMS, |term| {
        let mut keys = terms.next().unwrap_or_default().into_iter();
        term.edit_each(&["matchExpressions"], |expression| {
            let (key, new_key) = (expression.str_at("key").to_owned(), keys.next().unwrap_or_default());
            if RENAMED_LABELS.contains(&(key.as_str(), new_key.as_str())) {
                expression.set(&["key"], new_key);
            }
        });
    });
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> Object {
        Object::from_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_volume_needs_modes_a_size_and_one_source() {
        let mut errors = Errors::new();
        validate_volume(&object(r#"{"spec":{}}"#), &mut errors);
        let paths: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(paths, ["spec.accessModes", "spec.capacity", "spec.capacity", "spec"]);
    }

    #[test]
    fn only_deprecated_node_labels_may_be_renamed() {
        let with = |key: &str| {
            object(&format!(
                r#"{{"spec":{{"nodeAffinity":{{"required":{{"nodeSelectorTerms":[{{"matchExpressions":[
                {{"key":"{key}","operator":"Exists"}}]}}]}}}}}}}}"#
            ))
        };
        let old = with("beta.kubernetes.io/os");
        assert!(is_same_except_renamed_labels(&with("kubernetes.io/os"), &old));
        assert!(!is_same_except_renamed_labels(&with("kubernetes.io/arch"), &old));
    }

    #[test]
    fn paths_that_resolve_to_the_root_are_detected() {
        for (path, root) in [("/", true), ("//./", true), ("/a", false), ("", false)] {
            assert_eq!(is_root(path), root, "{path}");
        }
    }
}
