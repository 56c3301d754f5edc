//! Certificates for facades: signed from a request, so that keys never travel.

use std::time::Duration;

use portico_kit::pki::{Authority, Profile};
use portico_machinery::Status;
use portico_proto::config as pb;

use crate::front_proxy;
use crate::grpc::{RpcResult, refused};

/// How long a facade's certificates are valid; it asks again when two thirds have passed.
pub(crate) const FACADE_CERTIFICATE_LIFE: Duration = Duration::from_secs(30 * 86_400);

/// The CAs that certify keys of facades.
pub(super) struct Signers<'a> {
    pub(super) internal: &'a Authority,
    /// Of what backends are shown; none where this process does not make it.
    pub(super) front_proxy: Option<&'a Authority>,
}

impl Signers<'_> {
    /// Signs for the facade that calls. The subject of a client certificate is the caller's own, or, for backends, the one name
    /// that these accept.
    pub(super) fn sign(&self, facade: &str, request: &pb::SignRequest) -> RpcResult<pb::SignResponse> {
        let bad = |message: String| refused(Status::bad_request(message));
        let (authority, profile) = match request.usage() {
            pb::CertificateUsage::Client => {
                let groups = [portico_auth::authn::FACADES];
                (self.internal, Profile::client(facade, &groups, FACADE_CERTIFICATE_LIFE))
            }
            pb::CertificateUsage::Serving => {
                (self.internal, Profile::server(facade, &[], FACADE_CERTIFICATE_LIFE))
            }
            pb::CertificateUsage::FrontProxy => match self.front_proxy {
                Some(authority) => (authority, front_proxy::client(FACADE_CERTIFICATE_LIFE)),
                None => {
                    let none = "this control service does not issue front-proxy identities";
                    return Err(tonic::Status::failed_precondition(none));
                }
            },
            pb::CertificateUsage::Unspecified => return Err(bad("usage is required".to_owned())),
        };
        let signed = authority.sign(&request.certificate_signing_request, &profile);
        let signed = signed.map_err(|e| bad(e.to_string()))?;
        Ok(pb::SignResponse { certificate: signed.cert_pem, not_after: signed.not_after })
    }
}
