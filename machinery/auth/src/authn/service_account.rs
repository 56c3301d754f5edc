//! Verification of service account tokens with keys and the clock.
//!
//! A reviewer with access to the objects checks that the objects of the token still exist.

use crate::jwt::{Claims, Compact, LEGACY_ISSUER, PublicKey};

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
pub struct Signed {
    /// Claims of the token.
    pub claims: Claims,
    /// Requested audiences that the token names.
    pub audiences: Vec<String>,
}

impl Signed {
    /// True for a token stored in a Secret, which is neither bound nor limited in time.
    #[must_use]
    pub fn is_legacy(&self) -> bool {
        self.claims.iss == LEGACY_ISSUER
    }
}

/// Reason why a token of a known issuer was rejected. Messages are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No key has the ID that the token names.
    #[error("invalid signature, no keys found")]
    NoKey,
    /// No key has signed the token.
    #[error("invalid signature")]
    Signature,
    /// The token is for other audiences.
    #[error("token audiences {} is invalid for the target audiences {}", quoted(.0), quoted(.1))]
    Audience(Vec<String>, Vec<String>),
    /// The token is not valid at this time.
    #[error(transparent)]
    Time(#[from] crate::jwt::TimeError),
}

fn quoted(texts: &[String]) -> String {
    let texts: Vec<_> = texts.iter().map(|t| format!("{t:?}")).collect();
    format!("[{}]", texts.join(" "))
}

impl TokenKeys {
    /// Verifies a token for the audiences `requested`, or for those of this API if the list is empty. Returns `None` if
    /// the token has none of these issuers.
    ///
    /// # Errors
    /// Returns [`TokenRefusal`] if the token is rejected.
    pub fn read(&self, token: &str, asked: &[String], now: i64) -> Result<Option<Signed>, Refused> {
        let Ok(compact) = Compact::parse(token) else { return Ok(None) };
        let issuer = &compact.claims().iss;
        let legacy = issuer == LEGACY_ISSUER;
        if !legacy && !self.issuers.contains(issuer) {
            return Ok(None);
        }
        let mut named = self.keys.iter().filter(|k| names(&compact, k)).peekable();
        if named.peek().is_none() {
            return Err(Refused::NoKey);
        }
        if !named.any(|k| compact.is_signed_by(k)) {
            return Err(Refused::Signature);
        }
        let claims = compact.into_claims();
        let own = if claims.aud.is_empty() { &self.audiences } else { &claims.aud };
        let asked = if asked.is_empty() { &self.audiences } else { asked };
        let audiences: Vec<String> = own.iter().filter(|a| asked.contains(a)).cloned().collect();
        if audiences.is_empty() && !self.audiences.is_empty() {
            return Err(Refused::Audience(own.clone(), asked.to_vec()));
        }
        if !legacy {
            claims.check_time(now)?;
        }
        Ok(Some(Signed { claims, audiences }))
    }
}

/// True if the token names this key, or no key.
fn names(compact: &Compact<'_>, key: &PublicKey) -> bool {
    compact.key_id().is_empty() || compact.key_id() == key.id()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jwt::{SigningKey, TimeError};

    fn key() -> SigningKey {
        SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap()
    }

    fn trusting(key: &SigningKey) -> TokenKeys {
        TokenKeys {
            issuers: vec!["https://new".into(), "https://old".into()],
            audiences: vec!["api".into()],
            keys: vec![PublicKey::from_der(key.public().der()).unwrap()],
        }
    }

    fn claims(iss: &str, aud: &[&str], exp: Option<i64>) -> Claims {
        let aud = aud.iter().map(|a| (*a).to_owned()).collect();
        Claims { iss: iss.into(), aud, exp, sub: "system:serviceaccount:n:s".into(), ..Claims::default() }
    }

    #[test]
    fn a_token_counts_by_issuer_signature_audience_and_time_in_that_order() {
        let (ours, theirs) = (key(), key());
        let keys = trusting(&ours);
        let wrong = |own: &[&str], asked: &[&str]| {
            let texts = |t: &[&str]| t.iter().map(|t| (*t).to_owned()).collect();
            Some(Refused::Audience(texts(own), texts(asked)))
        };
        let late = Some(Refused::Time(TimeError::Expired));
        for (signer, claims, asked, expected) in [
            (&ours, claims("https://new", &["api", "x"], Some(1_000)), &[][..], None),
            (&ours, claims("https://old", &["api"], Some(1_000)), &[], None),
            (&theirs, claims("https://new", &["api"], Some(1_000)), &[], Some(Refused::NoKey)),
            (&ours, claims("https://new", &["x"], Some(1)), &[], wrong(&["x"], &["api"])),
            (&ours, claims("https://new", &["api"], Some(1)), &["y"], wrong(&["api"], &["y"])),
            (&ours, claims("https://new", &["x", "y"], Some(1_000)), &["y"], None),
            (&ours, claims("https://new", &["api"], Some(1)), &[], late),
            (&ours, claims(LEGACY_ISSUER, &[], Some(1)), &[], None),
            (&ours, claims(LEGACY_ISSUER, &[], None), &["y"], wrong(&["api"], &["y"])),
        ] {
            let token = signer.sign(&claims).unwrap();
            let asked: Vec<String> = asked.iter().map(|a| (*a).to_owned()).collect();
            let read = keys.read(&token, &asked, 1_000);
            assert_eq!(read.as_ref().err(), expected.as_ref(), "{claims:?} {asked:?}");
            assert!(read.is_err() || read.unwrap().is_some());
        }
        let foreign = ours.sign(&claims("https://other", &["api"], None)).unwrap();
        assert!(keys.read(&foreign, &[], 0).unwrap().is_none());
        assert!(keys.read("alice-token", &[], 0).unwrap().is_none());
    }

    #[test]
    fn a_token_that_names_another_key_is_not_tried_with_ours() {
        let (ours, theirs) = (key(), key());
        let mut keys = trusting(&ours);
        keys.keys.push(PublicKey::from_der(theirs.public().der()).unwrap());
        let token = theirs.sign(&claims("https://new", &["api"], None)).unwrap();
        assert_eq!(keys.read(&token, &[], 0).unwrap().unwrap().audiences, ["api"]);
        keys.keys.pop();
        assert_eq!(keys.read(&token, &[], 0).unwrap_err(), Refused::NoKey);
        keys.keys = vec![ours.public().clone().named(theirs.public().id())];
        assert_eq!(keys.read(&token, &[], 0).unwrap_err(), Refused::Signature);
    }

    #[test]
    fn refusals_are_in_upstreams_words() {
        let refused = Refused::Audience(vec!["A".into(), "B".into()], vec!["C".into()]);
        let words = r#"token audiences ["A" "B"] is invalid for the target audiences ["C"]"#;
        assert_eq!(refused.to_string(), words);
    }
}
