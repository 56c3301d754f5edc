//! Asks the control service to certify a key of ours.

use portico_machinery::Status;
use portico_proto::MAX_MESSAGE_BYTES;
use portico_proto::config::config_client::ConfigClient;
use portico_proto::config::{CertificateUsage, SignRequest};
use portico_proto::rpc_status::from_rpc;

use crate::transport::ControlTransport;

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To serve HTTPS with.
    Serving,
    /// To call the control service with.
    Client,
}

/// A certificate (PEM) for this PKCS#10 request (PEM).
///
/// # Errors
/// What the control service answers, or that it does not.
pub(crate) async fn sign(
    control: &ControlTransport,
    request_pem: &str,
    purpose: Purpose,
) -> Result<String, Status> {
    let mut client = ConfigClient::new(control.calls.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let usage = match purpose {
        Purpose::Serving => CertificateUsage::Serving,
        Purpose::Client => CertificateUsage::Client,
    };
    let message = SignRequest { certificate_signing_request: request_pem.to_owned(), usage: usage.into() };
    let answer = client.sign(control.request(message)).await.map_err(|e| from_rpc(&e))?;
    Ok(answer.into_inner().certificate)
}
