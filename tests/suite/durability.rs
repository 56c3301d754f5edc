//! Acknowledged writes are durable: they exist after `kill -9` under a heavy write load.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use portico_kit::tasks::TaskSet;
use portico_proto::apiregistration::{ApiService, ApiServiceSpec, CreateRequest, ListRequest, ObjectMeta};
use portico_proto::client::Client;
use portico_tests::{Portico, wait_until};

/// Rounds of load and kill, on the same server.
const ROUNDS: usize = 4;
const WRITERS: usize = 16;

/// Acknowledged names, with the uid of the response.
type Acknowledged = Arc<Mutex<BTreeMap<String, String>>>;

fn object(name: &str) -> ApiService {
    let spec = ApiServiceSpec {
        group: name.into(),
        version: "v1".into(),
        group_priority_minimum: 100,
        version_priority: 10,
        ..Default::default()
    };
    let metadata = ObjectMeta { name: format!("v1.{name}"), ..Default::default() };
    ApiService { metadata: Some(metadata), spec: Some(spec), status: None }
}

async fn write_until_refused(client: Client, prefix: String, acknowledged: Acknowledged) {
    for n in 0.. {
        let name = format!("{prefix}-{n}.storm.example.com");
        let request = CreateRequest { api_service: Some(object(&name)), dry_run: false };
        let Ok(created) = client.api_services().create(request).await else { return };
        let metadata = created.into_inner().metadata.unwrap();
        acknowledged.lock().unwrap().insert(metadata.name, metadata.uid);
    }
}

async fn everything(portico: &Portico) -> Vec<(String, String)> {
    let mut parts = portico.control().api_services().list(ListRequest::default()).await.unwrap().into_inner();
    let mut all = Vec::new();
    while let Some(part) = parts.message().await.unwrap() {
        all.extend(part.items.into_iter().filter_map(|item| item.metadata).map(|meta| (meta.name, meta.uid)));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn every_acknowledged_write_survives_a_kill_once() {
    let mut portico = Portico::start().await;
    let acknowledged = Acknowledged::default();
    for round in 0..ROUNDS {
        let storm = TaskSet::new();
        for writer in 0..WRITERS {
            let (client, acknowledged) = (portico.control(), acknowledged.clone());
            let prefix = format!("r{round}-w{writer}");
            storm.spawn("writer", write_until_refused(client, prefix, acknowledged));
        }
        let before = acknowledged.lock().unwrap().len();
        wait_until("the writers have written 150 objects", || {
            let enough = acknowledged.lock().unwrap().len() > before + 150;
            std::future::ready(enough)
        })
        .await;
        portico.kill();
        wait_until("every writer has noticed the crash", || std::future::ready(storm.running().is_empty()))
            .await;
        portico.restart().await;
        let objects = everything(&portico).await;
        let unique: BTreeMap<String, String> = objects.iter().cloned().collect();
        assert_eq!(unique.len(), objects.len(), "an object is listed twice");
        for (name, uid) in acknowledged.lock().unwrap().iter() {
            assert_eq!(unique.get(name), Some(uid), "round {round}: {name} was acknowledged");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_continue_after_a_kill() {
    let mut portico = Portico::start().await;
    let revision = async |portico: &Portico, name: &str| -> u64 {
        let request = CreateRequest { api_service: Some(object(name)), dry_run: false };
        let created = portico.control().api_services().create(request).await.unwrap().into_inner();
        created.metadata.unwrap().resource_version.parse().unwrap()
    };
    let mut last = revision(&portico, "first.example.com").await;
    for n in 0..3 {
        portico.kill();
        portico.restart().await;
        let next = revision(&portico, &format!("n{n}.example.com")).await;
        assert!(next > last, "revision {next} is not greater than {last}");
        last = next;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graceful_stop_completes_running_requests() {
    let mut portico = Portico::start().await;
    let acknowledged = Acknowledged::default();
    let refused = Arc::new(AtomicUsize::new(0));
    let storm = TaskSet::new();
    for writer in 0..4 {
        let (client, acknowledged, refused) = (portico.control(), acknowledged.clone(), refused.clone());
        storm.spawn("writer", async move {
            write_until_refused(client, format!("stop-w{writer}"), acknowledged).await;
            refused.fetch_add(1, Ordering::SeqCst);
        });
    }
    wait_until("writes are under way", || std::future::ready(acknowledged.lock().unwrap().len() > 50)).await;
    let status = portico.stop().await;
    assert!(status.success(), "{status}");
    wait_until("the writers end", || std::future::ready(refused.load(Ordering::SeqCst) == 4)).await;
    portico.restart().await;
    let unique: BTreeMap<String, String> = everything(&portico).await.into_iter().collect();
    for (name, uid) in acknowledged.lock().unwrap().iter() {
        assert_eq!(unique.get(name), Some(uid));
    }
}
