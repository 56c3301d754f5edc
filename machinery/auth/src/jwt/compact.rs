//! Compact token: three parts in base64url, separated by dots.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::{Claims, PublicKey};

/// Error for text that is not a compact token, or for a token with unsupported extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed token: {0}")]
pub struct MalformedToken(&'static str);

/// Token whose signature is not verified.
#[derive(Debug)]
pub struct CompactToken<'a> {
    header: Header,
    claims: Claims,
    signed_part: &'a str,
    signature: Vec<u8>,
}

#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
    /// Extensions that must be supported: any value is rejected.
    #[serde(default)]
    crit: Option<serde::de::IgnoredAny>,
}

impl<'a> CompactToken<'a> {
    /// Parses a token.
    ///
    /// # Errors
    /// Returns [`MalformedToken`].
    pub fn parse(token: &'a str) -> Result<Self, MalformedToken> {
        let (signed_part, signature) = token.rsplit_once('.').ok_or(MalformedToken("no dot"))?;
        let (header, payload) = signed_part.split_once('.').ok_or(MalformedToken("one dot"))?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| MalformedToken("not base64url"));
        // The payload is decoded first, because most foreign tokens are recognized by their issuer.
        let claims = object(&decode(payload)?).ok_or(MalformedToken("claims"))?;
        let header: Header = object(&decode(header)?).ok_or(MalformedToken("header"))?;
        if header.crit.is_some() {
            return Err(MalformedToken("critical extensions"));
        }
        Ok(Self { header, claims, signed_part, signature: decode(signature)? })
    }

    /// Returns the claims, which are not verified.
    #[must_use]
    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    /// Converts into the claims, for callers that have verified the signature.
    #[must_use]
    pub fn into_claims(self) -> Claims {
        self.claims
    }

    /// Returns the key ID in the header; may be empty.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.header.kid
    }

    /// True if the owner of this key has signed the token, with the algorithm of the key.
    #[must_use]
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        self.header.alg == key.algorithm().name()
            && key.has_signed(self.signed_part.as_bytes(), &self.signature)
    }
}

/// Deserializes a JSON object. Rejects lists, which serde would also accept for a struct.
fn object<T: for<'de> Deserialize<'de>>(json: &[u8]) -> Option<T> {
    let opens = json.trim_ascii_start().first() == Some(&b'{');
    opens.then(|| serde_json::from_slice(json).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(header: &str, claims: &str) -> String {
        format!(
            "{}.{}.{}",
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(claims),
            URL_SAFE_NO_PAD.encode("s")
        )
    }

    #[test]
    fn only_three_parts_of_base64url_are_a_token() {
        let good = token(r#"{"alg":"ES256","kid":"k"}"#, r#"{"iss":"i"}"#);
        let parsed = CompactToken::parse(&good).unwrap();
        assert_eq!((parsed.key_id(), parsed.claims().iss.as_str()), ("k", "i"));
        let bad = ["", ".", "..", "a.b.c", "abcdef.0123456789abcdef"];
        for text in bad.map(str::to_owned).into_iter().chain([
            token(r#"{"alg":"ES256","crit":["b64"]}"#, "{}"),
            token(r#"{"alg":1}"#, "{}"),
            token(r#"{"alg":"ES256"}"#, "[]"),
            token(r#"{"alg":"ES256"}"#, r#"{"exp":"soon"}"#),
            format!("{good}=",),
            format!("{good}.x"),
        ]) {
            assert!(CompactToken::parse(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_algorithm_is_that_of_the_key_and_not_of_the_header() {
        let pem = crate::jwt::SigningKey::generate_pem().unwrap();
        let key = crate::jwt::SigningKey::from_pem(pem.as_bytes()).unwrap();
        let real = key.sign(&Claims::default()).unwrap();
        let (_, rest) = real.split_once('.').unwrap();
        for alg in ["none", "HS256", "ES384", ""] {
            let forged = format!("{}.{rest}", URL_SAFE_NO_PAD.encode(format!("{{\"alg\":\"{alg}\"}}")));
            assert!(!CompactToken::parse(&forged).unwrap().is_signed_by(key.public_key()), "{alg}");
        }
    }
}
