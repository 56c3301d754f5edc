//! Which Secrets a pod refers to (upstream's VisitPodSecretNames), pure.

use portico_machinery::{Cursor, Object};

const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Where kinds of volumes name a Secret.
const VOLUMES: [(&str, &[&str]); 10] = [
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

/// The names of all of them.
#[must_use]
pub fn secrets_of(pod: &Object) -> Vec<String> {
    let mut names: Vec<&str> =
        pod.at(&["spec", "imagePullSecrets"]).items().map(|s| s.field("name").str()).collect();
    for list in CONTAINERS {
        pod.at(&["spec", list]).items().for_each(|container| of_container(&container, &mut names));
    }
    pod.at(&["spec", "volumes"]).items().for_each(|volume| of_volume(&volume, &mut names));
    names.into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn of_container<'a>(container: &Cursor<'a>, names: &mut Vec<&'a str>) {
    names.extend(container.field("envFrom").items().map(|from| from.field("secretRef").field("name").str()));
    let variables = container.field("env").items();
    names.extend(variables.map(|v| v.field("valueFrom").field("secretKeyRef").field("name").str()));
}

fn of_volume<'a>(volume: &Cursor<'a>, names: &mut Vec<&'a str>) {
    for (kind, path) in VOLUMES {
        names.push(path.iter().fold(volume.field(kind), |at, field| at.field(field)).str());
    }
    let sources = volume.field("projected").field("sources").items();
    names.extend(sources.map(|source| source.field("secret").field("name").str()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_wherever_a_pod_may_name_them() {
        let pod = br#"{"spec":{"imagePullSecrets":[{"name":"a"},{}],
            "initContainers":[{"envFrom":[{"secretRef":{"name":"b"}},{"configMapRef":{"name":"no"}}]}],
            "containers":[{"env":[{"name":"X","valueFrom":{"secretKeyRef":{"name":"c","key":"k"}}}]}],
            "volumes":[{"secret":{"secretName":"d"}},{"projected":{"sources":[{"secret":{"name":"e"}}]}},
                {"csi":{"nodePublishSecretRef":{"name":"f"}}},{"configMap":{"name":"no"}},
                {"iscsi":{"secretRef":{"name":"g"}}},{"azureFile":{"secretName":"h"}}]}}"#;
        let pod = Object::from_json(pod).unwrap();
        assert_eq!(secrets_of(&pod), ["a", "b", "c", "d", "e", "f", "g", "h"]);
    }
}
