//! Algorithms that issuers may use for signatures (upstream's `allowedSigningAlgs`).

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, EcdsaVerificationAlgorithm,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters,
};

/// Signature algorithm of an issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningAlgorithm {
    /// P-256, SHA-256.
    Es256,
    /// P-384, SHA-384.
    Es384,
    /// P-521, SHA-512.
    Es512,
    /// RSA, PSS, SHA-256.
    Ps256,
    /// RSA, PSS, SHA-384.
    Ps384,
    /// RSA, PSS, SHA-512.
    Ps512,
    /// RSA, PKCS #1 v1.5, SHA-256.
    Rs256,
    /// RSA, PKCS #1 v1.5, SHA-384.
    Rs384,
    /// RSA, PKCS #1 v1.5, SHA-512.
    Rs512,
}

/// Verification parameters of an algorithm.
pub(super) enum VerificationParams {
    Rsa(&'static RsaParameters),
    Ecdsa(&'static EcdsaVerificationAlgorithm),
}

impl SigningAlgorithm {
    /// All algorithms, sorted by name.
    pub const ALL: [Self; 9] = [
        Self::Es256,
        Self::Es384,
        Self::Es512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
    ];

    /// Returns the JOSE name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
        }
    }

    /// Returns the algorithm with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    pub(super) fn verification_params(self) -> VerificationParams {
        match self {
            Self::Es256 => VerificationParams::Ecdsa(&ECDSA_P256_SHA256_FIXED),
            Self::Es384 => VerificationParams::Ecdsa(&ECDSA_P384_SHA384_FIXED),
            Self::Es512 => VerificationParams::Ecdsa(&ECDSA_P521_SHA512_FIXED),
            Self::Ps256 => VerificationParams::Rsa(&RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => VerificationParams::Rsa(&RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => VerificationParams::Rsa(&RSA_PSS_2048_8192_SHA512),
            Self::Rs256 => VerificationParams::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => VerificationParams::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => VerificationParams::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        }
    }
}
