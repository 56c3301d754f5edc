//! A facade with two control services of one database: it changes to the other one within a second if the one in use dies, hangs
//! or stops, and reads do not fail.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http_body_util::Full;
use portico_kit::lifecycle::Signal;
use portico_tests::http::{JsonLines, collect};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{EtcdServer, Launch, Portico, eventually, report_measurement, wait_until};
use serde_json::{Value, json};

use crate::rolling_restarts::{servers, wait_for_both};

/// Half of the deadline of a request: no read waited for its deadline.
const MAX_READ_TIME: Duration = Duration::from_secs(30);

/// Results of concurrent reads.
#[derive(Debug, Default)]
struct Reads {
    count: usize,
    failures: Vec<String>,
    slowest: Duration,
}

/// Reads through a facade repeatedly until it is stopped.
async fn read(facade: &Portico, stop: &Signal) -> Reads {
    let (admin, mut reads) = (facade.admin(), Reads::default());
    while !stop.is_signaled() {
        let begin = Instant::now();
        let answer = admin.get(&format!("{CONFIG_MAPS}?limit=5")).await;
        reads.count += 1;
        reads.slowest = reads.slowest.max(begin.elapsed());
        if answer.status != 200 {
            reads.failures.push(answer.text());
        }
    }
    reads
}

/// Returns the server that a facade uses.
async fn used_server(facade: &Portico, servers: &[Portico; 2]) -> usize {
    eventually("the facade uses one of the control services", async || {
        let ready = facade.admin().get("/readyz?verbose").await.text();
        let is_used = |server: &Portico| ready.contains(&format!("{} in use (serving)", server.grpc()));
        servers.iter().position(is_used).ok_or(ready)
    })
    .await
}

async fn write(facade: &Portico, name: &str) -> u16 {
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}});
    facade.admin().post(CONFIG_MAPS, &object).await.status.as_u16()
}

/// Reads and watches while `happens` is applied to the first control service, which is in use, until the facade uses the second
/// one; then applies `afterwards`, while the watch continues.
async fn check_failover(
    what: &str,
    happens: impl AsyncFn(&mut Portico),
    afterwards: impl AsyncFn(&Portico, &[Portico; 2]),
) {
    let Some(mut servers) = servers(|launch| launch).await else { return };
    let facade = Launch::facade_of_all(&[&servers[0], &servers[1]]).start().await;
    wait_for_both(&facade).await;
    // The other one may have had the lower latency at first.
    wait_until("the facade uses the first control service", async || {
        used_server(&facade, &servers).await == 0
    })
    .await;
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion=1");
    let watch = facade.admin().send(Request::get(path).body(Full::default()).unwrap()).await.unwrap();
    let mut events = JsonLines::new(watch.into_body());
    assert_eq!(write(&facade, "before").await, 201);
    let stop = Signal::new("stop");
    let move_and_stop = async {
        let begin = Instant::now();
        happens(&mut servers[0]).await;
        wait_until("writes are accepted again", async || {
            let code = write(&facade, &format!("during-{}", begin.elapsed().as_micros())).await;
            assert!(matches!(code, 201 | 503), "{code}");
            code == 201
        })
        .await;
        let took = begin.elapsed();
        assert_eq!(used_server(&facade, &servers).await, 1);
        stop.signal();
        took
    };
    let (reads, wrote) = tokio::join!(read(&facade, &stop), move_and_stop);
    let Reads { count, slowest, .. } = reads;
    report_measurement(&format!(
        "{what}: {count} reads, the slowest {slowest:?}; written again after {wrote:?}"
    ));
    assert_eq!(reads.failures, Vec::<String>::new());
    assert!(slowest < MAX_READ_TIME, "{what}: {slowest:?}");
    afterwards(&facade, &servers).await;
    assert_eq!(write(&facade, "after").await, 201);
    let mut seen = Vec::new();
    while seen.last().is_none_or(|name| name != "after") {
        let event = events.next().await.unwrap();
        seen.push(event["object"]["metadata"]["name"].as_str().unwrap().to_owned());
    }
    seen.retain(|name| !name.starts_with("during") && name != "kube-root-ca.crt");
    assert_eq!(seen, ["before", "after"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_service_that_is_killed_is_replaced_within_a_second() {
    check_failover("killed", async |server| server.kill(), async |_, _| {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_control_service_is_replaced_and_used_again() {
    let goes_on = async |facade: &Portico, servers: &[Portico; 2]| {
        servers[0].signal(rustix::process::Signal::CONT);
        wait_until("the facade returns to the preferred control service", async || {
            used_server(facade, servers).await == 0
        })
        .await;
    };
    check_failover("hangs", async |server| server.signal(rustix::process::Signal::STOP), goes_on).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_control_service_drains_its_facades() {
    check_failover("stops", async |server| assert!(server.stop().await.success()), async |_, _| {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_services_of_two_stores_are_refused_at_the_start() {
    let (one, other) = tokio::join!(Launch::server().start(), Launch::server().start());
    let (code, _, error) = Launch::facade_of_all(&[&one, &other]).run().await;
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("all must serve one database"), "{error}");
}

const EVENTS: &str = "/api/v1/namespaces/default/events";
/// Number of Events that share a lease.
const OF_LEASE: usize = 1_000;

fn event(name: &str) -> Value {
    json!({"kind": "Event", "apiVersion": "v1", "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}})
}

/// Returns the lease that holds most of etcd's keys, and the names of the events among these.
fn largest_lease(etcd: &EtcdServer) -> (String, Vec<String>) {
    let call_etcd = |path: &str, body: Value| {
        let answer = etcd.post(path, &body.to_string()).unwrap();
        serde_json::from_str::<Value>(&answer).unwrap()
    };
    let leases = call_etcd("lease/leases", json!({}))["leases"].take();
    let lease_holders = leases.as_array().unwrap().iter().map(|lease| {
        let id = lease["ID"].as_str().unwrap().to_owned();
        let keys = call_etcd("lease/timetolive", json!({"ID": id, "keys": true}))["keys"].take();
        let keys = keys.as_array().cloned().unwrap_or_default().into_iter();
        let keys =
            keys.map(|key| String::from_utf8(STANDARD.decode(key.as_str().unwrap()).unwrap()).unwrap());
        let name = |key: String| key.strip_prefix("/registry/events/default/").map(str::to_owned);
        (id, keys.filter_map(name).collect::<Vec<_>>())
    });
    lease_holders.max_by_key(|(_, names)| names.len()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lease_expiry_during_a_failover_deletes_each_event_once() {
    let Some(etcd) = EtcdServer::start() else { return };
    let flags = ["--etcd-servers", &etcd.url(), "--lease-reuse-duration-seconds", "3600"];
    let start = || Launch::server().args(&flags).start();
    let (first, second) = tokio::join!(start(), start());
    let mut servers = [first, second];
    let facade = Launch::facade_of_all(&[&servers[0], &servers[1]]).start().await;
    wait_for_both(&facade).await;
    wait_until("the facade uses the first control service", async || {
        used_server(&facade, &servers).await == 0
    })
    .await;
    let admin = facade.admin();
    let mut connection = admin.connect().await.unwrap();
    for at in 0..OF_LEASE {
        let body = event(&format!("e{at}")).to_string();
        let request = Request::post(EVENTS).header("content-type", "application/json");
        let created = connection.send(request.body(Full::from(body)).unwrap()).await.unwrap();
        let created = collect(created).await.unwrap();
        assert_eq!(created.status, 201, "{}", created.text());
    }
    let list = admin.get(&format!("{EVENTS}?limit=1")).await.json();
    let from = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{EVENTS}?watch=1&resourceVersion={from}");
    let watch = admin.send(Request::get(path).body(Full::default()).unwrap()).await.unwrap();
    let mut events = JsonLines::new(watch.into_body());

    let (lease, names) = largest_lease(&etcd);
    assert!(names.len() > OF_LEASE / 2, "{} events have the lease", names.len());
    assert!(etcd.post("lease/revoke", &json!({"ID": lease}).to_string()).is_some());
    let mut deletions = HashMap::<String, Vec<String>>::new();
    let mut note = |event: &Value| {
        let metadata = &event["object"]["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap().to_owned();
        if event["type"] == "DELETED" {
            deletions.entry(text("name")).or_default().push(text("resourceVersion"));
        }
        text("name")
    };
    note(&events.next().await.unwrap());
    servers[0].kill();
    wait_until("writes are accepted again", async || {
        matches!(admin.post(EVENTS, &event("after")).await.status.as_u16(), 201 | 409)
    })
    .await;
    assert_eq!(used_server(&facade, &servers).await, 1);
    while note(&events.next().await.unwrap()) != "after" {}
    let (mut deleted, mut names): (Vec<_>, _) = (deletions.keys().cloned().collect(), names);
    deleted.sort();
    names.sort();
    assert_eq!(deleted, names);
    let mut revisions: Vec<_> = deletions.into_values().flatten().collect();
    assert_eq!(revisions.len(), names.len(), "each is deleted once");
    revisions.dedup();
    assert_eq!(revisions.len(), 1, "one revision deletes all of them");
}
