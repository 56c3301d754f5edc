//! Certificates that the proxy trusts and presents.

use std::sync::Arc;

use portico_kit::pki::{Authority, CertProfile};
use portico_machinery::route::Trust;
use tokio::sync::watch;

use crate::backend::{Backend, HOUR, NAME, ok};
use crate::front::{FLUNDERS, Setup};

#[tokio::test]
async fn a_certificate_for_another_name_answers_503_and_names_both() {
    let mut backend = Backend::with_names(&["other.wardle.svc"], |_| ok("")).await;
    let front = Setup::to(&[&backend]).start().await;
    let (code, reason, message) = front.get(FLUNDERS).await.cause();
    assert_eq!((code, reason.as_str()), (503, "TLSFailed"));
    assert!(message.contains("other.wardle.svc") && message.contains(NAME), "{message}");
    assert!(!backend.has_unread_request());

    let mut setup = Setup::to(&[&backend]);
    setup.backend().trust = Trust::Insecure;
    assert_eq!(setup.start().await.get(FLUNDERS).await.status, 200);
}

#[tokio::test]
async fn a_certificate_of_another_authority_answers_503_and_names_it() {
    let mut backend = Backend::start(|_| ok("")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.bundle = Authority::create("rogue").unwrap().cert_pem().as_bytes().to_vec().into();
    let (code, reason, message) = setup.start().await.get(FLUNDERS).await.cause();
    assert_eq!((code, reason.as_str()), (503, "TLSFailed"));
    assert!(message.contains("unknown authority") && message.contains("backend-ca"), "{message}");
    assert!(!backend.has_unread_request());
}

#[tokio::test]
async fn without_a_bundle_only_system_roots_are_trusted() {
    let backend = Backend::start(|_| ok("")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.backend().trust = Trust::System;
    let status = setup.start().await.get(FLUNDERS).await.failure();
    assert!(matches!(status.code, 500 | 503), "{status:?}");
}

#[tokio::test]
async fn a_certificate_without_san_answers_503_and_is_counted() {
    let backend = Backend::with_names(&[], |_| ok("")).await;
    let front = Setup::to(&[&backend]).start().await;
    let (code, reason, message) = front.get(FLUNDERS).await.cause();
    assert_eq!((code, reason.as_str()), (503, "TLSFailed"), "{message}");
    assert_eq!(front.metric("apiserver_kube_aggregator_x509_missing_san_total"), "1");
}

#[tokio::test]
async fn the_client_certificate_is_sent_and_a_new_one_is_used_at_once() {
    let mut backend = Backend::start(|_| ok("")).await;
    let authority = Authority::create("front-proxy-ca").unwrap();
    let pair = |name| {
        Arc::new(authority.issue(&CertProfile::client(name, &[], HOUR)).unwrap().cert_pair(name).unwrap())
    };
    let (replace, current) = watch::channel(pair("front-proxy-client"));
    let mut setup = Setup::to(&[&backend]);
    setup.client_cert = Some(current);
    let front = setup.start().await;
    for _ in 0..2 {
        front.get(FLUNDERS).await;
        let seen = backend.next_request().await;
        assert_eq!((seen.client.as_deref(), seen.connection), (Some("front-proxy-client"), 0));
    }
    replace.send(pair("renewed")).unwrap();
    // The proxy's task notices the change later; until then, the old connection is correct.
    loop {
        front.get(FLUNDERS).await;
        let seen = backend.next_request().await;
        if seen.connection > 0 {
            assert_eq!(seen.client.as_deref(), Some("renewed"));
            break;
        }
    }
}
