//! Tokens of OpenID Connect issuers, configured by file and by flags, with key rotation, unavailable issuers and reloads.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portico_auth::jwt::{PublicKey, SigningKey, encode_key_set};
use portico_tests::token_issuer::{IssuerKey, TokenIssuer};
use portico_tests::{Launch, Portico, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};

const SELF_REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

pub(super) fn key() -> IssuerKey {
    let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
    let set = encode_key_set(&[PublicKey::from_der(key.public_key().der()).unwrap()]);
    IssuerKey { sign: Box::new(move |claims| key.sign(claims).unwrap()), set }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Returns claims that are valid for an hour, with the audience `us`.
pub(super) fn claims(more: Value) -> Value {
    let mut claims = json!({"aud": "us", "exp": now() + 3600});
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    claims
}

pub(super) fn jwt(issuer: &TokenIssuer, mappings: Value) -> Value {
    json!({"issuer": {"url": issuer.url(), "audiences": ["us"], "certificateAuthority": issuer.ca},
        "claimMappings": mappings})
}

pub(super) fn by_sub() -> Value {
    json!({"username": {"claim": "sub", "prefix": "oidc:"}, "groups": {"claim": "groups", "prefix": "oidc:"}})
}

pub(super) fn write(file: &Path, jwt: &[Value], anonymous: Option<Value>) {
    let mut config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt});
    if let Some(anonymous) = anonymous {
        config["anonymous"] = anonymous;
    }
    std::fs::write(file, config.to_string()).unwrap();
}

fn configured(jwt: &[Value], anonymous: Option<Value>) -> (Launch, PathBuf) {
    let (launch, folder) = Launch::new().prepare_folder();
    let file = folder.join("authentication.yaml");
    write(&file, jwt, anonymous);
    (launch.args(&["--authentication-config", file.to_str().unwrap()]), file)
}

/// Returns the user of a token, according to the server.
async fn identity(portico: &Portico, token: &str) -> Result<Value, u16> {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = portico.anonymous().with_token(token).post(SELF_REVIEWS, &body).await;
    if answer.status == 201 {
        Ok(answer.json()["status"]["userInfo"].clone())
    } else {
        Err(answer.status.as_u16())
    }
}

async fn assert_accepted(portico: &Portico, token: &str) -> Value {
    eventually("the token is accepted", || async { identity(portico, token).await }).await
}

/// Returns the reason for which the server rejects a token.
async fn refusal(portico: &Portico, token: &str) -> String {
    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let answer = portico.admin().post(REVIEWS, &review).await.json();
    answer["status"]["error"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_mapped_or_refused_with_a_reason() {
    let issuer = TokenIssuer::start(key()).await;
    let mut authenticator = jwt(&issuer, by_sub());
    authenticator["claimMappings"]["extra"] =
        json!([{"key": "example.org/team", "valueExpression": "claims.team__dot__name"}]);
    authenticator["claimMappings"]["uid"] = json!({"expression": "'id-' + claims.sub"});
    authenticator["claimValidationRules"] =
        json!([{"expression": "claims.age >= 18.0", "message": "too young"}]);
    authenticator["userValidationRules"] =
        json!([{"expression": "user.username != 'oidc:mallory'", "message": "not mallory"}]);
    let portico = configured(&[authenticator], None).0.start().await;
    let good = |more: Value| {
        let mut all = claims(json!({"sub": "jane", "age": 20, "team.name": "red", "jti": "t1"}));
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        issuer.token(&all)
    };
    let user = assert_accepted(&portico, &good(json!({"groups": ["dev", "ops"]}))).await;
    assert_eq!(
        user,
        json!({"username": "oidc:jane", "uid": "id-jane", "groups": ["oidc:dev", "oidc:ops", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": ["JTI=t1"], "example.org/team": ["red"]}})
    );
    for (token, words) in [
        (good(json!({"aud": "them"})), "oidc: verify token: oidc: expected audience \"us\" got [\"them\"]"),
        (
            good(json!({"exp": 1})),
            "oidc: verify token: oidc: token is expired (Token Expiry: 1970-01-01 00:00:01 +0000 UTC)",
        ),
        (
            good(json!({"age": 3})),
            "oidc: error evaluating claim validation expression: validation expression 'claims.age >= 18.0' failed: too young",
        ),
        (good(json!({"sub": "mallory"})), "failed: not mallory"),
        (
            good(json!({"sub": 1})),
            "json: cannot unmarshal number into Go struct field idToken.sub of type string",
        ),
        (good(json!({"iss": "https://elsewhere"})), "invalid bearer token"),
    ] {
        let message = refusal(&portico, &token).await;
        assert!(message.contains(words), "{message}\n{words}");
        assert_eq!(identity(&portico, &token).await, Err(401), "{words}");
    }
    let metrics = portico.admin().get("/metrics").await.text();
    for series in [
        "apiserver_authentication_jwt_authenticator_latency_seconds_count{",
        "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds{",
        "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info{",
        "apiserver_authentication_config_controller_last_config_info{",
        "authentication_token_cache_fetch_total{status=\"ok\"} ",
        "authentication_token_cache_request_total{status=\"miss\"} ",
        "authentication_token_cache_active_fetch_count{status=\"in_flight\"} 0",
    ] {
        assert!(metrics.contains(series), "{series}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_separate_facade_uses_the_authentication_of_its_control_service() {
    let issuer = TokenIssuer::start(key()).await;
    let (launch, folder) = Launch::server().prepare_folder();
    let file = folder.join("authentication.yaml");
    let anonymous = json!({"enabled": true, "conditions": [{"path": "/livez"}]});
    write(&file, &[jwt(&issuer, by_sub())], Some(anonymous));
    let server = launch.args(&["--authentication-config", file.to_str().unwrap()]).start().await;
    let facade = Launch::facade(&server).start().await;
    let user = assert_accepted(&facade, &issuer.token(&claims(json!({"sub": "jane"})))).await;
    assert_eq!(user["username"], "oidc:jane");
    assert_eq!(facade.anonymous().get("/livez").await.status, 200);
    assert_eq!(
        facade.anonymous().get("/version").await.status,
        401,
        "the control service configures anonymous access"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_rotate_and_an_unavailable_issuer_causes_no_delay() {
    let mut issuer = TokenIssuer::start(key()).await;
    let portico = configured(&[jwt(&issuer, by_sub())], None).0.start().await;
    let first = issuer.token(&claims(json!({"sub": "first"})));
    assert_accepted(&portico, &first).await;
    let fetches = issuer.fetches();
    issuer.rotate(key());
    let second = issuer.token(&claims(json!({"sub": "second"})));
    assert_eq!(assert_accepted(&portico, &second).await["username"], "oidc:second");
    assert!(issuer.fetches() > fetches, "an unknown key id fetches the keys again");
    issuer.stop().await;
    issuer.rotate(key());
    let third = issuer.token(&claims(json!({"sub": "third"})));
    assert_eq!(identity(&portico, &third).await, Err(401));
    eventually("tokens are refused without waiting for the issuer", || async {
        let begin = std::time::Instant::now();
        let _ = refusal(&portico, &third).await;
        if begin.elapsed() < Duration::from_millis(500) { Ok(()) } else { Err(begin.elapsed()) }
    })
    .await;
    let again = issuer.token(&claims(json!({"sub": "third"})));
    issuer.resume().await;
    assert_eq!(assert_accepted(&portico, &again).await["username"], "oidc:third");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_issuer_affects_only_its_tokens() {
    let mut away = TokenIssuer::start(key()).await;
    let here = TokenIssuer::start(key()).await;
    away.stop().await;
    let portico = configured(&[jwt(&away, by_sub()), jwt(&here, by_sub())], None).0.start().await;
    assert_accepted(&portico, &here.token(&claims(json!({"sub": "jane"})))).await;
    let token = away.token(&claims(json!({"sub": "joe"})));
    let message = refusal(&portico, &token).await;
    assert!(message.contains("oidc: authenticator not initialized"), "{message}");
    away.resume().await;
    assert_eq!(assert_accepted(&portico, &token).await["username"], "oidc:joe");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_valid_file_is_reloaded_once_its_issuers_are_reached() {
    let (one, two) = (TokenIssuer::start(key()).await, TokenIssuer::start(key()).await);
    let (launch, file) = configured(&[jwt(&one, by_sub())], None);
    let portico = launch.start().await;
    let (of_one, of_two) = (one.token(&claims(json!({"sub": "a"}))), two.token(&claims(json!({"sub": "b"}))));
    assert_accepted(&portico, &of_one).await;
    assert_eq!(identity(&portico, &of_two).await, Err(401));
    write(&file, &[jwt(&one, json!({"username": {}}))], None);
    portico.signal(Signal::HUP);
    let failed = "apiserver_authentication_config_controller_automatic_reloads_total{status=\"failure\",";
    eventually("the failed reload is counted", || async {
        let metrics = portico.admin().get("/metrics").await.text();
        if metrics.contains(failed) { Ok(()) } else { Err(metrics.len()) }
    })
    .await;
    assert_accepted(&portico, &one.token(&claims(json!({"sub": "c"})))).await;
    write(&file, &[jwt(&two, by_sub())], None);
    portico.signal(Signal::HUP);
    assert_eq!(assert_accepted(&portico, &of_two).await["username"], "oidc:b");
    assert_eq!(identity(&portico, &one.token(&claims(json!({"sub": "d"})))).await, Err(401));
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_may_be_distributed_claims() {
    let issuer = TokenIssuer::start(key()).await;
    issuer.set_claims(&issuer.token(&claims(json!({"groups": ["far"]}))));
    let portico = configured(&[jwt(&issuer, by_sub())], None).0.start().await;
    let source = json!({"endpoint": format!("{}/claims", issuer.url()), "access_token": "x"});
    let token = issuer.token(&claims(json!({"sub": "jane",
        "_claim_names": {"groups": "src"}, "_claim_sources": {"src": source}})));
    let user = assert_accepted(&portico, &token).await;
    assert_eq!(user["groups"], json!(["oidc:far", "system:authenticated"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_configure_one_issuer_and_exclude_a_file() {
    let issuer = TokenIssuer::start(key()).await;
    let (launch, folder) = Launch::new().prepare_folder();
    let ca = folder.join("ca.crt");
    std::fs::write(&ca, &issuer.ca).unwrap();
    let flags = [
        "--oidc-issuer-url",
        issuer.url(),
        "--oidc-client-id",
        "us",
        "--oidc-ca-file",
        ca.to_str().unwrap(),
        "--oidc-signing-algs",
        "ES256",
        "--oidc-groups-claim",
        "groups",
        "--oidc-required-claim",
        "hd=example.org",
    ];
    let portico = launch.args(&flags).start().await;
    let user = assert_accepted(
        &portico,
        &issuer.token(&claims(json!({"sub": "j", "groups": "g", "hd": "example.org"}))),
    )
    .await;
    assert_eq!((&user["username"], &user["groups"][0]), (&json!(format!("{}#j", issuer.url())), &json!("g")));
    let message = refusal(&portico, &issuer.token(&claims(json!({"sub": "j"})))).await;
    assert!(message.contains("oidc: required claim hd not present in ID token"), "{message}");
    let (launch, _) = configured(&[], None);
    for (launch, words) in [
        (launch.args(&flags), "authentication-config file and oidc-* flags are mutually exclusive"),
        (Launch::new().args(&flags[..2]), "must be specified together when any oidc-* flags are set"),
        (
            configured(&[], Some(json!({"enabled": true}))).0.args(&["--anonymous-auth=true"]),
            "--anonymous-auth flag cannot be set",
        ),
        (configured(&[json!({})], None).0, "jwt[0].issuer.url: Required value"),
    ] {
        let (code, _, message) = launch.run().await;
        assert!(code.is_some_and(|code| code != 0) && message.contains(words), "{message}\n{words}");
    }
}
