//! Tokens of service accounts that somebody else signs: used, rotated, refused, and while the signer is away.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portico_proto::admin::MetricsRequest;
use portico_tests::http::{Answer, Http};
use portico_tests::token_signer::TokenSigner;
use portico_tests::{Launch, Portico, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

const ENDPOINT: &str = "--service-account-signing-endpoint";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// A signer in a folder that lives as long.
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
    eventually("an account is made", || async {
        let answer = admin.post(ACCOUNTS, &body).await;
        if answer.status == 201 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

async fn asked(admin: &Http, spec: Value) -> Answer {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    admin.post(&format!("{ACCOUNTS}/robot/token"), &body).await
}

async fn token(admin: &Http) -> String {
    let answer = asked(admin, json!({})).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["status"]["token"].as_str().unwrap().to_owned()
}

/// The status with which a token is met.
async fn met(portico: &Portico, token: &str) -> u16 {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    portico.anyone().with_token(token).post(WHO, &body).await.status.as_u16()
}

async fn becomes(portico: &Portico, token: &str, status: u16) {
    eventually("the token is met otherwise", || async {
        let found = met(portico, token).await;
        if found == status { Ok(()) } else { Err(found) }
    })
    .await;
}

/// Waits until keys of these ids are published and no others.
async fn published(admin: &Http, ids: &[&str]) {
    eventually("the keys are published", || async {
        let keys = admin.get_as("/openid/v1/jwks", "application/jwk-set+json").await.json();
        let found = keys["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap());
        if found.eq(ids.iter().copied()) { Ok(()) } else { Err(keys) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_the_signer_signs_counts_and_its_header_is_the_signers() {
    let (_folder, socket, signer) = signer();
    let portico = signed_by(Launch::new(), &socket).start().await;
    let admin = portico.admin();
    account(&admin).await;
    let made = token(&admin).await;
    let header = URL_SAFE_NO_PAD.decode(made.split('.').next().unwrap()).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(header, json!({"alg": "RS256", "kid": "one", "typ": "JWT"}));
    assert_eq!(met(&portico, &made).await, 201);
    let (head, rest) = made.rsplit_once('.').unwrap();
    // Another first letter of the signature, whichever it has.
    let other = if rest.starts_with('A') { 'B' } else { 'A' };
    assert_eq!(met(&portico, &format!("{head}.{other}{}", &rest[1..])).await, 401);
    let longer = asked(&admin, json!({"expirationSeconds": 90_000})).await.json();
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
    assert_eq!(signer.set(|state| state.fetches), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_rotate_and_those_that_are_excluded_check_tokens_without_being_published() {
    let (_folder, socket, signer) = signer();
    signer.set(|state| state.add_key("hidden", true));
    let portico = signed_by(Launch::new(), &socket).start().await;
    let admin = portico.admin();
    account(&admin).await;
    published(&admin, &["one"]).await;
    let old = token(&admin).await;
    // The keys are to be fetched in an hour: the token of a key that is not known has them fetched at once.
    let claims = old.split('.').nth(1).unwrap();
    let other = signer.set(|state| {
        state.add_key("zero", true);
        state.token("zero", claims).unwrap()
    });
    becomes(&portico, &other, 201).await;
    signer.set(|state| {
        state.add_key("two", false);
        "two".clone_into(&mut state.signs_with);
        state.refresh_hint = 1;
    });
    let new = token(&admin).await;
    becomes(&portico, &new, 201).await;
    assert_eq!(met(&portico, &old).await, 201);
    published(&admin, &["one", "two"]).await;
    signer.set(|state| state.remove_key("one"));
    becomes(&portico, &old, 401).await;
    assert_eq!(met(&portico, &new).await, 201);
    published(&admin, &["two"]).await;
    signer.set(|state| "hidden".clone_into(&mut state.signs_with));
    let refused = asked(&admin, json!({})).await;
    assert_eq!(refused.status, 500, "{}", refused.text());
    assert!(
        refused.text().contains("(kid: hidden) is excluded from OIDC discovery docs"),
        "{}",
        refused.text()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_signer_is_away_its_tokens_count_and_no_new_ones_are_made() {
    let (_folder, socket, signer) = signer();
    let portico = signed_by(Launch::new(), &socket).start().await;
    let admin = portico.admin();
    account(&admin).await;
    let (known, unused) = (token(&admin).await, token(&admin).await);
    assert_eq!(met(&portico, &known).await, 201);
    let come_back = signer.stop(&socket);
    let refused = asked(&admin, json!({})).await;
    assert_eq!(refused.status, 500, "{}", refused.text());
    let words = "Internal error occurred: failed to generate token: while signing jwt: rpc error: code = DeadlineExceeded desc = ";
    assert!(refused.json()["message"].as_str().unwrap().starts_with(words), "{}", refused.text());
    assert_eq!((met(&portico, &known).await, met(&portico, &unused).await), (201, 201));
    let signer = come_back();
    assert_eq!(met(&portico, &token(&admin).await).await, 201);
    drop(signer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_says_anything_else_is_refused() {
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
        signer.set(|state| state.header = header);
        let refused = asked(&admin, json!({})).await;
        assert_eq!(refused.status, 500, "{}", refused.text());
        assert!(refused.json()["message"].as_str().unwrap().contains(words), "{}", refused.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_facade_of_its_own_follows_the_keys_of_the_signer() {
    let (_folder, socket, signer) = signer();
    let server = signed_by(Launch::server(), &socket).start().await;
    let facade = Launch::facade(&server).start().await;
    let admin = facade.admin();
    account(&admin).await;
    let old = token(&admin).await;
    becomes(&facade, &old, 201).await;
    signer.set(|state| {
        state.add_key("two", false);
        "two".clone_into(&mut state.signs_with);
        state.refresh_hint = 1;
    });
    let new = token(&admin).await;
    becomes(&facade, &new, 201).await;
    published(&admin, &["one", "two"]).await;
    signer.set(|state| state.remove_key("one"));
    becomes(&facade, &old, 401).await;
    let unknown =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": old}});
    let reviewed = admin.post(REVIEWS, &unknown).await.json();
    let error = reviewed["status"]["error"].as_str().unwrap();
    assert!(error.contains("invalid signature, no keys found"), "{reviewed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_go_together_ends_the_start() {
    let (_folder, socket, signer) = signer();
    let key = ["--service-account-key-file", "/no/key"];
    let (code, _, error) = signed_by(Launch::new(), &socket).args(&key).run().await;
    assert_eq!(code, Some(2), "{error}");
    assert!(
        error.contains("with `--service-account-signing-endpoint` (They are mutually exclusive)"),
        "{error}"
    );
    signer.set(|state| state.longest_life = 3600);
    let life = ["--service-account-max-token-expiration", "2h"];
    let (code, _, error) = signed_by(Launch::new(), &socket).args(&life).run().await;
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("supported by service-account-signing-endpoint: 2h0m0s > 1h0m0s"), "{error}");
    signer.set(|state| state.remove_key("one"));
    let (code, _, error) = signed_by(Launch::new(), &socket).run().await;
    assert_eq!(code, Some(1), "{error}");
    assert!(
        error.contains("while setting up external-jwt-signer: while initially filling key cache: ")
            && error.contains("found no keys"),
        "{error}"
    );
}
