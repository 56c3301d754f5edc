//! Bootstrap tokens: what is done for the Secrets with which new nodes come in (kube-controller-manager's
//! `bootstrap-signer-controller` and `token-cleaner-controller`).

pub mod signer;
mod token;
pub mod token_cleaner;
