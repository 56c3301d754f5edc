//! Tokens of service accounts: requested, used over HTTPS and gRPC, reviewed, bound, and revoked.

use portico_proto::client::{Client, Credentials};
use portico_tests::http::Http;
use portico_tests::{Launch, Portico, eventually};
use serde_json::{Value, json};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const SELF_REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

fn self_review() -> Value {
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
}

async fn account(admin: &Http, name: &str) {
    let body = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    let answer = admin.post(ACCOUNTS, &body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

async fn token(admin: &Http, name: &str, spec: Value) -> Value {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let answer = admin.post(&format!("{ACCOUNTS}/{name}/token"), &body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_valid_until_its_account_is_deleted() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    account(&admin, "robot").await;
    let response = token(&admin, "robot", json!({})).await;
    assert_eq!(response["spec"]["audiences"], json!(["https://kubernetes.default.svc.cluster.local"]));
    let token = text(&response["status"]["token"]);
    let robot = portico.anonymous().with_token(token);
    let review = robot.post(SELF_REVIEWS, &self_review()).await.json();
    assert_eq!(review["status"]["userInfo"]["username"], "system:serviceaccount:default:robot", "{review}");
    let credentials = Credentials::Token(token.to_owned());
    let over_grpc = Client::connect(&portico.control_with(credentials)).unwrap();
    let request = portico_proto::apiregistration::GetRequest { name: "v1.".into(), ..Default::default() };
    let refused = over_grpc.api_services().get(request).await;
    let refused = refused.err().map(|status| status.message().to_owned()).unwrap_or_default();
    assert!(
        refused.contains("system:serviceaccount:default:robot"),
        "authenticated, and forbidden: {refused}"
    );
    admin.delete(&format!("{ACCOUNTS}/robot")).await;
    eventually("the token of a deleted account is refused", || async {
        let answer = robot.post(SELF_REVIEWS, &self_review()).await;
        if answer.status == 401 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn relying_parties_can_fetch_the_signing_keys() {
    let portico =
        Launch::new().args(&["--service-account-issuer", "https://issuer.example.com"]).start().await;
    let admin = portico.admin();
    let metadata = admin.get("/.well-known/openid-configuration").await.json();
    assert_eq!(metadata["issuer"], "https://issuer.example.com");
    assert_eq!(metadata["jwks_uri"], format!("https://{}/openid/v1/jwks", portico.https()));
    let keys = admin.get_as("/openid/v1/jwks", "application/jwk-set+json").await.json();
    account(&admin, "robot").await;
    let response = token(&admin, "robot", json!({"audiences": ["vault"], "expirationSeconds": 600})).await;
    let header = text(&response["status"]["token"]).split('.').next().unwrap().to_owned();
    let header = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, header).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(header["kid"], keys["keys"][0]["kid"], "{keys}");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": response["status"]["token"], "audiences": ["bank", "vault"]}});
    let reviewed = admin.post(REVIEWS, &review).await.json();
    assert_eq!(reviewed["status"]["audiences"], json!(["vault"]), "{reviewed}");
    let other_client = portico.anonymous().with_token(text(&response["status"]["token"]));
    other_client.post(SELF_REVIEWS, &self_review()).await.status_body(401, "Unauthorized");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_separate_facade_verifies_tokens_and_bound_objects() {
    let server = Launch::server().start().await;
    let facade = Launch::facade(&server).start().await;
    let admin = facade.admin();
    eventually("the facade serves objects", || async {
        let answer = admin.get(ACCOUNTS).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    account(&admin, "robot").await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bind"}});
    admin.post(SECRETS, &secret).await;
    let bound = json!({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "bind"}});
    let response = token(&admin, "robot", bound).await;
    let robot = facade.anonymous().with_token(text(&response["status"]["token"]));
    assert_eq!(robot.post(SELF_REVIEWS, &self_review()).await.status, 201);
    admin.delete(&format!("{SECRETS}/bind")).await;
    eventually("the token is revoked with its secret", || async {
        let answer = robot.post(SELF_REVIEWS, &self_review()).await;
        if answer.status == 401 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bootstrap_tokens_authenticate_if_enabled() {
    let portico = Launch::new().args(&["--enable-bootstrap-token-auth"]).start().await;
    let data = json!({"token-id": "abcdef", "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true", "auth-extra-groups": "system:bootstrappers:kin"});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": "bootstrap-token-abcdef"}, "stringData": data});
    let created = portico.admin().post("/api/v1/namespaces/kube-system/secrets", &secret).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let node = portico.anonymous().with_token("abcdef.0123456789abcdef");
    let review = node.post(SELF_REVIEWS, &self_review()).await.json();
    let groups = json!(["system:bootstrappers", "system:bootstrappers:kin", "system:authenticated"]);
    assert_eq!(review["status"]["userInfo"]["groups"], groups, "{review}");
    let wrong = portico.anonymous().with_token("abcdef.0123456789abcdee");
    wrong.post(SELF_REVIEWS, &self_review()).await.status_body(401, "Unauthorized");
}
