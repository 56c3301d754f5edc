//! What is collected while a configuration is read.

use portico_auth::oidc::{Expression, SigningAlgorithm};
use portico_machinery::field::Error;

/// Collects what is wrong while it reads.
pub(super) struct Reader<'a> {
    pub(super) errors: Vec<Error>,
    /// Issuers of service accounts' tokens.
    pub(super) own: &'a [String],
    /// What tokens may be signed with.
    pub(super) algorithms: &'a [SigningAlgorithm],
}

/// Whether expressions look at an e-mail address, and at whether it is verified.
#[derive(Default)]
pub(super) struct Emails {
    pub(super) claim: bool,
    pub(super) verified: bool,
}

impl Emails {
    /// Takes note of an expression that may look at whether the address is verified.
    pub(super) fn note(&mut self, expression: &Expression) {
        self.verified |= expression.uses_claim("email_verified");
    }
}
