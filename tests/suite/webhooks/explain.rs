//! Explain lists the webhooks that apply to a write, and their health.

use portico_proto::routes::{AdmissionWebhook, ExplainRequest};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Behavior, wait_until};
use serde_json::json;

use super::setup::{MUTATING, Setup, VALIDATING, map};

async fn explained_webhooks(setup: &Setup, subject: &str) -> Vec<AdmissionWebhook> {
    let request = ExplainRequest { subject: subject.to_owned() };
    setup.portico.control().routes().explain(request).await.unwrap().into_inner().webhooks
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_names_the_webhooks_of_a_path_in_order_with_their_health() {
    let mut setup = Setup::start().await;
    let creates = |name: &str| {
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]);
        setup.webhook(name, "allow", &json!({"rules": rules, "failurePolicy": "Ignore"}))
    };
    setup.configure(VALIDATING, "v", vec![setup.webhook("last", "allow", &json!({}))]).await;
    setup.configure(MUTATING, "b", vec![creates("third")]).await;
    setup
        .configure(
            MUTATING,
            "a",
            vec![
                creates("first"),
                setup.webhook("second", "allow", &json!({"objectSelector": {"matchLabels": {"a": "b"}}})),
            ],
        )
        .await;
    let all = explained_webhooks(&setup, CONFIG_MAPS).await;
    let names: Vec<_> = all.iter().map(|webhook| webhook.name.trim_end_matches(".example.com")).collect();
    assert_eq!(names, ["first", "second", "third", "last"]);
    let last = all.last().unwrap();
    assert_eq!((last.kind.as_str(), last.configuration.as_str()), (VALIDATING.0, "v"));
    assert_eq!(last.operations, ["CREATE", "UPDATE", "DELETE"]);
    assert_eq!(
        (all[0].operations.clone(), all[0].failure_policy.as_str()),
        (vec!["CREATE".to_owned()], "Ignore")
    );
    assert!(!all[0].selective && all[1].selective);
    assert!(all.iter().all(|webhook| webhook.health == "NeverAsked" && webhook.since.is_empty()), "{all:?}");
    assert!(explained_webhooks(&setup, "/api/v1/namespaces/default/secrets").await.is_empty());
    assert!(explained_webhooks(&setup, "/api/v1").await.is_empty(), "the path is not the path of a resource");
    assert!(explained_webhooks(&setup, "/api/v1/namespaces/default/configmaps/m/status").await.is_empty());

    assert_eq!(setup.create("m").await.status, 201);
    let all = explained_webhooks(&setup, CONFIG_MAPS).await;
    let health: Vec<_> = all.iter().map(|webhook| webhook.health.as_str()).collect();
    assert_eq!(health, ["Answering", "NeverAsked", "Answering", "Answering"]);
    assert!(all[0].last_answer.ends_with('Z') && all[0].last_failure.is_empty());
    let ca_ends: jiff::Timestamp = all[0].ca_not_after.parse().unwrap();
    assert!(ca_ends > jiff::Timestamp::now(), "{ca_ends}");

    setup.hooks.set_behavior(Behavior::Code(500));
    assert_eq!(setup.admin.post(CONFIG_MAPS, &map("n")).await.status, 500);
    let first = explained_webhooks(&setup, CONFIG_MAPS).await.remove(0);
    assert_eq!(first.health, "Failing");
    assert!(first.reason.contains("an error on the server"), "{first:?}");

    setup.hooks.set_behavior(Behavior::Paused);
    let admin = setup.portico.admin();
    let paused_map = map("held");
    let (answer, ()) = tokio::join!(admin.post(CONFIG_MAPS, &paused_map), async {
        wait_until("a call is under way", || async {
            explained_webhooks(&setup, CONFIG_MAPS).await[0].under_way == 1
        })
        .await;
        setup.hooks.set_behavior(Behavior::Normal);
    });
    assert_eq!(answer.status, 201);

    setup.hooks.stop().await;
    for _ in 0..4 {
        assert_eq!(setup.admin.post(CONFIG_MAPS, &map("o")).await.status, 500);
    }
    let first = explained_webhooks(&setup, CONFIG_MAPS).await.remove(0);
    assert_eq!(first.health, "CircuitOpen");
    assert_eq!(first.open_circuits[0].target, setup.hooks.address.to_string());
    assert!(first.reason.contains("connection refused") && first.since.ends_with('Z'), "{first:?}");
}
