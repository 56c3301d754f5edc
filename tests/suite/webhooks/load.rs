//! Effect of many calls of a slow webhook: only the requests that need it wait.

use futures::future::join_all;
use portico_tests::http::FullResponse;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Backend, Behavior, Launch, wait_until};
use serde_json::json;

use super::setup::{Setup, VALIDATING, map};

/// Number of calls, far above the limit of calls in flight.
const CALLS: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn other_requests_do_not_wait_for_a_slow_webhook() {
    let setup = Setup::start().await;
    let other = Backend::with_names("other", &["127.0.0.1"]).await;
    let selected = json!({"objectSelector": {"matchLabels": {"ask": "slow"}}, "timeoutSeconds": 30});
    setup.configure_one(VALIDATING, "allow", selected).await;
    let mut quick =
        setup.webhook("quick", "deny", &json!({"objectSelector": {"matchLabels": {"ask": "quick"}}}));
    quick["clientConfig"] = other_place(&other);
    setup.configure(VALIDATING, "other", vec![quick]).await;
    setup.hooks.set_behavior(Behavior::Paused);
    let admin = setup.portico.admin();
    let labelled = |name: &str, label: &str| {
        let mut map = map(name);
        map["metadata"]["labels"] = json!({"ask": label});
        map
    };
    let slow: Vec<_> = (0..CALLS).map(|at| labelled(&format!("slow-{at}"), "slow")).collect();
    let meanwhile = async {
        // As many calls as permitted are in flight; all other requests wait.
        wait_until("the webhook has received 64 reviews", || async { setup.hooks.requests().len() == 64 })
            .await;
        for at in 0..50 {
            assert_eq!(setup.create(&format!("free-{at}")).await.status, 201);
        }
        assert_eq!(
            setup.admin.post(CONFIG_MAPS, &labelled("quick", "quick")).await.status,
            418,
            "another webhook"
        );
        assert_eq!(setup.hooks.requests().len(), 64, "none of the calls has ended in the meantime");
        setup.hooks.set_behavior(Behavior::Normal);
    };
    let (answers, ()) =
        tokio::join!(join_all(slow.iter().map(|map| admin.post(CONFIG_MAPS, map))), meanwhile);
    assert!(answers.iter().all(|answer| answer.status == 201), "{}", answers[0].text());
}

fn other_place(backend: &Backend) -> serde_json::Value {
    use base64::Engine;
    let bundle = base64::engine::general_purpose::STANDARD.encode(&backend.ca);
    json!({"url": format!("{}/admission/deny", backend.url()), "caBundle": bundle})
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_the_pool_fail_at_once_or_at_their_deadline() {
    let setup = Setup::launch(Launch::new().arg("--webhook-max-requests=1")).await;
    setup.configure_one(VALIDATING, "allow", json!({"timeoutSeconds": 2})).await;
    setup.hooks.set_behavior(Behavior::Hang);
    let admin = setup.portico.admin();
    let maps: Vec<_> = (0..30).map(|at| map(&format!("m-{at}"))).collect();
    let answers = join_all(maps.iter().map(|map| admin.post(CONFIG_MAPS, map))).await;
    let count_ending_with = |words: &str| {
        let matches_end =
            |answer: &&FullResponse| answer.json()["message"].as_str().unwrap_or_default().ends_with(words);
        answers.iter().filter(matches_end).count()
    };
    assert!(answers.iter().all(|answer| answer.status == 500), "{}", answers[0].text());
    let (late, full) = (
        count_ending_with("context deadline exceeded"),
        count_ending_with("1 calls to this address are already in progress"),
    );
    assert_eq!(late + full, 30, "{late}, {full}");
    // One call is in flight and sixteen wait, which time out with the first; the others fail at once.
    assert!((1..=17).contains(&late), "{late} requests were called or timed out");
}
