//! Certificates for facades, signed from a certificate request, so that private keys are never sent.

use std::time::Duration;

use portico_kit::pki::{Authority, CertProfile};
use portico_machinery::Status;
use portico_proto::config as pb;

use crate::front_proxy;
use crate::grpc::{RpcResult, to_grpc_status};

/// Lifetime of a facade's certificates; the facade renews them after two thirds of it.
pub(crate) const FACADE_CERTIFICATE_LIFE: Duration = Duration::from_secs(30 * 86_400);

/// CAs that sign certificates of facades.
pub(super) struct Signers<'a> {
    pub(super) internal: &'a Authority,
    /// CA of client certificates for backends; `None` if Portico did not create it.
    pub(super) front_proxy: Option<&'a Authority>,
}

impl Signers<'_> {
    /// Signs a certificate for the calling facade. The subject of a client certificate is the caller's name, or for backends the
    /// one name that they accept.
    pub(super) fn sign(&self, facade: &str, request: &pb::SignRequest) -> RpcResult<pb::SignResponse> {
        let bad_request = |message: String| to_grpc_status(Status::bad_request(message));
        let (authority, profile) = match request.usage() {
            pb::CertificateUsage::Client => {
                let groups = [portico_auth::authn::FACADES_GROUP];
                (self.internal, CertProfile::client(facade, &groups, FACADE_CERTIFICATE_LIFE))
            }
            pb::CertificateUsage::Serving => {
                (self.internal, CertProfile::server(facade, &[], FACADE_CERTIFICATE_LIFE))
            }
            pb::CertificateUsage::FrontProxy => match self.front_proxy {
                Some(authority) => (authority, front_proxy::client_profile(FACADE_CERTIFICATE_LIFE)),
                None => {
                    let none = "this control service does not issue front-proxy identities";
                    return Err(tonic::Status::failed_precondition(none));
                }
            },
            pb::CertificateUsage::Unspecified => return Err(bad_request("usage is required".to_owned())),
        };
        let signed = authority.sign(&request.certificate_signing_request, &profile);
        let signed = signed.map_err(|e| bad_request(e.to_string()))?;
        Ok(pb::SignResponse { certificate: signed.cert_pem, not_after: signed.not_after })
    }
}
