//! Front proxy without any flag: a CA and names in a ConfigMap, which aggregated API servers trust, and a matching certificate.
//! No other client can act as the front proxy, and the facade trusts no identity headers.

use std::sync::Arc;

use portico_kit::pki::CertInfo;
use portico_tests::http::Http;
use portico_tests::objects::API_SERVICES;
use portico_tests::pki::{Authority, CertPair};
use portico_tests::{Backend, Launch, Portico, eventually, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

const PUBLISHED_CONFIG: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
const SELF_REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
/// Forged identity headers of an administrator.
const FORGED_HEADERS: [(&str, &str); 2] = [("x-remote-user", "root"), ("x-remote-group", "system:masters")];

/// Returns the content of the ConfigMap, once it exists.
async fn published_config(http: &Http) -> Value {
    eventually("the settings for backends are published", || async {
        let answer = http.get(PUBLISHED_CONFIG).await;
        if answer.status == 200 { Ok(answer.json()["data"].clone()) } else { Err(answer.text()) }
    })
    .await
}

fn ca_of(published: &Value) -> String {
    published["requestheader-client-ca-file"].as_str().unwrap().to_owned()
}

async fn served(http: &Http, backend: &Backend) {
    let created = http.post(API_SERVICES, &backend.api_service()).await;
    assert_eq!(created.status, 201, "{}", created.text());
    reaches(http, backend).await;
}

async fn reaches(http: &Http, backend: &Backend) {
    eventually("requests reach the backend", || async {
        let answer = http.get(&backend.path("/flunders")).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

/// Returns the client certificate of the backend's newest request.
fn presented_certificate(backend: &Backend) -> Arc<CertInfo> {
    backend.last_request().client.unwrap()
}

fn pair_in(portico: &Portico, name: &str) -> CertPair {
    let read =
        |end: &str| std::fs::read_to_string(portico.data().join("certs").join(format!("{name}.{end}")));
    CertPair { cert: read("crt").unwrap(), key: read("key").unwrap() }
}

async fn identity(http: &Http, headers: &[(&str, &str)]) -> Value {
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let mut request = http::Request::post(SELF_REVIEWS).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = http_body_util::Full::new(review.to_string().into());
    http.fetch(request.body(body).unwrap()).await.unwrap().json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_flags_is_a_front_proxy_like_kubeadms() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let published = published_config(&admin).await;
    let mut headers: Vec<(&str, &str)> = published
        .as_object()
        .unwrap()
        .iter()
        .filter(|(key, _)| !key.ends_with("client-ca-file"))
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap()))
        .collect();
    headers.sort_unstable();
    let expected = [
        ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
        ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
        ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
        ("requestheader-username-headers", r#"["X-Remote-User"]"#),
    ];
    assert_eq!(headers, expected);
    let ca = ca_of(&published);
    let clients = published["client-ca-file"].as_str().unwrap_or_default();
    assert!(!clients.contains(ca.trim()), "the front proxy CA is not a client CA");

    let backend = Backend::with_client_ca("told.example.com", &ca).await;
    served(&admin, &backend).await;
    let seen = presented_certificate(&backend);
    assert_eq!((seen.common_name.as_str(), seen.organizations.len()), ("front-proxy-client", 0));
    assert_eq!(backend.last_request().all("x-remote-user"), ["admin"]);
    // The control service has a certificate as well: its probe succeeded.
    wait_until("the APIService is available", async || {
        let shown = admin.get(&format!("{API_SERVICES}/{}", backend.name())).await.json();
        shown["status"]["conditions"][0]["status"] == "True"
    })
    .await;
    let key = portico.data().join("certs/front-proxy-ca.key");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(key).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_client_can_act_as_the_front_proxy() {
    let (launch, folder) = Launch::new().prepare_folder();
    let clients = Authority::new("clients");
    let file = folder.join("clients.crt");
    std::fs::write(&file, &clients.pem).unwrap();
    let portico = launch.args(&["--client-ca-file", file.to_str().unwrap()]).start().await;
    let admin = portico.admin();
    let backend = Backend::with_client_ca("posed.example.com", &ca_of(&published_config(&admin).await)).await;
    served(&admin, &backend).await;

    // A certificate of the client CA with the name: a user of that name at the facade, and refused by the backend.
    let named = clients.client("front-proxy-client", &["system:masters"]);
    let poser = portico.with_certificate(&named);
    let user = identity(&poser, &FORGED_HEADERS).await["status"]["userInfo"].clone();
    assert_eq!(user["username"], "front-proxy-client", "{user}");
    let direct = Http::with_certificate(backend.address, backend.ca.as_bytes(), Some(&named));
    let headers = FORGED_HEADERS
        .iter()
        .fold(http::Request::get("/"), |request, (name, value)| request.header(*name, *value));
    let request = headers.body(http_body_util::Full::default()).unwrap();
    let before = backend.requests().len();
    assert!(direct.fetch(request).await.is_err(), "the backend speaks with front proxies alone");
    assert_eq!(backend.requests().len(), before);
    // Its identity headers are not forwarded by the facade.
    let request = FORGED_HEADERS
        .iter()
        .fold(http::Request::get(backend.path("/flunders")), |request, (name, value)| {
            request.header(*name, *value)
        });
    poser.fetch(request.body(http_body_util::Full::default()).unwrap()).await.unwrap();
    assert_eq!(backend.last_request().all("x-remote-user"), ["front-proxy-client"]);
    assert_eq!(backend.last_request().all("x-remote-group"), ["system:masters", "system:authenticated"]);

    // The front proxy's own certificate is no identity at the facade, with or without headers.
    let own = portico.with_certificate(&pair_in(&portico, "front-proxy-client"));
    for headers in [&FORGED_HEADERS[..], &[]] {
        let answer = identity(&own, headers).await;
        assert_eq!(answer["code"], 401, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_front_proxy_ca_signs_no_other_requests() {
    let mut before = Portico::start().await;
    let certs = before.data().join("certs");
    assert!(before.stop().await.success());
    let path = |name: &str| certs.join(name).to_str().unwrap().to_owned();
    let (ca, key) = (path("front-proxy-ca.crt"), path("front-proxy-ca.key"));
    let files = ["--cluster-signing-cert-file", &ca, "--cluster-signing-key-file", &key];
    let (code, out, err) = Launch::new().with_data_of(&before).args(&files).run().await;
    assert!(code.is_some_and(|code| code != 0), "{out}{err}");
    assert!(err.contains("the front proxy's CA cannot sign certificate requests"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn separate_facades_keep_their_certificate_during_an_outage() {
    let mut server = Launch::server().start().await;
    let mut facade = Launch::facade(&server).start().await;
    let backend =
        Backend::with_client_ca("elsewhere.example.com", &ca_of(&published_config(&facade.admin()).await))
            .await;
    served(&facade.admin(), &backend).await;
    let first = presented_certificate(&backend);
    assert_eq!(first.common_name, "front-proxy-client");
    let of_server = CertInfo::from_pem("server", &pair_in(&server, "front-proxy-client").cert).unwrap();
    assert_ne!(first.fingerprint, of_server.fingerprint, "keys do not travel");

    let state = facade.data().join("facade-state/state");
    wait_until("the facade's state is on disk", async || {
        let state = std::fs::read(&state).unwrap_or_default();
        let group = b"elsewhere.example.com";
        state.windows(group.len()).any(|part| part == group)
    })
    .await;
    server.kill();
    facade.stop().await;
    facade.restart().await;
    reaches(&facade.admin(), &backend).await;
    assert_eq!(
        presented_certificate(&backend).fingerprint,
        first.fingerprint,
        "the certificate on disk is used"
    );

    server.restart().await;
    eventually("the facade presents a new certificate", || async {
        facade.admin().get(&backend.path("/flunders")).await;
        let now = presented_certificate(&backend);
        if now.fingerprint == first.fingerprint { Err("the first certificate is presented") } else { Ok(()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expiring_certificate_is_renewed_without_a_restart() {
    let mut portico = Portico::start().await;
    let ca = ca_of(&published_config(&portico.admin()).await);
    let backend = Backend::with_client_ca("renewed.example.com", &ca).await;
    served(&portico.admin(), &backend).await;
    let first = presented_certificate(&backend);

    let certs = portico.data().join("certs");
    let files = portico_kit::pki::PairFiles::new(&certs, "front-proxy-client");
    let read = |name: &str| std::fs::read_to_string(certs.join(name)).unwrap();
    let (ca_pem, ca_key) = (read("front-proxy-ca.crt"), read("front-proxy-ca.key"));
    let authority = portico_kit::pki::Authority::from_pem("ca", &ca_pem, &ca_key).unwrap();
    // Two thirds of its lifetime have passed: all certificates start five minutes ago.
    let life = std::time::Duration::from_secs(60);
    let due = portico_kit::pki::CertProfile::client("front-proxy-client", &[], life);
    files.write(&authority.issue(&due).unwrap()).unwrap();
    portico.signal(Signal::HUP);
    let second = eventually("the certificate in the folder is presented", || async {
        portico.admin().get(&backend.path("/flunders")).await;
        let now = presented_certificate(&backend);
        if now.fingerprint == first.fingerprint { Err("the first certificate is presented") } else { Ok(now) }
    })
    .await;

    portico.stop().await;
    portico.restart().await;
    reaches(&portico.admin(), &backend).await;
    let third = presented_certificate(&backend);
    assert_ne!(third.fingerprint, second.fingerprint);
    assert!(third.not_after > second.not_after + 300 * 86_400, "{third:?}");
    assert_eq!(ca_of(&published_config(&portico.admin()).await), ca, "the CA stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_take_precedence_and_can_disable_the_front_proxy() {
    let off = Launch::new().arg("--own-front-proxy=false").start().await;
    let settings = published_config(&off.admin()).await;
    assert!(settings.as_object().unwrap().keys().all(|key| !key.starts_with("requestheader")), "{settings}");
    assert!(!off.data().join("certs/front-proxy-ca.crt").exists());

    let mut before = Launch::new().start().await;
    ca_of(&published_config(&before.admin()).await);
    assert!(before.stop().await.success());
    let after = Launch::new().with_data_of(&before).arg("--own-front-proxy=false").start().await;
    wait_until("the settings for backends are no longer published", async || {
        let settings = published_config(&after.admin()).await;
        settings.as_object().unwrap().keys().all(|key| !key.starts_with("requestheader"))
    })
    .await;

    let (launch, folder) = Launch::new().prepare_folder();
    let own_ca = Authority::new("given-front-proxy-ca");
    let ca = folder.join("given.crt");
    std::fs::write(&ca, &own_ca.pem).unwrap();
    let flags =
        ["--requestheader-client-ca-file", ca.to_str().unwrap(), "--requestheader-username-headers=X-User"];
    let portico = launch.args(&flags).start().await;
    let settings = published_config(&portico.admin()).await;
    assert_eq!(ca_of(&settings).trim(), own_ca.pem.trim());
    assert_eq!(settings["requestheader-allowed-names"], "[]");
    assert!(!portico.data().join("certs/front-proxy-client.crt").exists());

    let both = ["--own-front-proxy=true", "--requestheader-allowed-names=a"];
    let (code, _, error) = Launch::new().args(&both).run().await;
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("--own-front-proxy"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_certificate_is_used_and_never_replaced() {
    let others = Authority::new("others");
    // The backend requires client certificates of this CA, and the control service probes the backend.
    let (launch, folder) = Launch::server().prepare_folder();
    let probing = others.client("probing", &[]);
    let (cert, key) = (folder.join("probing.crt"), folder.join("probing.key"));
    std::fs::write(&cert, &probing.cert).unwrap();
    std::fs::write(&key, &probing.key).unwrap();
    let files = [
        "--proxy-client-cert-file",
        cert.to_str().unwrap(),
        "--proxy-client-key-file",
        key.to_str().unwrap(),
    ];
    let server = launch.args(&files).start().await;
    let pair = others.client("others-front-proxy", &[]);
    let (launch, folder) = Launch::facade(&server).prepare_folder();
    let certs = folder.join("certs");
    std::fs::create_dir_all(&certs).unwrap();
    std::fs::write(certs.join("front-proxy-client.crt"), &pair.cert).unwrap();
    std::fs::write(certs.join("front-proxy-client.key"), &pair.key).unwrap();
    // The CA that the facade trusts is independent of the certificate that it presents.
    let file = folder.join("believed.crt");
    std::fs::write(&file, &others.pem).unwrap();
    let believed = ["--requestheader-client-ca-file", file.to_str().unwrap()];
    let more = ["--requestheader-username-headers=X-User", "--own-front-proxy=true", "--cert-dir"];
    let launch = launch.args(&believed).args(&more).arg(certs.to_str().unwrap());
    let facade = launch.start().await;
    let backend = Backend::with_client_ca("others.example.com", &others.pem).await;
    let created = facade.admin().post(API_SERVICES, &backend.api_service()).await;
    assert_eq!(created.status, 201, "{}", created.text());
    eventually("the foreign certificate is presented", || async {
        facade.admin().get(&backend.path("/flunders")).await;
        match backend.requests().last().and_then(|seen| seen.client.clone()) {
            Some(client) if client.common_name == "others-front-proxy" => Ok(()),
            shown => Err(format!("{shown:?}")),
        }
    })
    .await;
    assert_eq!(std::fs::read_to_string(certs.join("front-proxy-client.crt")).unwrap(), pair.cert);
}
