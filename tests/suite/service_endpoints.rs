//! Services whose pods are found by selector, without kube-controller-manager.

use portico_tests::http::Http;
use portico_tests::objects::{API_SERVICES, PODS, available_condition, remote_api_service};
use portico_tests::{Backend, Launch, Portico, wait_until};
use serde_json::{Value, json};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

async fn pod(admin: &Http, name: &str, ip: &str) {
    let pod = json!({
        "metadata": {"name": name, "labels": {"app": "backend"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false},
    });
    wait_until("the pod is created", async || admin.post(PODS, &pod).await.status == 201).await;
    let status = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}});
    let written = admin.merge(&format!("{PODS}/{name}/status"), &status).await;
    assert_eq!(written.status, 200, "{}", written.text());
}

async fn slices(admin: &Http, service: &str) -> Vec<Value> {
    let listed = admin.get(&format!("{SLICES}?labelSelector=kubernetes.io/service-name={service}")).await;
    listed.json()["items"].as_array().unwrap().clone()
}

fn sizes(slices: &[Value]) -> Vec<usize> {
    let mut sizes: Vec<usize> =
        slices.iter().map(|slice| slice["endpoints"].as_array().map_or(0, Vec::len)).collect();
    sizes.sort_unstable();
    sizes
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_service_uses_pods_of_its_service() {
    let Some(backend) = Backend::on_own_address("selected.example.com").await else { return };
    let portico = Portico::start().await;
    let admin = portico.admin();
    admin.post(API_SERVICES, &remote_api_service("selected.example.com", &backend.ca, 443)).await;
    let service = json!({"metadata": {"name": "backend"}, "spec": {"selector": {"app": "backend"},
        "ports": [{"port": 443, "name": "https", "targetPort": backend.address.port()}]}});
    assert_eq!(admin.post(SERVICES, &service).await.status, 201);
    let is_available = async |want: &str| {
        let found = admin.get(&format!("{API_SERVICES}/{}", backend.name())).await.json();
        available_condition(&found).0 == want
    };
    wait_until("the APIService has no endpoints", async || is_available("False").await).await;
    pod(&admin, "p", &backend.address.ip().to_string()).await;
    wait_until("the APIService is available", async || is_available("True").await).await;
    assert_eq!(admin.get(&backend.path("/flunders")).await.status, 200);
    admin.delete(&format!("{PODS}/p?gracePeriodSeconds=0")).await;
    wait_until("the APIService has no endpoints again", async || is_available("False").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slices_have_a_limit_and_are_repaired() {
    let portico = Launch::new().arg("--max-endpoints-per-slice=3").start().await;
    let admin = portico.admin();
    let service = json!({"metadata": {"name": "backend"}, "spec": {"selector": {"app": "backend"},
        "ports": [{"port": 80}]}});
    assert_eq!(admin.post(SERVICES, &service).await.status, 201);
    for at in 1..=7 {
        pod(&admin, &format!("p{at}"), &format!("10.9.0.{at}")).await;
    }
    let all = async || sizes(&slices(&admin, "backend").await).iter().sum::<usize>();
    wait_until("every pod is in a slice", async || all().await == 7).await;
    let found = slices(&admin, "backend").await;
    assert!(sizes(&found).iter().all(|size| (1..=3).contains(size)), "{found:?}");
    let manager = &found[0]["metadata"]["managedFields"][0]["manager"];
    assert_eq!(manager, "kube-controller-manager");
    let triggered = |slice: &Value| {
        slice["metadata"]["annotations"]["endpoints.kubernetes.io/last-change-trigger-time"].is_string()
    };
    assert!(found.iter().any(triggered), "{found:?}");
    let name = found[0]["metadata"]["name"].as_str().unwrap();
    let spoilt = json!({"endpoints": [{"addresses": ["10.9.9.9"]}]});
    assert_eq!(admin.merge(&format!("{SLICES}/{name}"), &spoilt).await.status, 200);
    wait_until("the slice is repaired", async || {
        let listed = slices(&admin, "backend").await;
        sizes(&listed).iter().sum::<usize>() == 7 && !Value::from(listed).to_string().contains("10.9.9.9")
    })
    .await;
    assert_eq!(admin.delete(&format!("{SLICES}/{name}")).await.status, 200);
    wait_until("the slice is created again", async || all().await == 7).await;
    admin.delete(&format!("{SERVICES}/backend")).await;
    wait_until("the slices and Endpoints are deleted", async || {
        slices(&admin, "backend").await.is_empty()
            && admin.get(&format!("{ENDPOINTS}/backend")).await.status == 404
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_endpoints_are_removed_at_the_next_start() {
    let mut portico = Launch::new().arg("--controllers=serviceaccount").start().await;
    let admin = portico.admin();
    let orphaned = json!({"metadata": {"name": "left"}, "subsets": [{"addresses": [{"ip": "10.9.0.1"}]}]});
    assert_eq!(admin.post(ENDPOINTS, &orphaned).await.status, 201);
    let service = json!({"metadata": {"name": "backend"}, "spec": {"selector": {"app": "backend"},
        "ports": [{"port": 80}]}});
    admin.post(SERVICES, &service).await;
    pod(&admin, "p", "10.9.0.2").await;
    assert!(slices(&admin, "backend").await.is_empty(), "no controller maintains slices");
    portico.stop().await;
    let portico = Launch::new().with_data_of(&portico).start().await;
    let admin = portico.admin();
    wait_until("the orphaned Endpoints are deleted", async || {
        admin.get(&format!("{ENDPOINTS}/left")).await.status == 404
    })
    .await;
    wait_until("the pod is in a slice", async || sizes(&slices(&admin, "backend").await) == [1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_metrics_have_upstreams_names() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let service = json!({"metadata": {"name": "backend"}, "spec": {"selector": {"app": "backend"},
        "ports": [{"port": 80}]}});
    admin.post(SERVICES, &service).await;
    wait_until("a slice is counted", async || {
        let metrics = admin.get("/metrics").await.text();
        [
            "endpoint_slice_controller_changes{operation=\"create\"} ",
            "endpoint_slice_controller_syncs{result=\"success\"} ",
        ]
        .iter()
        .all(|name| metrics.contains(name))
            && metrics.contains("workqueue_depth{name=\"endpoint_slice\"}")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zone_hints_follow_changes_of_nodes() {
    const NODES: &str = "/api/v1/nodes";
    let portico = Portico::start().await;
    let admin = portico.admin();
    let ready = |is: &str| {
        json!({"status": {"allocatable": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": is}]}})
    };
    for (at, zone) in [(1, "a"), (2, "b")] {
        let labels = json!({"topology.kubernetes.io/zone": zone});
        let node = json!({"metadata": {"name": format!("n{at}"), "labels": labels}});
        assert_eq!(admin.post(NODES, &node).await.status, 201);
        let status = admin.merge(&format!("{NODES}/n{at}/status"), &ready("True")).await;
        assert_eq!(status.status, 200, "{}", status.text());
        let name = format!("p{at}");
        pod(&admin, &name, &format!("10.9.0.{at}")).await;
        let binding =
            json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": format!("n{at}")}});
        assert_eq!(admin.post(&format!("{PODS}/{name}/binding"), &binding).await.status, 201);
    }
    let service = json!({"metadata": {"name": "backend", "annotations": {"service.kubernetes.io/topology-mode": "Auto"}},
        "spec": {"selector": {"app": "backend"}, "ports": [{"port": 80}]}});
    assert_eq!(admin.post(SERVICES, &service).await.status, 201);
    let hinted = async || {
        let found = Value::from(slices(&admin, "backend").await).to_string();
        found.matches("forZones").count()
    };
    wait_until("both endpoints have zone hints", async || hinted().await == 2).await;
    for (is, expected) in [("False", 0), ("True", 2)] {
        assert_eq!(admin.merge(&format!("{NODES}/n2/status"), &ready(is)).await.status, 200);
        wait_until("hints change with the readiness of a node", async || hinted().await == expected).await;
    }
    assert_eq!(admin.delete(&format!("{NODES}/n2")).await.status, 200);
    wait_until("hints are removed with a node", async || hinted().await == 0).await;
}
