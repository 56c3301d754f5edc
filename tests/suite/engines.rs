//! What the suites of the engines that several control services may share do alike.

use http::Request;
use http_body_util::Full;
use portico_tests::http::{Http, Lines};
use portico_tests::until;
use serde_json::{Value, json};

pub const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub fn config_map(name: &str, text: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"text": text}})
}

pub fn version(object: &Value) -> i64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

pub async fn watch(client: &Http, query: &str) -> Lines {
    let path = format!("{CONFIG_MAPS}?watch=1&{query}");
    let answer = client.send(Request::get(path).body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
    Lines::new(answer.into_body())
}

/// A quota of config maps in the namespace, counted where `client` asks. What was admitted before there was a quota and is written
/// after it was counted is in neither, here as upstream: the controllers' own config map is waited for.
pub async fn limit_config_maps(client: &Http, most: &str) {
    until("the namespace has what its controllers make", 60, async || {
        client.get(&format!("{CONFIG_MAPS}/kube-root-ca.crt")).await.status.as_u16() == 200
    })
    .await;
    let quota = json!({"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "q"},
        "spec": {"hard": {"count/configmaps": most}}});
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    assert_eq!(client.post(quotas, &quota).await.status.as_u16(), 201);
    until("the quota is counted", 60, async || {
        client.get(&format!("{quotas}/q")).await.json()["status"]["hard"]["count/configmaps"] == most
    })
    .await;
}

/// Eight writers make so many objects each while the engine loses its power three times: what was acknowledged is there.
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
            until("something is written", 60, async || {
                admin.post(CONFIG_MAPS, &generated).await.status.as_u16() == 201
            })
            .await;
            lose_power();
        }
    };
    let (written, ()) = tokio::join!(futures::future::join_all((0..8).map(writer)), power);
    until("it is read again", 60, async || admin.get(CONFIG_MAPS).await.status.as_u16() == 200).await;
    let there = admin.get(CONFIG_MAPS).await.json();
    let items = there["items"].as_array().unwrap();
    for (name, revision) in written.into_iter().flatten() {
        let found = items.iter().find(|item| item["metadata"]["name"] == name.as_str());
        assert_eq!(found.map(version), Some(revision), "{name}");
    }
}
