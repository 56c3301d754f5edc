//! Controllers without kube-controller-manager: namespaces are emptied and deleted, dependents are deleted with their owners.

use portico_tests::backend::ReceivedRequest;
use portico_tests::http::Http;
use portico_tests::objects::{API_SERVICES, CONFIG_MAPS};
use portico_tests::{Backend, Behavior, Launch, Portico, wait_until};
use serde_json::{Value, json};

const NAMESPACES: &str = "/api/v1/namespaces";

fn config_map(name: &str, owner: Option<(&str, &str)>) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    if let Some((owner, uid)) = owner {
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": true,
        }]);
    }
    object
}

async fn code(http: &Http, path: &str) -> u16 {
    http.get(path).await.status.as_u16()
}

async fn create_config_map(http: &Http, name: &str, owner: Option<(&str, &str)>) -> String {
    let created = http.post(CONFIG_MAPS, &config_map(name, owner)).await.json();
    created["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// Creates an owner with two dependents, one of which has a dependent itself.
async fn create_family(http: &Http) {
    let owner = create_config_map(http, "owner", None).await;
    let a = create_config_map(http, "a", Some(("owner", &owner))).await;
    create_config_map(http, "b", Some(("owner", &owner))).await;
    create_config_map(http, "below-a", Some(("a", &a))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_of_disabled_kinds_do_not_block_others() {
    let off = ["batch/v1", "policy/v1", "certificates.k8s.io/v1", "admissionregistration.k8s.io/v1"]
        .map(|version| format!("{version}=false"))
        .join(",");
    let portico = Launch::new().args(&["--runtime-config", &off]).start().await;
    let admin = portico.admin();
    assert_eq!(code(&admin, "/readyz").await, 200);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}});
    assert_eq!(admin.post(NAMESPACES, &namespace).await.status, 201);
    let path = format!("{NAMESPACES}/gone");
    wait_until("the namespace's service account is created", || async {
        code(&admin, &format!("{path}/serviceaccounts/default")).await == 200
    })
    .await;
    admin.delete(&path).await;
    wait_until("the namespace is deleted", || async { code(&admin, &path).await == 404 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_namespace_reports_its_remaining_content() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    admin.post(NAMESPACES, &json!({"metadata": {"name": "demo"}})).await;
    let inside = "/api/v1/namespaces/demo/configmaps";
    admin.post(inside, &config_map("free", None)).await;
    let mut finalized = config_map("held", None);
    finalized["metadata"]["finalizers"] = json!(["example.com/hold"]);
    admin.post(inside, &finalized).await;
    let demo = format!("{NAMESPACES}/demo");
    assert_eq!(admin.delete(&demo).await.status, 200);
    wait_until("the namespace reports its remaining content", async || {
        let reported = admin.get(&demo).await.text();
        reported.contains("configmaps. has 1 resource instances")
            && reported.contains("example.com/hold in 1")
    })
    .await;
    assert_eq!(code(&admin, &format!("{inside}/free")).await, 404);
    admin.merge(&format!("{inside}/held"), &json!({"metadata": {"finalizers": null}})).await;
    wait_until("the namespace is deleted", async || code(&admin, &demo).await == 404).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_namespace_gets_its_service_account_and_the_root_ca() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    admin.post(NAMESPACES, &json!({"metadata": {"name": "fresh"}})).await;
    for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
        let path = format!("{NAMESPACES}/fresh/{path}");
        wait_until("the object is created", async || code(&admin, &path).await == 200).await;
        admin.delete(&path).await;
        wait_until("the object is created again", async || code(&admin, &path).await == 200).await;
    }
    let published = admin.get(&format!("{NAMESPACES}/fresh/configmaps/kube-root-ca.crt")).await.json();
    assert_eq!(published["data"]["ca.crt"].as_str().unwrap().as_bytes(), portico.ca());
}

#[tokio::test(flavor = "multi_thread")]
async fn dependents_are_deleted_in_background_or_foreground() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    for policy in ["Background", "Foreground"] {
        create_family(&admin).await;
        let answer = admin.delete(&format!("{CONFIG_MAPS}/owner?propagationPolicy={policy}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        for name in ["owner", "a", "b", "below-a"] {
            let path = format!("{CONFIG_MAPS}/{name}");
            wait_until(&format!("{policy}: {name} is deleted"), async || code(&admin, &path).await == 404)
                .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_stay_and_lose_their_owner() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    create_family(&admin).await;
    admin.delete(&format!("{CONFIG_MAPS}/owner?propagationPolicy=Orphan")).await;
    wait_until("the owner is deleted", async || code(&admin, &format!("{CONFIG_MAPS}/owner")).await == 404)
        .await;
    for name in ["a", "b"] {
        let orphan = admin.get(&format!("{CONFIG_MAPS}/{name}")).await.json();
        assert_eq!(orphan["metadata"].get("ownerReferences"), None, "{orphan}");
    }
    assert_eq!(code(&admin, &format!("{CONFIG_MAPS}/below-a")).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_collected_after_a_restart() {
    let mut portico = Launch::new().arg("--controllers=").start().await;
    create_family(&portico.admin()).await;
    assert_eq!(portico.admin().delete(&format!("{CONFIG_MAPS}/owner")).await.status, 200);
    assert_eq!(code(&portico.admin(), &format!("{CONFIG_MAPS}/a")).await, 200);
    portico.stop().await;
    let portico = Launch::new().with_data_of(&portico).start().await;
    for name in ["a", "b", "below-a"] {
        let path = format!("{CONFIG_MAPS}/{name}");
        wait_until("the dependent is garbage-collected", async || code(&portico.admin(), &path).await == 404)
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_expire_after_their_last_write() {
    let portico = Launch::new().args(&["--event-ttl=1s", "--compaction-interval=100ms"]).start().await;
    let admin = portico.admin();
    let event = json!({
        "metadata": {"name": "e.1"}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Tested", "message": "it was", "type": "Normal",
    });
    let events = format!("{NAMESPACES}/default/events");
    assert_eq!(admin.post(&events, &event).await.status, 201);
    admin.post(CONFIG_MAPS, &config_map("stays", None)).await;
    wait_until("the event expires", async || code(&admin, &format!("{events}/e.1")).await == 404).await;
    assert_eq!(code(&admin, &format!("{CONFIG_MAPS}/stays")).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kubernetes_service_and_front_proxy_ca_are_published() {
    let portico = Launch::new().arg("--service-cluster-ip-range=10.9.0.0/24").start().await;
    let admin = portico.admin();
    let service = format!("{NAMESPACES}/default/services/kubernetes");
    wait_until("the service kubernetes exists", async || {
        admin.get(&service).await.json()["spec"]["clusterIP"] == "10.9.0.1"
    })
    .await;
    let port = portico.https().port();
    assert_eq!(admin.get(&service).await.json()["spec"]["ports"][0]["targetPort"], port);
    admin.delete(&service).await;
    wait_until("the service kubernetes exists again", async || code(&admin, &service).await == 200).await;
    let range = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes";
    wait_until("the service IP range is ready", async || {
        admin.get(range).await.json()["status"]["conditions"][0]["status"] == "True"
    })
    .await;
    let reported = format!("{NAMESPACES}/kube-system/configmaps/extension-apiserver-authentication");
    wait_until("the settings for backends are published", async || code(&admin, &reported).await == 200)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn namespace_deletion_includes_aggregated_objects() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let backend = Backend::start("away.example.com").await;
    admin.post(API_SERVICES, &backend.api_service()).await;
    wait_until("the group is served", async || {
        code(&admin, "/apis/away.example.com/v1/namespaces/demo/flunders").await == 200
    })
    .await;
    backend.set_behavior(Behavior::Code(500));
    admin.post(NAMESPACES, &json!({"metadata": {"name": "demo"}})).await;
    let demo = format!("{NAMESPACES}/demo");
    admin.delete(&demo).await;
    wait_until("the namespace reports the unavailable API", async || {
        admin.get(&demo).await.text().contains("away.example.com/v1: the backend returned 500")
    })
    .await;
    backend.set_behavior(Behavior::Normal);
    wait_until("the namespace is deleted", async || code(&admin, &demo).await == 404).await;
    let requests = backend.requests();
    let is_namespace_controller = |seen: &ReceivedRequest| {
        seen.target == "/apis/away.example.com/v1/namespaces/demo/flunders"
            && seen.all("x-remote-user") == ["system:serviceaccount:kube-system:namespace-controller"]
    };
    assert!(requests.iter().any(is_namespace_controller), "{requests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workloads_find_the_advertised_address_and_the_port_that_was_bound() {
    let portico = Launch::new().args(&["--advertise-address", "192.0.2.7"]).start().await;
    let admin = portico.admin();
    let port = portico.https().port();
    let endpoints = format!("{NAMESPACES}/default/endpoints/kubernetes");
    wait_until("the Endpoints exist", async || code(&admin, &endpoints).await == 200).await;
    let subsets = admin.get(&endpoints).await.json()["subsets"].clone();
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    assert_eq!(subsets, json!([{"addresses": [{"ip": "192.0.2.7"}], "ports": ports}]));
    let slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    wait_until("the EndpointSlice exists", async || code(&admin, slice).await == 200).await;
    assert_eq!(admin.get(slice).await.json()["endpoints"][0]["addresses"], json!(["192.0.2.7"]));
}
