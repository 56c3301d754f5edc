//! certificates.k8s.io: requests for certificates, who may approve and sign them.

mod signer;
mod signing_request;
mod validate;

pub(crate) use signing_request::SigningRequest;
