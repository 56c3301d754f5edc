//! Requests signatures of the facade's certificates from the control service.

use std::sync::Arc;

use portico_proto::MAX_MESSAGE_BYTES;
use portico_proto::config::config_client::ConfigClient;
use portico_proto::config::{CertificateUsage, SignRequest};
use tonic::Status;

use crate::control_services::{ControlServices, Member, RetryCondition};

/// Use of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Serves HTTPS.
    Serving,
    /// Authenticates the facade to the control service.
    Client,
    /// Authenticates the facade to backends.
    FrontProxy,
}

/// Returns a certificate (PEM) for a PKCS#10 request (PEM).
///
/// # Errors
/// The status of the failed call.
pub(crate) async fn sign(
    services: &ControlServices,
    request_pem: &str,
    purpose: Purpose,
) -> Result<String, Status> {
    let usage = match purpose {
        Purpose::Serving => CertificateUsage::Serving,
        Purpose::Client => CertificateUsage::Client,
        Purpose::FrontProxy => CertificateUsage::FrontProxy,
    };
    let message = SignRequest { certificate_signing_request: request_pem.to_owned(), usage: usage.into() };
    let result =
        services.call(RetryCondition::Always, None, |member| call_sign(member, message.clone())).await;
    result.map(|(_, certificate)| certificate)
}

async fn call_sign(member: Arc<Member>, message: SignRequest) -> Result<String, Status> {
    let client = ConfigClient::new(member.transport.calls.clone());
    let mut client = client.max_decoding_message_size(MAX_MESSAGE_BYTES);
    Ok(client.sign(member.transport.request(message)).await?.into_inner().certificate)
}
