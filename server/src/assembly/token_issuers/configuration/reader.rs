//! State that is collected while a configuration is read.

use portico_auth::oidc::{Expression, SigningAlgorithm};
use portico_machinery::field::Error;

/// Decoder that collects errors.
pub(super) struct Reader<'a> {
    pub(super) errors: Vec<Error>,
    /// Issuers of service account tokens.
    pub(super) own: &'a [String],
    /// Algorithms with which tokens may be signed.
    pub(super) algorithms: &'a [SigningAlgorithm],
}

/// Use of the e-mail address, and of the claim that it is verified, by expressions.
#[derive(Default)]
pub(super) struct EmailClaims {
    pub(super) claim: bool,
    pub(super) verified: bool,
}

impl EmailClaims {
    /// Records whether an expression uses the claim that the address is verified.
    pub(super) fn note(&mut self, expression: &Expression) {
        self.verified |= expression.uses_claim("email_verified");
    }
}
