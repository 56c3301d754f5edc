//! Faults of webhooks result in their failure policy, with the messages of kube-apiserver 1.36.3, bounded in time and memory.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use portico_tests::faults::{Fault, FaultyServer};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Behavior, wait_until};
use serde_json::{Value, json};

use super::setup::{CONFIGURATIONS, MUTATING, Setup, VALIDATING, map};

/// Faults of connections, and kube-apiserver 1.36.3's message for each after `failed calling webhook "NAME": failed to call
/// webhook: `. URL stands for `Post "https://ADDRESS/x?timeout=1s"`; if the message varies, only its start is compared.
const RECORDED: &[(Fault, &str)] = &[
    (Fault::HangBeforeTls, "URL: context deadline exceeded"),
    (Fault::Reset, "URL: "),
    (Fault::Close, "URL: "),
    (Fault::Plain, "URL: "),
    (
        Fault::AnotherAuthority,
        "URL: tls: failed to verify certificate: x509: certificate signed by unknown authority",
    ),
    (
        Fault::OtherNames,
        "URL: tls: failed to verify certificate: x509: certificate is valid for 10.1.2.3, not 127.0.0.1",
    ),
    (
        Fault::Expired,
        "URL: tls: failed to verify certificate: x509: certificate has expired or is not yet valid: ",
    ),
    (Fault::HangAfterRequest, "URL: context deadline exceeded"),
    (Fault::CloseAfterRequest, "URL: EOF"),
    (Fault::ResetAfterRequest, "URL: read tcp "),
    (Fault::HangAfterHead, "BODY: context deadline exceeded"),
    (Fault::HangInBody, "BODY: context deadline exceeded"),
    (Fault::CloseInBody, "BODY: unexpected EOF"),
    (Fault::CloseInChunks, "BODY: unexpected EOF"),
    (Fault::NotHttp, "URL: "),
    (Fault::NotModified, "the server responded with the status code 304 but did not return more information"),
    // kube-apiserver reads until the timeout, with unlimited memory.
    (Fault::Endless, "BODY: the response is longer than 8388608 bytes"),
    (Fault::Huge, "BODY: the response is longer than 8388608 bytes"),
];

const POLICIES: [(&str, u16); 2] = [("Fail", 500), ("Ignore", 201)];

fn webhook(setup: &Setup, faulty: &FaultyServer, fault: Fault, policy: &str) -> Value {
    let url = format!("https://{}/x", faulty.address);
    let labels = json!({"fault": format!("{fault:?}"), "policy": policy});
    // Megabytes arrive slowly on a busy machine; faults that never respond use a short timeout.
    let timeout = if matches!(fault, Fault::Endless | Fault::Huge) { 30 } else { 1 };
    let more = json!({
        "clientConfig": {"url": url, "caBundle": STANDARD.encode(&faulty.ca)},
        "objectSelector": {"matchLabels": labels}, "failurePolicy": policy, "timeoutSeconds": timeout,
    });
    setup.webhook("faulty", "", &more)
}

/// Returns the expected message of a fault of the webhook at this address.
fn expected(faulty: &FaultyServer, words: &str) -> String {
    let url = format!("Post \"https://{}/x?timeout=1s\"", faulty.address);
    let body = "unexpected error when reading response body. Please retry. Original error";
    let words = words.replacen("URL", &url, 1).replacen("BODY", body, 1);
    format!(
        "Internal error occurred: failed calling webhook \"faulty.example.com\": failed to call webhook: {words}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_faults_have_upstreams_messages() {
    let setup = Setup::start().await;
    for kind in [MUTATING, VALIDATING] {
        let servers = join_all(RECORDED.iter().map(|(fault, _)| FaultyServer::start(*fault))).await;
        let faults: Vec<_> = servers.iter().zip(RECORDED).collect();
        let webhooks = faults.iter().flat_map(|(faulty, (fault, _))| {
            POLICIES.map(|(policy, _)| webhook(&setup, faulty, *fault, policy))
        });
        let named = webhooks.enumerate().map(|(at, webhook)| (format!("hook-{at}"), webhook));
        for (name, webhook) in named.collect::<Vec<_>>() {
            setup.configure(kind, &name, vec![webhook]).await;
        }
        let checks = faults.iter().flat_map(|(faulty, (fault, words))| {
            POLICIES.map(|(policy, code)| check(&setup, faulty, (*fault, words), (policy, code)))
        });
        join_all(checks).await;
        setup.admin.delete(&format!("{CONFIGURATIONS}/{}", kind.1)).await;
    }
}

async fn check(
    setup: &Setup,
    faulty: &FaultyServer,
    (fault, words): (Fault, &str),
    (policy, code): (&str, u16),
) {
    let mut map = map("m");
    map["metadata"]["labels"] = json!({"fault": format!("{fault:?}"), "policy": policy});
    let start = Instant::now();
    let answer = setup.portico.admin().post(&format!("{CONFIG_MAPS}?dryRun=All"), &map).await;
    assert_eq!(answer.status, code, "{fault:?} {policy}: {}", answer.text());
    assert!(start.elapsed() < Duration::from_secs(60), "{fault:?} {policy}: {:?}", start.elapsed());
    if code == 500 {
        let (message, expected) = (answer.json()["message"].clone(), expected(faulty, words));
        let message = message.as_str().unwrap_or_default();
        assert!(message.starts_with(&expected), "{fault:?}\n{message}\n{expected}");
        assert!(message.len() > expected.len() || !expected.ends_with(": "), "{fault:?}: no reason");
    }
}

/// Maximum memory for the responses of the calls in flight: eight of at most 8 MiB, in buffers that double.
const MAX_MEMORY_KIB: u64 = 192 << 10;

#[tokio::test(flavor = "multi_thread")]
async fn a_gibibyte_and_an_endless_answer_cost_no_more_memory_than_the_limit() {
    let setup = Setup::start().await;
    for fault in [Fault::Huge, Fault::Endless] {
        let faulty = FaultyServer::start(fault).await;
        let webhook = webhook(&setup, &faulty, fault, "Ignore");
        setup.configure(VALIDATING, "huge", vec![webhook]).await;
        let before = setup.portico.resident_kib();
        let mut labelled = map("m");
        labelled["metadata"]["labels"] = json!({"fault": format!("{fault:?}"), "policy": "Ignore"});
        let path = format!("{CONFIG_MAPS}?dryRun=All");
        let admin = setup.portico.admin();
        let answers = join_all((0..8).map(|_| admin.post(&path, &labelled))).await;
        assert!(answers.iter().all(|answer| answer.status == 201), "{}", answers[0].text());
        let grown = setup.portico.peak_kib().saturating_sub(before);
        assert!(grown < MAX_MEMORY_KIB, "{fault:?}: {grown} KiB");
        setup.admin.delete(&format!("{CONFIGURATIONS}/{}/huge", VALIDATING.1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_circuit_limits_dials() {
    let setup = Setup::start().await;
    let faulty = FaultyServer::start(Fault::Reset).await;
    let webhook = webhook(&setup, &faulty, Fault::Reset, "Ignore");
    setup.configure(VALIDATING, "reset", vec![webhook]).await;
    let mut labelled = map("m");
    labelled["metadata"]["labels"] = json!({"fault": "Reset", "policy": "Ignore"});
    let (path, start) = (format!("{CONFIG_MAPS}?dryRun=All"), Instant::now());
    for _ in 0..60 {
        assert_eq!(setup.admin.post(&path, &labelled).await.status, 201);
    }
    // Three failures open the circuit; then there is one attempt in each window, of 250 ms at first.
    let probes = usize::try_from(start.elapsed().as_millis() / 250).unwrap();
    assert!(faulty.connections() <= 4 + probes, "{} connections, {probes} windows", faulty.connections());
    assert!(faulty.connections() >= 3, "{} connections", faulty.connections());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_webhook_is_called_again() {
    let mut setup = Setup::start().await;
    setup.configure_one(VALIDATING, "deny", json!({"failurePolicy": "Ignore"})).await;
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    setup.hooks.stop().await;
    for _ in 0..5 {
        assert_eq!(
            setup.admin.post(&path, &map("m")).await.status,
            201,
            "failures of the webhook are ignored"
        );
    }
    setup.hooks.resume().await;
    let denied = || async { setup.admin.post(&path, &map("m")).await.status == 418 };
    wait_until("a probe reaches the webhook", denied).await;
    assert_eq!(setup.admin.post(&path, &map("m")).await.status, 418, "and the circuit is closed");
}

/// Wrong responses: path, behavior of the server, and message.
const ANSWERS: [(&str, Behavior, &str); 6] = [
    ("garbage", Behavior::Normal, "json parse error"),
    ("empty", Behavior::Normal, "0-length response with status code: 200"),
    ("stranger", Behavior::Normal, "expected response.uid="),
    ("endless", Behavior::Normal, "the response is longer than 8388608 bytes"),
    ("allow", Behavior::Code(500), r#"an error on the server ("the backend says 500"#),
    ("allow", Behavior::Redirect, "status code 302"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_response_results_in_the_failure_policy() {
    let setup = Setup::start().await;
    for (kind, resource) in [MUTATING, VALIDATING] {
        for (path, mood, words) in ANSWERS {
            setup.hooks.set_behavior(mood);
            for (policy, code) in POLICIES {
                setup
                    .configure_one(
                        (kind, resource),
                        path,
                        json!({"failurePolicy": policy, "timeoutSeconds": 10}),
                    )
                    .await;
                let dry = setup.admin.post(&format!("{CONFIG_MAPS}?dryRun=All"), &map("m")).await;
                assert_eq!(dry.status, code, "{kind} {path} {mood:?} {policy}: {}", dry.text());
                if code == 500 {
                    let message = dry.json()["message"].as_str().unwrap_or_default().to_owned();
                    let begins = r#"Internal error occurred: failed calling webhook "hook.example.com": "#;
                    assert!(message.starts_with(begins) && message.contains(words), "{mood:?}: {message}");
                }
                let deleted = setup.admin.delete(&format!("{CONFIGURATIONS}/{resource}/hooks")).await;
                assert_eq!(deleted.status, 200, "webhooks do not match webhook configurations");
            }
        }
    }
}
