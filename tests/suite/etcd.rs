//! A control service with its store in etcd, alone and with others, over HTTP.

use portico_tests::http::JsonLines;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{EtcdServer, Launch, Portico, wait_until};
use serde_json::{Value, json};

use crate::shared_engine_checks::{
    addresses_are_distinct, config_map, quotas_are_exact, version, watch, writes_survive,
};

fn launch_on(etcd: &EtcdServer) -> Launch {
    Launch::new().arg("--etcd-servers").arg(&etcd.url())
}

/// Waits for an event of an object with this name.
async fn wait_for(events: &mut JsonLines, name: &str) {
    while events.next().await.unwrap()["object"]["metadata"]["name"] != name {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_survive_a_restart_and_have_kube_apiservers_keys() {
    let Some(etcd) = EtcdServer::start() else { return };
    let mut portico = launch_on(&etcd).start().await;
    let created = portico.admin().post(CONFIG_MAPS, &config_map("a", "1")).await;
    assert_eq!(created.status.as_u16(), 201, "{}", created.text());
    let (first, second) =
        (created.json(), portico.admin().post(CONFIG_MAPS, &config_map("b", "1")).await.json());
    portico.stop().await;
    portico.restart().await;
    let admin = portico.admin();
    assert_eq!(admin.get(&format!("{CONFIG_MAPS}/a")).await.json(), first);
    // A watch resumes from before the restart.
    let mut events = watch(&admin, &format!("resourceVersion={}", version(&first))).await;
    let event = events.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]), (&json!("ADDED"), &second));
    // "/registry/configmaps/default/a", in the protobuf of kube-apiserver.
    let stored = etcd.post("kv/range", r#"{"key":"L3JlZ2lzdHJ5L2NvbmZpZ21hcHMvZGVmYXVsdC9h"}"#).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    let kv = &stored["kvs"][0];
    assert_eq!(kv["mod_revision"], first["metadata"]["resourceVersion"]);
    assert!(kv["value"].as_str().unwrap().starts_with("azhzAAoPCgJ2MRIJQ29uZmlnTWFw"), "{kv}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_services_on_one_etcd_are_one_api() {
    let Some(etcd) = EtcdServer::start() else { return };
    let (first, second) = tokio::join!(launch_on(&etcd).start(), launch_on(&etcd).start());
    let [one, other] = [first.admin(), second.admin()];
    let mut events = watch(&other, "labelSelector=shared").await;
    let mut object = config_map("a", "0");
    object["metadata"]["labels"] = json!({"shared": ""});
    let mut current = one.post(CONFIG_MAPS, &object).await.json();
    for round in 1..20 {
        let (writer, reader) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let stale = current.clone();
        current["data"]["text"] = json!(round.to_string());
        let answer = writer.put(&format!("{CONFIG_MAPS}/a"), &current).await;
        assert_eq!(answer.status.as_u16(), 200, "{}", answer.text());
        current = answer.json();
        assert_eq!(reader.get(&format!("{CONFIG_MAPS}/a")).await.json(), current);
        assert_eq!(reader.put(&format!("{CONFIG_MAPS}/a"), &stale).await.status.as_u16(), 409);
    }
    for round in 0..20 {
        assert_eq!(events.next().await.unwrap()["object"]["data"]["text"], round.to_string());
    }
    addresses_are_distinct([&one, &other], "s", 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_survive_a_restart() {
    let Some(etcd) = EtcdServer::start() else { return };
    let mut portico = launch_on(&etcd).start().await;
    let admin = portico.admin();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "additionalPrinterColumns": [{"name": "A", "type": "integer", "jsonPath": ".spec.a"}]}]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(admin.post(path, &definition).await.status.as_u16(), 201);
    let things = "/apis/example.com/v1/namespaces/default/things";
    let thing =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"a": 1}});
    wait_until("the definition is served", async || admin.post(things, &thing).await.status.as_u16() == 201)
        .await;
    let [stored, defined] = [format!("{things}/t"), format!("{path}/things.example.com")];
    let (before, definition) = (admin.get(&stored).await.json(), admin.get(&defined).await.json());
    portico.stop().await;
    portico.restart().await;
    let admin = portico.admin();
    wait_until("the custom object is served again", async || admin.get(&stored).await.status.as_u16() == 200)
        .await;
    assert_eq!(admin.get(&stored).await.json(), before);
    assert_eq!(admin.get(&defined).await.json(), definition);
    assert_eq!(admin.delete(&defined).await.status.as_u16(), 200);
    wait_until("the definition and its objects are deleted", async || {
        admin.get(&defined).await.status.as_u16() == 404
    })
    .await;
    // "/registry/example.com/"
    let remaining = etcd.post(
        "kv/range",
        r#"{"key":"L3JlZ2lzdHJ5L2V4YW1wbGUuY29tLw==","range_end":"L3JlZ2lzdHJ5L2V4YW1wbGUuY29tMA=="}"#,
    );
    assert!(!remaining.unwrap().contains("kvs"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_etcd_loses_no_acknowledged_write() {
    let Some(etcd) = EtcdServer::start() else { return };
    let portico = launch_on(&etcd).arg("--database-statement-timeout").arg("3s").start().await;
    let admin = portico.admin();
    let created = admin.post(CONFIG_MAPS, &config_map("before", "1")).await.json();
    let mut events = watch(&admin, &format!("resourceVersion={}", version(&created))).await;
    etcd.kill();
    wait_until("writes are refused", async || {
        let refused = admin.post(CONFIG_MAPS, &config_map("during", "1")).await;
        let is_refused = refused.status.as_u16() == 503;
        assert!(!is_refused || refused.headers.contains_key("retry-after"));
        is_refused
    })
    .await;
    assert_eq!(admin.get(CONFIG_MAPS).await.status.as_u16(), 503);
    // Lists that may be stale are served from memory.
    let list = admin.get(&format!("{CONFIG_MAPS}?resourceVersion=0")).await;
    assert_eq!(list.status.as_u16(), 200, "{}", list.text());
    etcd.restart();
    wait_until("writes are accepted again", async || {
        admin.post(CONFIG_MAPS, &config_map("after", "1")).await.status.as_u16() == 201
    })
    .await;
    assert_eq!(admin.get(&format!("{CONFIG_MAPS}/before")).await.json(), created);
    wait_for(&mut events, "after").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_a_power_loss_of_etcd() {
    let Some(etcd) = EtcdServer::start() else { return };
    let portico = launch_on(&etcd).start().await;
    writes_survive(&portico.admin(), 40, || {
        etcd.kill();
        etcd.restart();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotas_are_exact_while_many_write() {
    let Some(etcd) = EtcdServer::start() else { return };
    let portico = launch_on(&etcd).start().await;
    let admin = portico.admin();
    quotas_are_exact([&admin; 2], "default", 200, 300).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unusable_etcd_is_reported_at_the_start() {
    let launch =
        Launch::new().args(&["--etcd-servers", "http://127.0.0.1:1", "--database-connect-timeout", "1s"]);
    let (code, _, text) = launch.run().await;
    assert!(code != Some(0) && text.contains("etcd at http://127.0.0.1:1: unreachable: "), "{text}");
    let both = Launch::new().args(&["--etcd-servers", "http://a:1", "--database-url", "postgres://u@h/d"]);
    let (code, _, text) = both.run().await;
    assert!(code == Some(2) && text.contains("cannot be used with"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_is_used_over_tls_with_a_client_certificate() {
    let authority = portico_tests::pki::Authority::new("etcd-ca");
    let (server, client) = (authority.server(&["localhost", "127.0.0.1"]), authority.client("portico", &[]));
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let [ca, cert, key] = [file("ca", &authority.pem), file("crt", &server.cert), file("key", &server.key)];
    let Some(etcd) = EtcdServer::start_over_tls(&ca, &cert, &key) else { return };
    let [cert, key] = [file("client.crt", &client.cert), file("client.key", &client.key)];
    let launch =
        launch_on(&etcd).args(&["--etcd-cafile", &ca, "--etcd-certfile", &cert, "--etcd-keyfile", &key]);
    let portico: Portico = launch.start().await;
    let created = portico.admin().post(CONFIG_MAPS, &config_map("a", "1")).await;
    assert_eq!(created.status.as_u16(), 201, "{}", created.text());
    // Without a client certificate, etcd refuses connections.
    let (code, _, text) =
        launch_on(&etcd).args(&["--etcd-cafile", &ca, "--database-connect-timeout", "1s"]).run().await;
    assert!(code != Some(0) && text.contains("etcd at https://"), "{text}");
    assert!(text.contains("etcd may require a client certificate: --etcd-certfile"), "{text}");
}
