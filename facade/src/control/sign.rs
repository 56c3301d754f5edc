//! Asks the control service to certify a key of ours.

use std::sync::Arc;

use portico_proto::MAX_MESSAGE_BYTES;
use portico_proto::config::config_client::ConfigClient;
use portico_proto::config::{CertificateUsage, SignRequest};
use portico_proto::rpc_status::from_rpc;

use crate::control_services::{ControlServices, Member, Repeat};

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

/// Why nothing is signed.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// What the control service says, or that it is away.
    pub(crate) message: String,
    /// It has no such CA, and will not have one before it starts anew.
    pub(crate) has_no_ca: bool,
}

/// A certificate (PEM) for this PKCS#10 request (PEM).
///
/// # Errors
/// What the control service answers, or that it does not.
pub(crate) async fn sign(
    services: &ControlServices,
    request_pem: &str,
    purpose: Purpose,
) -> Result<String, Refusal> {
    let usage = match purpose {
        Purpose::Serving => CertificateUsage::Serving,
        Purpose::Client => CertificateUsage::Client,
        Purpose::FrontProxy => CertificateUsage::FrontProxy,
    };
    let message = SignRequest { certificate_signing_request: request_pem.to_owned(), usage: usage.into() };
    let asked = services.call(Repeat::Always, None, |member| asked(member, message.clone())).await;
    asked.map(|(_, certificate)| certificate).map_err(|e| Refusal {
        has_no_ca: e.code() == tonic::Code::FailedPrecondition,
        message: from_rpc(&e).message,
    })
}

async fn asked(member: Arc<Member>, message: SignRequest) -> Result<String, tonic::Status> {
    let client = ConfigClient::new(member.transport.calls.clone());
    let mut client = client.max_decoding_message_size(MAX_MESSAGE_BYTES);
    Ok(client.sign(member.transport.request(message)).await?.into_inner().certificate)
}
