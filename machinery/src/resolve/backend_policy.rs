//! Portico's annotations of an APIService for load balancing and failure handling of its backend.

use std::str::FromStr;
use std::time::Duration;

use portico_gostd::time::parse_duration;

use super::backend_urls::{BACKEND_URLS, backend_urls};
use crate::route::{BackendPolicy, Ejection, Mirror, ServiceReference};
use crate::{Object, names};

/// Number of retries of a read-only request; 0 to 5.
pub const BACKEND_RETRIES: &str = "portico.dev/backend-retries";
/// Maximum time until an address starts its response to a read-only request, a Go duration.
pub const BACKEND_PER_TRY_TIMEOUT: &str = "portico.dev/backend-per-try-timeout";
/// Time after which an unanswered read-only request is also sent to another address, a Go duration.
pub const BACKEND_HEDGE_AFTER: &str = "portico.dev/backend-hedge-after";
/// Maximum number of connections in use.
pub const BACKEND_MAX_CONNECTIONS: &str = "portico.dev/backend-max-connections";
/// Relative share of requests of each of the [`BACKEND_URLS`], such as `3,1`.
pub const BACKEND_WEIGHTS: &str = "portico.dev/backend-weights";
/// Number of consecutive failures after which an address is ejected.
pub const BACKEND_EJECTION_FAILURES: &str = "portico.dev/backend-ejection-failures";
/// Initial duration of an ejection.
pub const BACKEND_EJECTION_TIME: &str = "portico.dev/backend-ejection-time";

/// Mirror that receives copies of requests: `https://host[:port]`; `<service>.<namespace>.svc` is that Service.
pub const BACKEND_MIRROR: &str = "portico.dev/backend-mirror";
/// Percentage of requests that are copied to the mirror; 1 to 100.
pub const BACKEND_MIRROR_PERCENT: &str = "portico.dev/backend-mirror-percent";
/// Maximum body size of a modifying request that is copied to the mirror; 0 to 1 MiB.
pub const BACKEND_MIRROR_MAX_BODY: &str = "portico.dev/backend-mirror-max-body-bytes";
/// Name that the mirror's certificate must have, instead of its host.
pub const BACKEND_MIRROR_SERVER_NAME: &str = "portico.dev/backend-mirror-server-name";

/// All annotations of the backend policy.
pub const BACKEND_POLICY: [&str; 11] = [
    BACKEND_RETRIES,
    BACKEND_PER_TRY_TIMEOUT,
    BACKEND_HEDGE_AFTER,
    BACKEND_MAX_CONNECTIONS,
    BACKEND_WEIGHTS,
    BACKEND_EJECTION_FAILURES,
    BACKEND_EJECTION_TIME,
    BACKEND_MIRROR,
    BACKEND_MIRROR_PERCENT,
    BACKEND_MIRROR_MAX_BODY,
    BACKEND_MIRROR_SERVER_NAME,
];

const MAX_RETRIES: u32 = 5;
const MAX_CONNECTIONS: u32 = 100_000;
const MAX_WEIGHT: u32 = 100;
const MAX_FAILURES: u32 = 1000;
/// Maximum of `portico.dev/backend-mirror-max-body-bytes`.
///
/// Limit (Backends, bytes): 422.
const MAX_MIRROR_BODY: u32 = 1 << 20;
const TRY_TIMEOUT_RANGE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(60));
const EJECTION_TIME_RANGE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(600));
/// Default duration of an ejection.
const EJECTION_TIME: Duration = Duration::from_secs(30);

/// Parses the annotations of an APIService; invalid annotations count as absent.
#[must_use]
pub fn backend_policy(object: &Object) -> BackendPolicy {
    let annotation = |key| object.annotation(key);
    let ejection_time =
        annotation(BACKEND_EJECTION_TIME).and_then(|text| duration(text, EJECTION_TIME_RANGE).ok());
    let failures = annotation(BACKEND_EJECTION_FAILURES).and_then(|text| number(text, 1, MAX_FAILURES).ok());
    BackendPolicy {
        retries: annotation(BACKEND_RETRIES).and_then(|text| number(text, 0, MAX_RETRIES).ok()).unwrap_or(0),
        per_try_timeout: annotation(BACKEND_PER_TRY_TIMEOUT)
            .and_then(|text| duration(text, TRY_TIMEOUT_RANGE).ok()),
        hedge_after: annotation(BACKEND_HEDGE_AFTER).and_then(|text| duration(text, TRY_TIMEOUT_RANGE).ok()),
        max_connections: annotation(BACKEND_MAX_CONNECTIONS)
            .and_then(|text| number(text, 1, MAX_CONNECTIONS).ok()),
        weights: annotation(BACKEND_WEIGHTS).and_then(|text| weights(text, object).ok()).unwrap_or_default(),
        ejection: failures
            .map(|failures| Ejection { failures, time: ejection_time.unwrap_or(EJECTION_TIME) }),
        mirror: mirror(object),
    }
}

/// Parses the mirror, without resolving the addresses of a Service.
fn mirror(object: &Object) -> Option<Mirror> {
    let annotation = |key| object.annotation(key);
    let host = annotation(BACKEND_MIRROR).and_then(|text| backend_urls(text).ok())?;
    let [host] = <[_; 1]>::try_from(host).ok()?;
    let targets = if service_of(&host.host).is_some() { Vec::new() } else { vec![host.clone()] };
    let server_name = annotation(BACKEND_MIRROR_SERVER_NAME).filter(|name| server_name(name).is_ok());
    let count = |key, min, max| annotation(key).and_then(|text| number(text, min, max).ok());
    Some(Mirror {
        targets,
        server_name: server_name.unwrap_or(&host.host).to_owned(),
        percent: count(BACKEND_MIRROR_PERCENT, 1, 100).unwrap_or(100),
        max_body_bytes: count(BACKEND_MIRROR_MAX_BODY, 0, MAX_MIRROR_BODY).unwrap_or(0),
        host,
    })
}

/// Returns namespace and name of the Service that `<service>.<namespace>.svc` names.
fn service_of(host: &str) -> Option<(&str, &str)> {
    let (name, namespace) = host.strip_suffix(".svc")?.split_once('.')?;
    (!namespace.contains('.')).then_some((namespace, name))
}

impl Mirror {
    /// Returns the Service, if the mirror is one.
    #[must_use]
    pub fn service(&self) -> Option<ServiceReference> {
        let (namespace, name) = service_of(&self.host.host)?;
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Some(ServiceReference { namespace, name, port: self.host.port })
    }
}

/// Validates the value of one of the [`BACKEND_POLICY`] annotations.
///
/// # Errors
/// Human-readable message.
pub fn check_backend_policy(object: &Object, key: &str, value: &str) -> Result<(), String> {
    match key {
        BACKEND_RETRIES => number(value, 0, MAX_RETRIES).map(drop),
        BACKEND_PER_TRY_TIMEOUT | BACKEND_HEDGE_AFTER => duration(value, TRY_TIMEOUT_RANGE).map(drop),
        BACKEND_MAX_CONNECTIONS => number(value, 1, MAX_CONNECTIONS).map(drop),
        BACKEND_WEIGHTS => weights(value, object).map(drop),
        BACKEND_EJECTION_FAILURES => number(value, 1, MAX_FAILURES).map(drop),
        BACKEND_EJECTION_TIME if object.annotation(BACKEND_EJECTION_FAILURES).is_none() => {
            Err(format!("needs {BACKEND_EJECTION_FAILURES}"))
        }
        BACKEND_EJECTION_TIME => duration(value, EJECTION_TIME_RANGE).map(drop),
        BACKEND_MIRROR => match backend_urls(value) {
            Ok(urls) if urls.len() == 1 => Ok(()),
            Ok(_) => Err("must be one URL".to_owned()),
            Err(wrong) => Err(wrong.to_string()),
        },
        BACKEND_MIRROR_PERCENT | BACKEND_MIRROR_MAX_BODY | BACKEND_MIRROR_SERVER_NAME
            if object.annotation(BACKEND_MIRROR).is_none() =>
        {
            Err(format!("needs {BACKEND_MIRROR}"))
        }
        BACKEND_MIRROR_PERCENT => number(value, 1, 100).map(drop),
        BACKEND_MIRROR_MAX_BODY => number(value, 0, MAX_MIRROR_BODY).map(drop),
        BACKEND_MIRROR_SERVER_NAME => server_name(value),
        _ => Ok(()),
    }
}

fn server_name(text: &str) -> Result<(), String> {
    names::dns1123_subdomain(text).into_iter().next().map_or(Ok(()), Err)
}

fn number(text: &str, min: u32, max: u32) -> Result<u32, String> {
    let number = u32::from_str(text).ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("must be a number from {min} to {max}"))
}

fn duration(text: &str, (min, max): (Duration, Duration)) -> Result<Duration, String> {
    let time = parse_duration(text).ok().filter(|time| (min..=max).contains(time));
    time.ok_or_else(|| format!("must be a duration such as 1.5s, from {min:?} to {max:?}"))
}

fn weights(text: &str, object: &Object) -> Result<Vec<u32>, String> {
    let weights = text.split(',').map(|part| number(part.trim(), 0, MAX_WEIGHT));
    let weights: Vec<u32> = weights.collect::<Result<_, _>>()?;
    let urls = object.annotation(BACKEND_URLS).and_then(|urls| backend_urls(urls).ok());
    match urls {
        None => Err(format!("needs {BACKEND_URLS}")),
        Some(urls) if urls.len() != weights.len() => {
            Err(format!("must list {} numbers, one for each of {BACKEND_URLS}", urls.len()))
        }
        Some(_) if weights.iter().all(|weight| *weight == 0) => {
            Err("one of them must be more than 0".to_owned())
        }
        Some(_) => Ok(weights),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotated(annotations: &[(&str, &str)]) -> Object {
        let mut object = Object::default();
        for (key, value) in annotations {
            object.set(&["metadata", "annotations", key], value);
        }
        object
    }

    #[test]
    fn without_annotations_the_policy_is_that_of_upstream() {
        assert_eq!(backend_policy(&annotated(&[])), BackendPolicy::default());
        assert_eq!(BackendPolicy::default().to_string(), "");
    }

    #[test]
    fn annotations_are_read_into_a_policy() {
        let object = annotated(&[
            (BACKEND_URLS, "https://a,https://b"),
            (BACKEND_RETRIES, "2"),
            (BACKEND_PER_TRY_TIMEOUT, "1.5s"),
            (BACKEND_HEDGE_AFTER, "100ms"),
            (BACKEND_MAX_CONNECTIONS, "10"),
            (BACKEND_WEIGHTS, "3, 1"),
            (BACKEND_EJECTION_FAILURES, "4"),
            (BACKEND_MIRROR, "https://next.example.com"),
            (BACKEND_MIRROR_PERCENT, "10"),
        ]);
        let expected = "retries 2, 1.5s per try, hedged after 100ms, at most 10 connections, weights 3,1, ejected for 30s after 4 failures, 10% of reads copied to next.example.com:443";
        assert_eq!(backend_policy(&object).to_string(), expected);
    }

    #[test]
    fn a_mirror_is_a_host_or_a_service() {
        let object =
            annotated(&[(BACKEND_MIRROR, "https://next.default.svc:8443"), (BACKEND_MIRROR_MAX_BODY, "10")]);
        let mirror = backend_policy(&object).mirror.unwrap();
        let service = ServiceReference { namespace: "default".into(), name: "next".into(), port: 8443 };
        assert_eq!((mirror.service(), mirror.server_name.as_str()), (Some(service), "next.default.svc"));
        assert_eq!(
            mirror.to_string(),
            "100% of requests copied to next.default.svc:8443, which has no address"
        );
        let object = annotated(&[
            (BACKEND_MIRROR, "https://10.0.0.1"),
            (BACKEND_MIRROR_SERVER_NAME, "next.example.com"),
        ]);
        let mirror = backend_policy(&object).mirror.unwrap();
        assert_eq!((mirror.service(), mirror.server_name.as_str()), (None, "next.example.com"));
        assert_eq!(mirror.targets, [mirror.host]);
    }

    #[test]
    fn invalid_annotations_are_reported_and_ignored() {
        for (key, value, message) in [
            (BACKEND_RETRIES, "6", "must be a number from 0 to 5"),
            (BACKEND_PER_TRY_TIMEOUT, "2", "must be a duration such as 1.5s, from 1ms to 60s"),
            (BACKEND_PER_TRY_TIMEOUT, "2h", "must be a duration such as 1.5s, from 1ms to 60s"),
            (BACKEND_HEDGE_AFTER, "0s", "must be a duration such as 1.5s, from 1ms to 60s"),
            (BACKEND_MAX_CONNECTIONS, "0", "must be a number from 1 to 100000"),
            (BACKEND_WEIGHTS, "1", "needs portico.dev/backend-urls"),
            (BACKEND_EJECTION_FAILURES, "x", "must be a number from 1 to 1000"),
            (BACKEND_EJECTION_TIME, "1s", "needs portico.dev/backend-ejection-failures"),
            (BACKEND_MIRROR, "https://a,https://b", "must be one URL"),
            (BACKEND_MIRROR_PERCENT, "10", "needs portico.dev/backend-mirror"),
        ] {
            let object = annotated(&[(key, value)]);
            assert_eq!(check_backend_policy(&object, key, value), Err(message.to_owned()), "{key}: {value}");
            assert_eq!(backend_policy(&object), BackendPolicy::default(), "{key}: {value}");
        }
        for (value, message) in [
            ("1", "must list 2 numbers, one for each of portico.dev/backend-urls"),
            ("0,0", "one of them must be more than 0"),
            ("1,101", "must be a number from 0 to 100"),
        ] {
            let object = annotated(&[(BACKEND_URLS, "https://a,https://b"), (BACKEND_WEIGHTS, value)]);
            assert_eq!(
                check_backend_policy(&object, BACKEND_WEIGHTS, value),
                Err(message.to_owned()),
                "{value}"
            );
        }
    }
}
