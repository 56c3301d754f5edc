//! Compact tokens of issuers (upstream's `untrustedIssuer`, go-oidc's `IDTokenVerifier.Verify`).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portico_gostd::time::Time;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::claims::RawClaims;
use super::json::{self, object};
use super::{JsonWebKeys, SigningAlgorithm};

/// Size of a JWT.
///
/// Limit (Authentication and authorization, bytes): the token is invalid.
pub const MAX_TOKEN_BYTES: usize = 256 << 10;
/// Time before its `nbf` at which a token is already accepted, in seconds.
const NOT_BEFORE_LEEWAY: i64 = 60;
/// Issuer with two names (`issuerGoogleAccounts`).
const GOOGLE: (&str, &str) = ("https://accounts.google.com", "accounts.google.com");

/// Returns the unverified issuer that a token names, or `None` if it is not a compact token.
#[must_use]
pub fn untrusted_issuer(token: &str) -> Option<String> {
    if token.len() > MAX_TOKEN_BYTES || token.trim_start().starts_with('{') {
        return None;
    }
    let mut parts = token.split('.');
    let (_, payload, _, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else {
        return None;
    };
    let members: BTreeMap<String, Box<RawValue>> = object(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
    let issuer = members.get("iss").map_or(Some(String::new()), |raw| json::text(raw))?;
    Some(if issuer == GOOGLE.1 { GOOGLE.0.to_owned() } else { issuer })
}

/// Requirements for tokens.
#[derive(Clone, Debug)]
pub struct TokenRequirements<'a> {
    /// Required issuer.
    pub issuer: &'a str,
    /// Accepted audiences; the token must name one of them.
    pub audiences: &'a [String],
    /// Accepted signature algorithms.
    pub algorithms: &'a [SigningAlgorithm],
    /// Current time in seconds since the epoch.
    pub now: i64,
}

/// Reason why a token was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerificationError {
    /// None of the keys has signed the token; a newer key set may contain the key.
    Signature,
    /// Any other reason, independent of the keys.
    Refused(String),
}

/// Header of a token.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Header {
    alg: String,
    kid: String,
    /// Extensions that must be supported: any value is rejected.
    crit: Option<serde::de::IgnoredAny>,
}

/// Token whose signature is not verified.
pub struct SignedToken<'a> {
    header: Header,
    payload: Vec<u8>,
    signed_part: &'a str,
    signature: Vec<u8>,
}

impl<'a> SignedToken<'a> {
    /// Parses a token.
    ///
    /// # Errors
    /// Returns the reason why it is malformed.
    pub fn parse(token: &'a str) -> Result<Self, String> {
        let malformed = |reason: &str| format!("oidc: malformed jwt: {reason}");
        if token.len() > MAX_TOKEN_BYTES {
            return Err(malformed("too long"));
        }
        let parts = token.rsplit_once('.').and_then(|(signed, signature)| {
            let (header, payload) = signed.split_once('.').filter(|(_, payload)| !payload.contains('.'))?;
            Some((signed, header, payload, signature))
        });
        let (signed_part, header, payload, signature) =
            parts.ok_or_else(|| malformed("go-jose/go-jose: compact JWS format must have three parts"))?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|error| malformed(&error.to_string()));
        let (header, payload, signature) = (decode(header)?, decode(payload)?, decode(signature)?);
        let header: Header = object(&header).map_err(|error| malformed(&error))?;
        if header.crit.is_some() {
            return Err(malformed("unsupported crit header"));
        }
        Ok(Self { header, payload, signed_part, signature })
    }

    /// Verifies the signature, issuer, audience and times.
    ///
    /// # Errors
    /// Returns [`VerificationError`].
    pub fn verify(
        &self,
        keys: &JsonWebKeys,
        requirements: &TokenRequirements<'_>,
    ) -> Result<RawClaims, VerificationError> {
        let algorithm = self.algorithm(requirements.algorithms).map_err(VerificationError::Refused)?;
        if !keys.have_signed(&self.header.kid, algorithm, self.signed_part.as_bytes(), &self.signature) {
            return Err(VerificationError::Signature);
        }
        self.claims(requirements).map_err(VerificationError::Refused)
    }

    fn algorithm(&self, allowed: &[SigningAlgorithm]) -> Result<SigningAlgorithm, String> {
        let algorithm = allowed.iter().copied().find(|one| one.name() == self.header.alg);
        algorithm.ok_or_else(|| {
            let names: Vec<_> = allowed.iter().map(|one| format!("{:?}", one.name())).collect();
            let (names, alg) = (names.join(" "), &self.header.alg);
            format!("oidc: id token signed with unsupported algorithm, expected [{names}] got {alg:?}")
        })
    }

    fn claims(&self, requirements: &TokenRequirements<'_>) -> Result<RawClaims, String> {
        let claims = RawClaims::parse(&self.payload)
            .map_err(|error| format!("oidc: failed to unmarshal claims: {error}"))?;
        let standard =
            claims.standard().map_err(|error| format!("oidc: failed to unmarshal claims: {error}"))?;
        claims.distributed().check()?;
        let issuer = &standard.issuer;
        if issuer != requirements.issuer && (requirements.issuer, issuer.as_str()) != GOOGLE {
            let expected = requirements.issuer;
            return Err(format!(
                "oidc: id token issued by a different provider, expected {expected:?} got {issuer:?}"
            ));
        }
        let among = |audience: &String| standard.audiences.contains(audience);
        let has_audience = match requirements.audiences {
            [one] if !among(one) => {
                let got = quote_list(&standard.audiences);
                return Err(format!("oidc: expected audience {one:?} got {got}"));
            }
            several => several.iter().any(among),
        };
        if standard.expires.is_none_or(|at| at < requirements.now) {
            let at = standard.expires.map_or_else(|| ZERO_TIME.to_owned(), format_go_time);
            return Err(format!("oidc: token is expired (Token Expiry: {at})"));
        }
        if let Some(from) =
            standard.not_before.filter(|from| requirements.now.saturating_add(NOT_BEFORE_LEEWAY) < *from)
        {
            let (now, from) = (format_go_time(requirements.now), format_go_time(from));
            return Err(format!("oidc: current time {now} before the nbf (not before) time: {from}"));
        }
        if !has_audience {
            let mut sorted = requirements.audiences.to_vec();
            sorted.sort_unstable();
            let (expected, got) = (quote_list(&sorted), quote_list(&standard.audiences));
            return Err(format!("oidc: expected audience in {expected} got {got}"));
        }
        Ok(claims)
    }
}

/// Zero time of Go.
const ZERO_TIME: &str = "0001-01-01 00:00:00 +0000 UTC";

/// Formats a time as Go prints it.
fn format_go_time(seconds: i64) -> String {
    let text = Time::unix(seconds, 0).rfc3339().unwrap_or_default();
    format!("{} +0000 UTC", text.trim_end_matches('Z').replace('T', " "))
}

fn quote_list(texts: &[String]) -> String {
    let texts: Vec<_> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jwt::{self, PublicKey, SigningKey, encode_key_set};

    fn signed(key: &SigningKey, exp: Option<i64>, nbf: Option<i64>, aud: &[&str], iss: &str) -> String {
        let aud = aud.iter().map(|aud| (*aud).to_owned()).collect();
        key.sign(&jwt::Claims { iss: iss.into(), aud, exp, nbf, ..jwt::Claims::default() }).unwrap()
    }

    #[test]
    fn algorithm_signature_issuer_audience_and_time_are_verified() {
        let key = || SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
        let (ours, theirs) = (key(), key());
        let set = encode_key_set(&[PublicKey::from_der(ours.public_key().der()).unwrap()]);
        let keys = JsonWebKeys::parse(&set).unwrap();
        let refused = |text: &str| Err(VerificationError::Refused(text.to_owned()));
        let ask = |token: &str, audiences: &[&str], algorithms: &[SigningAlgorithm]| {
            let audiences: Vec<_> = audiences.iter().map(|one| (*one).to_owned()).collect();
            let requirements =
                TokenRequirements { issuer: "https://i", audiences: &audiences, algorithms, now: 1_000 };
            SignedToken::parse(token).unwrap().verify(&keys, &requirements).map(drop)
        };
        let es = [SigningAlgorithm::Es256];
        let good = signed(&ours, Some(1_000), Some(1_060), &["a"], "https://i");
        assert_eq!(ask(&good, &["a"], &es), Ok(()));
        assert_eq!(ask(&good, &["b", "a"], &es), Ok(()));
        assert_eq!(
            ask(&good, &["a"], &[SigningAlgorithm::Rs256]),
            refused("oidc: id token signed with unsupported algorithm, expected [\"RS256\"] got \"ES256\"")
        );
        assert_eq!(ask(&good, &["b"], &es), refused("oidc: expected audience \"b\" got [\"a\"]"));
        assert_eq!(
            ask(&good, &["c", "b"], &es),
            refused("oidc: expected audience in [\"b\" \"c\"] got [\"a\"]")
        );
        let forged = signed(&theirs, Some(1_000), None, &["a"], "https://i");
        assert_eq!(ask(&forged, &["a"], &es), Err(VerificationError::Signature));
        let late = signed(&ours, Some(999), None, &["a"], "https://i");
        let words = "oidc: token is expired (Token Expiry: 1970-01-01 00:16:39 +0000 UTC)";
        assert_eq!(ask(&late, &["a"], &es), refused(words));
        let timeless = signed(&ours, None, None, &["a"], "https://i");
        let words = "oidc: token is expired (Token Expiry: 0001-01-01 00:00:00 +0000 UTC)";
        assert_eq!(ask(&timeless, &["a"], &es), refused(words));
        let early = signed(&ours, Some(2_000), Some(1_061), &["a"], "https://i");
        let words = "oidc: current time 1970-01-01 00:16:40 +0000 UTC before the nbf (not before) time: 1970-01-01 00:17:41 +0000 UTC";
        assert_eq!(ask(&early, &["a"], &es), refused(words));
        let other = signed(&ours, Some(1_000), None, &["a"], "https://j");
        let words = "oidc: id token issued by a different provider, expected \"https://i\" got \"https://j\"";
        assert_eq!(ask(&other, &["a"], &es), refused(words));
        assert_eq!(untrusted_issuer(&other).as_deref(), Some("https://j"));
    }

    #[test]
    fn text_that_is_not_a_compact_token_has_no_issuer() {
        let token = |payload: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload));
        assert_eq!(untrusted_issuer(&token("{}")).as_deref(), Some(""));
        let google = untrusted_issuer(&token(r#"{"iss":"accounts.google.com"}"#));
        assert_eq!(google.as_deref(), Some("https://accounts.google.com"));
        let long = token(&format!(r#"{{"iss":"{}"}}"#, "x".repeat(MAX_TOKEN_BYTES)));
        for bad in ["", "a.b", "a.b.c.d", "{}", &token("[]"), &token(r#"{"iss":1}"#), "e30.=.c2ln", &long] {
            assert_eq!(untrusted_issuer(bad), None, "{bad:.60}");
        }
    }
}
