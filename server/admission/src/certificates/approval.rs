//! CertificateApproval: approving a request requires permission for its signer.

use portico_registry::{Objects, Operation};

use super::signer;
use crate::plugin::{Plugin, ResourcePattern, ValidationFuture, ValidationRequest};

/// CertificateApproval plugin.
pub(crate) struct CertificateApproval;

impl Plugin for CertificateApproval {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("certificates.k8s.io", "certificatesigningrequests", "approval")]
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Update]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            // The stored signer counts, even if the update changes the signer.
            let signer = request.old.unwrap_or(request.new).str_at("spec.signerName");
            match signer::is_authorized(objects, &request.attributes.context.user, "approve", signer).await {
                true => Ok(Vec::new()),
                false => Err(request.forbidden(&format!(
                    "user not permitted to approve requests with signerName {signer:?}"
                ))),
            }
        })
    }
}
