//! CertificateSubjectRestriction: refuses requests for client certificates of the group of administrators.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_machinery::user::MASTERS;
use portico_registry::{Objects, Operation};
use portico_validation::pem;

use crate::plugin::{Plugin, ResourcePattern, ValidationFuture, ValidationRequest};

/// Name of the signer to which the restriction applies.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// CertificateSubjectRestriction plugin.
pub(crate) struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("certificates.k8s.io", "certificatesigningrequests", "")]
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Create]
    }

    fn validate<'a>(&'a self, _objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            if request.new.str_at("spec.signerName") != SIGNER {
                return Ok(Vec::new());
            }
            let bytes = STANDARD.decode(request.new.str_at("spec.request")).unwrap_or_default();
            let csr = pem::certificate_request(&bytes);
            let csr = csr.map_err(|error| request.forbidden(&format!("failed to parse CSR: {error}")))?;
            if csr.organizations().iter().any(|organization| organization == MASTERS) {
                let message = format!("use of {SIGNER} signer with {MASTERS} group is not allowed");
                return Err(request.forbidden(&message));
            }
            Ok(Vec::new())
        })
    }
}
