//! What a service account's token says, and whether it says so in time.

use serde::{Deserialize, Deserializer, Serialize};

/// The issuer of tokens that are kept in Secrets.
pub const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// How far clocks may be apart, in seconds.
pub const LEEWAY: i64 = 60;

/// Something by name and uid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ref {
    /// Its name.
    pub name: String,
    /// Its uid, empty when it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// What a bound token stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kubernetes {
    /// Where the service account lives.
    pub namespace: String,
    /// The node that it is bound to, or that its pod runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Ref>,
    /// The pod that it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Ref>,
    /// The Secret that it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Ref>,
    /// The service account.
    pub serviceaccount: Ref,
    /// When its user should have asked for another, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub warnafter: Option<i64>,
}

/// All claims; times are seconds since the epoch. Names are in the order in which upstream writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claims {
    /// For whom; none in legacy tokens.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "audience")]
    pub aud: Vec<String>,
    /// Until when.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub exp: Option<i64>,
    /// When it was made.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub iat: Option<i64>,
    /// By whom.
    pub iss: String,
    /// Its own id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub jti: String,
    /// What a bound token stands for.
    #[serde(rename = "kubernetes.io", skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Kubernetes>,
    /// Of a legacy token: its namespace.
    #[serde(rename = "kubernetes.io/serviceaccount/namespace", skip_serializing_if = "String::is_empty")]
    pub legacy_namespace: String,
    /// Of a legacy token: its Secret.
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name", skip_serializing_if = "String::is_empty")]
    pub legacy_secret: String,
    /// Of a legacy token: its service account.
    #[serde(
        rename = "kubernetes.io/serviceaccount/service-account.name",
        skip_serializing_if = "String::is_empty"
    )]
    pub legacy_name: String,
    /// Of a legacy token: its service account's uid.
    #[serde(
        rename = "kubernetes.io/serviceaccount/service-account.uid",
        skip_serializing_if = "String::is_empty"
    )]
    pub legacy_uid: String,
    /// From when on.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "date")]
    pub nbf: Option<i64>,
    /// Whom it names.
    pub sub: String,
}

/// A token out of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// Too early.
    #[error("service account token is not valid yet")]
    NotYet,
    /// Too late.
    #[error("service account token has expired")]
    Expired,
    /// Made later than now.
    #[error("service account token is issued in the future")]
    FromTheFuture,
}

impl Claims {
    /// Whether the token is in its time, give or take [`LEEWAY`].
    ///
    /// # Errors
    /// [`TimeError`], the first in upstream's order.
    pub fn check_time(&self, now: i64) -> Result<(), TimeError> {
        if self.nbf.is_some_and(|from| now.saturating_add(LEEWAY) < from) {
            return Err(TimeError::NotYet);
        }
        if self.exp.is_some_and(|until| now.saturating_sub(LEEWAY) > until) {
            return Err(TimeError::Expired);
        }
        if self.iat.is_some_and(|made| now.saturating_add(LEEWAY) < made) {
            return Err(TimeError::FromTheFuture);
        }
        Ok(())
    }
}

/// Seconds that lie beyond what a time can be.
const MAX_SECONDS: f64 = 9.2e18;

/// A number, whole or not: a part of a second counts for nothing. One beyond all times is refused: upstream's conversion
/// makes a time long past of it.
fn date<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    let Some(seconds) = Option::<f64>::deserialize(from)? else { return Ok(None) };
    if seconds.abs() > MAX_SECONDS {
        return Err(serde::de::Error::custom("a time beyond all times"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "a part of a second counts for nothing")]
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
        let named = |name: &str| Ref { name: name.into(), uid: "u".into() };
        let claims = Claims {
            aud: vec!["a".into()],
            exp: Some(3),
            iat: Some(1),
            iss: "i".into(),
            jti: "j".into(),
            kubernetes: Some(Kubernetes {
                namespace: "n".into(),
                pod: Some(named("p")),
                node: Some(Ref { name: "o".into(), ..Ref::default() }),
                serviceaccount: named("s"),
                warnafter: Some(2),
                ..Kubernetes::default()
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
        assert_eq!(claims, Claims::default(), "numbers beyond all are refused");
        for date in ["1e30", "-1e30", "9.3e18"] {
            let claims = serde_json::from_str::<Claims>(&format!(r#"{{"aud":"a","exp":{date}}}"#));
            assert!(claims.is_err(), "{date}");
        }
        let claims: Claims = serde_json::from_str(r#"{"aud":"a","exp":1.9,"nbf":null}"#).unwrap();
        assert_eq!((claims.aud, claims.exp, claims.nbf), (vec!["a".to_owned()], Some(1), None));
    }

    #[test]
    fn a_token_counts_in_its_time_give_or_take_a_minute() {
        let claims = Claims { nbf: Some(1_000), iat: Some(1_000), exp: Some(2_000), ..Claims::default() };
        for (now, expected) in [
            (939, Err(TimeError::NotYet)),
            (940, Ok(())),
            (2_060, Ok(())),
            (2_061, Err(TimeError::Expired)),
            (i64::MAX, Err(TimeError::Expired)),
        ] {
            assert_eq!(claims.check_time(now), expected, "{now}");
        }
        let early = Claims { iat: Some(1_000), ..Claims::default() };
        assert_eq!(early.check_time(900), Err(TimeError::FromTheFuture));
        assert_eq!(Claims::default().check_time(i64::MIN), Ok(()));
    }
}
