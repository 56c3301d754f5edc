//! Secrets and ConfigMaps that a pod refers to (upstream's VisitPodSecretNames and VisitPodConfigmapNames).

use portico_machinery::{Cursor, Object};

use super::CONTAINER_LISTS;

/// Volume sources that refer to a Secret, with the path of its name.
const SECRET_VOLUMES: [(&str, &[&str]); 10] = [
    ("azureFile", &["secretName"]),
    ("cephfs", &["secretRef", "name"]),
    ("cinder", &["secretRef", "name"]),
    ("csi", &["nodePublishSecretRef", "name"]),
    ("flexVolume", &["secretRef", "name"]),
    ("iscsi", &["secretRef", "name"]),
    ("rbd", &["secretRef", "name"]),
    ("scaleIO", &["secretRef", "name"]),
    ("secret", &["secretName"]),
    ("storageos", &["secretRef", "name"]),
];

/// Returns the names of the Secrets that a pod refers to.
#[must_use]
pub fn secrets_of(pod: &Object) -> Vec<String> {
    let mut names: Vec<&str> =
        pod.at(&["spec", "imagePullSecrets"]).items().map(|s| s.field("name").str()).collect();
    add_containers(pod, ["secretRef", "secretKeyRef"], &mut names);
    for volume in pod.at(&["spec", "volumes"]).items() {
        for (kind, path) in SECRET_VOLUMES {
            names.push(path.iter().fold(volume.field(kind), |at, field| at.field(field)).str());
        }
        add_sources(&volume, "secret", &mut names);
    }
    non_empty_names(&names)
}

/// Returns the names of the ConfigMaps that a pod refers to.
#[must_use]
pub fn config_maps_of(pod: &Object) -> Vec<String> {
    let mut names = Vec::new();
    add_containers(pod, ["configMapRef", "configMapKeyRef"], &mut names);
    for volume in pod.at(&["spec", "volumes"]).items() {
        names.push(volume.field("configMap").field("name").str());
        add_sources(&volume, "configMap", &mut names);
    }
    non_empty_names(&names)
}

/// Adds the names in environment variables of containers: sources of all variables (`whole`) and of single ones (`key`).
fn add_containers<'a>(pod: &'a Object, [whole, key]: [&'a str; 2], names: &mut Vec<&'a str>) {
    for container in CONTAINER_LISTS.into_iter().flat_map(|list| pod.at(&["spec", list]).items()) {
        names.extend(container.field("envFrom").items().map(|from| from.field(whole).field("name").str()));
        let variables = container.field("env").items();
        names.extend(variables.map(|v| v.field("valueFrom").field(key).field("name").str()));
    }
}

/// Adds the names in projected volumes.
fn add_sources<'a>(volume: &Cursor<'a>, kind: &'a str, names: &mut Vec<&'a str>) {
    let sources = volume.field("projected").field("sources").items();
    names.extend(sources.map(|source| source.field(kind).field("name").str()));
}

fn non_empty_names(names: &[&str]) -> Vec<String> {
    names.iter().filter(|name| !name.is_empty()).map(|name| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_in_all_fields_that_refer_to_them() {
        let pod = br#"{"spec":{"imagePullSecrets":[{"name":"a"},{}],
            "initContainers":[{"envFrom":[{"secretRef":{"name":"b"}},{"configMapRef":{"name":"no"}}]}],
            "containers":[{"env":[{"name":"X","valueFrom":{"secretKeyRef":{"name":"c","key":"k"}}}]}],
            "volumes":[{"secret":{"secretName":"d"}},{"projected":{"sources":[{"secret":{"name":"e"}}]}},
                {"csi":{"nodePublishSecretRef":{"name":"f"}}},{"configMap":{"name":"no"}},
                {"iscsi":{"secretRef":{"name":"g"}}},{"azureFile":{"secretName":"h"}}]}}"#;
        let pod = Object::from_json(pod).unwrap();
        assert_eq!(secrets_of(&pod), ["a", "b", "c", "d", "e", "f", "g", "h"]);
    }

    #[test]
    fn config_maps_are_found_in_all_fields_that_refer_to_them() {
        let pod = br#"{"spec":{
            "initContainers":[{"envFrom":[{"configMapRef":{"name":"a"}},{"secretRef":{"name":"no"}}]}],
            "containers":[{"env":[{"name":"X","valueFrom":{"configMapKeyRef":{"name":"b","key":"k"}}}]}],
            "volumes":[{"configMap":{"name":"c"}},{"projected":{"sources":[{"configMap":{"name":"d"}}]}}]}}"#;
        let pod = Object::from_json(pod).unwrap();
        assert_eq!(config_maps_of(&pod), ["a", "b", "c", "d"]);
    }
}
