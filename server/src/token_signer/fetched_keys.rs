//! Validation of the keys that a signer returns (`getTokenVerificationKeys`). Pure functions.

use std::time::Duration;

use portico_auth::jwt::PublicKey;
use portico_gostd::strconv::quote;
use portico_proto::externaljwt as pb;

/// Maximum length of a key ID.
const MAX_KEY_ID: usize = 1024;
/// Valid timestamps in Unix seconds, from the first second of the year 1 to the last of the year 9999.
const TIMESTAMPS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
const NANOS: i32 = 1_000_000_000;

/// Validated keys of a signer.
#[derive(Debug)]
pub(super) struct FetchedKeys {
    pub(super) keys: Vec<PublicKey>,
    /// Time at which the keys were current, in Unix seconds.
    pub(super) data_timestamp: f64,
    /// Time until the next fetch.
    pub(super) refresh: Duration,
}

impl FetchedKeys {
    /// Validates a response.
    ///
    /// # Errors
    /// Upstream's message.
    pub(super) fn read(answer: &pb::FetchKeysResponse) -> Result<Self, String> {
        let hint = answer.refresh_hint_seconds;
        let refresh = u64::try_from(hint).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs);
        let refresh = refresh.ok_or_else(|| format!("found invalid refresh hint ({hint}s)"))?;
        if answer.keys.is_empty() {
            return Err("found no keys".to_owned());
        }
        let wrong = |message: &str| format!("invalid data timestamp: {message}");
        let time = answer.data_timestamp.as_ref().ok_or_else(|| wrong("invalid nil Timestamp"))?;
        if !TIMESTAMPS.contains(&time.seconds) || !(0..NANOS).contains(&time.nanos) {
            return Err(wrong("timestamp out of range"));
        }
        #[expect(clippy::cast_precision_loss, reason = "years to 9999 in seconds are exact")]
        let data_timestamp = time.seconds as f64 + f64::from(time.nanos) / f64::from(NANOS);
        let keys = answer.keys.iter().map(key).collect::<Result<_, _>>()?;
        Ok(Self { keys, data_timestamp, refresh })
    }
}

fn key(key: &pb::Key) -> Result<PublicKey, String> {
    let id = &key.key_id;
    if id.is_empty() || id.len() > MAX_KEY_ID {
        return Err(format!("found invalid public key id {}", quote(id)));
    }
    if key.key.is_empty() {
        return Err("found empty public key".to_owned());
    }
    let parsed = PublicKey::from_der(&key.key)
        .map_err(|error| format!("while parsing external public keys: {error}"))?;
    Ok(parsed.with_id(id).with_unpublished(key.exclude_from_oidc_discovery))
}

#[cfg(test)]
mod tests {
    use portico_auth::jwt::SigningKey;
    use prost_types::Timestamp;

    use super::*;

    fn answer() -> pb::FetchKeysResponse {
        let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
        let key = pb::Key {
            key_id: "k".to_owned(),
            key: key.public_key().der().to_vec(),
            exclude_from_oidc_discovery: true,
        };
        let data_timestamp = Some(Timestamp { seconds: 5, nanos: 500_000_000 });
        pb::FetchKeysResponse { keys: vec![key], data_timestamp, refresh_hint_seconds: 7 }
    }

    #[test]
    fn keys_have_the_ids_that_their_signer_gives_them() {
        let read = FetchedKeys::read(&answer()).unwrap();
        assert_eq!((read.keys[0].id(), read.keys[0].is_published()), ("k", false));
        assert!((read.data_timestamp - 5.5).abs() < f64::EPSILON);
        assert_eq!(read.refresh, Duration::from_secs(7));
    }

    #[test]
    fn invalid_responses_are_refused_with_upstreams_messages() {
        type Break = fn(&mut pb::FetchKeysResponse);
        let broken: [(Break, &str); 7] = [
            (|a| a.refresh_hint_seconds = 0, "found invalid refresh hint (0s)"),
            (|a| a.keys.clear(), "found no keys"),
            (|a| a.data_timestamp = None, "invalid data timestamp: invalid nil Timestamp"),
            (|a| a.data_timestamp = Some(Timestamp { seconds: 0, nanos: -1 }), "invalid data timestamp: "),
            (|a| a.keys[0].key_id = "k".repeat(1025), "found invalid public key id \"kkk"),
            (|a| a.keys[0].key.clear(), "found empty public key"),
            (|a| a.keys[0].key = vec![1], "while parsing external public keys: "),
        ];
        for (breaks, expected) in broken {
            let mut answer = answer();
            breaks(&mut answer);
            let error = FetchedKeys::read(&answer).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
