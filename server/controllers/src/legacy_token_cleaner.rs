//! Cleans up unused Secrets with auto-generated legacy tokens (`legacy-serviceaccount-token-cleaner-controller`): a Secret is
//! marked as invalid first, and deleted if it remains unused.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_machinery::{GroupResource, Object, Reason, Status, time};
use portico_registry::{
    Context, DeleteOptions, ListOptions, ObjectRef, Part, Patch, PatchOptions, Place, Preconditions,
    Registry, Stored,
};

use portico_validation::pod_spec::secrets_of;

use crate::outcome::unless;
use crate::rounds::at_intervals;
use crate::service_account_tokens::{ACCOUNT, is_of, secrets, tokens};
use crate::system_objects::token_tracking;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "legacy-serviceaccount-token-cleaner-controller";

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const USER: &str = "system:serviceaccount:kube-system:legacy-service-account-token-cleaner";
/// Upstream's interval.
const PERIOD: Duration = Duration::from_secs(24 * 3600);

/// Action for an unused Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Leave,
    /// Mark the token as invalid from today.
    Mark,
    Delete,
}

/// Decides about an auto-generated token Secret that no pod mounts. `since` is the date at which tracking of uses began.
#[must_use]
pub fn step(secret: &Object, since: Date, now: Timestamp, unused: Duration) -> Step {
    let today = now.to_zoned(TimeZone::UTC).date();
    let Ok(limit) = now.checked_sub(unused) else { return Step::Leave };
    let last_day = limit.to_zoned(TimeZone::UTC).date();
    let noted_long_enough = since.checked_add(1.day()).is_ok_and(|from| from <= last_day && today >= from);
    let created = secret.creation_timestamp().and_then(time::parse);
    let is_old = created.is_some_and(|created| created < limit);
    if !noted_long_enough || !is_old || secret.deletion_timestamp().is_some() {
        return Step::Leave;
    }
    let day = |label| secret.label(label).map(str::parse::<Date>);
    match (day(LAST_USED), day(INVALID_SINCE)) {
        (Some(Err(_)), _) => Step::Leave,
        (Some(Ok(used)), _) if used >= last_day => Step::Leave,
        (_, None | Some(Err(_))) => Step::Mark,
        (_, Some(Ok(marked))) if marked >= last_day => Step::Leave,
        _ => Step::Delete,
    }
}

/// Sweeps at intervals until `tasks` is cancelled.
pub async fn run(registry: Registry, unused: Duration, tasks: TaskSet) {
    let look = at_intervals(PERIOD, Policy::CONTROLLER, || async {
        let done = sweep(&registry, unused, Timestamp::now()).await;
        done.inspect_err(
            |status| tracing::warn!(error = %status, "cannot clean up unused legacy tokens, retrying"),
        )
        .is_ok()
    });
    tasks.token().run_until_cancelled(look).await;
}

/// Processes all token Secrets once.
///
/// # Errors
/// Returns the first failure.
pub async fn sweep(registry: &Registry, unused: Duration, now: Timestamp) -> Result<(), Box<Status>> {
    let Some(since) = since(registry).await? else { return Ok(()) };
    let mut mounted = HashMap::new();
    for secret in tokens(registry, "").await? {
        let step = step(secret.object(), since, now, unused);
        if step == Step::Leave || !was_made_unasked(registry, &secret).await? {
            continue;
        }
        if !mounted.contains_key(secret.namespace()) {
            let in_use = mounted_in(registry, secret.namespace()).await?;
            mounted.insert(secret.namespace().to_owned(), in_use);
        }
        if !mounted.get(secret.namespace()).is_some_and(|in_use| in_use.contains(secret.name())) {
            carry_out(registry, &secret, step, now).await?;
        }
    }
    Ok(())
}

async fn carry_out(
    registry: &Registry,
    secret: &Stored,
    step: Step,
    now: Timestamp,
) -> Result<(), Box<Status>> {
    let (namespace, name) = (secret.namespace(), secret.name());
    if step == Step::Delete {
        let resource_version = Some(secret.revision().to_string());
        let preconditions = Preconditions { uid: Some(secret.uid().to_owned()), resource_version };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        tracing::info!(namespace, secret = name, "deleting an unused legacy token");
        let deleted = registry.delete(&Context::system(USER), &secrets(), namespace, name, &options).await;
        return unless(deleted, &[Reason::NotFound, Reason::Conflict]);
    }
    let today = now.to_zoned(TimeZone::UTC).date();
    let patch = format!(
        "{{\"metadata\":{{\"uid\":\"{}\",\"labels\":{{\"{INVALID_SINCE}\":\"{today}\"}}}}}}",
        secret.uid()
    );
    let (context, place) = (Context::system(USER), Place { part: Part::Main, namespace, name });
    let patch = Patch::Merge(patch.into());
    let patched = registry.patch(&context, &secrets(), place, &patch, &PatchOptions::default()).await;
    unless(patched, &[Reason::NotFound, Reason::Conflict])
}

/// Returns the date at which tracking of uses began.
async fn since(registry: &Registry) -> Result<Option<Date>, Box<Status>> {
    let at = token_tracking::place();
    let noted = registry.get_stored(&at).await?;
    Ok(noted.and_then(|noted| noted.object().at(&["data"]).entry_str("since")?.parse().ok()))
}

/// Returns true if the Secret is auto-generated: only those are listed in the service account.
async fn was_made_unasked(registry: &Registry, secret: &Stored) -> Result<bool, Box<Status>> {
    let resource = GroupResource::new("", "serviceaccounts");
    let name = secret.object().annotation(ACCOUNT).unwrap_or_default().to_owned();
    let account = ObjectRef { resource, namespace: secret.namespace().to_owned(), name };
    let account = registry.get_stored(&account).await?;
    Ok(account.is_some_and(|account| {
        let references = account.object().at(&["secrets"]);
        is_of(secret.object(), account.name(), account.uid())
            && references.items().any(|reference| reference.field("name").str() == secret.name())
    }))
}

/// Returns the names of the Secrets that pods of a namespace refer to.
async fn mounted_in(registry: &Registry, namespace: &str) -> Result<HashSet<String>, Box<Status>> {
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
    type Row<'a> = (&'a [(&'a str, &'a str)], Date, Step);

    #[test]
    fn an_unused_token_is_marked_first_and_goes_when_the_mark_is_old() {
        let now = time::parse("2026-06-01T12:00:00Z").unwrap();
        let year = Duration::from_secs(365 * 86_400);
        let (long, short) = ("2024-01-01".parse().unwrap(), "2025-06-01".parse().unwrap());
        let rows: [Row<'_>; 8] = [
            (&[], long, Step::Mark),
            (&[], short, Step::Leave),
            (&[(LAST_USED, "2026-05-01")], long, Step::Leave),
            (&[(LAST_USED, "2025-05-01")], long, Step::Mark),
            (&[(LAST_USED, "yesterday")], long, Step::Leave),
            (&[(INVALID_SINCE, "2026-05-01")], long, Step::Leave),
            (&[(INVALID_SINCE, "2025-05-01")], long, Step::Delete),
            (&[(INVALID_SINCE, "yesterday")], long, Step::Mark),
        ];
        for (labels, since, want) in rows {
            assert_eq!(step(&secret(labels), since, now, year), want, "{labels:?} {since}");
        }
        let mut young = secret(&[]);
        young.set(&["metadata", "creationTimestamp"], "2026-01-01T00:00:00Z");
        assert_eq!(step(&young, long, now, year), Step::Leave);
    }
}
