//! Roles and bindings from the configuration stream: their permissions, and the time from which they apply.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use portico_machinery::rbac::{Binding, Fact, RoleRef, Rule, Subject};
use portico_proto::config as pb;
use portico_proto::convert::{Entry, Payload, PayloadKind};
use portico_proto::objects::DoResponse;

use super::control::{ScriptedControl, version};
use super::rig::{Rig, served};

fn rbac_entry(key: &str, revision: i64, fact: Option<Fact>) -> Entry {
    let payload = fact.map(|fact| Payload::Rbac(Arc::new(fact)));
    Entry { kind: PayloadKind::Rbac, key: key.to_owned(), revision, payload }
}

fn metrics_role() -> Entry {
    let list = |word: &str| vec![word.to_owned()];
    let rule = Rule { verbs: list("get"), non_resource_urls: list("/metrics"), ..Rule::default() };
    rbac_entry("clusterroles/metrics", 1, Some(Fact::Rules(vec![rule])))
}

fn binding_of_alice(revision: i64) -> Entry {
    let role = RoleRef { is_cluster_role: true, name: "metrics".to_owned() };
    let binding = Binding { role, subjects: vec![Subject::User("alice".to_owned())] };
    rbac_entry("clusterrolebindings/alice", revision, Some(Fact::Binding(binding)))
}

#[tokio::test]
async fn a_binding_applies_exactly_while_it_is_active() {
    let rig = Rig::start(vec![metrics_role()]).await.until_configured().await;
    let alice = rig.client.with_token("alice");
    let refused = alice.get("/metrics").await;
    assert_eq!(refused.code, 403);
    assert!(refused.text.contains(r#"User \"alice\" cannot get path \"/metrics\""#), "{}", refused.text);
    rig.control.change(vec![binding_of_alice(2)]).await;
    assert_eq!(alice.get("/metrics").await.code, 200);
    rig.control.change(vec![rbac_entry("clusterrolebindings/alice", 3, None)]).await;
    assert_eq!(alice.get("/metrics").await.code, 403);
}

#[tokio::test]
async fn a_refusal_names_the_missing_role() {
    let rig = Rig::start(vec![binding_of_alice(1)]).await.until_configured().await;
    let refused = rig.client.with_token("alice").get("/metrics").await;
    let words = r#"RBAC: clusterrole.rbac.authorization.k8s.io \"metrics\" not found"#;
    assert!(refused.text.contains(words), "{}", refused.text);
}

#[tokio::test]
async fn the_response_to_a_write_of_a_binding_waits_until_it_is_active() {
    let control = ScriptedControl::new(vec![served("rbac.authorization.k8s.io", "v1"), metrics_role()]);
    let rig = Rig::with_settings(control, |_| {}).await.until_configured().await;
    let written = DoResponse { code: 201, revision: 2, configures: true, ..DoResponse::default() };
    rig.control.push_answer(written);
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let write = rig.client.send(Method::POST, path, &[], "{}");
    tokio::pin!(write);
    let early = tokio::time::timeout(Duration::from_millis(100), &mut write).await;
    assert!(early.is_err(), "the binding is not in force");
    let (answer, _) = tokio::join!(write, rig.control.change(vec![binding_of_alice(2)]));
    assert_eq!(answer.code, 201);
    assert_eq!(rig.client.with_token("alice").get("/metrics").await.code, 200);
}

#[tokio::test]
async fn an_update_of_a_role_or_binding_that_cannot_be_decoded_revokes_it() {
    // Content from a newer control service that this build cannot decode.
    let payloads = [None, Some(pb::entry::Payload::Rbac(pb::Rbac { says: None }))];
    let keys = ["clusterroles/metrics", "clusterrolebindings/alice"];
    for (key, payload) in
        keys.iter().flat_map(|key| payloads.iter().map(move |payload| (*key, payload.clone())))
    {
        let rig = Rig::start(vec![metrics_role(), binding_of_alice(1)]).await.until_configured().await;
        let alice = rig.client.with_token("alice");
        assert_eq!(alice.get("/metrics").await.code, 200);
        let entry = pb::Entry { key: key.to_owned(), revision: 9, payload, ..pb::Entry::default() };
        rig.control.send_raw(pb::Entries { version: Some(version(9)), entries: vec![entry] });
        let ack = rig.control.wait_for_ack(9).await;
        assert_eq!(ack.refused.len(), 1);
        assert_eq!(alice.get("/metrics").await.code, 403, "{key}");
    }
}
