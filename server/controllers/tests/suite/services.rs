//! Tests of the repair of addresses and ports of Services.

use portico_controllers::log::LogReader;
use portico_controllers::service_repair::ServiceRepair;
use portico_kit::workqueue::QueueMetrics;
use portico_machinery::{GroupResource, Object};
use portico_registry::{ListOptions, ObjectRef};
use portico_resources::NodePortAllocations;

use crate::harness::{Harness, TIMEOUT, object};

fn services() -> GroupResource {
    GroupResource::new("", "services")
}

fn addresses() -> GroupResource {
    GroupResource::new("networking.k8s.io", "ipaddresses")
}

fn node_port(name: &str) -> Object {
    let mut service = object("v1", "Service", name, "default");
    service.set(&["spec", "type"], "NodePort");
    service.set(&["spec", "clusterIP"], "10.0.0.77");
    let ports = std::collections::BTreeMap::from([("port", 80), ("nodePort", 30_777)]);
    service.set(&["spec", "ports"], [ports]);
    service
}

async fn create_service_cidr(harness: &Harness) {
    let mut cidr = object("networking.k8s.io/v1", "ServiceCIDR", "kubernetes", "");
    cidr.set(&["spec", "cidrs"], ["10.0.0.0/24"]);
    harness.create(&GroupResource::new("networking.k8s.io", "servicecidrs"), cidr).await;
}

async fn get_stored(harness: &Harness, resource: GroupResource, name: &str) -> Option<Object> {
    let object_ref = ObjectRef { resource, namespace: String::new(), name: name.to_owned() };
    harness.registry.get_stored(&object_ref).await.unwrap().map(|stored| stored.object().clone())
}

#[tokio::test]
async fn a_deleted_ip_address_is_recreated_and_an_unused_port_is_released() {
    let harness = Harness::open().await;
    harness.namespaces.created().signaled().await;
    create_service_cidr(&harness).await;
    harness.create(&services(), node_port("web")).await;
    let web = harness.registry.get(&services(), "default", "web").await.unwrap();
    assert!(NodePortAllocations::new(harness.registry.clone()).allocate(30_999, &web).await.unwrap());
    harness.delete(&addresses(), "", "10.0.0.77").await;

    let metrics = portico_kit::metrics::Registry::new();
    let repair = ServiceRepair::new(
        &harness.registry,
        30_000..=32_767,
        "host",
        &QueueMetrics::new(&metrics),
        &metrics,
    );
    repair.run_workers(&harness.registry, &harness.tasks);
    let checked = repair.checked();
    let listening = LogReader::new(vec![std::sync::Arc::new(repair)]);
    harness.tasks.spawn("listening", listening.run(harness.registry.clone(), harness.tasks.clone()));
    tokio::time::timeout(TIMEOUT, checked.signaled()).await.unwrap();

    let address = get_stored(&harness, addresses(), "10.0.0.77").await.unwrap();
    assert_eq!(address.at(&["spec", "parentRef", "name"]).str(), "web");
    let allocated: Vec<u16> = NodePortAllocations::new(harness.registry.clone())
        .all()
        .await
        .unwrap()
        .iter()
        .map(|h| h.port)
        .collect();
    assert_eq!(allocated, [30_777]);
    let (events, all) = (GroupResource::new("", "events"), ListOptions::default());
    let events = harness.registry.list(&events, "default", &all).await.unwrap().items;
    let messages: Vec<&str> = events.iter().map(|e| e.object().at(&["message"]).str()).collect();
    assert_eq!(messages, ["Cluster IP [IPv4]: 10.0.0.77 is not allocated; repairing"]);

    // Deletions while the controller runs are repaired as well.
    harness.delete(&addresses(), "", "10.0.0.77").await;
    let recreated = async {
        while get_stored(&harness, addresses(), "10.0.0.77").await.is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, recreated).await.unwrap();
}
