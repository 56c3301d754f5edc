//! ServiceAccount: a pod acts as an account that exists, and finds that account's token in its files.

mod token_volume;

use std::time::Duration;

use portico_machinery::Object;

use crate::plugin::{Mutating, MutationRequest, PODS, Plugin, Target};
use portico_registry::Objects;
use portico_registry::Result;
use portico_validation::pod_spec::MIRROR;

const DEFAULT: &str = "default";
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
/// The default account of a new namespace is made by a controller, which may take a moment.
const ATTEMPTS: usize = 10;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

pub(super) struct ServiceAccount;

impl Plugin for ServiceAccount {
    fn targets(&self) -> &'static [Target] {
        PODS
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, change: MutationRequest<'a>) -> Mutating<'a> {
        Box::pin(async move {
            if change.old.is_some() {
                return Ok(());
            }
            if change.new.annotation(MIRROR).is_some() {
                return check_mirror(&change);
            }
            change.new.edit(&["spec"], |spec| {
                spec.set_empty(&["serviceAccountName"], DEFAULT);
                let name = spec.str_at("serviceAccountName").to_owned();
                spec.set(&["serviceAccount"], name);
            });
            let account = account(objects, &change).await?;
            if account.annotation(ENFORCE) == Some("true") {
                check_secrets(&change, &account)?;
            }
            if automounts(change.new, &account) {
                change.new.edit(&["spec"], token_volume::mount);
            }
            if change.new.at(&["spec", "imagePullSecrets"]).is_empty()
                && let Some(secrets) = account.get(&["imagePullSecrets"])
            {
                change.new.put(&["spec", "imagePullSecrets"], secrets);
            }
            Ok(())
        })
    }
}

fn check_mirror(change: &MutationRequest<'_>) -> Result<()> {
    let spec = change.new.at(&["spec"]);
    if !spec.field("serviceAccountName").str().is_empty() {
        return Err(change.forbidden("a mirror pod may not reference service accounts"));
    }
    for volume in spec.field("volumes").items() {
        let mut sources = volume.field("projected").field("sources").items();
        if sources.any(|source| source.field("serviceAccountToken").is_present()) {
            return Err(change.forbidden("a mirror pod may not use ServiceAccountToken volume projections"));
        }
        if volume.field("secret").is_present() {
            return Err(change.forbidden("a mirror pod may not reference secrets"));
        }
    }
    Ok(())
}

async fn account(objects: &Objects, change: &MutationRequest<'_>) -> Result<Object> {
    let (namespace, name) = (change.new.namespace(), change.new.str_at("spec.serviceAccountName"));
    let attempts = if name == DEFAULT { ATTEMPTS } else { 1 };
    for attempt in 1..=attempts {
        if let Some(account) = objects.object_of("", "serviceaccounts", namespace, name).await? {
            return Ok(account);
        }
        if attempt < attempts {
            tokio::time::sleep(BETWEEN_ATTEMPTS).await;
        }
    }
    Err(change.forbidden(&format!(
        "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
    )))
}

fn automounts(pod: &Object, account: &Object) -> bool {
    let of_pod = pod.at(&["spec", "automountServiceAccountToken"]).opt_bool();
    of_pod.or_else(|| account.at(&["automountServiceAccountToken"]).opt_bool()).unwrap_or(true)
}

/// An account that insists may only be used with the secrets that it lists.
fn check_secrets(change: &MutationRequest<'_>, account: &Object) -> Result<()> {
    let spec = change.new.at(&["spec"]);
    let lists = |list: &str, name: &str| {
        account.at(&[list]).items().any(|reference| reference.field("name").str() == name)
    };
    let refuse = |what: String, word: &str| {
        Err(change.forbidden(&format!(
            "{what} is not allowed because service account {} does not reference that {word}",
            account.name()
        )))
    };
    for volume in spec.field("volumes").items() {
        let source = volume.field("secret");
        let secret = source.field("secretName").str();
        if !secret.is_empty() && !lists("secrets", secret) {
            return refuse(format!("volume with secret.secretName={secret:?}"), "secret");
        }
    }
    for (list, word) in [("initContainers", "init container"), ("containers", "container")] {
        for container in spec.field(list).items() {
            for variable in container.field("env").items() {
                let secret = variable.field("valueFrom").field("secretKeyRef").field("name").str();
                if !secret.is_empty() && !lists("secrets", secret) {
                    let (container, variable) = (container.field("name").str(), variable.field("name").str());
                    let what = format!(
                        "{word} {container} with envVar {variable} referencing secret.secretName={secret:?}"
                    );
                    return refuse(what, "secret");
                }
            }
        }
    }
    for (index, secret) in spec.field("imagePullSecrets").items().enumerate() {
        let name = secret.field("name").str();
        if !lists("imagePullSecrets", name) {
            return refuse(format!("imagePullSecrets[{index}].name={name:?}"), "imagePullSecret");
        }
    }
    Ok(())
}
