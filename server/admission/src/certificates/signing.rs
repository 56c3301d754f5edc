//! CertificateSigning: writing a certificate or conditions to a status requires the permission to sign for the signer.

use portico_registry::{Objects, Operation};

use super::signer;
use crate::plugin::{Plugin, ResourcePattern, ValidationFuture, ValidationRequest};

/// CertificateSigning plugin.
pub(crate) struct CertificateSigning;

impl Plugin for CertificateSigning {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("certificates.k8s.io", "certificatesigningrequests", "status")]
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Update]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            let Some(old) = request.old else { return Ok(Vec::new()) };
            let is_unchanged =
                |field| request.new.at(&["status", field]).same_as(&old.at(&["status", field]));
            let signer = old.str_at("spec.signerName");
            if is_unchanged("certificate") && is_unchanged("conditions")
                || signer::is_authorized(objects, &request.attributes.context.user, "sign", signer).await
            {
                return Ok(Vec::new());
            }
            Err(request.forbidden(&format!("user not permitted to sign requests with signerName {signer:?}")))
        })
    }
}
