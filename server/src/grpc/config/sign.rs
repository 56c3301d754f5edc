//! Certificates for facades: signed from a request, so that keys never travel.

use std::time::Duration;

use portico_kit::pki::{Authority, Profile};
use portico_machinery::Status;
use portico_proto::config as pb;

use crate::grpc::{RpcResult, refused};

/// How long a facade's certificates are valid; it asks again when two thirds have passed.
pub(crate) const FACADE_CERTIFICATE_LIFE: Duration = Duration::from_secs(30 * 86_400);

/// Signs for the facade that calls; the subject of a client certificate is the caller's own.
pub(super) fn sign(
    authority: &Authority,
    facade: &str,
    request: &pb::SignRequest,
) -> RpcResult<pb::SignResponse> {
    let bad = |message: String| refused(Status::bad_request(message));
    let profile = match request.usage() {
        pb::CertificateUsage::Client => {
            Profile::client(facade, &[portico_auth::authn::FACADES], FACADE_CERTIFICATE_LIFE)
        }
        pb::CertificateUsage::Serving => Profile::server(facade, &[], FACADE_CERTIFICATE_LIFE),
        pb::CertificateUsage::Unspecified => return Err(bad("usage is required".to_owned())),
    };
    let signed =
        authority.sign(&request.certificate_signing_request, &profile).map_err(|e| bad(e.to_string()))?;
    Ok(pb::SignResponse { certificate: signed.cert_pem, not_after: signed.not_after })
}
