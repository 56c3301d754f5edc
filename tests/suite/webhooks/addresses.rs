//! Addresses of webhooks: Services that need not exist, annotations, and the credentials of calls.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::pki::Authority;
use portico_tests::{Backend, Launch};
use serde_json::{Value, json};

use super::setup::{CONFIGURATIONS, MUTATING, Setup, VALIDATING};

const URLS: &str = "portico.dev/backend-urls";
const SERVER_NAME: &str = "portico.dev/backend-server-name";

/// Returns a configuration of one webhook behind the Service `default/backend`.
fn behind_service(setup: &Setup, backend: &Backend, annotations: &Value) -> Value {
    let service = json!({"namespace": "default", "name": "backend", "path": "/admission/deny"});
    let client = json!({"service": service, "caBundle": STANDARD.encode(&backend.ca)});
    let webhook = setup.webhook("hook", "", &json!({"clientConfig": client}));
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": VALIDATING.0,
        "metadata": {"name": "hooks", "annotations": annotations}, "webhooks": [webhook]})
}

fn configurations() -> String {
    format!("{CONFIGURATIONS}/{}", VALIDATING.1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_may_contain_backend_urls() {
    let setup = Setup::start().await;
    let backend = Backend::start("hooks.example.com").await;
    let annotations = json!({URLS: backend.url()});
    let created = setup.admin.post(&configurations(), &behind_service(&setup, &backend, &annotations)).await;
    assert_eq!(created.status, 201, "{}", created.text());
    assert_eq!(
        setup.create("m").await.status,
        418,
        "the webhook is called although the Service does not exist"
    );
    let seen = backend.last_request();
    assert_eq!(seen.target, "/admission/deny?timeout=10s");
    assert_eq!(seen.all("host"), ["backend.default.svc:443"]);
    assert_eq!(seen.all("user-agent"), ["kube-apiserver-admission"]);
    setup.admin.delete(&format!("{}/hooks", configurations())).await;

    let named = Backend::with_names("hooks.example.com", &["hooks.example.com"]).await;
    let mut annotations = json!({URLS: named.url()});
    let path = format!("{}/hooks", configurations());
    setup.admin.post(&configurations(), &behind_service(&setup, &named, &annotations)).await;
    let refused = setup.create("m").await;
    assert!(
        refused.text().contains("is valid for hooks.example.com, not backend.default.svc"),
        "{}",
        refused.text()
    );
    setup.admin.delete(&path).await;
    annotations[SERVER_NAME] = json!("hooks.example.com");
    setup.admin.post(&configurations(), &behind_service(&setup, &named, &annotations)).await;
    assert_eq!(setup.create("m").await.status, 418, "the certificate has the configured name");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_backend_annotations_are_refused() {
    let setup = Setup::start().await;
    let seventeen = ["https://a.example.com"; 17].join(",");
    for (key, value) in [
        (URLS, "http://a.example.com"),
        (URLS, "https://user@a.example.com"),
        (URLS, "https://a.example.com/path"),
        (URLS, "https://169.254.169.254"),
        (URLS, seventeen.as_str()),
        (URLS, ""),
        (SERVER_NAME, "not valid"),
    ] {
        let configuration = behind_service(&setup, &setup.hooks, &json!({key: value}));
        let refused = setup.admin.post(&configurations(), &configuration).await;
        let cause = refused.status_body(422, "Invalid")["details"]["causes"][0].clone();
        assert_eq!(cause["field"], format!("metadata.annotations[{key}]"), "{value}");
    }
    let mut by_url = behind_service(&setup, &setup.hooks, &json!({URLS: "https://a.example.com"}));
    by_url["webhooks"][0] = setup.webhook("hook", "allow", &json!({}));
    let refused = setup.admin.post(&configurations(), &by_url).await;
    assert_eq!(refused.status, 422, "no webhook is behind a Service: {}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_uses_the_urls_of_its_annotation() {
    let setup = Setup::start().await;
    let backend = Backend::start("backed.example.com").await;
    let created =
        setup.admin.post("/apis/apiregistration.k8s.io/v1/apiservices", &backend.api_service()).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let created = setup.admin.post(&configurations(), &behind_service(&setup, &backend, &json!({}))).await;
    assert_eq!(created.status, 201, "{}", created.text());
    portico_tests::wait_until("the webhook is reached through its route", || async {
        setup.create("m").await.status == 418
    })
    .await;
    setup.admin.delete(&format!("{}/hooks", configurations())).await;
    assert_eq!(setup.admin.get(&format!("{CONFIG_MAPS}/m")).await.status, 404);
}

/// Creates a Service `default/backend` without selector, and an EndpointSlice with this address.
async fn create_service(setup: &Setup, cluster_ip: &Value, address: SocketAddr) {
    let service = json!({"metadata": {"name": "backend"},
        "spec": {"clusterIP": cluster_ip, "ports": [{"name": "https", "port": 443}]}});
    let created = setup.admin.post("/api/v1/namespaces/default/services", &service).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let slice = json!({"metadata": {"name": "backend-1", "labels": {"kubernetes.io/service-name": "backend"}},
        "addressType": "IPv4", "endpoints": [{"addresses": [address.ip()]}],
        "ports": [{"name": "https", "port": address.port()}]});
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let created = setup.admin.post(slices, &slice).await;
    assert_eq!(created.status, 201, "{}", created.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_reached_at_its_endpoints() {
    let Some(backend) = Backend::on_own_address("hooks.example.com").await else { return };
    for cluster_ip in [Value::Null, json!("None")] {
        let setup = Setup::start().await;
        create_service(&setup, &cluster_ip, backend.address).await;
        let configuration = behind_service(&setup, &backend, &json!({}));
        let created = setup.admin.post(&configurations(), &configuration).await;
        assert_eq!(created.status, 201, "{}", created.text());
        portico_tests::wait_until("the webhook denies", || async { setup.create("m").await.status == 418 })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_headless_service_is_refused_by_the_flag_that_wants_cluster_ips() {
    let setup = Setup::launch(Launch::new().arg("--enable-aggregator-routing=false")).await;
    create_service(&setup, &json!("None"), ([192, 0, 2, 1], 443).into()).await;
    let configuration = behind_service(&setup, &setup.hooks, &json!({}));
    assert_eq!(setup.admin.post(&configurations(), &configuration).await.status, 201);
    portico_tests::wait_until("the refusal names the flag", || async {
        let refused = setup.create("m").await;
        refused.status == 500 && refused.text().contains("--enable-aggregator-routing=false")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_aggregated_groups_are_not_sent_to_webhooks() {
    let setup = Setup::start().await;
    let backend = Backend::start("backed.example.com").await;
    setup.admin.post("/apis/apiregistration.k8s.io/v1/apiservices", &backend.api_service()).await;
    let path = backend.path("/namespaces/default/flunders");
    portico_tests::wait_until("the backend is reached", || async {
        setup.admin.get(&path).await.status == 200
    })
    .await;
    let everything =
        json!([{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}]);
    setup.configure_one(VALIDATING, "deny", json!({"rules": everything})).await;
    assert_eq!(setup.create("m").await.status, 418, "local objects are matched");
    let answer = setup.admin.post(&path, &json!({"kind": "Flunder"})).await;
    assert_eq!(answer.status, 200, "requests to a backend are not matched: {}", answer.text());
    for resource in [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    ] {
        let deleted = setup.admin.delete(&format!("{CONFIGURATIONS}/{resource}")).await;
        assert_eq!(deleted.status, 200, "{resource}: {}", deleted.text());
    }
    assert_eq!(setup.create("m").await.status, 201, "a webhook does not match its own configuration");
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_called_as_the_users_of_their_hosts() {
    let (launch, folder) = Launch::new().prepare_folder();
    let clients = Authority::new("webhook-clients");
    let certified = Backend::kubelet(IpAddr::V4(Ipv4Addr::LOCALHOST), &clients.pem).await;
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let pair = clients.client("kube-apiserver", &[]);
    let (cert, key) = (file("hook.crt", &pair.cert), file("hook.key", &pair.key));
    let token = file("token", "first");
    let users = json!([
        {"name": certified.address, "user": {"client-certificate": cert, "client-key": key}},
        {"name": "*", "user": {"tokenFile": token}},
    ]);
    let kubeconfig = file("webhooks.kubeconfig", &json!({"kind": "Config", "users": users}).to_string());
    let configuration = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [{
        "name": "ValidatingAdmissionWebhook",
        "configuration": {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": kubeconfig},
    }]});
    let configuration = file("admission.yaml", &configuration.to_string());
    let setup = Setup::launch(launch.args(&["--admission-control-config-file", &configuration])).await;
    setup.configure_one(VALIDATING, "deny", json!({})).await;
    assert_eq!(setup.create("m").await.status, 418);
    assert_eq!(setup.hooks.last_request().all("authorization"), ["Bearer first"]);
    setup.admin.delete(&format!("{}/hooks", configurations())).await;

    let client = json!({"url": format!("https://{}/admission/deny", certified.address), "caBundle": STANDARD.encode(&certified.ca)});
    setup.configure_one(VALIDATING, "", json!({"clientConfig": client})).await;
    let denied = setup.create("m").await;
    assert_eq!(denied.status, 418, "the webhook accepts authenticated clients only: {}", denied.text());
    assert!(certified.last_request().all("authorization").is_empty(), "another host, another user");
    setup.admin.delete(&format!("{}/hooks", configurations())).await;

    // The author of a configuration chooses these addresses: they get no credentials that are meant for the Service.
    let named = Backend::start("hooks.example.com").await;
    let annotations = json!({URLS: named.url()});
    let created = setup.admin.post(&configurations(), &behind_service(&setup, &named, &annotations)).await;
    assert_eq!(created.status, 201, "{}", created.text());
    assert_eq!(setup.create("m").await.status, 418);
    assert!(named.last_request().all("authorization").is_empty(), "{:?}", named.last_request());
    setup.admin.delete(&format!("{}/hooks", configurations())).await;

    setup.configure_one(MUTATING, "deny", json!({})).await;
    assert_eq!(setup.create("m").await.status, 418);
    let seen = setup.hooks.last_request();
    assert!(seen.all("authorization").is_empty(), "the other plugin has its own file, or none");
}
