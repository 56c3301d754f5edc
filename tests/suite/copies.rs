//! Portable backups and migrations between databases, through the binary and over HTTP.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use http::Request;
use http_body_util::Full;
use portico_tests::binary::binary;
use portico_tests::http::{Http, JsonLines};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{EtcdServer, KubeApiserver, Launch, Portico, PostgresServer, wait_until};
use serde_json::{Value, json};

/// Clients that write at the same time.
const WRITERS: usize = 4;
/// Maximum time for which writes are refused, with a margin for busy machines.
const MAX_WRITE_STOP: Duration = Duration::from_secs(5);

fn on(url: &str) -> Launch {
    Launch::new().arg("--database-url").arg(url)
}

fn database() -> Option<(&'static PostgresServer, String)> {
    let server = PostgresServer::shared()?;
    let name = server.create_database();
    Some((server, server.url(&name)))
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"a": "b"}})
}

fn version(object: &Value) -> i64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

async fn create(http: &Http, name: &str) -> Value {
    let created = http.post(CONFIG_MAPS, &config_map(name)).await;
    assert_eq!(created.status.as_u16(), 201, "{}", created.text());
    created.json()
}

/// Runs a verb of the binary in a folder; returns exit code and output.
async fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = tokio::process::Command::new(binary());
    let output = command.current_dir(folder).args(arguments).stdin(Stdio::null()).output().await.unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(printed).unwrap())
}

pub(crate) async fn done(folder: &Path, arguments: &[&str]) -> String {
    let (code, printed) = run(folder, arguments).await;
    assert_eq!(code, Some(0), "{arguments:?}: {printed}");
    printed
}

pub(crate) async fn refused(folder: &Path, code: i32, arguments: &[&str], why: &str) {
    let (found, printed) = run(folder, arguments).await;
    assert!(found == Some(code) && printed.contains(why), "{arguments:?}: {found:?}: {printed}");
}

async fn watch(http: &Http, from: i64) -> JsonLines {
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}");
    let answer = http.send(Request::get(path).body(Full::default()).unwrap()).await.unwrap();
    JsonLines::new(answer.into_body())
}

/// Checks that the backed-up objects exist unchanged, and that older watches and revisions are expired.
async fn check_restored(http: &Http, created: &[Value], lost: i64) {
    for object in created {
        let name = object["metadata"]["name"].as_str().unwrap();
        assert_eq!(&http.get(&format!("{CONFIG_MAPS}/{name}")).await.json(), object);
    }
    assert_eq!(http.get(&format!("{CONFIG_MAPS}/lost")).await.status.as_u16(), 404);
    let event = watch(http, lost).await.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
    assert!(version(&create(http, "lost").await) > lost + 1_000_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_of_every_kind_are_restored_into_every_database() {
    let portico = Portico::start().await;
    let (http, folder) = (portico.admin(), portico.folder());
    let created = [create(&http, "cm-a").await, create(&http, "cm-b").await];
    let printed = done(folder, &["backup", "--to", "by-file", "--data-dir", "data"]).await;
    assert!(printed.contains("by-file: store "), "{printed}");
    done(folder, &["backup", "--to", "by-grpc", "--kubeconfig", "data/admin.kubeconfig"]).await;
    let printed = done(folder, &["backup", "--check", "by-grpc"]).await;
    assert!(printed.contains("by-grpc: complete: store "), "{printed}");
    let revision = version(&created[1]).to_string();
    let lost = version(&create(&http, "lost").await);
    let at = ["backup", "--to", "at", "--data-dir", "data", "--at-revision", &revision];
    let printed = done(folder, &at).await;
    assert!(printed.contains(&format!("revision {revision}, ")), "{printed}");
    for file in ["by-file", "by-grpc", "at"] {
        let (launch, target_folder) = Launch::new().prepare_folder();
        let file = folder.join(file);
        let restore = ["restore", "--from", file.to_str().unwrap(), "--data-dir", "data"];
        let printed = done(&target_folder, &restore).await;
        assert!(printed.contains("epoch 2, "), "{printed}");
        let restored = launch.start().await;
        check_restored(&restored.admin(), &created, lost).await;
    }
    let Some((_, url)) = database() else { return };
    done(folder, &["restore", "at", "--database-url", &url]).await;
    let restored = on(&url).start().await;
    check_restored(&restored.admin(), &created, lost).await;
    // A backup of the restored store.
    done(folder, &["backup", "--to", "of-postgres", "--database-url", &url]).await;
    let (_launch, target_folder) = Launch::new().prepare_folder();
    let of_postgres = folder.join("of-postgres");
    let printed =
        done(&target_folder, &["restore", of_postgres.to_str().unwrap(), "--data-dir", "data"]).await;
    assert!(printed.contains("epoch 3, "), "{printed}");
}

/// Creates objects until writes are refused because the store was migrated; returns the versions of acknowledged writes.
async fn write(http: Http, writer: usize) -> BTreeMap<i64, String> {
    let mut acknowledged = BTreeMap::new();
    for n in 0.. {
        let name = format!("w-{writer}-{n}");
        let answer = http.post(CONFIG_MAPS, &config_map(&name)).await;
        match answer.status.as_u16() {
            201 => acknowledged.insert(version(&answer.json()), name),
            503 => {
                assert_eq!(answer.header("retry-after"), "1", "{}", answer.text());
                assert!(
                    answer.text().contains("the store is read-only: it was moved to "),
                    "{}",
                    answer.text()
                );
                return acknowledged;
            }
            code => panic!("{code}: {}", answer.text()),
        };
    }
    acknowledged
}

/// Migrates a store under writers and a watcher, which find every acknowledged object in the new store; `keeps_versions` is true
/// if resource versions stay valid.
async fn move_under_writers(
    here: &[&Portico],
    arguments: &[&str],
    start: impl AsyncFnOnce() -> Portico,
) -> bool {
    let first = create(&here[0].admin(), "first").await;
    let mut events = watch(&here[0].admin(), version(&first)).await;
    let writers = (0..WRITERS).map(|writer| write(here[writer % here.len()].admin(), writer));
    let moving = async {
        wait_until("writes continue", || async {
            here[0].admin().get(CONFIG_MAPS).await.json()["items"].as_array().unwrap().len() > 20
        })
        .await;
        done(here[0].folder(), arguments).await
    };
    let (written, printed) = tokio::join!(futures::future::join_all(writers), moving);
    let acknowledged: BTreeMap<i64, String> = written.into_iter().flatten().collect();
    let stopped = printed.split("writes were refused for ").nth(1).and_then(|rest| rest.split(' ').next());
    let stopped: u64 = stopped.unwrap().parse().unwrap();
    std::io::stdout().write_all(format!("{} writes; {printed}\n", acknowledged.len()).as_bytes()).unwrap();
    assert!(Duration::from_millis(stopped) < MAX_WRITE_STOP, "{printed}");

    let target = start().await;
    let list = target.admin().get(CONFIG_MAPS).await.json();
    let found = list["items"].as_array().unwrap().iter();
    let found = found.map(|item| (item["metadata"]["name"].as_str().unwrap(), version(item)));
    let found: BTreeMap<&str, i64> = found.filter(|(name, _)| name.starts_with("w-")).collect();
    let expected: BTreeMap<&str, i64> =
        acknowledged.iter().map(|(version, name)| (name.as_str(), *version)).collect();
    // The old store serves reads, but no writes.
    let old = here[0].admin();
    assert_eq!(old.get(&format!("{CONFIG_MAPS}/first")).await.json(), first);
    assert_eq!(old.delete(&format!("{CONFIG_MAPS}/first")).await.status.as_u16(), 503);
    if printed.contains("revisions could not be kept") {
        assert!(found.keys().eq(expected.keys()), "{found:?} {expected:?}");
        let last = *acknowledged.keys().last().unwrap();
        let event = watch(&target.admin(), last).await.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
        assert!(version(&create(&target.admin(), "after").await) > last);
        return false;
    }
    assert_eq!(found, expected);
    // The watch resumes, although all control services are new ones.
    let mut seen = Vec::new();
    while seen.len() + 5 < acknowledged.len() {
        let event = events.next().await.unwrap();
        // A controller writes this object at any time.
        if event["object"]["metadata"]["name"] != "kube-root-ca.crt" {
            seen.push(version(&event["object"]));
        }
    }
    let mut events = watch(&target.admin(), *seen.last().unwrap()).await;
    while seen.len() < acknowledged.len() {
        let event = events.next().await.unwrap();
        assert_eq!(event["type"], "ADDED", "{event}");
        seen.push(version(&event["object"]));
    }
    assert_eq!(seen, acknowledged.keys().copied().collect::<Vec<_>>());
    assert!(version(&create(&target.admin(), "after").await) > *seen.last().unwrap());
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_moved_to_postgresql_under_writers_and_watchers() {
    let Some((_, url)) = database() else { return };
    let portico = Portico::start().await;
    let from = format!("sqlite://{}", portico.data().display());
    let start = async || on(&url).start().await;
    assert!(move_under_writers(&[&portico], &["migrate", "--from", &from, "--to", &url], start).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_several_control_services_is_moved_to_sqlite_under_writers_and_watchers() {
    let Some((_, url)) = database() else { return };
    let (one, other) = tokio::join!(on(&url).start(), on(&url).start());
    let (launch, target_folder) = Launch::new().prepare_folder();
    let to = format!("sqlite://{}", target_folder.join("data").display());
    let start = async || launch.start().await;
    let moved = move_under_writers(&[&one, &other], &["migrate", "--from", &url, "--to", &to], start).await;
    assert!(moved);
}

/// Starts an etcd; also returns the launch of a control service on it, and its URL for migrations.
fn etcd() -> Option<(EtcdServer, Launch, String)> {
    let server = EtcdServer::start_with(&["--unsafe-no-fsync"])?;
    let launch = Launch::new().args(&["--etcd-servers", &server.url()]);
    let url = format!("{}/registry", server.url().replace("http://", "etcd://"));
    Some((server, launch, url))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_moved_into_etcd_under_writers_as_a_new_epoch() {
    let Some((_etcd, launch, url)) = etcd() else { return };
    let portico = Portico::start().await;
    let from = format!("sqlite://{}", portico.data().display());
    let start = async || launch.start().await;
    assert!(!move_under_writers(&[&portico], &["migrate", "--from", &from, "--to", &url], start).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_several_control_services_is_moved_out_of_etcd_under_writers_and_back() {
    let Some((etcd, launch, url)) = etcd() else { return };
    let (one, mut other) = tokio::join!(launch.start(), on_etcd(&etcd).start());
    let (target_launch, folder) = Launch::new().prepare_folder();
    let to = format!("sqlite://{}", folder.join("data").display());
    let start = async || target_launch.start().await;
    // A Service and its address share a revision, which no later write changes: the store starts a new epoch.
    let service = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "shares"}, "spec": {"ports": [{"port": 80}]}});
    let created = one.admin().post("/api/v1/namespaces/default/services", &service).await;
    assert_eq!(created.status.as_u16(), 201, "{}", created.text());
    let moved = move_under_writers(&[&one, &other], &["migrate", "--from", &url, "--to", &to], start).await;
    assert!(!moved);
    other.stop().await;
    other.restart().await;
    let refused = other.admin().post(CONFIG_MAPS, &config_map("again")).await;
    assert_eq!(refused.status.as_u16(), 503, "{}", refused.text());
    done(other.folder(), &["migrate", "--from", &url, "--resume-writes"]).await;
    create(&other.admin(), "again").await;
    create(&one.admin(), "and-here").await;
}

fn on_etcd(etcd: &EtcdServer) -> Launch {
    Launch::new().args(&["--etcd-servers", &etcd.url()])
}

/// Returns the objects that a test has created, without their versions.
pub(crate) async fn created_objects(http: &Http) -> Vec<Value> {
    let mut all = Vec::new();
    for path in [CONFIG_MAPS, "/api/v1/namespaces/default/secrets", "/apis/example.com/v1/things"] {
        let mut items = http.get(path).await.json()["items"].as_array().unwrap().clone();
        // A controller maintains it from the data folder of its server.
        items.retain(|item| item["metadata"]["name"] != "kube-root-ca.crt");
        all.extend(items.into_iter().map(|mut item| {
            item["metadata"].as_object_mut().unwrap().remove("resourceVersion");
            item
        }));
    }
    all
}

pub(crate) async fn make(http: &Http) {
    create(http, "cm-a").await;
    let secret =
        json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "data": {"a": "Yg=="}});
    let secrets = "/api/v1/namespaces/default/secrets";
    assert_eq!(http.post(secrets, &secret).await.status.as_u16(), 201);
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
    let definition = json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(http.post(definitions, &definition).await.status.as_u16(), 201);
    things_are_served(http).await;
    let thing =
        json!({"kind": "Thing", "apiVersion": "example.com/v1", "metadata": {"name": "t"}, "spec": {"n": 1}});
    let things = "/apis/example.com/v1/namespaces/default/things";
    assert_eq!(http.post(things, &thing).await.status.as_u16(), 201);
}

pub(crate) async fn things_are_served(http: &Http) {
    wait_until("the definition is served", async || {
        http.get("/apis/example.com/v1/things").await.status.as_u16() == 200
    })
    .await;
}

/// Writes a configuration that encrypts Secrets to a folder; returns the flag and the path.
fn encryption(folder: &Path) -> [String; 2] {
    let configuration = json!({"kind": "EncryptionConfiguration", "apiVersion": "apiserver.config.k8s.io/v1",
        "resources": [{"resources": ["secrets"], "providers": [
            {"aescbc": {"keys": [{"name": "k", "secret": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}]}},
            {"identity": {}}]}]});
    let file = folder.join("encryption.json");
    std::fs::write(&file, configuration.to_string()).unwrap();
    ["--encryption-provider-config".to_owned(), file.display().to_string()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_restored_into_etcd_and_back() {
    let Some((etcd, ..)) = etcd() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [flag, config] = encryption(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let portico = Launch::new().args(&[&flag, &config]).start().await;
    make(&portico.admin()).await;
    let (first, expected) = (file("first"), created_objects(&portico.admin()).await);
    done(portico.folder(), &["backup", "--to", &first, "--data-dir", "data"]).await;
    let lost = version(&create(&portico.admin(), "lost").await);

    let url = etcd.url();
    let into = ["restore", "--from", &first, "--etcd-servers", &url];
    // Without keys the restored store cannot be served; with keys it can.
    refused(folder.path(), 1, &into, "need --encryption-provider-config").await;
    let launch = || on_etcd(&etcd).args(&[&flag, &config]);
    refused(folder.path(), 1, &into, "contains an incomplete restore or move").await;
    let printed = done(folder.path(), &[&into[..], &["--force", &flag, &config]].concat()).await;
    assert!(printed.contains("epoch 2, "), "{printed}");
    let mut restored = launch().start().await;
    let http = restored.admin();
    things_are_served(&http).await;
    assert_eq!(created_objects(&http).await, expected);
    let event = watch(&http, lost).await.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
    refused(folder.path(), 1, &into, "a control service has renewed its Lease").await;

    // Backups directly from etcd and by its control service, also of a past revision.
    let after = version(&create(&http, "after").await);
    let at = (version(&http.get(&format!("{CONFIG_MAPS}/cm-a")).await.json())).max(after - 1).to_string();
    let direct = ["backup", "--etcd-servers", &url, &flag, &config, "--to"];
    done(folder.path(), &[&direct[..], &[&file("direct")]].concat()).await;
    done(folder.path(), &[&direct[..], &[&file("at"), "--at-revision", &at]].concat()).await;
    let never = file("never");
    for (code, revision, why) in
        [(2, "999999999", "has not been written yet"), (1, "1", "is no longer retained")]
    {
        let arguments = [&direct[..], &[&never, "--at-revision", revision]].concat();
        refused(folder.path(), code, &arguments, why).await;
    }
    let kubeconfig = restored.data().join("admin.kubeconfig").display().to_string();
    done(folder.path(), &["backup", "--to", &file("by-grpc"), "--kubeconfig", &kubeconfig]).await;
    assert!(restored.stop().await.success());
    for (name, has_after) in [("direct", true), ("at", false), ("by-grpc", true)] {
        let (target_launch, data) = Launch::new().args(&[&flag, &config]).prepare_folder();
        let printed = done(&data, &["restore", "--from", &file(name), "--data-dir", "data"]).await;
        assert!(printed.contains("epoch 3, "), "{printed}");
        let target = target_launch.start().await;
        things_are_served(&target.admin()).await;
        let mut found = created_objects(&target.admin()).await;
        found.retain(|object| object["metadata"]["name"] != "after");
        assert_eq!(found, expected);
        let after = target.admin().get(&format!("{CONFIG_MAPS}/after")).await.status.as_u16();
        assert_eq!(after == 200, has_after, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_etcd_serves_a_kube_apiserver_and_is_protected() {
    let Some((etcd, _, url)) = etcd() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [flag, config] = encryption(folder.path());
    let portico = Portico::start().await;
    make(&portico.admin()).await;
    let (backup, expected) =
        (folder.path().join("backup").display().to_string(), created_objects(&portico.admin()).await);
    done(portico.folder(), &["backup", "--to", &backup, "--data-dir", "data"]).await;
    let servers = etcd.url();
    let into = ["restore", "--from", &backup, "--etcd-servers", &servers, &flag, &config];
    done(folder.path(), &into).await;
    let Some(server) = KubeApiserver::start(&etcd, &[&format!("{flag}={config}")]).await else { return };
    let kube = server.admin();
    things_are_served(&kube).await;
    assert_eq!(created_objects(&kube).await, expected);
    let changed = kube.merge(&format!("{CONFIG_MAPS}/cm-a"), &json!({"data": {"a": "c"}})).await;
    assert_eq!(changed.status.as_u16(), 200, "{}", changed.text());

    let to = format!("sqlite://{}", folder.path().join("data").display());
    let moving = ["migrate", "--from", &url, "--to", &to, &flag, &config];
    refused(folder.path(), 1, &moving, "a kube-apiserver has renewed its Lease kube-system/apiserver-").await;
    refused(folder.path(), 1, &[&into[..], &["--force"]].concat(), "a kube-apiserver has renewed").await;
    // The store of a running kube-apiserver can be backed up.
    let of_kube = folder.path().join("of-kube").display().to_string();
    done(folder.path(), &["backup", "--to", &of_kube, "--etcd-servers", &servers, &flag, &config]).await;
    let expected = created_objects(&kube).await;
    drop(server);
    done(folder.path(), &[&moving[..], &["--force"]].concat()).await;
    let (target_launch, data) = Launch::new().args(&[&flag, &config]).prepare_folder();
    done(&data, &["restore", "--from", &of_kube, "--data-dir", "data"]).await;
    let target = target_launch.start().await;
    things_are_served(&target.admin()).await;
    assert_eq!(created_objects(&target.admin()).await, expected);
}

#[tokio::test]
async fn passwords_in_urls_of_etcd_are_refused_without_being_shown() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = ["etcd://u:secret@h:1/d", "--etcd-servers=http://h:1,http://u:secret@h:2"];
    let why = "etcd URLs cannot contain a user, password or parameter";
    for arguments in [
        &["migrate", "--from", etcd[0], "--to", "c"][..],
        &["server", etcd[1]],
        &["backup", "--to", "a", etcd[1]],
    ] {
        let (code, printed) = run(folder.path(), arguments).await;
        let is_refused = code != Some(0) && printed.contains(why) && !printed.contains("secret");
        assert!(is_refused, "{arguments:?}: {code:?}: {printed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_backups_restores_and_migrations_change_nothing() {
    let mut portico = Portico::start().await;
    let folder = portico.folder().to_owned();
    create(&portico.admin(), "kept").await;
    done(&folder, &["backup", "--to", "good", "--data-dir", "data"]).await;
    let good = std::fs::read(folder.join("good")).unwrap();
    std::fs::write(folder.join("foreign"), "-- PostgreSQL database dump\n").unwrap();
    std::fs::write(folder.join("newer"), [b"PORTICO-BACKUP 3\n", &good[17..]].concat()).unwrap();
    std::fs::write(folder.join("cut"), &good[..good.len() / 2]).unwrap();
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    std::fs::write(folder.join("damaged"), damaged).unwrap();
    for (file, why) in [
        ("missing", "missing: no such file or directory"),
        ("foreign", "foreign: not a Portico backup"),
        ("newer", "newer: format version 3 is not supported, this portico supports 2: use a newer portico"),
        ("cut", "cut: truncated at byte "),
        ("damaged", "damaged: damaged between bytes "),
        ("good", "portico.db is in use by process "),
    ] {
        refused(&folder, 1, &["restore", "--from", file, "--data-dir", "data"], why).await;
        if file != "good" {
            refused(&folder, 1, &["backup", "--check", file], why).await;
        }
    }
    refused(&folder, 1, &["backup", "--to", "good", "--data-dir", "data"], "good already exists").await;
    refused(&folder, 1, &["backup", "--to", "a", "--data-dir", "nowhere"], "no database found").await;
    let far = ["backup", "--to", "a", "--data-dir", "data", "--at-revision", "99999999"];
    refused(&folder, 2, &far, "has not been written yet: the current is ").await;
    let early = ["backup", "--to", "a", "--data-dir", "data", "--at-time", "2001-01-01T00:00:00Z"];
    refused(&folder, 1, &early, "no revision is recorded for that time").await;
    let late = ["backup", "--to", "a", "--data-dir", "data", "--at-time", "2999-01-01T00:00:00Z"];
    refused(&folder, 2, &late, "--at-time 2999-01-01T00:00:00Z is in the future: the current time is ").await;
    for (arguments, why) in [
        (
            ["backup", "--to=a", "--data-dir=data", "--kubeconfig=k"],
            "--data-dir and --kubeconfig name two locations",
        ),
        (
            ["restore", "good", "--data-dir=b", "--database-url=postgres://u@h/x"],
            "--data-dir and --database-url name two",
        ),
        (
            ["restore", "good", "--database-url=postgres://u@h/x", "--etcd-servers=http://h:1"],
            "--etcd-servers name two",
        ),
        (
            ["migrate", "--from", "mysql://x", "--to=sqlite://b"],
            "must begin with sqlite://, postgres:// or etcd://",
        ),
        (["backup", "--to", "a", "--database-url=mysql://x"], "the URL must start with postgres://"),
        (["backup", "--to", "a", "--database-url=postgres://u:secret@h:99999/d"], "\"postgres://xxxxx\""),
    ] {
        refused(&folder, 2, &arguments, why).await;
    }
    let nobody = "postgres://u@127.0.0.1:1/x";
    refused(&folder, 1, &["backup", "--to", "a", "--database-url", nobody], "connection lost").await;
    refused(&folder, 1, &["migrate", "--from", "sqlite://data", "--to", nobody], "127.0.0.1:1/x: ").await;
    refused(
        &folder,
        2,
        &["migrate", "--from", "data", "--to", nobody],
        "must begin with sqlite://, postgres:// or etcd://",
    )
    .await;
    refused(&folder, 2, &["backup"], "required").await;
    let nowhere = ["backup", "--to", "nowhere/backup", "--data-dir", "data"];
    refused(&folder, 1, &nowhere, "nowhere/backup.partial: no such file or directory").await;
    assert!(!folder.join("a").exists() && !folder.join("a.partial").exists());
    // Another store is not replaced; the same store is, and the old one is kept.
    let other = Portico::start().await;
    done(
        &folder,
        &["backup", "--to", "other", "--kubeconfig", other.data().join("admin.kubeconfig").to_str().unwrap()],
    )
    .await;
    assert!(portico.stop().await.success());
    let restore = ["restore", "--from", "other", "--data-dir", "data"];
    refused(&folder, 1, &restore, ": --force replaces the store").await;
    let printed = done(&folder, &["restore", "--from", "good", "--data-dir", "data"]).await;
    assert!(printed.contains("the previous database is now "), "{printed}");
    portico.restart().await;
    assert_eq!(portico.admin().get(&format!("{CONFIG_MAPS}/kept")).await.status.as_u16(), 200);
    let Some((_, url)) = database() else { return };
    let serving = on(&url).start().await;
    let into = ["restore", "--from", "good", "--database-url", &url, "--force"];
    refused(&folder, 1, &into, "is in use by ").await;
    create(&serving.admin(), "kept").await;
    drop(serving);
    let into = ["restore", "--from", "good", "--database-url", &url];
    wait_until("the server's database connections have ended", || async {
        !run(&folder, &into).await.1.contains("is in use")
    })
    .await;
    refused(&folder, 1, &into, ": --force replaces the store").await;
    done(&folder, &[&into[..], &["--force"]].concat()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migrated_database_refuses_writes_and_can_be_resumed() {
    let mut portico = Portico::start().await;
    create(&portico.admin(), "kept").await;
    let (launch, target_folder) = Launch::new().prepare_folder();
    let to = format!("sqlite://{}", target_folder.join("data").display());
    assert!(portico.stop().await.success());
    // No control service uses the store.
    done(portico.folder(), &["migrate", "--from", "sqlite://data", "--to", &to]).await;
    portico.restart().await;
    let resume = ["migrate", "--from", "sqlite://data", "--resume-writes"];
    let answer = portico.admin().post(CONFIG_MAPS, &config_map("after")).await;
    let status = answer.status_body(503, "ServiceUnavailable");
    let why = status["message"].as_str().unwrap();
    assert!(why.ends_with("the store is read-only: it was moved to a SQLite file"), "{why}");
    assert_eq!(portico.admin().get(&format!("{CONFIG_MAPS}/kept")).await.status.as_u16(), 200);
    // As after a killed migration.
    done(portico.folder(), &resume).await;
    create(&portico.admin(), "resumed").await;
    assert!(portico.stop().await.success());
    done(portico.folder(), &["migrate", "--from", "sqlite://data", "--to", &to, "--force"]).await;
    let again = done(portico.folder(), &["restore", "data/portico.db", "--data-dir", "data"]).await;
    assert!(again.contains("epoch 2"), "{again}");
    portico.restart().await;
    create(&portico.admin(), "after").await;
    let moved = launch.start().await;
    assert_eq!(moved.admin().get(&format!("{CONFIG_MAPS}/kept")).await.status.as_u16(), 200);
    create(&moved.admin(), "after").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_migration_keeps_writes_after_the_first() {
    let mut portico = Portico::start().await;
    create(&portico.admin(), "kept").await;
    assert!(portico.stop().await.success());
    let (launch, target_folder) = Launch::new().prepare_folder();
    let to = format!("sqlite://{}", target_folder.join("data").display());
    let again = ["migrate", "--from", "sqlite://data", "--to", &to];
    let folder = portico.folder();
    done(folder, &again).await;
    let mut moved = launch.start().await;
    let served = create(&moved.admin(), "served").await;
    assert!(moved.stop().await.success());
    refused(folder, 1, &again, "--to contains a newer state of this store: epoch 1, ").await;
    moved.restart().await;
    assert_eq!(moved.admin().get(&format!("{CONFIG_MAPS}/served")).await.json(), served);
    assert!(moved.stop().await.success());
    let printed = done(folder, &[&again[..], &["--force"]].concat()).await;
    assert!(printed.contains("epoch 2, ") && printed.contains("the previous database is now "), "{printed}");
    moved.restart().await;
    let http = moved.admin();
    assert_eq!(http.get(&format!("{CONFIG_MAPS}/served")).await.status.as_u16(), 404);
    assert_eq!(http.get(&format!("{CONFIG_MAPS}/kept")).await.status.as_u16(), 200);
    let event = watch(&http, version(&served)).await.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
}

/// Returns a free port.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facades_and_watches_survive_a_migration() {
    let Some((_, url)) = database() else { return };
    let address = format!("127.0.0.1:{}", free_port());
    let mut server = Launch::server().arg("--control-address").arg(&address).start().await;
    let facade = Launch::facade(&server).start().await;
    let http = facade.admin();
    create(&http, "before").await;
    let from = format!("sqlite://{}", server.data().display());
    done(server.folder(), &["migrate", "--from", &from, "--to", &url]).await;
    // Reads continue. A position from before the copy may be expired, because other writers (Leases) write as well.
    let position = version(&http.get(CONFIG_MAPS).await.json());
    let mut events = watch(&http, position).await;
    assert!(server.stop().await.success());
    // The same files and address, but another database.
    let moved = Launch::server().args(&["--control-address", &address, "--database-url", &url]);
    let _moved = moved.with_data_of(&server).start().await;
    wait_until("the facade has reconnected to the control service", || {
        let http = facade.admin();
        async move { http.post(CONFIG_MAPS, &config_map("after")).await.status.as_u16() == 201 }
    })
    .await;
    let after = version(&http.get(&format!("{CONFIG_MAPS}/after")).await.json());
    // The watch continues or restarts from its position: no event is missing or expired.
    let seen = loop {
        match events.next().await {
            Some(event) if event["type"] == "ADDED" => break version(&event["object"]),
            Some(event) => panic!("{event}"),
            None => events = watch(&http, position).await,
        }
    };
    assert_eq!(seen, after);
}
