//! Annotations and labels that Portico defines: one table for validation, warnings and docs/reference/annotations.md.

use crate::resolve::{
    BACKEND_EJECTION_FAILURES, BACKEND_EJECTION_TIME, BACKEND_HEDGE_AFTER, BACKEND_MAX_CONNECTIONS,
    BACKEND_MIRROR, BACKEND_MIRROR_MAX_BODY, BACKEND_MIRROR_PERCENT, BACKEND_MIRROR_SERVER_NAME,
    BACKEND_PER_TRY_TIMEOUT, BACKEND_PROTOCOL, BACKEND_RETRIES, BACKEND_SERVER_NAME, BACKEND_URLS,
    BACKEND_WEIGHTS,
};

/// Label of objects that were created from the manifests folder.
pub const MADE_BY: &str = "portico.dev/made-by";
/// Annotation of the Lease of a server: the time at which Portico last renewed it.
pub const RENEW_TIME: &str = "portico.dev/renew-time";

/// Kind of the objects whose backends have a policy.
const API_SERVICE: &str = "APIService";
/// Kinds that configure admission webhooks.
const WEBHOOKS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// An annotation or a label.
#[derive(Clone, Copy, Debug)]
pub struct Annotation {
    /// Key of the annotation or label.
    pub key: &'static str,
    /// True for a label.
    pub is_label: bool,
    /// Kinds of objects that can have it.
    pub kinds: &'static [&'static str],
    /// Valid values.
    pub values: &'static str,
    /// Value in effect if it is not set.
    pub default: &'static str,
    /// Meaning, as sentences.
    pub meaning: &'static str,
}

const fn backend(
    key: &'static str,
    values: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Annotation {
    Annotation { key, is_label: false, kinds: &[API_SERVICE], values, default, meaning }
}

/// All annotations and labels.
pub const ANNOTATIONS: &[Annotation] = &[
    Annotation {
        kinds: &[API_SERVICE, WEBHOOKS[0], WEBHOOKS[1]],
        ..backend(
            BACKEND_URLS,
            "1 to 16 URLs `https://host[:port]`, separated by commas",
            "addresses of the Service",
            "Addresses to dial instead of those of the Service, which need not exist. The port is 443 by default. Needs a service \
             reference in the object. Link-local, multicast and unspecified addresses are rejected.",
        )
    },
    Annotation {
        kinds: &[API_SERVICE, WEBHOOKS[0], WEBHOOKS[1]],
        ..backend(
            BACKEND_SERVER_NAME,
            "DNS name",
            "`<service>.<namespace>.svc`",
            "Name that the certificate of the backend must be valid for.",
        )
    },
    backend(
        BACKEND_PROTOCOL,
        "`h2`, `http/1.1`",
        "`http/1.1`",
        "Protocol for requests to the backend: `h2` offers HTTP/2.",
    ),
    backend(
        BACKEND_RETRIES,
        "0 to 5",
        "0",
        "Number of retries of a request that changes nothing (GET, HEAD or OPTIONS without a body) if it cannot be sent, is cut off, \
         or is answered with 502, 503 or 504. Retries use the next address after 25 ms, doubled each time, with jitter. At most three \
         requests, or a fifth of those in flight to the backend, are retried at the same time.",
    ),
    backend(
        BACKEND_PER_TRY_TIMEOUT,
        "1ms to 60s",
        "none",
        "Time for one address to start answering such a request; then the request is retried, or fails with 503.",
    ),
    backend(
        BACKEND_HEDGE_AFTER,
        "1ms to 60s",
        "none",
        "Time after which such a request is also sent to the next address. The first answer other than 502, 503 and 504 is used, and \
         the other request is aborted. Counts as a retry.",
    ),
    backend(
        BACKEND_MAX_CONNECTIONS,
        "1 to 100000",
        "`--backend-max-requests`",
        "Maximum number of connections in use, or of requests in flight with `h2`. A request beyond it fails with 503.",
    ),
    backend(
        BACKEND_WEIGHTS,
        "0 to 100 for each URL, separated by commas",
        "equal",
        "Share of requests for each of the backend URLs. An address with weight 0 gets requests that no other address can take. Needs \
         `portico.dev/backend-urls`.",
    ),
    backend(
        BACKEND_EJECTION_FAILURES,
        "1 to 1000",
        "none",
        "Number of consecutive failures (not reached, cut off, too slow, 502, 503, 504) after which an address gets no requests for \
         some time. If all addresses are ejected, all are used.",
    ),
    backend(
        BACKEND_EJECTION_TIME,
        "100ms to 10m",
        "30s",
        "Duration of an ejection. Then one request tries the address; after a failure the duration doubles, up to ten times its \
         initial value. Needs `portico.dev/backend-ejection-failures`.",
    ),
    backend(
        BACKEND_MIRROR,
        "one URL `https://host[:port]`",
        "none",
        "Backend that gets copies of requests. `<service>.<namespace>.svc` refers to a Service; other names are looked up. Responses \
         are discarded.",
    ),
    backend(
        BACKEND_MIRROR_PERCENT,
        "1 to 100",
        "100",
        "Percentage of requests that are copied. Needs `portico.dev/backend-mirror`.",
    ),
    backend(
        BACKEND_MIRROR_MAX_BODY,
        "0 to 1048576",
        "0",
        "Maximum size in bytes of the body of a copied request; 0 copies only requests that change nothing. Needs \
         `portico.dev/backend-mirror`.",
    ),
    backend(
        BACKEND_MIRROR_SERVER_NAME,
        "DNS name",
        "host of the mirror",
        "Name that the certificate of the mirror must be valid for. Needs `portico.dev/backend-mirror`.",
    ),
    Annotation {
        key: MADE_BY,
        is_label: true,
        kinds: &["any object"],
        values: "`manifests`",
        default: "not set",
        meaning: "Set on objects that were created from the manifests folder. `--manifests-prune` deletes them when they are removed \
                  from the folder; remove the label to keep an object. It has no effect if a user or a controller sets it.",
    },
    Annotation {
        key: RENEW_TIME,
        is_label: false,
        kinds: &["Lease"],
        values: "time",
        default: "set by the server",
        meaning: "Set on the identity Lease of a control service: the time at which Portico last renewed it. A different \
                  `renewTime` shows that a kube-apiserver renewed the Lease.",
    },
];

/// Keys of the annotations of a kind.
#[must_use]
pub fn keys(kind: &str) -> Vec<&'static str> {
    let of_kind =
        ANNOTATIONS.iter().filter(|annotation| !annotation.is_label && annotation.kinds.contains(&kind));
    of_kind.map(|annotation| annotation.key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;
    use crate::resolve::check_backend_policy;

    /// An object with this annotation and those that it needs.
    fn annotated(key: &str, value: &str) -> Object {
        let mut object = Object::default();
        for (key, value) in [
            (BACKEND_URLS, "https://a"),
            (BACKEND_EJECTION_FAILURES, "1"),
            (BACKEND_MIRROR, "https://b"),
            (key, value),
        ] {
            object.set(&["metadata", "annotations", key], value);
        }
        object
    }

    #[test]
    fn ranges_are_those_that_validation_accepts() {
        let mut checked = 0;
        for annotation in ANNOTATIONS {
            let Some((min, max)) = annotation.values.split_once(" to ") else { continue };
            let max = max.split(' ').next().unwrap_or_default();
            let check =
                |value: &str| check_backend_policy(&annotated(annotation.key, value), annotation.key, value);
            if annotation.key == BACKEND_URLS {
                continue;
            }
            checked += 1;
            for value in [min, max] {
                let reversed = annotation.key == BACKEND_WEIGHTS && value == "0";
                assert_eq!(check(value).is_ok(), !reversed, "{}: {value}", annotation.key);
            }
            for value in [format!("-{min}"), format!("{max}0"), "x".to_owned(), format!("9{max}")] {
                assert!(value == "-0" || check(&value).is_err(), "{}: {value}", annotation.key);
            }
        }
        assert_eq!(checked, 9);
    }

    #[test]
    fn webhooks_only_use_annotations_about_addresses() {
        assert_eq!(keys(WEBHOOKS[0]), [BACKEND_URLS, BACKEND_SERVER_NAME]);
        assert_eq!(keys(API_SERVICE).len(), 14);
    }
}
