//! Portable backups and moves between databases, as users of the binary and of HTTP meet them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use http::Request;
use http_body_util::Full;
use portico_tests::binary::binary;
use portico_tests::http::{Http, Lines};
use portico_tests::{Launch, Portico, PostgresServer, until};
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Clients that write at the same time.
const WRITERS: usize = 4;
/// How long writes are refused at most: far beyond what it takes, for machines that do much else.
const STOPPED: Duration = Duration::from_secs(5);

fn on(url: &str) -> Launch {
    Launch::new().arg("--database-url").arg(url)
}

fn database() -> Option<(&'static PostgresServer, String)> {
    let server = PostgresServer::shared()?;
    let name = server.database();
    Some((server, server.url(&name)))
}

fn config_map(name: &str) -> Value {
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

/// Runs a verb of the binary to its end in a folder: exit code and everything that it says.
async fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = tokio::process::Command::new(binary());
    let output = command.current_dir(folder).args(arguments).stdin(Stdio::null()).output().await.unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

async fn done(folder: &Path, arguments: &[&str]) -> String {
    let (code, said) = run(folder, arguments).await;
    assert_eq!(code, Some(0), "{arguments:?}: {said}");
    said
}

async fn refused(folder: &Path, code: i32, arguments: &[&str], why: &str) {
    let (found, said) = run(folder, arguments).await;
    assert!(found == Some(code) && said.contains(why), "{arguments:?}: {found:?}: {said}");
}

async fn watch(http: &Http, from: i64) -> Lines {
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}");
    let answer = http.send(Request::get(path).body(Full::default()).unwrap()).await.unwrap();
    Lines::new(answer.into_body())
}

/// What a backup was made of is there, as it was, and nothing of before goes on.
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
    let said = done(folder, &["backup", "--to", "by-file", "--data-dir", "data"]).await;
    assert!(said.contains("by-file: store "), "{said}");
    done(folder, &["backup", "--to", "by-grpc", "--kubeconfig", "data/admin.kubeconfig"]).await;
    let said = done(folder, &["backup", "--check", "by-grpc"]).await;
    assert!(said.contains("by-grpc: whole: store "), "{said}");
    let revision = version(&created[1]).to_string();
    let lost = version(&create(&http, "lost").await);
    let at = ["backup", "--to", "at", "--data-dir", "data", "--at-revision", &revision];
    let said = done(folder, &at).await;
    assert!(said.contains(&format!("revision {revision}, ")), "{said}");
    for file in ["by-file", "by-grpc", "at"] {
        let (launch, there) = Launch::new().prepared();
        let file = folder.join(file);
        let restore = ["restore", "--from", file.to_str().unwrap(), "--data-dir", "data"];
        let said = done(&there, &restore).await;
        assert!(said.contains("epoch 2, "), "{said}");
        let restored = launch.start().await;
        check_restored(&restored.admin(), &created, lost).await;
    }
    let Some((_, url)) = database() else { return };
    done(folder, &["restore", "at", "--database-url", &url]).await;
    let restored = on(&url).start().await;
    check_restored(&restored.admin(), &created, lost).await;
    // And from there.
    done(folder, &["backup", "--to", "of-postgres", "--database-url", &url]).await;
    let (_launch, there) = Launch::new().prepared();
    let of_postgres = folder.join("of-postgres");
    let said = done(&there, &["restore", of_postgres.to_str().unwrap(), "--data-dir", "data"]).await;
    assert!(said.contains("epoch 3, "), "{said}");
}

/// Creates objects until writes are refused because the store was moved; the versions of what was acknowledged.
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

/// Moves a store under writers and a watcher, who find everything at `there` that they were told here.
async fn move_under_writers(here: &[&Portico], arguments: &[&str], start: impl AsyncFnOnce() -> Portico) {
    let first = create(&here[0].admin(), "first").await;
    let mut events = watch(&here[0].admin(), version(&first)).await;
    let writers = (0..WRITERS).map(|writer| write(here[writer % here.len()].admin(), writer));
    let moving = async {
        until("writes go on", 60, || async {
            here[0].admin().get(CONFIG_MAPS).await.json()["items"].as_array().unwrap().len() > 20
        })
        .await;
        done(here[0].folder(), arguments).await
    };
    let (written, said) = tokio::join!(futures::future::join_all(writers), moving);
    let acknowledged: BTreeMap<i64, String> = written.into_iter().flatten().collect();
    let stopped = said.split("writes were refused for ").nth(1).and_then(|rest| rest.split(' ').next());
    let stopped: u64 = stopped.unwrap().parse().unwrap();
    std::io::stdout().write_all(format!("{} writes; {said}\n", acknowledged.len()).as_bytes()).unwrap();
    assert!(Duration::from_millis(stopped) < STOPPED, "{said}");

    let there = start().await;
    let list = there.admin().get(CONFIG_MAPS).await.json();
    let found: BTreeMap<i64, &str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (version(item), item["metadata"]["name"].as_str().unwrap()))
        .filter(|(_, name)| name.starts_with("w-"))
        .collect();
    let expected: BTreeMap<i64, &str> =
        acknowledged.iter().map(|(version, name)| (*version, name.as_str())).collect();
    assert_eq!(found, expected);
    // The watcher goes on from where it stood, though all control services are others.
    let mut seen = Vec::new();
    while seen.len() + 5 < acknowledged.len() {
        seen.push(version(&events.next().await.unwrap()["object"]));
    }
    let mut events = watch(&there.admin(), *seen.last().unwrap()).await;
    while seen.len() < acknowledged.len() {
        let event = events.next().await.unwrap();
        assert_eq!(event["type"], "ADDED", "{event}");
        seen.push(version(&event["object"]));
    }
    assert_eq!(seen, acknowledged.keys().copied().collect::<Vec<_>>());
    assert!(version(&create(&there.admin(), "after").await) > *seen.last().unwrap());
    // Reads go on where it was, writes do not.
    let old = here[0].admin();
    assert_eq!(old.get(&format!("{CONFIG_MAPS}/first")).await.json(), first);
    assert_eq!(old.delete(&format!("{CONFIG_MAPS}/first")).await.status.as_u16(), 503);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_moved_to_postgresql_under_writers_and_watchers() {
    let Some((_, url)) = database() else { return };
    let portico = Portico::start().await;
    let from = format!("sqlite://{}", portico.data().display());
    let start = async || on(&url).start().await;
    move_under_writers(&[&portico], &["migrate", "--from", &from, "--to", &url], start).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_several_control_services_is_moved_to_sqlite_under_writers_and_watchers() {
    let Some((_, url)) = database() else { return };
    let (one, other) = tokio::join!(on(&url).start(), on(&url).start());
    let (launch, there) = Launch::new().prepared();
    let to = format!("sqlite://{}", there.join("data").display());
    let start = async || launch.start().await;
    move_under_writers(&[&one, &other], &["migrate", "--from", &url, "--to", &to], start).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_backed_up_restored_or_moved_says_why_and_changes_nothing() {
    let mut portico = Portico::start().await;
    let folder = portico.folder().to_owned();
    create(&portico.admin(), "kept").await;
    done(&folder, &["backup", "--to", "good", "--data-dir", "data"]).await;
    let good = std::fs::read(folder.join("good")).unwrap();
    std::fs::write(folder.join("foreign"), "-- PostgreSQL database dump\n").unwrap();
    std::fs::write(folder.join("newer"), [b"PORTICO-BACKUP 2\n", &good[17..]].concat()).unwrap();
    std::fs::write(folder.join("cut"), &good[..good.len() / 2]).unwrap();
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    std::fs::write(folder.join("damaged"), damaged).unwrap();
    for (file, why) in [
        ("missing", "missing: no such file or directory"),
        ("foreign", "foreign: it is not a backup of Portico"),
        ("newer", "newer: it has format version 2, this portico knows 1: use a newer portico"),
        ("cut", "cut: it is cut off at byte "),
        ("damaged", "damaged: it is damaged between bytes "),
        ("good", "portico.db is in use: process "),
    ] {
        refused(&folder, 1, &["restore", "--from", file, "--data-dir", "data"], why).await;
        if file != "good" {
            refused(&folder, 1, &["backup", "--check", file], why).await;
        }
    }
    refused(&folder, 1, &["backup", "--to", "good", "--data-dir", "data"], "good exists already").await;
    refused(&folder, 1, &["backup", "--to", "a", "--data-dir", "nowhere"], "there is no database").await;
    let far = ["backup", "--to", "a", "--data-dir", "data", "--at-revision", "99999999"];
    refused(&folder, 1, &far, "has not been written yet: the current is ").await;
    let early = ["backup", "--to", "a", "--data-dir", "data", "--at-time", "2001-01-01T00:00:00Z"];
    refused(&folder, 1, &early, "it is not known where the revision stood at that time").await;
    refused(&folder, 2, &["backup", "--to", "a", "--database-url", "mysql://x"], "it must begin with").await;
    let nobody = "postgres://u@127.0.0.1:1/x";
    refused(&folder, 1, &["backup", "--to", "a", "--database-url", nobody], "the connection to it is lost")
        .await;
    refused(&folder, 1, &["migrate", "--from", "sqlite://data", "--to", nobody], "127.0.0.1:1/x: ").await;
    refused(&folder, 2, &["migrate", "--from", "data", "--to", nobody], "it must begin with sqlite://").await;
    refused(&folder, 2, &["backup"], "required").await;
    let nowhere = ["backup", "--to", "nowhere/backup", "--data-dir", "data"];
    refused(&folder, 1, &nowhere, "nowhere/backup.partial: no such file or directory").await;
    assert!(!folder.join("a").exists() && !folder.join("a.partial").exists());
    // Another store is not replaced, and this one is, and kept.
    let other = Portico::start().await;
    done(
        &folder,
        &["backup", "--to", "other", "--kubeconfig", other.data().join("admin.kubeconfig").to_str().unwrap()],
    )
    .await;
    assert!(portico.stop().await.success());
    let restore = ["restore", "--from", "other", "--data-dir", "data"];
    refused(&folder, 1, &restore, ": --force replaces it").await;
    let said = done(&folder, &["restore", "--from", "good", "--data-dir", "data"]).await;
    assert!(said.contains("the database that was there before is "), "{said}");
    portico.restart().await;
    assert_eq!(portico.admin().get(&format!("{CONFIG_MAPS}/kept")).await.status.as_u16(), 200);
    let Some((_, url)) = database() else { return };
    let serving = on(&url).start().await;
    let into = ["restore", "--from", "good", "--database-url", &url, "--force"];
    refused(&folder, 1, &into, "is in use: ").await;
    create(&serving.admin(), "kept").await;
    drop(serving);
    let into = ["restore", "--from", "good", "--database-url", &url];
    until("its connections have ended", 60, || async { !run(&folder, &into).await.1.contains("is in use") })
        .await;
    refused(&folder, 1, &into, ": --force replaces it").await;
    done(&folder, &[&into[..], &["--force"]].concat()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_was_moved_away_refuses_writes_after_a_restart_and_can_be_taken_back() {
    let mut portico = Portico::start().await;
    create(&portico.admin(), "kept").await;
    let (launch, there) = Launch::new().prepared();
    let to = format!("sqlite://{}", there.join("data").display());
    assert!(portico.stop().await.success());
    // Nobody serves it.
    done(portico.folder(), &["migrate", "--from", "sqlite://data", "--to", &to]).await;
    portico.restart().await;
    let resume = ["migrate", "--from", "sqlite://data", "--resume-writes"];
    let answer = portico.admin().post(CONFIG_MAPS, &config_map("after")).await;
    let status = answer.status_body(503, "ServiceUnavailable");
    let why = status["message"].as_str().unwrap();
    assert!(why.ends_with("the store is read-only: it was moved to a SQLite file"), "{why}");
    assert_eq!(portico.admin().get(&format!("{CONFIG_MAPS}/kept")).await.status.as_u16(), 200);
    // As after a move that was killed.
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

/// A port that is free now.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facades_and_their_watches_go_on_over_a_move() {
    let Some((_, url)) = database() else { return };
    let address = format!("127.0.0.1:{}", free_port());
    let mut server = Launch::server().arg("--control-address").arg(&address).start().await;
    let facade = Launch::facade(&server).start().await;
    let http = facade.admin();
    let before = create(&http, "before").await;
    let mut events = watch(&http, version(&before)).await;
    let from = format!("sqlite://{}", server.data().display());
    done(server.folder(), &["migrate", "--from", &from, "--to", &url]).await;
    assert!(server.stop().await.success());
    // The same files, the same address, another database.
    let moved = Launch::server().args(&["--control-address", &address, "--database-url", &url]);
    let _moved = moved.on_data_of(&server).start().await;
    until("the facade has its control service again", 60, || {
        let http = facade.admin();
        async move { http.post(CONFIG_MAPS, &config_map("after")).await.status.as_u16() == 201 }
    })
    .await;
    let after = version(&http.get(&format!("{CONFIG_MAPS}/after")).await.json());
    // Whether its stream lasted or was begun anew from where it stood: nothing is missing, nothing is expired.
    let seen = loop {
        match events.next().await {
            Some(event) if event["type"] == "ADDED" => break version(&event["object"]),
            Some(event) => panic!("{event}"),
            None => events = watch(&http, version(&before)).await,
        }
    };
    assert_eq!(seen, after);
}
