//! Comparison with kube-apiserver's recorded results for tokens, row by row (`.ci/record/oidc`).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portico_tests::token_issuer::{IssuerKey, TokenIssuer};
use portico_tests::{Launch, eventually};
use rcgen::{KeyPair, PublicKeyData as _, SigningKey as _};
use serde_json::{Value, json};

const TABLE: &str = include_str!("recorded/oidc.jsonl");
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
/// ID of the signing key.
const KEY: &str = "k";

fn set(key: &KeyPair) -> Vec<u8> {
    let (x, y) = key.der_bytes()[1..].split_at(32);
    let jwk = json!({"kty": "EC", "crv": "P-256", "kid": KEY, "use": "sig", "alg": "ES256",
        "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)});
    json!({"keys": [jwk]}).to_string().into_bytes()
}

/// Returns r and s of an ECDSA signature in DER, 32 bytes each.
fn raw(der: &[u8]) -> Vec<u8> {
    let (mut rest, mut raw) = (&der[2..], Vec::new());
    for _ in 0..2 {
        let (number, behind) = rest[2..].split_at(usize::from(rest[1]));
        let digits = &number[number.len().saturating_sub(32)..];
        raw.extend(std::iter::repeat_n(0, 32 - digits.len()));
        raw.extend(digits);
        rest = behind;
    }
    raw
}

fn token(key: &KeyPair, issuer: &str, row: &Value) -> String {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let mut claims = json!({"iss": issuer, "aud": "us", "exp": now + 3600});
    let mut header = json!({"alg": "ES256", "kid": KEY});
    for (all, more) in [(&mut claims, &row["claims"]), (&mut header, &row["header"])] {
        let more = more.as_object().cloned().unwrap_or_default();
        all.as_object_mut().unwrap().extend(more);
    }
    claims.as_object_mut().unwrap().retain(|_, value| value != "absent");
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encode(&header), encode(&claims));
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(raw(&key.sign(signed.as_bytes()).unwrap())))
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_accepted_and_refused_as_upstream_does() {
    let key = KeyPair::generate().unwrap();
    let unused = Box::new(|_: &Value| String::new());
    let issuer = TokenIssuer::start(IssuerKey { sign: unused, set: set(&key) }).await;
    let rows: Vec<Value> = TABLE.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let url = |n: usize| format!("{}/{n}", issuer.url());
    let jwt: Vec<Value> = rows
        .iter()
        .enumerate()
        .map(|(n, row)| {
            let mut jwt = row["jwt"].clone();
            let mut at = json!({"url": url(n), "audiences": ["us"], "certificateAuthority": issuer.ca});
            at.as_object_mut().unwrap().extend(jwt["issuer"].as_object().cloned().unwrap_or_default());
            jwt["issuer"] = at;
            jwt
        })
        .collect();
    let (launch, folder) = Launch::new().prepare_folder();
    let file = folder.join("authentication.json");
    let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt});
    std::fs::write(&file, config.to_string()).unwrap();
    let portico = launch.args(&["--authentication-config", file.to_str().unwrap()]).start().await;
    let admin = portico.admin();
    let mut differences = Vec::new();
    for (n, row) in rows.iter().enumerate() {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token(&key, &url(n), row)}});
        let answered = eventually("the issuer's keys are fetched", || async {
            let answered = admin.post(REVIEWS, &review).await.json()["status"].clone();
            if answered.to_string().contains("not initialized") { Err(answered) } else { Ok(answered) }
        })
        .await;
        let mut answered: Value =
            serde_json::from_str(&answered.to_string().replace(&url(n), "ISSUER")).unwrap();
        let mut expected = row["status"].clone();
        // The audiences depend on the server.
        for status in [&mut answered, &mut expected] {
            status.as_object_mut().unwrap().remove("audiences");
        }
        if answered != expected {
            differences.push(format!("{n}: {row}\n  here {answered}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
