//! Checks that the account of a pod lists the secrets of the pod (upstream's `limitSecretReferences`).

use portico_machinery::{Cursor, Object};

/// Returns upstream's message for the first secret of a pod that its account does not list.
pub(super) fn unlisted_secret(pod: &Object, account: &Object) -> Option<String> {
    let spec = pod.at(&["spec"]);
    for volume in spec.field("volumes").items() {
        let source = volume.field("secret");
        let secret = source.field("secretName").str();
        if source.is_present() && !lists(account, "secrets", secret) {
            let source = format!("volume with secret.secretName={secret:?}");
            return Some(refusal(&source, account, "secret"));
        }
    }
    for (list, noun) in [("initContainers", "init container"), ("containers", "container")] {
        let mut containers = spec.field(list).items();
        if let Some(refusal) =
            containers.find_map(|container| unlisted_container_secret(&container, noun, account))
        {
            return Some(refusal);
        }
    }
    for (index, secret) in spec.field("imagePullSecrets").items().enumerate() {
        let name = secret.field("name").str();
        if !lists(account, "imagePullSecrets", name) {
            let source = format!("imagePullSecrets[{index}].name={name:?}");
            return Some(refusal(&source, account, "imagePullSecret"));
        }
    }
    None
}

/// Like [`unlisted_secret`], but for ephemeral containers only (upstream's `limitEphemeralContainerSecretReferences`).
pub(super) fn unlisted_ephemeral_secret(pod: &Object, account: &Object) -> Option<String> {
    let containers = pod.at(&["spec", "ephemeralContainers"]);
    let mut containers = containers.items();
    containers.find_map(|container| unlisted_container_secret(&container, "ephemeral container", account))
}

fn unlisted_container_secret(container: &Cursor<'_>, noun: &str, account: &Object) -> Option<String> {
    let name = container.field("name").str();
    for variable in container.field("env").items() {
        let source = variable.field("valueFrom").field("secretKeyRef");
        let secret = source.field("name").str();
        if source.is_present() && !lists(account, "secrets", secret) {
            let variable = variable.field("name").str();
            let source =
                format!("{noun} {name} with envVar {variable} referencing secret.secretName={secret:?}");
            return Some(refusal(&source, account, "secret"));
        }
    }
    for env_from in container.field("envFrom").items() {
        let source = env_from.field("secretRef");
        let secret = source.field("name").str();
        if source.is_present() && !lists(account, "secrets", secret) {
            let source = format!("{noun} {name} with envFrom referencing secret.secretName={secret:?}");
            return Some(refusal(&source, account, "secret"));
        }
    }
    None
}

fn lists(account: &Object, list: &str, name: &str) -> bool {
    account.at(&[list]).items().any(|reference| reference.field("name").str() == name)
}

fn refusal(source: &str, account: &Object, secret_kind: &str) -> String {
    let account = account.name();
    format!("{source} is not allowed because service account {account} does not reference that {secret_kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_that_an_account_does_not_list_are_found() {
        let account =
            br#"{"metadata":{"name":"a"},"secrets":[{"name":"s"}],"imagePullSecrets":[{"name":"i"}]}"#;
        let account = Object::from_json(account).unwrap();
        for (spec, expected) in [
            (r#"{"volumes":[{"secret":{"secretName":"s"}}],"imagePullSecrets":[{"name":"i"}]}"#, None),
            (r#"{"volumes":[{"secret":{"secretName":"t"}}]}"#, Some("volume with secret.secretName=\"t\"")),
            (
                r#"{"initContainers":[{"name":"c","envFrom":[{"secretRef":{"name":"t"}}]}]}"#,
                Some("init container c with envFrom referencing secret.secretName=\"t\""),
            ),
            (
                r#"{"containers":[{"name":"c","env":[{"name":"V","valueFrom":{"secretKeyRef":{"name":"t"}}}]}]}"#,
                Some("container c with envVar V referencing secret.secretName=\"t\""),
            ),
        ] {
            let pod = Object::from_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap();
            let tail = "is not allowed because service account a does not reference that secret";
            assert_eq!(
                unlisted_secret(&pod, &account),
                expected.map(|prefix| format!("{prefix} {tail}")),
                "{spec}"
            );
        }
        let pod = br#"{"spec":{"ephemeralContainers":[{"name":"e","envFrom":[{"secretRef":{"name":"t"}}]}],"imagePullSecrets":[{"name":"x"}]}}"#;
        let pod = Object::from_json(pod).unwrap();
        let message = unlisted_ephemeral_secret(&pod, &account).unwrap();
        assert!(message.starts_with("ephemeral container e with envFrom referencing"), "{message}");
        let message = unlisted_secret(&pod, &account).unwrap();
        assert!(message.starts_with("imagePullSecrets[0].name=\"x\" is not allowed"), "{message}");
    }
}
