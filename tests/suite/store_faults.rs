//! Damaged stores, and their backup and restoration, for users and operators.

use std::path::Path;
use std::process::Command;

use http::{Method, Request};
use portico_tests::binary::binary;
use portico_tests::http::{Http, JsonLines};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Launch, Portico, wait_until};
use serde_json::{Value, json};

const ALL: &str = "/api/v1/configmaps";
const GATE: &str = "AllowUnsafeMalformedObjectDeletion=true";
const UNSAFE: &str = r#"{"ignoreStoreReadErrorWithClusterBreakingPotential":true}"#;

async fn create(http: &Http, name: &str) -> i64 {
    let object =
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"a": "b"}});
    let created = http.post(CONFIG_MAPS, &object).await;
    assert_eq!(created.status.as_u16(), 201, "{}", created.text());
    version(&created.json())
}

fn version(object: &Value) -> i64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// Runs a verb of the binary; returns exit code and output.
fn run(portico: &Portico, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(binary())
        .current_dir(portico.folder())
        .args(arguments)
        .env("PORTICO_DATA_DIR", portico.data())
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(printed).unwrap())
}

/// Damages the stored bytes of an object: their format byte, at every position in the database file.
fn damage_value(database: &Path, kind: &str, name: &str) {
    let mut bytes = std::fs::read(database).unwrap();
    let (name, head) = (format!(r#""name":"{name}""#), format!(r#"{{"kind":"{kind}""#));
    let mut spoilt = 0;
    for at in 0..bytes.len() - name.len() {
        if !bytes[at..].starts_with(name.as_bytes()) {
            continue;
        }
        let begin =
            (at.saturating_sub(100)..at).rev().find(|start| bytes[*start..].starts_with(head.as_bytes()));
        if let Some(begin) = begin {
            bytes[begin - 1] = 9;
            spoilt += 1;
        }
    }
    assert!(spoilt > 0, "{name} is not in the file");
    std::fs::write(database, bytes).unwrap();
}

/// Damages the key of a ConfigMap in the table and in its index: the last byte of its name.
fn damage_key(database: &Path, name: &str) {
    let mut bytes = std::fs::read(database).unwrap();
    let key = format!("default/{name}");
    let found: Vec<usize> =
        (0..bytes.len() - key.len()).filter(|at| bytes[*at..].starts_with(key.as_bytes())).collect();
    assert!(found.len() >= 2, "{name}: {found:?}");
    found.into_iter().for_each(|at| bytes[at + key.len() - 1] = 0xff);
    std::fs::write(database, bytes).unwrap();
}

fn names(list: &Value) -> Vec<&str> {
    let names = list["items"].as_array().unwrap().iter().filter_map(|item| item["metadata"]["name"].as_str());
    names.filter(|name| name.starts_with("cm-")).collect()
}

/// Starts a server with the ConfigMaps cm-a, cm-b and cm-c, of which cm-b is unreadable.
async fn with_unreadable_object(launch: Launch) -> Portico {
    let mut portico = launch.start().await;
    for name in ["cm-a", "cm-b", "cm-c"] {
        create(&portico.admin(), name).await;
    }
    assert!(portico.stop().await.success());
    damage_value(&portico.data().join("portico.db"), "ConfigMap", "cm-b");
    portico.restart().await;
    portico
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_starts_with_unreadable_objects_of_its_own() {
    let mut portico = Launch::new().start().await;
    assert!(portico.stop().await.success());
    let file = portico.data().join("portico.db");
    damage_value(&file, "ClusterRole", "view");
    damage_value(&file, "PriorityClass", "system-node-critical");
    portico.restart().await;
    let role = portico.admin().get("/apis/rbac.authorization.k8s.io/v1/clusterroles/view").await;
    role.status_body(500, "StorageReadError");
    wait_until("the log names both unreadable objects", || async {
        let log = portico.log();
        ["\"view\"", "\"system-node-critical\""]
            .iter()
            .all(|name| log.contains(&format!("{name} cannot be read")))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_has_the_requested_name_and_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let portico = Launch::new().start().await;
    create(&portico.admin(), "cm-a").await;
    for name in ["plain", "file:copy", "file:///copy?mode=ro", "a copy#1"] {
        let (code, printed) = run(&portico, &["backup", name]);
        if name.contains('/') {
            assert_eq!(code, Some(1), "the folder does not exist: {printed}");
            continue;
        }
        assert_eq!(code, Some(0), "{printed}");
        let file = std::fs::metadata(portico.folder().join(name)).unwrap();
        assert!(file.len() > 4_096, "{name}: {} bytes", file.len());
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let names = std::fs::read_dir(portico.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.filter_map(|name| name.into_string().ok()).all(|name| !name.contains("partial")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_object_does_not_break_quotas() {
    let portico = with_unreadable_object(Launch::new()).await;
    let http = portico.admin();
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let hard = json!({"configmaps": "1000"});
    let mut quota = json!({"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "q"}, "spec": {"hard": hard}});
    assert_eq!(http.post(quotas, &quota).await.status.as_u16(), 201);
    quota["status"] = json!({"hard": hard, "used": {"configmaps": "3"}});
    assert_eq!(http.put(&format!("{quotas}/q/status"), &quota).await.status.as_u16(), 200);
    let creators = (0..64).map(|at| {
        let http = portico.admin();
        async move {
            let name = if at % 4 == 0 { "cm-b".to_owned() } else { format!("counted-{at}") };
            let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}});
            (name, http.post(CONFIG_MAPS, &object).await.status.as_u16())
        }
    });
    for (name, code) in futures::future::join_all(creators).await {
        assert_eq!(code == 201, name != "cm-b", "{name}: {code}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_object_does_not_hide_others() {
    let portico = with_unreadable_object(Launch::new()).await;
    let http = portico.admin();
    let list = http.get(CONFIG_MAPS).await;
    assert_eq!(names(&list.json()), ["cm-a", "cm-c"]);
    let warning = r#"299 - "omitted because they cannot be read from the storage: configmaps default/cm-b""#;
    assert_eq!(list.header("warning"), warning);
    assert_eq!(names(&http.get(ALL).await.json()), ["cm-a", "cm-c"]);
    assert_eq!(http.get("/api/v1/namespaces/kube-system/configmaps").await.header("warning"), "");

    let watch = format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", version(&list.json()));
    let watch = Request::get(&watch).body(Default::default()).unwrap();
    let mut events = JsonLines::new(http.send(watch).await.unwrap().into_body());
    create(&http, "cm-d").await;
    let patched = http.merge(&format!("{CONFIG_MAPS}/cm-a"), &json!({"data": {"a": "c"}})).await;
    assert_eq!(patched.status.as_u16(), 200, "{}", patched.text());
    assert_eq!(http.delete(&format!("{CONFIG_MAPS}/cm-c")).await.status.as_u16(), 200);
    for (kind, name) in [("ADDED", "cm-d"), ("MODIFIED", "cm-a"), ("DELETED", "cm-c")] {
        let event = events.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!(kind), &json!(name)));
    }

    // Requests for only this object are refused with the reason.
    let bad = format!("{CONFIG_MAPS}/cm-b");
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "cm-b"}});
    for answer in [
        http.get(&bad).await,
        http.put(&bad, &object).await,
        http.merge(&bad, &json!({"data": {"a": "c"}})).await,
        http.post(CONFIG_MAPS, &object).await,
        http.delete(&bad).await,
        // Without the gate, the option is ignored.
        http.request(Method::DELETE, &bad, "application/json", UNSAFE).await,
    ] {
        let status = answer.status_body(500, "StorageReadError");
        assert_eq!(status["details"]["name"], "cm-b");
        assert!(status["message"].as_str().unwrap().contains("cannot be read from the storage"), "{status}");
    }

    assert_eq!(portico.log().matches("cannot read a stored object").count(), 1, "{}", portico.log());
    assert!(portico.log().contains("configmaps/default/cm-b"));
    let metric = r#"portico_store_unreadable_objects{group="",resource="configmaps"} 1"#;
    assert!(http.get("/metrics").await.text().contains(metric));
    assert_eq!(http.get("/readyz").await.status.as_u16(), 200);
    let failed = "[-]storage-readable failed";
    wait_until("the health check reports unreadable objects", || async {
        http.get("/healthz?verbose").await.text().contains(failed)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_key_hides_no_other_object_and_deletes_no_dependents() {
    let mut portico = Portico::start().await;
    let http = portico.admin();
    create(&http, "cm-a").await;
    create(&http, "cm-c").await;
    let uid = http.get(&format!("{CONFIG_MAPS}/cm-c")).await.json()["metadata"]["uid"].clone();
    let dependent = |name: &str, uid: &Value| {
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "cm-c", "uid": uid});
        let metadata = json!({"name": name, "ownerReferences": [owner]});
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})
    };
    assert_eq!(http.post(CONFIG_MAPS, &dependent("cm-b", &uid)).await.status.as_u16(), 201);
    assert!(portico.stop().await.success());
    damage_key(&portico.data().join("portico.db"), "cm-c");
    portico.restart().await;
    let http = portico.admin();
    let list = http.get(CONFIG_MAPS).await;
    assert_eq!(names(&list.json()), ["cm-a", "cm-b"]);
    assert!(list.header("warning").contains("omitted because they cannot be read"), "{list:?}");
    assert!(portico.log().contains(r"configmaps/default/cm-\xff"), "{}", portico.log());
    let metric = r#"portico_store_unreadable_objects{group="",resource="configmaps"} 1"#;
    assert!(http.get("/metrics").await.text().contains(metric));
    let failed = "[-]storage-readable failed";
    wait_until("the health check reports unreadable objects", || async {
        http.get("/healthz?verbose").await.text().contains(failed)
    })
    .await;
    http.get(&format!("{CONFIG_MAPS}/cm-c")).await.status_body(404, "NotFound");
    // Dependents of an owner that never existed are collected, those of the unreadable owner are not.
    let posted = http.post(CONFIG_MAPS, &dependent("cm-orphan", &json!("nobody"))).await;
    assert_eq!(posted.status.as_u16(), 201);
    wait_until("an orphan is collected", || async {
        http.get(&format!("{CONFIG_MAPS}/cm-orphan")).await.status.as_u16() == 404
    })
    .await;
    assert_eq!(http.get(&format!("{CONFIG_MAPS}/cm-b")).await.status.as_u16(), 200);

    assert!(portico.stop().await.success());
    let data = portico.data();
    let (code, printed) = run(&portico, &["doctor", data.to_str().unwrap(), "--remove-unreadable"]);
    let removed = r"removed configmaps/default/cm-\xff of revision ";
    assert!(code == Some(0) && printed.contains(removed), "{code:?} {printed}");
    portico.restart().await;
    assert_eq!(portico.admin().get(CONFIG_MAPS).await.header("warning"), "");
    create(&portico.admin(), "cm-c").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_object_can_be_deleted_with_the_gate() {
    let portico = with_unreadable_object(Launch::new().args(&["--feature-gates", GATE])).await;
    let http = portico.admin();
    let bad = format!("{CONFIG_MAPS}/cm-b");
    let delete = async |path: &str, body: &str| {
        http.request(Method::DELETE, path, "application/json", body.to_owned()).await
    };
    http.delete(&bad).await.status_body(500, "StorageReadError");
    let readable = delete(&format!("{CONFIG_MAPS}/cm-a"), UNSAFE).await.status_body(422, "Invalid");
    let why = "is exclusively used to delete corrupt object(s), try again by removing this option";
    assert!(readable["message"].as_str().unwrap().ends_with(why), "{readable}");
    let both = UNSAFE.replace('}', r#","gracePeriodSeconds":0}"#);
    delete(&bad, &both).await.status_body(422, "Invalid");
    delete(CONFIG_MAPS, UNSAFE).await.status_body(422, "Invalid");
    let watch =
        format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", version(&http.get(CONFIG_MAPS).await.json()));
    let watch = Request::get(&watch).body(Default::default()).unwrap();
    let mut events = JsonLines::new(http.send(watch).await.unwrap().into_body());
    let deleted = delete(&bad, UNSAFE).await;
    assert_eq!(
        (deleted.status.as_u16(), &deleted.json()["status"]),
        (200, &json!("Success")),
        "{}",
        deleted.text()
    );
    let event = events.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("DELETED"), &json!("cm-b")));
    http.get(&bad).await.status_body(404, "NotFound");
    assert_eq!(http.get(CONFIG_MAPS).await.header("warning"), "");
    create(&http, "cm-b").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_reports_exports_and_removes() {
    let mut portico = with_unreadable_object(Launch::new()).await;
    let data = portico.data();
    let data = data.to_str().unwrap();
    let finding = "unreadable: configmaps/default/cm-b at revision ";
    // The doctor can run while the server does, but then cannot remove objects.
    let (code, printed) = run(&portico, &["doctor", data, "--export", "saved"]);
    assert!(code == Some(1) && printed.contains(finding), "{printed}");
    let saved = std::fs::read_to_string(portico.folder().join("saved")).unwrap();
    let saved: Vec<Value> = saved.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let saved = json!({"items": saved});
    assert_eq!(names(&saved), ["cm-a", "cm-c"]);
    let (code, printed) = run(&portico, &["doctor", data, "--remove-unreadable"]);
    assert!(code == Some(2) && printed.contains("is in use by process"), "{printed}");
    assert!(portico.stop().await.success());
    let (code, printed) = run(&portico, &["doctor", data, "--remove-unreadable"]);
    assert!(code == Some(0) && printed.contains("removed configmaps/default/cm-b"), "{printed}");
    let (code, printed) = run(&portico, &["doctor", data]);
    assert!(code == Some(0) && printed.starts_with("sound: "), "{printed}");
    let (code, printed) = run(&portico, &["doctor", "--data-dir", data]);
    assert!(code == Some(0) && printed.starts_with("sound: "), "{printed}");
    let (code, printed) = run(&portico, &["doctor", data, "--data-dir", data]);
    assert!(code == Some(2) && printed.contains("DATA_DIR and --data-dir name two locations"), "{printed}");
    let (code, printed) = run(&portico, &["doctor", "nowhere"]);
    assert!(code == Some(2) && printed.contains("nowhere/portico.db does not exist"), "{printed}");
    portico.restart().await;
    let http = portico.admin();
    assert_eq!(names(&http.get(CONFIG_MAPS).await.json()), ["cm-a", "cm-c"]);
    create(&http, "cm-b").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_backup_starts_a_new_epoch() {
    let mut portico = Portico::start().await;
    let http = portico.admin();
    create(&http, "cm-a").await;
    create(&http, "cm-b").await;
    // A backup while the server runs.
    let (code, printed) = run(&portico, &["backup", "copy"]);
    assert!(code == Some(0) && printed.contains("copy: store "), "{printed}");
    let (code, printed) = run(&portico, &["backup", "copy"]);
    assert!(code == Some(1) && printed.contains("copy already exists"), "{printed}");
    let lost = create(&http, "cm-lost").await;
    let page = http.get(&format!("{ALL}?limit=1")).await.json();
    let token = page["metadata"]["continue"].as_str().unwrap().to_owned();
    let (code, printed) = run(&portico, &["restore", "copy"]);
    assert!(code == Some(1) && printed.contains("is in use by process"), "{printed}");
    assert!(portico.stop().await.success());
    let (code, printed) = run(&portico, &["restore", "copy"]);
    assert!(
        code == Some(0) && printed.contains("epoch 2") && printed.contains("portico.db.epoch-1"),
        "{printed}"
    );
    portico.restart().await;
    let http = portico.admin();
    let list = http.get(CONFIG_MAPS).await.json();
    assert_eq!(names(&list), ["cm-a", "cm-b"]);
    assert!(version(&list) > lost + 1_000_000);
    let watch =
        Request::get(format!("{CONFIG_MAPS}?watch=1&resourceVersion={lost}")).body(Default::default());
    let mut events = JsonLines::new(http.send(watch.unwrap()).await.unwrap().into_body());
    let event = events.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
    http.get(&format!("{ALL}?limit=1&continue={token}")).await.status_body(410, "Expired");
    assert!(create(&http, "cm-lost").await > lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_of_the_database_is_refused_with_a_hint() {
    let mut portico = Portico::start().await;
    assert!(portico.stop().await.success());
    let (database, copy) = (portico.data().join("portico.db"), portico.folder().join("older"));
    std::fs::copy(&database, &copy).unwrap();
    portico.restart().await;
    create(&portico.admin(), "cm-a").await;
    assert!(portico.stop().await.success());
    std::fs::copy(&copy, &database).unwrap();
    let (code, _, printed) = Launch::new().with_data_of(&portico).run().await;
    assert_eq!(code, Some(3), "{printed}");
    assert!(printed.contains("older copy: ") && printed.contains("`portico restore "), "{printed}");
    let (code, printed) = run(&portico, &["restore", database.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{printed}");
    portico.restart().await;
    create(&portico.admin(), "cm-a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_an_unreadable_object_is_not_deleted() {
    let mut portico = Portico::start().await;
    let namespace = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "team"}});
    assert_eq!(portico.admin().post("/api/v1/namespaces", &namespace).await.status.as_u16(), 201);
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "cm-b"}});
    let created = portico.admin().post("/api/v1/namespaces/team/configmaps", &object).await;
    assert_eq!(created.status.as_u16(), 201);
    assert!(portico.stop().await.success());
    damage_value(&portico.data().join("portico.db"), "ConfigMap", "cm-b");
    portico.restart().await;
    let http = portico.admin();
    assert_eq!(http.delete("/api/v1/namespaces/team").await.status.as_u16(), 200);
    wait_until("the namespace reports its remaining content", || async {
        let namespace = http.get("/api/v1/namespaces/team").await.text();
        namespace.contains("configmaps. has 1 resource instances")
    })
    .await;
}
