//! Deletes CertificateSigningRequests that are no longer needed (`certificatesigningrequest-cleaner-controller`).

use std::time::Duration;

use jiff::Timestamp;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::pki::CertInfo;
use portico_kit::tasks::TaskSet;
use portico_machinery::{Object, Reason, Status, time};
use portico_registry::{DeleteOptions, ListOptions, Preconditions, Registry};

use super::USER;
use super::request::{certificate, conditions, has_condition, is_issued, resource};
use crate::account::service_account_context;
use crate::periodic::at_intervals;
use crate::write_result::ignore_reasons;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "certificatesigningrequest-cleaner-controller";

/// Upstream's interval.
const PERIOD: Duration = Duration::from_secs(3600);
/// Retention of issued, denied and failed requests, in seconds.
const DECIDED_RETENTION: i64 = 3600;
/// Retention of requests without a decision or certificate, in seconds.
const PENDING_RETENTION: i64 = 24 * 3600;

/// Returns the reason to delete a request; `None` if the request is still needed.
#[must_use]
pub fn deletion_reason(request: &Object, now: Timestamp) -> Option<&'static str> {
    let is_older_than = |text: Option<&str>, seconds: i64| {
        text.and_then(time::parse).is_some_and(|at| now.as_second() - at.as_second() > seconds)
    };
    let decided = |kind: &str, seconds: i64| {
        conditions(request).any(|condition| {
            condition.field("type").str() == kind
                && is_older_than(condition.field("lastUpdateTime").opt_str(), seconds)
        })
    };
    let issued = is_issued(request);
    let rows = [
        (issued && decided("Approved", DECIDED_RETENTION), "issued"),
        (decided("Denied", DECIDED_RETENTION), "denied"),
        (decided("Failed", DECIDED_RETENTION), "failed"),
        (
            conditions(request).next().is_none()
                && is_older_than(request.creation_timestamp(), PENDING_RETENTION),
            "not decided in time",
        ),
        (issued && has_condition(request, "Approved") && has_expired(request, now), "certificate expired"),
        (!issued && decided("Approved", PENDING_RETENTION), "not signed in time"),
    ];
    rows.into_iter().find_map(|(applies, why)| applies.then_some(why))
}

fn has_expired(request: &Object, now: Timestamp) -> bool {
    let pem = certificate(request);
    let info = std::str::from_utf8(&pem).ok().and_then(|pem| CertInfo::from_pem("certificate", pem).ok());
    info.is_some_and(|info| info.not_after < now.as_second())
}

/// Sweeps at intervals until `tasks` is cancelled.
pub async fn run(registry: Registry, tasks: TaskSet) {
    let sweeps = at_intervals(PERIOD, BackoffPolicy::CONTROLLER, || async {
        let done = sweep(&registry, Timestamp::now()).await;
        done.inspect_err(|status| {
            tracing::warn!(
                error = %status,
                "cannot clean up certificate signing requests, retrying"
            )
        })
        .is_ok()
    });
    tasks.token().run_until_cancelled(sweeps).await;
}

/// Deletes all requests that are no longer needed.
///
/// # Errors
/// Returns the first failure; the remaining requests are still processed.
pub async fn sweep(registry: &Registry, now: Timestamp) -> Result<(), Box<Status>> {
    let mut outcome = Ok(());
    for request in registry.list(&resource(), "", &ListOptions::default()).await?.items {
        let Some(reason) = deletion_reason(request.object(), now) else { continue };
        tracing::info!(name = request.name(), reason, "deleting a certificate signing request");
        let preconditions = Preconditions { uid: Some(request.uid().to_owned()), ..Preconditions::default() };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        let deleted =
            registry.delete(&service_account_context(USER), &resource(), "", request.name(), &options).await;
        outcome = outcome.and(ignore_reasons(deleted, &[Reason::NotFound, Reason::Conflict]));
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::request::set_certificate;

    const HOURS: i64 = 3600;

    fn request(conditions: &[(&str, &str)], issued: bool) -> Object {
        let mut request = Object::default();
        request.set(&["metadata", "creationTimestamp"], "2026-01-01T00:00:00Z");
        for (kind, at) in conditions {
            let mut condition = Object::default();
            condition.set(&["type"], kind);
            if !at.is_empty() {
                condition.set(&["lastUpdateTime"], at);
            }
            request.push_node(&["status", "conditions"], condition.into_node());
        }
        if issued {
            set_certificate(&mut request, "not PEM");
        }
        request
    }

    #[test]
    fn each_state_of_a_request_has_a_retention_time() {
        let start = time::parse("2026-01-01T00:00:00Z").unwrap();
        let at = "2026-01-01T00:00:00Z";
        for (conditions, issued, kept, why) in [
            (&[][..], false, 24 * HOURS, "not decided in time"),
            (&[("Approved", at)], true, HOURS, "issued"),
            (&[("Denied", at)], false, HOURS, "denied"),
            (&[("Approved", at), ("Failed", at)], false, HOURS, "failed"),
            (&[("Approved", at)], false, 24 * HOURS, "not signed in time"),
        ] {
            let request = request(conditions, issued);
            let after = |seconds| Timestamp::from_second(start.as_second() + seconds).unwrap();
            assert_eq!(deletion_reason(&request, after(kept)), None, "{why}");
            assert_eq!(deletion_reason(&request, after(kept + 1)), Some(why));
        }
        let undated = request(&[("Denied", "")], false);
        assert_eq!(deletion_reason(&undated, time::parse("2027-01-01T00:00:00Z").unwrap()), None);
    }

    #[test]
    fn a_certificate_that_has_expired_is_cleaned_up_at_once() {
        let authority = portico_kit::pki::Authority::create("ca").unwrap();
        let profile = portico_kit::pki::CertProfile::client("a", &[], Duration::from_secs(60));
        let mut issued = request(&[("Approved", "")], false);
        set_certificate(&mut issued, &authority.issue(&profile).unwrap().cert_pem);
        let now = Timestamp::now();
        assert_eq!(deletion_reason(&issued, now), None);
        let later = Timestamp::from_second(now.as_second() + 120).unwrap();
        assert_eq!(deletion_reason(&issued, later), Some("certificate expired"));
    }
}
