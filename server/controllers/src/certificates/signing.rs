//! Signs approved requests for the built-in signers (`certificatesigningrequest-signing-controller`, upstream's `signer`).

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use portico_kit::pki::{CertificateRequest, CertificateTerms, RequestSigner};
use portico_kit::workqueue::QueueMetrics;
use portico_machinery::{Object, Status};
use portico_registry::Registry;

use super::controller::{Handler, RequestController};
use super::request::{
    self, API_CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY_UNKNOWN, add_condition, has_condition,
    has_true_condition, parse_request, set_certificate, usages,
};
use super::{USER, kubelet, usages as x509_usages};
use crate::account::service_account_context;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "certificatesigningrequest-signing-controller";

/// Seconds before now at which certificates start to be valid, to allow for clock skew.
const BACKDATE: i64 = 300;
/// Duration in seconds below which backdating does not shorten a certificate's life.
const BACKDATE_MIN_LIFE: i64 = 8 * 3600;
/// Minimum duration of a certificate in seconds, even if the request asks for less.
const MIN_LIFE: i64 = 600;

/// Function that returns the CA with which a signer currently signs.
pub type CurrentSigner = Arc<dyn Fn() -> Arc<RequestSigner> + Send + Sync>;

/// CAs of the built-in signers. Requests for a signer without a CA are ignored.
#[derive(Clone, Default)]
pub struct Signers {
    /// CA of `kubernetes.io/kube-apiserver-client`.
    pub api_client: Option<CurrentSigner>,
    /// CA of `kubernetes.io/kube-apiserver-client-kubelet`.
    pub kubelet_client: Option<CurrentSigner>,
    /// CA of `kubernetes.io/kubelet-serving`.
    pub kubelet_serving: Option<CurrentSigner>,
    /// CA of `kubernetes.io/legacy-unknown`.
    pub legacy_unknown: Option<CurrentSigner>,
}

impl Signers {
    /// Uses one CA for all signers.
    #[must_use]
    pub fn with_single_ca(signer: &CurrentSigner) -> Self {
        let signer = || Some(Arc::clone(signer));
        Self {
            api_client: signer(),
            kubelet_client: signer(),
            kubelet_serving: signer(),
            legacy_unknown: signer(),
        }
    }

    fn current(&self, name: &str) -> Option<Arc<RequestSigner>> {
        let signer = match name {
            API_CLIENT => &self.api_client,
            KUBELET_CLIENT => &self.kubelet_client,
            KUBELET_SERVING => &self.kubelet_serving,
            LEGACY_UNKNOWN => &self.legacy_unknown,
            _ => &None,
        };
        signer.as_ref().map(|current| current())
    }
}

/// Creates the signing controller with these CAs and this maximum duration of certificates.
#[must_use]
pub fn controller(signers: Signers, duration: Duration, metrics: &QueueMetrics) -> RequestController {
    let max_life = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    RequestController::new(SigningHandler { signers, max_life }, metrics)
}

struct SigningHandler {
    signers: Signers,
    /// Maximum duration of a certificate in seconds.
    max_life: i64,
}

/// Returns an error if a signer does not accept such a request (upstream's `isRequestForSignerFn`).
fn check(signer: &str, requested: &CertificateRequest, usages: &[&str]) -> Result<(), String> {
    match signer {
        KUBELET_SERVING => kubelet::check_serving(requested, usages),
        KUBELET_CLIENT => kubelet::check_client(requested, usages),
        API_CLIENT => check_client_usages(usages),
        _ => Ok(()),
    }
}

fn check_client_usages(usages: &[&str]) -> Result<(), String> {
    let allowed = ["digital signature", "key encipherment", "client auth"];
    if let Some(usage) = usages.iter().find(|usage| !allowed.contains(usage)) {
        return Err(format!("invalid usage for client certificate: {usage}"));
    }
    match usages.contains(&"client auth") {
        true => Ok(()),
        false => Err("missing required usage for client certificate: client auth".to_owned()),
    }
}

/// Returns the duration of a certificate in seconds: the requested one, within the bounds.
fn certificate_life(requested: Option<i64>, max: i64) -> i64 {
    match requested {
        Some(asked) if asked <= max => asked.max(MIN_LIFE),
        _ => max,
    }
}

/// Returns the usages and dates of a certificate (upstream's `PermissiveSigningPolicy`). `ca_end` is the end of the CA's
/// own certificate.
fn certificate_terms(usages: &[&str], life: i64, now: i64, ca_end: i64) -> Result<CertificateTerms, String> {
    let (key_usage, extended_key_usage) = x509_usages::from_names(usages)?;
    let not_before = now - BACKDATE;
    let end =
        if life < BACKDATE_MIN_LIFE { now.saturating_add(life) } else { now.saturating_add(life) - BACKDATE };
    let not_after = end.min(ca_end);
    if not_before >= ca_end {
        return Err(format!("the signer has expired: NotAfter={}", format_date(ca_end)));
    }
    if now >= ca_end {
        let why = "refusing to sign a certificate that expired in the past";
        return Err(format!("{why}: NotAfter={}", format_date(ca_end)));
    }
    Ok(CertificateTerms { key_usage, extended_key_usage, not_before, not_after })
}

fn format_date(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

impl SigningHandler {
    /// Returns the request with its certificate, or with the condition `Failed`; `None` if nothing has to be done.
    fn decide(&self, mut request: Object, now: Timestamp) -> Result<Option<Object>, Box<Status>> {
        let approved = has_condition(&request, "Approved") && !has_condition(&request, "Denied");
        if !approved || has_true_condition(&request, "Failed") {
            return Ok(None);
        }
        let Some(signer) = self.signers.current(request.str_at("spec.signerName")) else { return Ok(None) };
        let parsed_request = parse_request(&request)?;
        if let Err(reason) = check(request.str_at("spec.signerName"), &parsed_request, &usages(&request)) {
            add_condition(&mut request, "Failed", "SignerValidationFailure", &reason);
            return Ok(Some(request));
        }
        let failed = |why: &dyn std::fmt::Display| {
            Box::new(Status::internal(format!("error auto signing csr {:?}: {why}", request.name())))
        };
        let life = certificate_life(request.at(&["spec", "expirationSeconds"]).i64(), self.max_life);
        let terms = certificate_terms(&usages(&request), life, now.as_second(), signer.not_after());
        let terms = terms.map_err(|why| failed(&why))?;
        let certificate = signer.sign(&parsed_request, &terms).map_err(|why| failed(&why))?;
        set_certificate(&mut request, &certificate);
        Ok(Some(request))
    }
}

impl Handler for SigningHandler {
    fn name(&self) -> &'static str {
        NAME
    }

    fn handle<'a>(
        &'a self,
        registry: &'a Registry,
        request: Object,
    ) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            if let Some(decided) = self.decide(request, Timestamp::now())? {
                registry.update_status(&service_account_context(USER), &request::resource(), decided).await?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
#[path = "signing_tests.rs"]
mod tests;
