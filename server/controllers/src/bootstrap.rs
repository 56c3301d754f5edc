//! Controllers of bootstrap tokens, the Secrets with which new nodes join (kube-controller-manager's
//! `bootstrap-signer-controller` and `token-cleaner-controller`).

pub mod signer;
mod token;
pub mod token_cleaner;
