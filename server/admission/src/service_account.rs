//! ServiceAccount: a pod runs with an existing service account, whose token is mounted into its containers.

mod secrets;
mod token_volume;

use std::time::Duration;

use portico_machinery::features::parse_bool;
use portico_machinery::status::Reason;
use portico_machinery::{Object, Status};

use crate::plugin::{
    MutationFuture, MutationRequest, Plugin, ResourcePattern, ValidationFuture, ValidationRequest,
};
use portico_registry::Result;
use portico_registry::{Objects, Operation};
use portico_validation::pod_spec::{MIRROR, secrets_of};

const DEFAULT: &str = "default";
const NAME: &str = "spec.serviceAccountName";
const EPHEMERAL: &str = "ephemeralcontainers";
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
/// Attempts to find the default account. A controller creates the default account of a new namespace after a short time.
const ATTEMPTS: usize = 10;
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

pub(super) struct ServiceAccount;

impl Plugin for ServiceAccount {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("", "pods", ""), ("", "pods", EPHEMERAL)]
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, change: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            if change.attributes.operation != Operation::Create {
                return Ok(());
            }
            if change.new.annotation(MIRROR).is_some() {
                return mirror_error(change.new).map_or(Ok(()), |message| Err(change.forbidden(message)));
            }
            change.new.edit(&["spec"], |spec| {
                spec.set_if_empty(&["serviceAccountName"], DEFAULT);
                let name = spec.str_at("serviceAccountName").to_owned();
                spec.set(&["serviceAccount"], name);
            });
            let account = account(objects, change.new).await?.map_err(|error| change.forbidden(&error))?;
            if automounts(change.new, &account) {
                change.new.edit(&["spec"], token_volume::mount);
            }
            if change.new.at(&["spec", "imagePullSecrets"]).is_empty()
                && let Some(secrets) = account.get(&["imagePullSecrets"])
            {
                change.new.put(&["spec", "imagePullSecrets"], secrets);
            }
            let unlisted = secrets::unlisted_secret(change.new, &account)
                .filter(|_| enforces_mountable_secrets(&account));
            unlisted.map_or(Ok(()), |message| Err(change.forbidden(&message)))
        })
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            let pod = request.new;
            let ephemeral = request.attributes.subresource() == EPHEMERAL;
            if (request.attributes.operation == Operation::Update) != ephemeral {
                return Ok(Vec::new());
            }
            if !ephemeral && pod.annotation(MIRROR).is_some() {
                return mirror_error(pod).map_or(Ok(Vec::new()), |message| Err(request.forbidden(message)));
            }
            if pod.str_at(NAME).is_empty() {
                let (namespace, name) = (request.attributes.namespace, pod.name());
                let message = format!("no service account specified for pod {namespace}/{name}");
                return Err(request.forbidden(&message));
            }
            let account = account(objects, pod).await?.map_err(|error| request.forbidden(&error))?;
            if !enforces_mountable_secrets(&account) {
                return Ok(Vec::new());
            }
            if ephemeral {
                // Upstream's error has no specific reason here.
                let unlisted = secrets::unlisted_ephemeral_secret(pod, &account);
                let refuse = |message| Err(Box::new(Status::failure(Reason::Unknown, message)));
                return unlisted.map_or(Ok(Vec::new()), refuse);
            }
            secrets::unlisted_secret(pod, &account)
                .map_or(Ok(Vec::new()), |message| Err(request.forbidden(&message)))
        })
    }
}

/// True if pods may use only the secrets of their account (upstream's `enforceMountableSecrets`).
fn enforces_mountable_secrets(account: &Object) -> bool {
    account.annotation(ENFORCE).and_then(parse_bool).unwrap_or(false)
}

/// Returns an error message if a mirror pod has fields that it may not have.
fn mirror_error(pod: &Object) -> Option<&'static str> {
    if !pod.str_at(NAME).is_empty() {
        return Some("a mirror pod may not reference service accounts");
    }
    if !secrets_of(pod).is_empty() {
        return Some("a mirror pod may not reference secrets");
    }
    let volumes = pod.at(&["spec", "volumes"]);
    let projects_token = volumes.items().any(|volume| {
        let mut sources = volume.field("projected").field("sources").items();
        sources.any(|source| source.field("serviceAccountToken").is_present())
    });
    projects_token.then_some("a mirror pod may not use ServiceAccountToken volume projections")
}

/// Returns the account of a pod; the inner error is the reason for a refusal.
async fn account(objects: &Objects, pod: &Object) -> Result<Result<Object, String>> {
    let (namespace, name) = (pod.namespace(), pod.str_at(NAME));
    let attempts = if name == DEFAULT { ATTEMPTS } else { 1 };
    for attempt in 1..=attempts {
        if let Some(account) = objects.object_of("", "serviceaccounts", namespace, name).await? {
            return Ok(Ok(account));
        }
        if attempt < attempts {
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
    Ok(Err(format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found")))
}

fn automounts(pod: &Object, account: &Object) -> bool {
    let of_pod = pod.at(&["spec", "automountServiceAccountToken"]).opt_bool();
    of_pod.or_else(|| account.at(&["automountServiceAccountToken"]).opt_bool()).unwrap_or(true)
}
