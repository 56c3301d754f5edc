//! Order of the checks, and text of each refusal.

use std::time::Duration;

use bytes::Bytes;
use portico_machinery::route::{Availability, ResolveError, Trust};
use tokio::sync::mpsc;

use crate::backend::{Backend, Reply, ok, with_status};
use crate::front::{DISCOVERY, FLUNDERS, Setup};

#[tokio::test]
async fn an_unavailable_version_answers_503_with_the_conditions_reason() {
    let mut backend = Backend::start(|_| ok("")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.route.available = Availability {
        ok: false,
        reason: "FailedDiscoveryCheck".into(),
        message: "tls: certificate is valid for a, not b".into(),
        ..Availability::default()
    };
    let front = setup.start().await;
    for path in [FLUNDERS, DISCOVERY] {
        let answer = front.get(path).await;
        let status = answer.failure();
        assert_eq!((status.code, status.reason.as_str()), (503, "ServiceUnavailable"));
        let details = status.details.unwrap();
        assert_eq!((details.name.as_str(), details.kind.as_str()), ("v1.wardle.example.com", "apiservices"));
        assert_eq!(details.causes[0].reason, "FailedDiscoveryCheck");
        assert!(details.retry_after_seconds > 0);
        assert_eq!(answer.headers["content-type"], "application/json");
        assert!(!answer.headers.contains_key("retry-after"), "client-go would repeat the request ten times");
    }
    assert!(!backend.has_unread_request());
}

#[tokio::test]
async fn an_unchecked_version_returns_503() {
    let backend = Backend::start(|_| ok("")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.route.available = Availability::default();
    assert_eq!(setup.start().await.get(FLUNDERS).await.failure().code, 503);
}

#[tokio::test]
async fn a_request_without_a_user_is_an_internal_error() {
    let backend = Backend::start(|_| ok("")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.user = None;
    let status = setup.start().await.get(FLUNDERS).await.failure();
    assert_eq!((status.code, status.message.as_str()), (500, "missing user"));
}

#[tokio::test]
async fn a_bad_bundle_returns_500_with_the_reason() {
    let backend = Backend::start(|_| ok("")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.bundle =
        Bytes::from_static(b"-----BEGIN CERTIFICATE-----\nnot base64\n-----END CERTIFICATE-----\n");
    let status = setup.start().await.get(FLUNDERS).await.failure();
    assert_eq!(status.code, 500);
    assert!(status.message.contains("caBundle"), "{status}");

    let mut setup = Setup::to(&[&backend]);
    setup.backend().trust = Trust::Bundle("gone".into());
    let status = setup.start().await.get(FLUNDERS).await.failure();
    assert_eq!((status.code, status.message.as_str()), (500, "the CA bundle gone is missing on this facade"));
}

#[tokio::test]
async fn a_service_that_does_not_resolve_answers_503_at_the_stage_resolve() {
    let backend = Backend::start(|_| ok("")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.backend().targets.clear();
    setup.backend().resolve_error = Some(ResolveError {
        reason: "ServiceNotFound".into(),
        message: "service wardle/flunders is not present".into(),
    });
    let (code, reason, message) = setup.start().await.get(FLUNDERS).await.cause();
    assert_eq!((code, reason.as_str()), (503, "ServiceNotFound"));
    assert_eq!(message, "resolve: service wardle/flunders is not present");
}

#[tokio::test]
async fn a_dead_backend_answers_503_at_the_stage_dial() {
    let closed_address = {
        let backend = Backend::start(|_| ok("")).await;
        let address = backend.address;
        backend.tasks.shutdown(Duration::from_secs(5)).await;
        (address, backend.authority.clone())
    };
    let front = Setup::to_addresses(&[closed_address.0], closed_address.1.cert_pem()).start().await;
    let answer = front.get(FLUNDERS).await;
    let status = answer.failure();
    assert_eq!(status.reason, "ServiceUnavailable");
    assert!(status.message.starts_with("error trying to reach service: "), "{status}");
    let (code, reason, message) = answer.cause();
    assert_eq!((code, reason.as_str()), (503, "DialFailed"));
    assert!(message.starts_with("dial: cannot connect to 127.0.0.1:"), "{message}");
}

#[tokio::test]
async fn a_backend_that_ends_the_connection_unanswered_is_a_503_at_the_stage_http() {
    let mut backend = Backend::start(|_| Reply::Close(String::new())).await;
    let front = Setup::to(&[&backend]).start().await;
    let (code, reason, message) = front.send("POST", FLUNDERS, &[], "{}").await.cause();
    assert_eq!((code, reason.as_str()), (503, "HTTPFailed"));
    assert!(message.contains("EOF"), "{message}");
    backend.next_request().await;
    assert!(!backend.has_unread_request(), "a request that was sent is never retried");
}

#[tokio::test]
async fn a_backend_that_does_not_speak_http_is_a_503_at_the_stage_http() {
    let backend = Backend::start(|_| Reply::Close("\x16\x03 this is no HTTP\r\n\r\n".into())).await;
    let front = Setup::to(&[&backend]).start().await;
    assert_eq!(front.get(FLUNDERS).await.cause().1, "HTTPFailed");
}

#[tokio::test]
async fn a_backends_own_errors_are_passed_through() {
    let backend = Backend::start(|seen| {
        let code = seen.target().rsplit('/').next().unwrap().to_owned();
        with_status(&format!("{code} Whatever"), "content-type: text/plain\r\nx-own: 1\r\n", "plain words\n")
    })
    .await;
    let front = Setup::to(&[&backend]).start().await;
    for code in [200, 201, 404, 409, 418, 429, 500, 503] {
        let answer = front.get(&format!("{FLUNDERS}/{code}")).await;
        assert_eq!((answer.status.as_u16(), answer.body.as_str()), (code, "plain words\n"));
        assert_eq!(
            (&answer.headers["content-type"], &answer.headers["x-own"]),
            (&"text/plain".parse().unwrap(), &"1".parse().unwrap())
        );
    }
}

#[tokio::test]
async fn discovery_has_a_separate_deadline() {
    let (held, _hold) = mpsc::channel(1);
    let backend = Backend::start(move |_| Reply::Hang(held.clone())).await;
    let mut setup = Setup::to(&[&backend]);
    setup.limits.discovery_deadline = Duration::from_millis(50);
    setup.deadline = Some(Duration::from_millis(400));
    let front = setup.start().await;
    let status = front.get(DISCOVERY).await.failure();
    assert_eq!((status.code, status.reason.as_str()), (503, "ServiceUnavailable"));
    assert!(status.message.contains("context deadline exceeded"), "{status}");
    let status = front.get(FLUNDERS).await.failure();
    assert_eq!((status.code, status.reason.as_str()), (504, "Timeout"));
}

#[tokio::test]
async fn a_broken_escape_is_a_bad_request_and_is_not_forwarded() {
    let mut backend = Backend::start(|_| ok("")).await;
    let front = Setup::to(&[&backend]).start().await;
    let mut raw = front.raw().await;
    raw.write(&format!("GET {FLUNDERS}/%zz HTTP/1.1\r\nHost: front\r\nConnection: close\r\n\r\n")).await;
    assert!(raw.read_to_end().await.starts_with("HTTP/1.1 400 "));
    assert!(!backend.has_unread_request());
}

#[tokio::test]
async fn plain_text_errors_have_upstreams_text() {
    let backend = Backend::start(|_| Reply::Close(String::new())).await;
    for (available, code, words) in
        [(true, 503, "error trying to reach service: EOF"), (false, 503, "service unavailable\n")]
    {
        let mut setup = Setup::to(&[&backend]);
        setup.route.available.ok = available;
        setup.limits.plain_text_errors = true;
        let answer = setup.start().await.get(FLUNDERS).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.headers["content-type"]),
            (code, &"text/plain; charset=utf-8".parse().unwrap())
        );
        assert!(answer.body.starts_with(words) && answer.body.ends_with('\n'), "{}", answer.body);
    }
}
