//! Checks that the suites of shared engines (PostgreSQL, etcd) have in common.

use std::collections::HashSet;

use futures::future::join_all;
use http::Request;
use http_body_util::Full;
use portico_tests::http::{Http, JsonLines};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::wait_until;
use serde_json::{Value, json};

pub fn config_map(name: &str, text: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"text": text}})
}

pub fn version(object: &Value) -> i64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

pub async fn watch(client: &Http, query: &str) -> JsonLines {
    let path = format!("{CONFIG_MAPS}?watch=1&{query}");
    let answer = client.send(Request::get(path).body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
    JsonLines::new(answer.into_body())
}

/// Creates config maps in a namespace alternately through two servers: exactly as many succeed as a quota
/// allows, and the others are refused.
///
/// A write that was admitted before the quota existed and committed after it was counted is in neither count, as upstream.
/// Therefore this waits for the config map of the controllers.
pub async fn quotas_are_exact(clients: [&Http; 2], namespace: &str, most: usize, attempts: usize) {
    let core = format!("/api/v1/namespaces/{namespace}");
    let (path, quotas) = (format!("{core}/configmaps"), format!("{core}/resourcequotas"));
    let own = format!("{path}/kube-root-ca.crt");
    wait_until("the controllers have populated the namespace", async || {
        clients[1].get(&own).await.status.as_u16() == 200
    })
    .await;
    let hard = json!({"count/configmaps": most.to_string()});
    let quota = json!({"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "q"}, "spec": {"hard": hard}});
    assert_eq!(clients[0].post(&quotas, &quota).await.status.as_u16(), 201);
    wait_until("the quota is counted", async || {
        let quota = clients[1].get(&format!("{quotas}/q")).await.json();
        quota["status"]["hard"] == hard
    })
    .await;
    let count = async || clients[0].get(&path).await.json()["items"].as_array().unwrap().len();
    let already = count().await;
    let create = async |n: usize| {
        let answer = clients[n % 2].post(&path, &config_map(&format!("c-{n}"), "")).await;
        answer.status.as_u16()
    };
    let answers = join_all((0..attempts).map(create)).await;
    assert!(answers.iter().all(|code| matches!(code, 201 | 403)), "{answers:?}");
    let created = answers.iter().filter(|code| **code == 201).count();
    assert_eq!((created, count().await), (most - already, most), "{answers:?}");
}

/// Creates Services alternately through two servers: addresses and ports are unique.
pub async fn addresses_are_distinct(clients: [&Http; 2], about: &str, count: usize) {
    let serve = async |n: usize| {
        let service = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": format!("{about}-{n}")},
            "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
        let answer = clients[n % 2].post("/api/v1/namespaces/default/services", &service).await;
        assert_eq!(answer.status.as_u16(), 201, "{}", answer.text());
        answer.json()
    };
    let services = join_all((0..count).map(serve)).await;
    let distinct = |pointer: &str| {
        let values = services.iter().map(|service| service.pointer(pointer).unwrap().to_string());
        values.collect::<HashSet<_>>().len()
    };
    assert_eq!((distinct("/spec/clusterIP"), distinct("/spec/ports/0/nodePort")), (count, count));
}

/// Eight writers create `each` objects while the engine loses power three times: acknowledged objects exist.
pub async fn writes_survive(admin: &Http, each: usize, lose_power: impl Fn()) {
    let writer = async |writer: usize| {
        let mut acknowledged = Vec::new();
        for n in 0..each {
            let name = format!("w-{writer}-{n}");
            let answer = admin.post(CONFIG_MAPS, &config_map(&name, "1")).await;
            if answer.status.as_u16() == 201 {
                acknowledged.push((name, version(&answer.json())));
            }
        }
        acknowledged
    };
    let generated = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"generateName": "p-"}});
    let power = async {
        for _ in 0..3 {
            wait_until("a write is accepted", async || {
                admin.post(CONFIG_MAPS, &generated).await.status.as_u16() == 201
            })
            .await;
            lose_power();
        }
    };
    let (written, ()) = tokio::join!(join_all((0..8).map(writer)), power);
    wait_until("reads are answered again", async || admin.get(CONFIG_MAPS).await.status.as_u16() == 200)
        .await;
    let list = admin.get(CONFIG_MAPS).await.json();
    let items = list["items"].as_array().unwrap();
    for (name, revision) in written.into_iter().flatten() {
        let found = items.iter().find(|item| item["metadata"]["name"] == name.as_str());
        assert_eq!(found.map(version), Some(revision), "{name}");
    }
}
