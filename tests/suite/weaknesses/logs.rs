//! CVE-2019-11250, CVE-2020-8564, CVE-2020-8565, CVE-2020-8566: credentials in logs.

use portico_tests::{Backend, Launch, eventually, objects::API_SERVICES};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn logs_contain_no_credentials_at_any_level() {
    let backend = Backend::start("logs.example.com").await;
    let (launch, folder) = Launch::new().prepare_folder();
    let policy = folder.join("policy.yaml");
    std::fs::write(&policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
        .unwrap();
    let audit = folder.join("audit.log");
    let launch = launch.args(&["--v", "10", "--audit-policy-file", policy.to_str().unwrap()]);
    let portico = launch.args(&["--audit-log-path", audit.to_str().unwrap()]).start().await;
    let admin = portico.admin();
    let created = admin.post(API_SERVICES, &backend.api_service()).await;
    assert_eq!(created.status, 201, "{}", created.text());
    eventually("the backend is reached", || async {
        let answer = admin.get(&backend.path("/flunders")).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;

    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "reviewed-secret"}});
    let reviewed = admin.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await;
    assert_eq!(reviewed.status, 201, "{}", reviewed.text());
    let token =
        admin.post("/api/v1/namespaces/default/serviceaccounts/default/token", &json!({"spec": {}})).await;
    let issued = token.json()["status"]["token"].as_str().expect("a token").to_owned();
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "stored-secret"}});
    let stored = admin.post("/api/v1/namespaces/default/secrets", &secret).await;
    assert_eq!(stored.status, 201, "{}", stored.text());
    assert_eq!(portico.anonymous().with_token(&issued).get("/api").await.status, 200);
    assert_eq!(portico.anonymous().with_token("refused-secret").get("/api").await.status, 401);
    let in_query = "/api/v1/namespaces/default/pods?access_token=query-secret";
    assert_eq!(admin.get(in_query).await.status, 200, "an unknown parameter is ignored");
    let basic = http::Request::get("/api")
        .header("authorization", "Basic dTpiYXNpYy1zZWNyZXQ=")
        .body(Default::default())
        .unwrap();
    assert_eq!(
        portico.anonymous().fetch(basic).await.unwrap().status,
        403,
        "Basic is not a supported scheme: no review is sent"
    );

    let signature = issued.rsplit('.').next().unwrap();
    let secrets = [
        "admin-token",
        "reviewed-secret",
        "stored-secret",
        "c3RvcmVkLXNlY3JldA",
        "refused-secret",
        "dTpiYXNpYy1zZWNyZXQ",
    ];
    let (log, audit) = (portico.log(), std::fs::read_to_string(&audit).unwrap());
    assert!(log.lines().count() > 50 && audit.lines().count() > 5, "something is logged");
    // The `requestURI` of an audit event includes the query, as in kube-apiserver; the log omits it.
    assert!(audit.contains("query-secret"), "the audit log lacks the query");
    assert!(!log.contains("query-secret"), "the log contains the query");
    for secret in secrets.into_iter().chain([signature]) {
        for (name, text) in [("log", &log), ("audit log", &audit)] {
            let line = text.lines().find(|line| line.contains(secret));
            assert!(line.is_none(), "{secret} is in the {name}: {}", line.unwrap_or_default());
        }
    }
}
