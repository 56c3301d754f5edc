//! certificates.k8s.io: CertificateSigningRequest.

mod signer;
mod signing_request;
mod validate;

pub(crate) use signing_request::SigningRequest;
