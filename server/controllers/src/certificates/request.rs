//! Accessors of CertificateSigningRequests, as in upstream's controllers (`pkg/controller/certificates`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_kit::pki::CertificateRequest;
use portico_machinery::{Cursor, GroupResource, Object, Status};
use portico_validation::pem;

/// Signer of client certificates.
pub const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// Signer of kubelets' client certificates.
pub const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signer of kubelets' serving certificates.
pub const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
/// Signer of requests that predate the field `signerName`.
pub const LEGACY_UNKNOWN: &str = "kubernetes.io/legacy-unknown";

pub(super) const CONDITIONS: [&str; 2] = ["status", "conditions"];
const CERTIFICATE: [&str; 2] = ["status", "certificate"];

pub(super) fn resource() -> GroupResource {
    GroupResource::new("certificates.k8s.io", "certificatesigningrequests")
}

/// Returns true if the request has a certificate.
pub(super) fn is_issued(request: &Object) -> bool {
    !request.at(&CERTIFICATE).str().is_empty()
}

/// Returns true if the request has a condition of this type, with any status.
pub(super) fn has_condition(request: &Object, kind: &str) -> bool {
    conditions(request).any(|condition| condition.field("type").str() == kind)
}

/// Returns true if the request has a condition of this type whose status is `True` or empty.
pub(super) fn has_true_condition(request: &Object, kind: &str) -> bool {
    conditions(request).any(|condition| {
        condition.field("type").str() == kind && matches!(condition.field("status").str(), "" | "True")
    })
}

pub(super) fn conditions(request: &Object) -> impl Iterator<Item = Cursor<'_>> {
    request.at(&CONDITIONS).items()
}

/// Adds a condition with the status `True`; the registry sets its times.
pub(super) fn add_condition(request: &mut Object, kind: &str, reason: &str, message: &str) {
    let mut condition = Object::default();
    for (field, text) in [("type", kind), ("status", "True"), ("reason", reason), ("message", message)] {
        condition.set(&[field], text);
    }
    request.push_node(&CONDITIONS, condition.into_node());
}

/// Sets the certificate (PEM).
pub(super) fn set_certificate(request: &mut Object, pem: &str) {
    request.set(&CERTIFICATE, STANDARD.encode(pem));
}

/// Returns the certificate (PEM), empty if it is missing.
pub(super) fn certificate(request: &Object) -> Vec<u8> {
    STANDARD.decode(request.at(&CERTIFICATE).str()).unwrap_or_default()
}

/// Parses `spec.request`, which the API validated when the object was created.
///
/// # Errors
/// 500 if it cannot be parsed: the controller retries, as upstream.
pub(super) fn parse_request(request: &Object) -> Result<CertificateRequest, Box<Status>> {
    let pem = STANDARD.decode(request.str_at("spec.request")).unwrap_or_default();
    let read = pem::certificate_request(&pem);
    read.map_err(|why| Box::new(Status::internal(format!("unable to parse csr {:?}: {why}", request.name()))))
}

/// Returns the requested usages.
pub(super) fn usages(request: &Object) -> Vec<&str> {
    request.at(&["spec", "usages"]).items().map(|usage| usage.str()).collect()
}
