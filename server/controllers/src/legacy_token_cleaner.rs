//! Cleans up unused Secrets with auto-generated legacy tokens (`legacy-serviceaccount-token-cleaner-controller`): a Secret is
//! marked as invalid first, and deleted if it remains unused.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_machinery::{GroupResource, Object, Reason, Status, time};
use portico_registry::{
    Context, DeleteOptions, ListOptions, ObjectPart, ObjectPath, ObjectRef, Patch, PatchOptions,
    Preconditions, Registry, StoredObject,
};

use portico_validation::pod_spec::secrets_of;

use crate::periodic::at_intervals;
use crate::service_account_tokens::{ACCOUNT, belongs_to, secrets, tokens};
use crate::system_objects::token_tracking;
use crate::write_result::ignore_reasons;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "legacy-serviceaccount-token-cleaner-controller";

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const USER: &str = "system:serviceaccount:kube-system:legacy-service-account-token-cleaner";
/// Upstream's interval.
const PERIOD: Duration = Duration::from_secs(24 * 3600);

/// Action for an unused Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenStep {
    Keep,
    /// Mark the token as invalid from today.
    Invalidate,
    Delete,
}

/// Decides about an auto-generated token Secret that no pod mounts. `since` is the date at which tracking of uses began.
#[must_use]
pub fn step(secret: &Object, since: Date, now: Timestamp, unused: Duration) -> TokenStep {
    let today = now.to_zoned(TimeZone::UTC).date();
    let Ok(limit) = now.checked_sub(unused) else { return TokenStep::Keep };
    let last_day = limit.to_zoned(TimeZone::UTC).date();
    let noted_long_enough = since.checked_add(1.day()).is_ok_and(|from| from <= last_day && today >= from);
    let created = secret.creation_timestamp().and_then(time::parse);
    let is_old = created.is_some_and(|created| created < limit);
    if !noted_long_enough || !is_old || secret.deletion_timestamp().is_some() {
        return TokenStep::Keep;
    }
    let date_label = |label| secret.label(label).map(str::parse::<Date>);
    match (date_label(LAST_USED), date_label(INVALID_SINCE)) {
        (Some(Err(_)), _) => TokenStep::Keep,
        (Some(Ok(used)), _) if used >= last_day => TokenStep::Keep,
        (_, None | Some(Err(_))) => TokenStep::Invalidate,
        (_, Some(Ok(marked))) if marked >= last_day => TokenStep::Keep,
        _ => TokenStep::Delete,
    }
}

/// Sweeps at intervals until `tasks` is cancelled.
pub async fn run(registry: Registry, unused: Duration, tasks: TaskSet) {
    let sweeps = at_intervals(PERIOD, BackoffPolicy::CONTROLLER, || async {
        let done = sweep(&registry, unused, Timestamp::now()).await;
        done.inspect_err(
            |status| tracing::warn!(error = %status, "cannot clean up unused legacy tokens, retrying"),
        )
        .is_ok()
    });
    tasks.token().run_until_cancelled(sweeps).await;
}

/// Processes all token Secrets once.
///
/// # Errors
/// Returns the first failure.
pub async fn sweep(registry: &Registry, unused: Duration, now: Timestamp) -> Result<(), Box<Status>> {
    let Some(since) = tracking_since(registry).await? else { return Ok(()) };
    let mut mounted = HashMap::new();
    for secret in tokens(registry, "").await? {
        let step = step(secret.object(), since, now, unused);
        if step == TokenStep::Keep || !is_auto_generated(registry, &secret).await? {
            continue;
        }
        if !mounted.contains_key(secret.namespace()) {
            let in_use = secrets_mounted_in(registry, secret.namespace()).await?;
            mounted.insert(secret.namespace().to_owned(), in_use);
        }
        if !mounted.get(secret.namespace()).is_some_and(|in_use| in_use.contains(secret.name())) {
            execute(registry, &secret, step, now).await?;
        }
    }
    Ok(())
}

async fn execute(
    registry: &Registry,
    secret: &StoredObject,
    step: TokenStep,
    now: Timestamp,
) -> Result<(), Box<Status>> {
    let (namespace, name) = (secret.namespace(), secret.name());
    if step == TokenStep::Delete {
        let resource_version = Some(secret.revision().to_string());
        let preconditions = Preconditions { uid: Some(secret.uid().to_owned()), resource_version };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        tracing::info!(namespace, secret = name, "deleting an unused legacy token");
        let deleted = registry.delete(&Context::system(USER), &secrets(), namespace, name, &options).await;
        return ignore_reasons(deleted, &[Reason::NotFound, Reason::Conflict]);
    }
    let today = now.to_zoned(TimeZone::UTC).date();
    let patch = format!(
        "{{\"metadata\":{{\"uid\":\"{}\",\"labels\":{{\"{INVALID_SINCE}\":\"{today}\"}}}}}}",
        secret.uid()
    );
    let (context, path) = (Context::system(USER), ObjectPath { part: ObjectPart::Main, namespace, name });
    let patch = Patch::Merge(patch.into());
    let patched = registry.patch(&context, &secrets(), path, &patch, &PatchOptions::default()).await;
    ignore_reasons(patched, &[Reason::NotFound, Reason::Conflict])
}

/// Returns the date at which tracking of uses began.
async fn tracking_since(registry: &Registry) -> Result<Option<Date>, Box<Status>> {
    let config_map = token_tracking::config_map();
    let tracking = registry.get_stored(&config_map).await?;
    Ok(tracking.and_then(|noted| noted.object().at(&["data"]).entry_str("since")?.parse().ok()))
}

/// Returns true if the Secret is auto-generated: only those are listed in the service account.
async fn is_auto_generated(registry: &Registry, secret: &StoredObject) -> Result<bool, Box<Status>> {
    let resource = GroupResource::new("", "serviceaccounts");
    let name = secret.object().annotation(ACCOUNT).unwrap_or_default().to_owned();
    let account = ObjectRef { resource, namespace: secret.namespace().to_owned(), name };
    let account = registry.get_stored(&account).await?;
    Ok(account.is_some_and(|account| {
        let references = account.object().at(&["secrets"]);
        belongs_to(secret.object(), account.name(), account.uid())
            && references.items().any(|reference| reference.field("name").str() == secret.name())
    }))
}

/// Returns the names of the Secrets that pods of a namespace refer to.
async fn secrets_mounted_in(registry: &Registry, namespace: &str) -> Result<HashSet<String>, Box<Status>> {
    let pods = GroupResource::new("", "pods");
    let pods = registry.list(&pods, namespace, &ListOptions::default()).await?.items;
    Ok(pods.iter().flat_map(|pod| secrets_of(pod.object())).collect())
}

#[cfg(test)]
mod tests {
    use portico_machinery::GroupVersion;

    use super::*;

    fn secret(labels: &[(&str, &str)]) -> Object {
        let mut secret = Object::new(&GroupVersion::new("", "v1").kind("Secret"));
        secret.set(&["metadata", "creationTimestamp"], "2024-01-01T00:00:00Z");
        for (label, value) in labels {
            secret.set(&["metadata", "labels", label], value);
        }
        secret
    }

    /// Labels, start of tracking, and the expected step.
    type Row<'a> = (&'a [(&'a str, &'a str)], Date, TokenStep);

    #[test]
    fn an_unused_token_is_invalidated_first_and_deleted_later() {
        let now = time::parse("2026-06-01T12:00:00Z").unwrap();
        let year = Duration::from_secs(365 * 86_400);
        let (long, short) = ("2024-01-01".parse().unwrap(), "2025-06-01".parse().unwrap());
        let rows: [Row<'_>; 8] = [
            (&[], long, TokenStep::Invalidate),
            (&[], short, TokenStep::Keep),
            (&[(LAST_USED, "2026-05-01")], long, TokenStep::Keep),
            (&[(LAST_USED, "2025-05-01")], long, TokenStep::Invalidate),
            (&[(LAST_USED, "yesterday")], long, TokenStep::Keep),
            (&[(INVALID_SINCE, "2026-05-01")], long, TokenStep::Keep),
            (&[(INVALID_SINCE, "2025-05-01")], long, TokenStep::Delete),
            (&[(INVALID_SINCE, "yesterday")], long, TokenStep::Invalidate),
        ];
        for (labels, since, want) in rows {
            assert_eq!(step(&secret(labels), since, now, year), want, "{labels:?} {since}");
        }
        let mut recent = secret(&[]);
        recent.set(&["metadata", "creationTimestamp"], "2026-01-01T00:00:00Z");
        assert_eq!(step(&recent, long, now, year), TokenStep::Keep);
    }
}
