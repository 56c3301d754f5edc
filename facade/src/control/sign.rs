//! Asks the control service to certify a key of ours.

use std::sync::Arc;

use portico_proto::MAX_MESSAGE_BYTES;
use portico_proto::config::config_client::ConfigClient;
use portico_proto::config::{CertificateUsage, SignRequest};
use tonic::{Code, Status};

use crate::control_services::{CallReason, ControlServices, Member, Repeat, is_answer};

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To serve HTTPS with.
    Serving,
    /// To call the control service with.
    Client,
    /// To show to backends.
    FrontProxy,
}

/// Reason why no certificate was signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SignError {
    /// No control service answered, or the one that did is not available.
    Unreachable(String),
    /// The control service refused the request.
    Refused(String),
    /// The control service has no such CA, and will not have one before it restarts.
    NoAuthority(String),
}

impl SignError {
    fn of(status: &Status) -> Self {
        let reason = CallReason(status).to_string();
        if !is_answer(status) {
            return Self::Unreachable(reason);
        }
        match status.code() {
            Code::Unavailable => Self::Unreachable(reason),
            Code::FailedPrecondition => Self::NoAuthority(reason),
            _ => Self::Refused(reason),
        }
    }
}

/// Returns a certificate (PEM) for a PKCS#10 request (PEM).
///
/// # Errors
/// [`SignError`].
pub(crate) async fn sign(
    services: &ControlServices,
    request_pem: &str,
    purpose: Purpose,
) -> Result<String, SignError> {
    let usage = match purpose {
        Purpose::Serving => CertificateUsage::Serving,
        Purpose::Client => CertificateUsage::Client,
        Purpose::FrontProxy => CertificateUsage::FrontProxy,
    };
    let message = SignRequest { certificate_signing_request: request_pem.to_owned(), usage: usage.into() };
    let asked = services.call(Repeat::Always, None, |member| asked(member, message.clone())).await;
    asked.map(|(_, certificate)| certificate).map_err(|status| SignError::of(&status))
}

async fn asked(member: Arc<Member>, message: SignRequest) -> Result<String, Status> {
    let client = ConfigClient::new(member.transport.calls.clone());
    let mut client = client.max_decoding_message_size(MAX_MESSAGE_BYTES);
    Ok(client.sign(member.transport.request(message)).await?.into_inner().certificate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_service_that_is_away_does_not_refuse() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let unreached = Status::from_error(Box::new(tonic::ConnectError(Box::new(refused))));
        assert_eq!(SignError::of(&unreached), SignError::Unreachable("connection refused".to_owned()));
        let text = || "why".to_owned();
        for (code, error) in [
            (Code::Unavailable, SignError::Unreachable(text())),
            (Code::PermissionDenied, SignError::Refused(text())),
            (Code::InvalidArgument, SignError::Refused(text())),
            (Code::FailedPrecondition, SignError::NoAuthority(text())),
        ] {
            assert_eq!(SignError::of(&Status::new(code, "why")), error, "{code}");
        }
    }
}
