//! Tokens of service accounts with an external signer: use, rotation, refusal, and outages of the signer.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portico_proto::admin::MetricsRequest;
use portico_tests::http::{FullResponse, Http};
use portico_tests::token_signer::TokenSigner;
use portico_tests::{Launch, Portico, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

const ENDPOINT: &str = "--service-account-signing-endpoint";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SELF_REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// Returns a signer with its folder and socket.
fn signer() -> (TempDir, PathBuf, TokenSigner) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("signer.sock");
    let signer = TokenSigner::start(&socket);
    (folder, socket, signer)
}

fn signed_by(launch: Launch, socket: &std::path::Path) -> Launch {
    let issuer = ["--service-account-issuer", "https://issuer.example.com"];
    launch.args(&[ENDPOINT, &socket.to_string_lossy()]).args(&issuer)
}

async fn account(admin: &Http) {
    let body = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    eventually("the service account is created", || async {
        let answer = admin.post(ACCOUNTS, &body).await;
        if answer.status == 201 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

async fn request_token(admin: &Http, spec: Value) -> FullResponse {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    admin.post(&format!("{ACCOUNTS}/robot/token"), &body).await
}

async fn token(admin: &Http) -> String {
    let answer = request_token(admin, json!({})).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["status"]["token"].as_str().unwrap().to_owned()
}

/// Returns the status of a request with a token.
async fn status_with(portico: &Portico, token: &str) -> u16 {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    portico.anonymous().with_token(token).post(SELF_REVIEWS, &body).await.status.as_u16()
}

async fn wait_for_status(portico: &Portico, token: &str, status: u16) {
    eventually("the token gets the expected status", || async {
        let found = status_with(portico, token).await;
        if found == status { Ok(()) } else { Err(found) }
    })
    .await;
}

/// Waits until exactly the keys with these IDs are published.
async fn wait_published(admin: &Http, ids: &[&str]) {
    eventually("the keys are published", || async {
        let keys = admin.get_as("/openid/v1/jwks", "application/jwk-set+json").await.json();
        let found = keys["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap());
        if found.eq(ids.iter().copied()) { Ok(()) } else { Err(keys) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn externally_signed_tokens_authenticate() {
    let (_folder, socket, signer) = signer();
    let portico = signed_by(Launch::new(), &socket).start().await;
    let admin = portico.admin();
    account(&admin).await;
    let review = token(&admin).await;
    let header = URL_SAFE_NO_PAD.decode(review.split('.').next().unwrap()).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(header, json!({"alg": "RS256", "kid": "one", "typ": "JWT"}));
    assert_eq!(status_with(&portico, &review).await, 201);
    let (head, rest) = review.rsplit_once('.').unwrap();
    // Another first letter of the signature.
    let other = if rest.starts_with('A') { 'B' } else { 'A' };
    assert_eq!(status_with(&portico, &format!("{head}.{other}{}", &rest[1..])).await, 401);
    let longer = request_token(&admin, json!({"expirationSeconds": 90_000})).await.json();
    assert_eq!(longer["spec"]["expirationSeconds"], 86_400, "{longer}");
    let metrics = portico.control().admin().metrics(MetricsRequest {}).await.unwrap().into_inner().text;
    for line in [
        "apiserver_externaljwt_fetch_keys_request_total{code=\"OK\"} 1",
        "apiserver_externaljwt_sign_request_total{code=\"OK\"} 2",
        "apiserver_externaljwt_request_duration_seconds_count{method=\"/v1.ExternalJWTSigner/Sign\",code=\"OK\"} 2",
        "\napiserver_externaljwt_fetch_keys_success_timestamp{} ",
        "\napiserver_externaljwt_fetch_keys_data_timestamp{} ",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert_eq!(signer.update(|state| state.fetches), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_rotate_and_excluded_keys_only_verify() {
    let (_folder, socket, signer) = signer();
    signer.update(|state| state.add_key("hidden", true));
    let portico = signed_by(Launch::new(), &socket).start().await;
    let admin = portico.admin();
    account(&admin).await;
    wait_published(&admin, &["one"]).await;
    let old = token(&admin).await;
    // Keys are fetched hourly: the token of an unknown key causes a fetch at once.
    let claims = old.split('.').nth(1).unwrap();
    let other = signer.update(|state| {
        state.add_key("zero", true);
        state.token("zero", claims).unwrap()
    });
    wait_for_status(&portico, &other, 201).await;
    signer.update(|state| {
        state.add_key("two", false);
        "two".clone_into(&mut state.signing_key);
        state.refresh_hint = 1;
    });
    let new = token(&admin).await;
    wait_for_status(&portico, &new, 201).await;
    assert_eq!(status_with(&portico, &old).await, 201);
    wait_published(&admin, &["one", "two"]).await;
    signer.update(|state| state.remove_key("one"));
    wait_for_status(&portico, &old, 401).await;
    assert_eq!(status_with(&portico, &new).await, 201);
    wait_published(&admin, &["two"]).await;
    signer.update(|state| "hidden".clone_into(&mut state.signing_key));
    let refused = request_token(&admin, json!({})).await;
    assert_eq!(refused.status, 500, "{}", refused.text());
    assert!(
        refused.text().contains("(kid: hidden) is excluded from OIDC discovery docs"),
        "{}",
        refused.text()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn during_an_outage_of_the_signer_tokens_stay_valid() {
    let (_folder, socket, signer) = signer();
    let portico = signed_by(Launch::new(), &socket).start().await;
    let admin = portico.admin();
    account(&admin).await;
    let (known, unused) = (token(&admin).await, token(&admin).await);
    assert_eq!(status_with(&portico, &known).await, 201);
    let come_back = signer.stop(&socket);
    let refused = request_token(&admin, json!({})).await;
    assert_eq!(refused.status, 500, "{}", refused.text());
    let words = "Internal error occurred: failed to generate token: while signing jwt: rpc error: code = DeadlineExceeded desc = ";
    assert!(refused.json()["message"].as_str().unwrap().starts_with(words), "{}", refused.text());
    assert_eq!((status_with(&portico, &known).await, status_with(&portico, &unused).await), (201, 201));
    let signer = come_back();
    assert_eq!(status_with(&portico, &token(&admin).await).await, 201);
    drop(signer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unexpected_headers_are_refused() {
    let (_folder, socket, signer) = signer();
    let portico = signed_by(Launch::new(), &socket).start().await;
    let admin = portico.admin();
    account(&admin).await;
    for (header, words) in [
        (json!({"alg": "HS256"}), "while validating header: bad signing algorithm \"HS256\""),
        (json!({"typ": "at+jwt"}), "while validating header: bad type"),
        (json!({"kid": ""}), "while validating header: key id missing"),
        (json!({"jku": "https://x"}), "while parsing header JSON: json: unknown field \"jku\""),
    ] {
        signer.update(|state| state.header = header);
        let refused = request_token(&admin, json!({})).await;
        assert_eq!(refused.status, 500, "{}", refused.text());
        assert!(refused.json()["message"].as_str().unwrap().contains(words), "{}", refused.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_separate_facade_follows_the_keys_of_the_signer() {
    let (_folder, socket, signer) = signer();
    let server = signed_by(Launch::server(), &socket).start().await;
    let facade = Launch::facade(&server).start().await;
    let admin = facade.admin();
    account(&admin).await;
    let old = token(&admin).await;
    wait_for_status(&facade, &old, 201).await;
    signer.update(|state| {
        state.add_key("two", false);
        "two".clone_into(&mut state.signing_key);
        state.refresh_hint = 1;
    });
    let new = token(&admin).await;
    wait_for_status(&facade, &new, 201).await;
    wait_published(&admin, &["one", "two"]).await;
    signer.update(|state| state.remove_key("one"));
    wait_for_status(&facade, &old, 401).await;
    let unknown =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": old}});
    let reviewed = admin.post(REVIEWS, &unknown).await.json();
    let error = reviewed["status"]["error"].as_str().unwrap();
    assert!(error.contains("invalid signature, no keys found"), "{reviewed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicting_settings_are_refused_at_the_start() {
    let (_folder, socket, signer) = signer();
    let key = ["--service-account-key-file", "/no/key"];
    let (code, _, error) = signed_by(Launch::new(), &socket).args(&key).run().await;
    assert_eq!(code, Some(2), "{error}");
    assert!(
        error.contains("with `--service-account-signing-endpoint` (They are mutually exclusive)"),
        "{error}"
    );
    signer.update(|state| state.max_lifetime = 3600);
    let life = ["--service-account-max-token-expiration", "2h"];
    let (code, _, error) = signed_by(Launch::new(), &socket).args(&life).run().await;
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("supported by service-account-signing-endpoint: 2h0m0s > 1h0m0s"), "{error}");
    signer.update(|state| state.remove_key("one"));
    let (code, _, error) = signed_by(Launch::new(), &socket).run().await;
    assert_eq!(code, Some(1), "{error}");
    assert!(
        error.contains("while setting up external-jwt-signer: while initially filling key cache: ")
            && error.contains("found no keys"),
        "{error}"
    );
}
