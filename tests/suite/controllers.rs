//! Controllers without kube-controller-manager: namespaces are emptied and deleted, dependents are deleted with their owners.

use portico_tests::backend::Seen;
use portico_tests::http::Http;
use portico_tests::objects::{API_SERVICES, CONFIG_MAPS};
use portico_tests::{Backend, Launch, Mood, Portico, until};
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

async fn made(http: &Http, name: &str, owner: Option<(&str, &str)>) -> String {
    let created = http.post(CONFIG_MAPS, &config_map(name, owner)).await.json();
    created["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// Creates an owner with two dependents, one of which has a dependent itself.
async fn family(http: &Http) {
    let owner = made(http, "owner", None).await;
    let a = made(http, "a", Some(("owner", &owner))).await;
    made(http, "b", Some(("owner", &owner))).await;
    made(http, "below-a", Some(("a", &a))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_whose_kinds_are_off_keep_no_other_from_working() {
    let off = ["batch/v1", "policy/v1", "certificates.k8s.io/v1", "admissionregistration.k8s.io/v1"]
        .map(|version| format!("{version}=false"))
        .join(",");
    let portico = Launch::new().args(&["--runtime-config", &off]).start().await;
    let admin = portico.admin();
    assert_eq!(code(&admin, "/readyz").await, 200);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}});
    assert_eq!(admin.post(NAMESPACES, &namespace).await.status, 201);
    let path = format!("{NAMESPACES}/gone");
    until("its account is made", || async {
        code(&admin, &format!("{path}/serviceaccounts/default")).await == 200
    })
    .await;
    admin.delete(&path).await;
    until("the namespace goes", || async { code(&admin, &path).await == 404 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_namespace_goes_once_its_content_is_gone_and_says_what_holds_it() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    admin.post(NAMESPACES, &json!({"metadata": {"name": "demo"}})).await;
    let inside = "/api/v1/namespaces/demo/configmaps";
    admin.post(inside, &config_map("free", None)).await;
    let mut held = config_map("held", None);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    admin.post(inside, &held).await;
    let demo = format!("{NAMESPACES}/demo");
    assert_eq!(admin.delete(&demo).await.status, 200);
    until("the namespace reports what holds it", async || {
        let reported = admin.get(&demo).await.text();
        reported.contains("configmaps. has 1 resource instances")
            && reported.contains("example.com/hold in 1")
    })
    .await;
    assert_eq!(code(&admin, &format!("{inside}/free")).await, 404);
    admin.merge(&format!("{inside}/held"), &json!({"metadata": {"finalizers": null}})).await;
    until("the namespace is gone", async || code(&admin, &demo).await == 404).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_namespace_gets_its_service_account_and_the_root_ca() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    admin.post(NAMESPACES, &json!({"metadata": {"name": "fresh"}})).await;
    for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
        let path = format!("{NAMESPACES}/fresh/{path}");
        until("it is made", async || code(&admin, &path).await == 200).await;
        admin.delete(&path).await;
        until("it is made again", async || code(&admin, &path).await == 200).await;
    }
    let published = admin.get(&format!("{NAMESPACES}/fresh/configmaps/kube-root-ca.crt")).await.json();
    assert_eq!(published["data"]["ca.crt"].as_str().unwrap().as_bytes(), portico.ca());
}

#[tokio::test(flavor = "multi_thread")]
async fn dependents_follow_their_owner_in_the_background_or_go_first() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    for policy in ["Background", "Foreground"] {
        family(&admin).await;
        let answer = admin.delete(&format!("{CONFIG_MAPS}/owner?propagationPolicy={policy}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        for name in ["owner", "a", "b", "below-a"] {
            let path = format!("{CONFIG_MAPS}/{name}");
            until(&format!("{policy}: {name} is gone"), async || code(&admin, &path).await == 404).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_stay_and_lose_their_owner() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    family(&admin).await;
    admin.delete(&format!("{CONFIG_MAPS}/owner?propagationPolicy=Orphan")).await;
    until("the owner is gone", async || code(&admin, &format!("{CONFIG_MAPS}/owner")).await == 404).await;
    for name in ["a", "b"] {
        let orphan = admin.get(&format!("{CONFIG_MAPS}/{name}")).await.json();
        assert_eq!(orphan["metadata"].get("ownerReferences"), None, "{orphan}");
    }
    assert_eq!(code(&admin, &format!("{CONFIG_MAPS}/below-a")).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_while_nobody_collected_is_collected_after_a_restart() {
    let mut portico = Launch::new().arg("--controllers=").start().await;
    family(&portico.admin()).await;
    assert_eq!(portico.admin().delete(&format!("{CONFIG_MAPS}/owner")).await.status, 200);
    assert_eq!(code(&portico.admin(), &format!("{CONFIG_MAPS}/a")).await, 200);
    portico.stop().await;
    let portico = Launch::new().on_data_of(&portico).start().await;
    for name in ["a", "b", "below-a"] {
        let path = format!("{CONFIG_MAPS}/{name}");
        until("it is collected", async || code(&portico.admin(), &path).await == 404).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_go_some_time_after_their_last_write() {
    let portico = Launch::new().args(&["--event-ttl=1s", "--compaction-interval=100ms"]).start().await;
    let admin = portico.admin();
    let event = json!({
        "metadata": {"name": "e.1"}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Tested", "message": "it was", "type": "Normal",
    });
    let events = format!("{NAMESPACES}/default/events");
    assert_eq!(admin.post(&events, &event).await.status, 201);
    admin.post(CONFIG_MAPS, &config_map("stays", None)).await;
    until("the event is gone", async || code(&admin, &format!("{events}/e.1")).await == 404).await;
    assert_eq!(code(&admin, &format!("{CONFIG_MAPS}/stays")).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_itself_is_a_service_and_says_whom_backends_may_believe() {
    let portico = Launch::new().arg("--service-cluster-ip-range=10.9.0.0/24").start().await;
    let admin = portico.admin();
    let service = format!("{NAMESPACES}/default/services/kubernetes");
    until("the service is there", async || {
        admin.get(&service).await.json()["spec"]["clusterIP"] == "10.9.0.1"
    })
    .await;
    let port = portico.https().port();
    assert_eq!(admin.get(&service).await.json()["spec"]["ports"][0]["targetPort"], port);
    admin.delete(&service).await;
    until("the service is back", async || code(&admin, &service).await == 200).await;
    let range = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes";
    until("the range is ready", async || {
        admin.get(range).await.json()["status"]["conditions"][0]["status"] == "True"
    })
    .await;
    let reported = format!("{NAMESPACES}/kube-system/configmaps/extension-apiserver-authentication");
    until("the settings for backends are published", async || code(&admin, &reported).await == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_other_servers_hold_in_a_namespace_goes_too_and_a_server_that_is_away_is_named() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let backend = Backend::start("away.example.com").await;
    admin.post(API_SERVICES, &backend.api_service()).await;
    until("the group is served", async || {
        code(&admin, "/apis/away.example.com/v1/namespaces/demo/flunders").await == 200
    })
    .await;
    backend.behave(Mood::Code(500));
    admin.post(NAMESPACES, &json!({"metadata": {"name": "demo"}})).await;
    let demo = format!("{NAMESPACES}/demo");
    admin.delete(&demo).await;
    until("the namespace names who is away", async || {
        admin.get(&demo).await.text().contains("away.example.com/v1: the backend returned 500")
    })
    .await;
    backend.behave(Mood::Well);
    until("the namespace is gone", async || code(&admin, &demo).await == 404).await;
    let asked = backend.seen();
    let by = |seen: &Seen| {
        seen.target == "/apis/away.example.com/v1/namespaces/demo/flunders"
            && seen.all("x-remote-user") == ["system:serviceaccount:kube-system:namespace-controller"]
    };
    assert!(asked.iter().any(by), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workloads_find_the_advertised_address_and_the_port_that_was_bound() {
    let portico = Launch::new().args(&["--advertise-address", "192.0.2.7"]).start().await;
    let admin = portico.admin();
    let port = portico.https().port();
    let endpoints = format!("{NAMESPACES}/default/endpoints/kubernetes");
    until("the Endpoints are there", async || code(&admin, &endpoints).await == 200).await;
    let subsets = admin.get(&endpoints).await.json()["subsets"].clone();
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    assert_eq!(subsets, json!([{"addresses": [{"ip": "192.0.2.7"}], "ports": ports}]));
    let slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    until("the slice is there", async || code(&admin, slice).await == 200).await;
    assert_eq!(admin.get(slice).await.json()["endpoints"][0]["addresses"], json!(["192.0.2.7"]));
}
