//! What many calls of a slow webhook cost: those who wait for it, and nobody else.

use futures::future::join_all;
use portico_tests::http::Answer;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Backend, Launch, Mood, until};
use serde_json::json;

use super::setup::{Setup, VALIDATING, map};

/// Many more than may be under way at a time.
const CALLS: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn while_hundreds_wait_for_a_webhook_others_do_not() {
    let setup = Setup::start().await;
    let other = Backend::with_names("other", &["127.0.0.1"]).await;
    let selected = json!({"objectSelector": {"matchLabels": {"ask": "slow"}}, "timeoutSeconds": 30});
    setup.one(VALIDATING, "allow", selected).await;
    let mut quick =
        setup.webhook("quick", "deny", &json!({"objectSelector": {"matchLabels": {"ask": "quick"}}}));
    quick["clientConfig"] = other_place(&other);
    setup.configure(VALIDATING, "other", vec![quick]).await;
    setup.hooks.behave(Mood::Held);
    let admin = setup.portico.admin();
    let labelled = |name: &str, ask: &str| {
        let mut map = map(name);
        map["metadata"]["labels"] = json!({"ask": ask});
        map
    };
    let slow: Vec<_> = (0..CALLS).map(|at| labelled(&format!("slow-{at}"), "slow")).collect();
    let meanwhile = async {
        // As many are under way as may be; all others wait for them.
        until("the webhook is asked", || async { setup.hooks.seen().len() == 64 }).await;
        for at in 0..50 {
            assert_eq!(setup.create(&format!("free-{at}")).await.status, 201);
        }
        assert_eq!(
            setup.admin.post(CONFIG_MAPS, &labelled("quick", "quick")).await.status,
            418,
            "another webhook"
        );
        assert_eq!(setup.hooks.seen().len(), 64, "none of them has ended in the meantime");
        setup.hooks.behave(Mood::Well);
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
async fn what_finds_no_place_in_the_pool_fails_at_once_or_at_its_deadline() {
    let setup = Setup::launch(Launch::new().arg("--webhook-max-requests=1")).await;
    setup.one(VALIDATING, "allow", json!({"timeoutSeconds": 2})).await;
    setup.hooks.behave(Mood::Hang);
    let admin = setup.portico.admin();
    let maps: Vec<_> = (0..30).map(|at| map(&format!("m-{at}"))).collect();
    let answers = join_all(maps.iter().map(|map| admin.post(CONFIG_MAPS, map))).await;
    let count_ending_with = |words: &str| {
        let matches_end =
            |answer: &&Answer| answer.json()["message"].as_str().unwrap_or_default().ends_with(words);
        answers.iter().filter(matches_end).count()
    };
    assert!(answers.iter().all(|answer| answer.status == 500), "{}", answers[0].text());
    let (late, full) = (
        count_ending_with("context deadline exceeded"),
        count_ending_with("1 calls to this address are already in progress"),
    );
    assert_eq!(late + full, 30, "{late}, {full}");
    // One is asked and sixteen wait, whose time is over with the turn of the first; the others do not wait.
    assert!((1..=17).contains(&late), "{late} had their turn, or their time was over");
}
