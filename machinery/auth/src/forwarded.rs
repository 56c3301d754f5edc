//! Identities that one half of Portico vouches for towards the other.
//!
//! Over the wire a facade proves itself by a certificate of the internal CA and the identity travels as metadata
//! (encoded by `proto`). In one process there is no certificate: then the call carries a [`LocalTrust`], which only
//! assembly can issue. "No peer certificate" therefore never means "trusted".

use std::sync::Arc;

/// Proof that a call was made inside this process by a part that assembly joined.
///
/// It is an identity, not a value: clones of the one that [`LocalTrust::issue`] made are honoured, nothing else is.
/// It travels as a request extension, so nothing that arrives on a socket can carry one.
#[derive(Clone, Debug)]
pub struct LocalTrust(Arc<()>);

/// The receiving side's half: recognises the trust issued with it.
#[derive(Clone, Debug)]
pub struct LocalTrustVerifier(Arc<()>);

impl LocalTrust {
    /// Makes a pair: the proof for the in-process facade, the verifier for the control service. Called by assembly, once.
    #[must_use]
    pub fn issue() -> (Self, LocalTrustVerifier) {
        let identity = Arc::new(());
        (Self(Arc::clone(&identity)), LocalTrustVerifier(identity))
    }
}

impl LocalTrustVerifier {
    /// Whether the proof was issued with this verifier.
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
