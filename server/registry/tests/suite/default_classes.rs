//! Kinds whose writes depend on other objects: default classes.

use crate::harness::{Harness, MERGE};

const CLASSES: &str = "/apis/networking.k8s.io/v1/ingressclasses";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
const PRIORITIES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

fn ingress(name: &str) -> String {
    format!(
        r#"{{"kind":"Ingress","apiVersion":"networking.k8s.io/v1","metadata":{{"name":"{name}"}},"spec":{{"defaultBackend":{{"service":{{"name":"s","port":{{"number":80}}}}}}}}}}"#
    )
}

#[tokio::test]
async fn an_ingress_without_a_class_gets_the_default_one() {
    let harness = Harness::open().await;
    assert_eq!(harness.post(INGRESSES, &ingress("before")).await.at("spec.ingressClassName"), "\"\"");
    for name in ["b", "a"] {
        let class = format!(
            r#"{{"kind":"IngressClass","apiVersion":"networking.k8s.io/v1","metadata":{{"name":"{name}","annotations":{{"ingressclass.kubernetes.io/is-default-class":"true"}}}},"spec":{{"controller":"a.b/c"}}}}"#
        );
        assert_eq!(harness.post(CLASSES, &class).await.code, 201);
    }
    assert_eq!(harness.post(INGRESSES, &ingress("after")).await.at("spec.ingressClassName"), "a");
    let removed = r#"{"spec":{"ingressClassName":null}}"#;
    let patched = harness.patch(&format!("{INGRESSES}/after"), MERGE, removed).await;
    assert_eq!(patched.at("spec.ingressClassName"), "\"\"", "a later removal stays");
}

#[tokio::test]
async fn there_is_at_most_one_default_priority_class() {
    let harness = Harness::open().await;
    let class = |name: &str| {
        format!(
            r#"{{"kind":"PriorityClass","apiVersion":"scheduling.k8s.io/v1","metadata":{{"name":"{name}"}},"value":1,"globalDefault":true}}"#
        )
    };
    assert_eq!(harness.post(PRIORITIES, &class("one")).await.code, 201);
    let second = harness.post(PRIORITIES, &class("two")).await;
    assert_eq!(second.code, 403);
    assert_eq!(
        second.at("message"),
        r#"priorityclasses.scheduling.k8s.io "two" is forbidden: PriorityClass one is already marked as default. Only one default can exist"#
    );
    let same = harness.patch(&format!("{PRIORITIES}/one"), MERGE, r#"{"description":"d"}"#).await;
    assert_eq!(same.code, 200);
}
