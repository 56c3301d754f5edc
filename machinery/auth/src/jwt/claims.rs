//! Claims of service account tokens, and verification of their times.

use serde::{Deserialize, Deserializer, Serialize};

/// Issuer of tokens that are stored in Secrets.
pub const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// Maximum difference between clocks, in seconds.
pub const LEEWAY: i64 = 60;

/// Reference to an object by name and uid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectRef {
    /// Name of the object.
    pub name: String,
    /// Uid of the object; empty if not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// Objects that a bound token represents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KubernetesClaims {
    /// Namespace of the service account.
    pub namespace: String,
    /// Node to which the token is bound, or on which its pod runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<ObjectRef>,
    /// Pod to which the token is bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<ObjectRef>,
    /// Secret to which the token is bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<ObjectRef>,
    /// Service account of the token.
    pub serviceaccount: ObjectRef,
    /// Time in seconds after which the user of the token should have requested a new one.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub warnafter: Option<i64>,
}

/// Claims of a token. Times are seconds since the epoch. Fields are in the order in which upstream encodes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claims {
    /// Audiences; empty in legacy tokens.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "audience")]
    pub aud: Vec<String>,
    /// Expiration time.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub exp: Option<i64>,
    /// Issue time.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub iat: Option<i64>,
    /// Issuer of the token.
    pub iss: String,
    /// Unique ID of the token.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub jti: String,
    /// Objects that a bound token represents.
    #[serde(rename = "kubernetes.io", skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesClaims>,
    /// Namespace of a legacy token.
    #[serde(rename = "kubernetes.io/serviceaccount/namespace", skip_serializing_if = "String::is_empty")]
    pub legacy_namespace: String,
    /// Secret of a legacy token.
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name", skip_serializing_if = "String::is_empty")]
    pub legacy_secret: String,
    /// Service account of a legacy token.
    #[serde(
        rename = "kubernetes.io/serviceaccount/service-account.name",
        skip_serializing_if = "String::is_empty"
    )]
    pub legacy_name: String,
    /// Uid of the service account of a legacy token.
    #[serde(
        rename = "kubernetes.io/serviceaccount/service-account.uid",
        skip_serializing_if = "String::is_empty"
    )]
    pub legacy_uid: String,
    /// Beginning of the validity.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub nbf: Option<i64>,
    /// Subject, which is the user name.
    pub sub: String,
}

/// Error for a token that is not valid at the current time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The validity has not begun.
    #[error("service account token is not valid yet")]
    NotYetValid,
    /// The validity has ended.
    #[error("service account token has expired")]
    Expired,
    /// The issue time is in the future.
    #[error("service account token is issued in the future")]
    IssuedInFuture,
}

impl Claims {
    /// Verifies that the token is valid at `now`, with a tolerance of [`LEEWAY`].
    ///
    /// # Errors
    /// Returns the first [`TimeError`] in upstream's order.
    pub fn check_time(&self, now: i64) -> Result<(), TimeError> {
        if self.nbf.is_some_and(|from| now.saturating_add(LEEWAY) < from) {
            return Err(TimeError::NotYetValid);
        }
        if self.exp.is_some_and(|until| now.saturating_sub(LEEWAY) > until) {
            return Err(TimeError::Expired);
        }
        if self.iat.is_some_and(|issued_at| now.saturating_add(LEEWAY) < issued_at) {
            return Err(TimeError::IssuedInFuture);
        }
        Ok(())
    }
}

/// Limit beyond which a number of seconds is not a valid time.
const MAX_SECONDS: f64 = 9.2e18;

/// Deserializes a number of seconds and truncates fractions. Rejects numbers beyond all valid times, which upstream converts
/// to a time in the distant past.
fn date<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    let Some(seconds) = Option::<f64>::deserialize(from)? else { return Ok(None) };
    if seconds.abs() > MAX_SECONDS {
        return Err(serde::de::Error::custom("the time is out of range"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "fractions of a second are ignored")]
    let whole = seconds as i64;
    Ok(Some(whole))
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

fn audience<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match Option::<OneOrMany>::deserialize(from)? {
        None => Vec::new(),
        Some(OneOrMany::One(one)) => vec![one],
        Some(OneOrMany::Many(many)) => many,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_written_in_upstreams_order_and_read_back() {
        let named = |name: &str| ObjectRef { name: name.into(), uid: "u".into() };
        let claims = Claims {
            aud: vec!["a".into()],
            exp: Some(3),
            iat: Some(1),
            iss: "i".into(),
            jti: "j".into(),
            kubernetes: Some(KubernetesClaims {
                namespace: "n".into(),
                pod: Some(named("p")),
                node: Some(ObjectRef { name: "o".into(), ..ObjectRef::default() }),
                serviceaccount: named("s"),
                warnafter: Some(2),
                ..KubernetesClaims::default()
            }),
            nbf: Some(1),
            sub: "x".into(),
            ..Claims::default()
        };
        let json = serde_json::to_string(&claims).unwrap();
        assert_eq!(
            json,
            r#"{"aud":["a"],"exp":3,"iat":1,"iss":"i","jti":"j","kubernetes.io":{"namespace":"n","node":{"name":"o"},"pod":{"name":"p","uid":"u"},"serviceaccount":{"name":"s","uid":"u"},"warnafter":2},"nbf":1,"sub":"x"}"#
        );
        assert_eq!(serde_json::from_str::<Claims>(&json).unwrap(), claims);
    }

    #[test]
    fn an_audience_may_be_one_text_and_a_time_a_fraction() {
        let claims: Claims =
            serde_json::from_str(r#"{"aud":"a","exp":1.9,"nbf":null,"iat":1e400}"#).unwrap_or_default();
        assert_eq!(claims, Claims::default(), "numbers out of range are rejected");
        for date in ["1e30", "-1e30", "9.3e18"] {
            let claims = serde_json::from_str::<Claims>(&format!(r#"{{"aud":"a","exp":{date}}}"#));
            assert!(claims.is_err(), "{date}");
        }
        let claims: Claims = serde_json::from_str(r#"{"aud":"a","exp":1.9,"nbf":null}"#).unwrap();
        assert_eq!((claims.aud, claims.exp, claims.nbf), (vec!["a".to_owned()], Some(1), None));
    }

    #[test]
    fn a_token_is_valid_within_its_times_with_a_leeway_of_a_minute() {
        let claims = Claims { nbf: Some(1_000), iat: Some(1_000), exp: Some(2_000), ..Claims::default() };
        for (now, expected) in [
            (939, Err(TimeError::NotYetValid)),
            (940, Ok(())),
            (2_060, Ok(())),
            (2_061, Err(TimeError::Expired)),
            (i64::MAX, Err(TimeError::Expired)),
        ] {
            assert_eq!(claims.check_time(now), expected, "{now}");
        }
        let early = Claims { iat: Some(1_000), ..Claims::default() };
        assert_eq!(early.check_time(900), Err(TimeError::IssuedInFuture));
        assert_eq!(Claims::default().check_time(i64::MIN), Ok(()));
    }
}
