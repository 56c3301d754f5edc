//! Kubelets with certificates of their nodes can read the objects that their pods need, and no others.

use portico_tests::http::Http;
use portico_tests::{Launch, Portico, eventually, pki};
use serde_json::{Value, json};

const NAMESPACE: &str = "/api/v1/namespaces/default";
const NODES: &str = "system:nodes";

async fn secret(admin: &Http, name: &str) {
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
    assert_eq!(admin.post(&format!("{NAMESPACE}/secrets"), &body).await.status, 201);
}

/// Returns a pod that mounts a secret of the same name.
fn pod(name: &str, node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "nodeName": node, "automountServiceAccountToken": false,
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "secret": {"secretName": name}}]}})
}

async fn started() -> (Portico, pki::Authority) {
    let (launch, folder) = Launch::new().prepare_folder();
    let authority = pki::Authority::new("clients");
    let ca = folder.join("clients.crt");
    std::fs::write(&ca, &authority.pem).unwrap();
    let flags = ["--client-ca-file", ca.to_str().unwrap(), "--authorization-mode", "Node,RBAC"];
    (launch.args(&flags).start().await, authority)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_reads_only_objects_that_its_pods_refer_to() {
    let (portico, authority) = started().await;
    let admin = portico.admin();
    let kubelet = portico.with_certificate(&authority.client("system:node:n1", &[NODES]));
    for name in ["mine", "theirs"] {
        secret(&admin, name).await;
    }
    for (name, node) in [("mine", "n1"), ("theirs", "n2")] {
        let answer = admin.post(&format!("{NAMESPACE}/pods"), &pod(name, node)).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let mine = format!("{NAMESPACE}/secrets/mine");
    eventually("the kubelet may read its pod's secret", || async {
        let answer = kubelet.get(&mine).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    let refused = kubelet.get(&format!("{NAMESPACE}/secrets/theirs")).await;
    let status = refused.status_body(403, "Forbidden");
    let why = "secrets \"theirs\" is forbidden: User \"system:node:n1\" cannot get resource \"secrets\" in API group \
               \"\" in the namespace \"default\": no relationship found between node 'n1' and this object";
    assert_eq!(status["message"], why);
    for (path, code) in [
        ("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", 200),
        ("/api/v1/pods?fieldSelector=spec.nodeName%3Dn2", 403),
        ("/api/v1/pods", 403),
        ("/api/v1/namespaces/default/secrets", 403),
        ("/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Dmine", 200),
        ("/api/v1/namespaces/default/pods/mine", 200),
        ("/api/v1/namespaces/default/pods/theirs", 403),
        ("/api/v1/nodes/n1", 404),
        ("/api/v1/nodes/n2", 403),
        ("/api/v1/services", 200),
    ] {
        let answer = kubelet.get(path).await;
        assert_eq!(answer.status, code, "{path}: {}", answer.text());
    }
    assert_eq!(admin.delete(&format!("{NAMESPACE}/pods/mine?gracePeriodSeconds=0")).await.status, 200);
    eventually("the kubelet may no longer read the secret", || async {
        let answer = kubelet.get(&mine).await;
        if answer.status == 403 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn access_reviews_include_the_node_authorizer() {
    let (portico, authority) = started().await;
    let admin = portico.admin();
    let review = |attributes: Value| {
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": "system:node:n1", "groups": [NODES], "resourceAttributes": attributes}})
    };
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let pods = |selector: Value| json!({"verb": "list", "resource": "pods", "fieldSelector": selector});
    let own = json!({"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1"]}]});
    for (attributes, allowed, reason) in [
        (pods(json!({"rawSelector": "spec.nodeName=n1"})), true, ""),
        (pods(own), true, ""),
        (
            json!({"verb": "list", "resource": "pods"}),
            false,
            "can only list/watch pods with spec.nodeName field selector",
        ),
        (
            json!({"verb": "get", "resource": "secrets", "namespace": "default", "name": "x"}),
            false,
            "no relationship found between node 'n1' and this object",
        ),
    ] {
        let status = admin.post(path, &review(attributes.clone())).await.json()["status"].clone();
        assert_eq!(status["allowed"], allowed, "{attributes}: {status}");
        assert_eq!(status["reason"].as_str().unwrap_or_default(), reason, "{attributes}");
    }
    let kubelet = portico.with_certificate(&authority.client("system:node:n1", &[NODES]));
    let rules = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "default"}});
    // A role that the server creates at its first start permits the review; the facade receives it later.
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    eventually("the rules review of the kubelet is incomplete", || async {
        let review = kubelet.post(path, &rules).await.json();
        let status = &review["status"];
        let why = "node authorizer does not support user rule resolution";
        if status["incomplete"] == true && status["evaluationError"] == why {
            Ok(())
        } else {
            Err(review.to_string())
        }
    })
    .await;
}
