//! CertificateSubjectRestriction: refuses requests for client certificates of the group of administrators.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_machinery::user::MASTERS;
use portico_registry::{Objects, Operation};
use portico_validation::pem;

use crate::plugin::{Plugin, Target, Validating, ValidationRequest};

/// Name of the signer to which the restriction applies.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// CertificateSubjectRestriction plugin.
pub(crate) struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn targets(&self) -> &'static [Target] {
        &[("certificates.k8s.io", "certificatesigningrequests", "")]
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Create]
    }

    fn validate<'a>(&'a self, _objects: &'a Objects, request: ValidationRequest<'a>) -> Validating<'a> {
        Box::pin(async move {
            if request.new.str_at("spec.signerName") != SIGNER {
                return Ok(Vec::new());
            }
            let bytes = STANDARD.decode(request.new.str_at("spec.request")).unwrap_or_default();
            let asked = pem::request(&bytes);
            let asked = asked.map_err(|why| request.forbidden(&format!("failed to parse CSR: {why}")))?;
            if asked.organizations().iter().any(|organization| organization == MASTERS) {
                let why = format!("use of {SIGNER} signer with {MASTERS} group is not allowed");
                return Err(request.forbidden(&why));
            }
            Ok(Vec::new())
        })
    }
}
