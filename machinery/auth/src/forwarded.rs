//! Identities that a facade forwards to the control service.
//!
//! If the halves are separate processes, a facade authenticates with a certificate of the internal CA, and the identity of the
//! caller is sent as metadata (encoded by `proto`). Within one process there is no certificate; the call carries a [`LocalTrust`]
//! instead, which only the process assembly can issue. A missing peer certificate therefore never means that a call is trusted.

use std::sync::Arc;

/// Proof that a call was made inside this process, by a part that the process assembly has connected.
///
/// Only clones of the value that [`LocalTrust::issue`] created are accepted; equality of contents is irrelevant.
/// The value is passed as a request extension, so a request from a socket cannot contain one.
#[derive(Clone, Debug)]
pub struct LocalTrust(Arc<()>);

/// Verifier that accepts the [`LocalTrust`] issued with it.
#[derive(Clone, Debug)]
pub struct LocalTrustVerifier(Arc<()>);

impl LocalTrust {
    /// Creates the proof for the in-process facade and the verifier for the control service. The process assembly calls it once.
    #[must_use]
    pub fn issue() -> (Self, LocalTrustVerifier) {
        let identity = Arc::new(());
        (Self(Arc::clone(&identity)), LocalTrustVerifier(identity))
    }
}

impl LocalTrustVerifier {
    /// True if the proof was issued with this verifier.
    #[must_use]
    pub fn accepts(&self, trust: &LocalTrust) -> bool {
        Arc::ptr_eq(&self.0, &trust.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_proof_issued_with_it_is_accepted() {
        let (trust, verifier) = LocalTrust::issue();
        let (stranger, _) = LocalTrust::issue();
        assert!(verifier.accepts(&trust.clone()));
        assert!(!verifier.accepts(&stranger));
    }
}
