//! Verification of service account tokens with keys and the clock.
//!
//! A reviewer with access to the objects checks that the objects of the token still exist.

use crate::jwt::{Claims, CompactToken, LEGACY_ISSUER, PublicKey};

/// Trusted issuers, audiences of this API, and keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenKeys {
    /// Trusted issuers; new tokens name the first one.
    pub issuers: Vec<String>,
    /// Audiences of this API.
    pub audiences: Vec<String>,
    /// Trusted public keys.
    pub keys: Vec<PublicKey>,
}

/// Token that one of the keys has signed for a requested audience.
#[derive(Debug)]
pub struct VerifiedToken {
    /// Claims of the token.
    pub claims: Claims,
    /// Requested audiences that the token names.
    pub audiences: Vec<String>,
}

impl VerifiedToken {
    /// True for a token stored in a Secret, which is neither bound nor limited in time.
    #[must_use]
    pub fn is_legacy(&self) -> bool {
        self.claims.iss == LEGACY_ISSUER
    }
}

/// Reason why a token of a known issuer was rejected. Messages are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// No key has the ID that the token names.
    #[error("invalid signature, no keys found")]
    NoKey,
    /// No key has signed the token.
    #[error("invalid signature")]
    Signature,
    /// The token is for other audiences.
    #[error("token audiences {} is invalid for the target audiences {}", quote_list(.0), quote_list(.1))]
    Audience(Vec<String>, Vec<String>),
    /// The token is not valid at this time.
    #[error(transparent)]
    Time(#[from] crate::jwt::TimeError),
}

fn quote_list(texts: &[String]) -> String {
    let texts: Vec<_> = texts.iter().map(|t| format!("{t:?}")).collect();
    format!("[{}]", texts.join(" "))
}

impl TokenKeys {
    /// Verifies a token for the audiences `requested`, or for those of this API if the list is empty. Returns `None` if
    /// the token has none of these issuers.
    ///
    /// # Errors
    /// Returns [`TokenRefusal`] if the token is rejected.
    pub fn verify(
        &self,
        token: &str,
        requested: &[String],
        now: i64,
    ) -> Result<Option<VerifiedToken>, TokenRefusal> {
        let Ok(compact) = CompactToken::parse(token) else { return Ok(None) };
        let issuer = &compact.claims().iss;
        let legacy = issuer == LEGACY_ISSUER;
        if !legacy && !self.issuers.contains(issuer) {
            return Ok(None);
        }
        let mut named = self.keys.iter().filter(|k| may_use_key(&compact, k)).peekable();
        if named.peek().is_none() {
            return Err(TokenRefusal::NoKey);
        }
        if !named.any(|k| compact.is_signed_by(k)) {
            return Err(TokenRefusal::Signature);
        }
        let claims = compact.into_claims();
        let token_audiences = if claims.aud.is_empty() { &self.audiences } else { &claims.aud };
        let target_audiences = if requested.is_empty() { &self.audiences } else { requested };
        let audiences: Vec<String> =
            token_audiences.iter().filter(|a| target_audiences.contains(a)).cloned().collect();
        if audiences.is_empty() && !self.audiences.is_empty() {
            return Err(TokenRefusal::Audience(token_audiences.clone(), target_audiences.to_vec()));
        }
        if !legacy {
            claims.check_time(now)?;
        }
        Ok(Some(VerifiedToken { claims, audiences }))
    }
}

/// True if the token names this key, or no key.
fn may_use_key(compact: &CompactToken<'_>, key: &PublicKey) -> bool {
    compact.key_id().is_empty() || compact.key_id() == key.id()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jwt::{SigningKey, TimeError};

    fn key() -> SigningKey {
        SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap()
    }

    fn keys_trusting(key: &SigningKey) -> TokenKeys {
        TokenKeys {
            issuers: vec!["https://new".into(), "https://old".into()],
            audiences: vec!["api".into()],
            keys: vec![PublicKey::from_der(key.public_key().der()).unwrap()],
        }
    }

    fn claims(iss: &str, aud: &[&str], exp: Option<i64>) -> Claims {
        let aud = aud.iter().map(|a| (*a).to_owned()).collect();
        Claims { iss: iss.into(), aud, exp, sub: "system:serviceaccount:n:s".into(), ..Claims::default() }
    }

    #[test]
    fn issuer_signature_audience_and_time_are_verified_in_that_order() {
        let (ours, theirs) = (key(), key());
        let keys = keys_trusting(&ours);
        let wrong = |token: &[&str], target: &[&str]| {
            let texts = |t: &[&str]| t.iter().map(|t| (*t).to_owned()).collect();
            Some(TokenRefusal::Audience(texts(token), texts(target)))
        };
        let late = Some(TokenRefusal::Time(TimeError::Expired));
        for (signer, claims, target, expected) in [
            (&ours, claims("https://new", &["api", "x"], Some(1_000)), &[][..], None),
            (&ours, claims("https://old", &["api"], Some(1_000)), &[], None),
            (&theirs, claims("https://new", &["api"], Some(1_000)), &[], Some(TokenRefusal::NoKey)),
            (&ours, claims("https://new", &["x"], Some(1)), &[], wrong(&["x"], &["api"])),
            (&ours, claims("https://new", &["api"], Some(1)), &["y"], wrong(&["api"], &["y"])),
            (&ours, claims("https://new", &["x", "y"], Some(1_000)), &["y"], None),
            (&ours, claims("https://new", &["api"], Some(1)), &[], late),
            (&ours, claims(LEGACY_ISSUER, &[], Some(1)), &[], None),
            (&ours, claims(LEGACY_ISSUER, &[], None), &["y"], wrong(&["api"], &["y"])),
        ] {
            let token = signer.sign(&claims).unwrap();
            let target: Vec<String> = target.iter().map(|a| (*a).to_owned()).collect();
            let read = keys.verify(&token, &target, 1_000);
            assert_eq!(read.as_ref().err(), expected.as_ref(), "{claims:?} {target:?}");
            assert!(read.is_err() || read.unwrap().is_some());
        }
        let foreign = ours.sign(&claims("https://other", &["api"], None)).unwrap();
        assert!(keys.verify(&foreign, &[], 0).unwrap().is_none());
        assert!(keys.verify("alice-token", &[], 0).unwrap().is_none());
    }

    #[test]
    fn a_token_that_names_another_key_is_not_verified_with_this_key() {
        let (ours, theirs) = (key(), key());
        let mut keys = keys_trusting(&ours);
        keys.keys.push(PublicKey::from_der(theirs.public_key().der()).unwrap());
        let token = theirs.sign(&claims("https://new", &["api"], None)).unwrap();
        assert_eq!(keys.verify(&token, &[], 0).unwrap().unwrap().audiences, ["api"]);
        keys.keys.pop();
        assert_eq!(keys.verify(&token, &[], 0).unwrap_err(), TokenRefusal::NoKey);
        keys.keys = vec![ours.public_key().clone().with_id(theirs.public_key().id())];
        assert_eq!(keys.verify(&token, &[], 0).unwrap_err(), TokenRefusal::Signature);
    }

    #[test]
    fn refusals_have_upstreams_messages() {
        let refused = TokenRefusal::Audience(vec!["A".into(), "B".into()], vec!["C".into()]);
        let message = r#"token audiences ["A" "B"] is invalid for the target audiences ["C"]"#;
        assert_eq!(refused.to_string(), message);
    }
}
