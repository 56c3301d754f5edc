//! Authentication of bearer tokens by a webhook.

use portico_tests::{Backend, Behavior, Launch};
use serde_json::{Value, json};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_authenticates_tokens_and_results_are_cached() {
    let backend = Backend::with_names("tokens", &["127.0.0.1"]).await;
    let (launch, folder) = Launch::new().prepare_folder();
    std::fs::write(folder.join("ca.crt"), &backend.ca).unwrap();
    let kubeconfig = json!({"kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "tokens"}}],
        "clusters": [{"name": "tokens", "cluster": {
            "server": format!("{}/tokens", backend.url()), "certificate-authority": "ca.crt"}}]});
    let file = folder.join("tokens.kubeconfig");
    std::fs::write(&file, kubeconfig.to_string()).unwrap();
    let flags = ["--authentication-token-webhook-config-file", file.to_str().unwrap()];
    let portico = launch.args(&flags).args(&["--authentication-token-webhook-version", "v1"]).start().await;
    let dora = portico.admin().with_token("known-dora");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    for _ in 0..2 {
        let answer = dora.post(REVIEWS, &review).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        let user = json!({"username": "dora", "uid": "7", "groups": ["elsewhere", "system:authenticated"], "extra": {"from": ["far"]}});
        assert_eq!(answer.json()["status"]["userInfo"], user, "no group of ours is believed");
        assert_eq!(portico.admin().with_token("nobody").get("/api").await.status, 401);
    }
    let seen: Vec<Value> =
        backend.requests().iter().map(|seen| serde_json::from_slice(&seen.body).unwrap()).collect();
    let about_dora = seen.iter().filter(|review| review["spec"]["token"] == "known-dora").count();
    assert_eq!(about_dora, 1, "{seen:?}");
    assert_eq!(seen[0]["apiVersion"], "authentication.k8s.io/v1");
    assert!(seen[0]["spec"]["audiences"][0].is_string(), "{}", seen[0]);
    assert_eq!(
        portico.admin().get("/api").await.status,
        200,
        "the administrator is authenticated without the webhook"
    );
    backend.set_behavior(Behavior::Code(403));
    assert_eq!(portico.admin().with_token("known-eve").get("/api").await.status, 401);
    assert_eq!(dora.post(REVIEWS, &review).await.status, 201, "the review is cached");
}
