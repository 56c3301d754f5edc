//! Past states of objects, and their restoration: by verbs of `portico`, and by gRPC of callers with few permissions.

use std::process::{Command, Stdio};

use portico_proto::admin::CompactRequest;
use portico_proto::history::{ListRequest, RestoreRequest, StatesRequest, Target, list_request::At};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{EtcdServer, Launch, Portico, PostgresServer, binary, wait_until};
use serde_json::{Value, json};
use tonic::Code;

use crate::copies::{done, refused};

const RETENTION: &str = "--history-retention=5m,configmaps=1h";

/// Runs a verb as the administrator; returns exit code, standard output and standard error.
pub(crate) fn verb(portico: &Portico, line: &str) -> (i32, String, String) {
    let mut command = Command::new(binary());
    command.args(line.split(' ')).env("KUBECONFIG", portico.data().join("admin.kubeconfig"));
    let done = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

pub(crate) fn prints(portico: &Portico, line: &str) -> String {
    let (code, out, error) = verb(portico, line);
    assert_eq!(code, 0, "{line}: {error}");
    out
}

const ONE: &str = "/api/v1/namespaces/default/configmaps/one";

/// Creates a ConfigMap `one`, then changes its data as another manager; returns both revisions.
async fn created_and_changed(portico: &Portico, metadata: Value) -> (i64, i64) {
    let mut object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}});
    object["metadata"]["name"] = json!("one");
    let created = portico.admin().post(&format!("{CONFIG_MAPS}?fieldManager=maker"), &object).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let patch = json!({"data": {"a": "2", "b": "3"}});
    let changed = portico.admin().merge(&format!("{ONE}?fieldManager=changer"), &patch).await;
    (revision(&created.json()), revision(&changed.json()))
}

fn revision(object: &Value) -> i64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

fn target() -> Option<Target> {
    let text = |text: &str| text.to_owned();
    Some(Target {
        group: String::new(),
        version: text("v1"),
        resource: text("configmaps"),
        namespace: text("default"),
        name: text("one"),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn past_states_outlive_the_history() {
    let portico = Launch::new().arg(RETENTION).start().await;
    let (first, second) = created_and_changed(&portico, json!({})).await;
    portico.control().admin().compact(CompactRequest { revision: 0 }).await.unwrap();
    let expired = portico
        .admin()
        .get(&format!("{CONFIG_MAPS}?resourceVersion={first}&resourceVersionMatch=Exact"))
        .await;
    assert_eq!(expired.status, 410, "{}", expired.text());

    let shown: Value = serde_json::from_str(&prints(&portico, "history cm one -o json")).unwrap();
    let line = |state: &Value| {
        format!(
            "{} {} {}",
            state["revision"],
            state["change"].as_str().unwrap(),
            state["manager"].as_str().unwrap()
        )
    };
    let lines: Vec<_> = shown["states"].as_array().unwrap().iter().map(line).collect();
    assert_eq!(lines, [format!("{second} Updated changer"), format!("{first} Created maker")]);
    assert_eq!(shown["states"][1]["object"]["data"], json!({"a": "1"}));
    assert_eq!(shown["more"], json!(false));
    let (_, newest, note) = verb(&portico, "history cm one --limit 1 -o json");
    let newest: Value = serde_json::from_str(&newest).unwrap();
    assert_eq!((newest["states"].as_array().unwrap().len(), &newest["more"]), (1, &json!(true)));
    assert!(note.contains("--limit shows more"), "{note}");

    let (code, difference, _) = verb(&portico, "diff cm one");
    assert_eq!(code, 1);
    for line in ["-  a: \"1\"", "+  a: \"2\"", "+  b: \"3\""] {
        assert!(difference.lines().any(|shown| shown == line), "{line}: {difference}");
    }
    assert_eq!(verb(&portico, &format!("diff cm one --from {second} --to {second}")).0, 0);

    let dry = prints(&portico, &format!("rollback cm one --to-revision {first} --dry-run"));
    assert_eq!(dry, format!("configmap/one rolled back to revision {first} (dry run)\n"));
    assert_eq!(revision(&portico.admin().get(ONE).await.json()), second);
    prints(&portico, &format!("rollback cm one --to-revision {first}"));
    let now = portico.admin().get(ONE).await.json();
    assert_eq!(now["data"], json!({"a": "1"}));
    let managers = now["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!((managers.len(), &managers[0]["manager"]), (1, &json!("maker")), "{managers:?}");

    assert_eq!(portico.admin().delete(ONE).await.status, 200);
    let shown: Value = serde_json::from_str(&prints(&portico, "history cm one -o json")).unwrap();
    let deleted = &shown["states"][0];
    assert_eq!((&deleted["change"], &deleted["manager"]), (&json!("Deleted"), &json!("")), "{deleted}");
    prints(&portico, "undelete cm one");
    let back = portico.admin().get(ONE).await.json();
    assert_eq!(back["data"], now["data"]);
    assert_ne!(back["metadata"]["uid"], now["metadata"]["uid"]);
    let earlier: Value =
        serde_json::from_str(&prints(&portico, &format!("history cm -A --at {second} -o json"))).unwrap();
    let of_one: Vec<&Value> = earlier["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|object| object["metadata"]["name"] == "one")
        .collect();
    assert_eq!((of_one.len(), &of_one[0]["data"]), (1, &json!({"a": "2", "b": "3"})));
    let names = prints(&portico, "history cm -o name --at 0s");
    assert!(names.lines().any(|name| name == "configmap/one"), "{names}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_keeps_current_metadata_and_omits_deleted_owners() {
    let portico =
        Launch::new().arg(RETENTION).arg("--controllers=-garbage-collector-controller").start().await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}});
    let owner = portico.admin().post(CONFIG_MAPS, &owner).await.json();
    let present_owner =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    let absent_owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "another"});
    let other_group =
        json!({"apiVersion": "backend.example.com/v1", "kind": "Thing", "name": "x", "uid": "u"});
    let metadata = json!({"finalizers": ["example.com/first"], "ownerReferences": [present_owner, absent_owner, other_group]});
    let (first, _) = created_and_changed(&portico, metadata).await;
    let present =
        json!({"metadata": {"finalizers": ["example.com/second"], "ownerReferences": [absent_owner]}});
    assert_eq!(portico.admin().merge(ONE, &present).await.status, 200);

    prints(&portico, &format!("rollback cm one --to-revision {first}"));
    let now = portico.admin().get(ONE).await.json();
    assert_eq!(now["data"], json!({"a": "1"}));
    assert_eq!(now["metadata"]["finalizers"], json!(["example.com/second"]));
    assert_eq!(now["metadata"]["ownerReferences"], json!([absent_owner]));

    // Removing the last finalizer deletes it: the last state has no finalizer, the one before the deletion has.
    let before = json!({"metadata": {"ownerReferences": [present_owner, absent_owner, other_group]}});
    assert_eq!(portico.admin().merge(ONE, &before).await.status, 200);
    portico.admin().delete(ONE).await;
    portico.admin().merge(ONE, &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(portico.admin().get(ONE).await.status, 404);
    let (code, _, warning) = verb(&portico, "undelete cm one");
    assert_eq!(
        (code, &*warning),
        (0, "Warning: the owner ConfigMap owner does not exist, owner reference removed\n")
    );
    let back = portico.admin().get(ONE).await.json();
    assert_eq!(back["metadata"]["finalizers"], json!(["example.com/second"]));
    assert_eq!(back["metadata"]["ownerReferences"], json!([present_owner, other_group]));
    assert_eq!(back["metadata"]["deletionTimestamp"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn past_states_need_a_separate_verb() {
    let portico = Portico::start().await;
    let (first, _) = created_and_changed(&portico, json!({})).await;
    let allow = async |verbs: Value| {
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]);
        let role = json!({"metadata": {"name": "historian"}, "rules": rules});
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        match portico.admin().post(path, &role).await.status.as_u16() {
            201 => {}
            _ => assert_eq!(portico.admin().put(&format!("{path}/historian"), &role).await.status, 200),
        }
    };
    allow(json!(["get", "list", "watch", "create", "update", "patch"])).await;
    let binding = json!({"metadata": {"name": "historian"}, "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "ClusterRole", "name": "historian", "apiGroup": "rbac.authorization.k8s.io"}});
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert_eq!(portico.admin().post(path, &binding).await.status, 201);

    let alice = portico.control_as("alice");
    let states = || StatesRequest { target: target(), ..StatesRequest::default() };
    let restore = || RestoreRequest { target: target(), revision: first, dry_run: false };
    let list = || ListRequest { target: target(), at: Some(At::Revision(first)) };
    assert_eq!(alice.history().states(states()).await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(alice.history().list(list()).await.unwrap_err().code(), Code::PermissionDenied);
    let refused = alice.history().restore(restore()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("cannot history resource \"configmaps\""), "{}", refused.message());

    allow(json!(["history"])).await;
    assert_eq!(alice.history().states(states()).await.unwrap().into_inner().states.len(), 2);
    let part = alice.history().list(list()).await.unwrap().into_inner().message().await.unwrap().unwrap();
    assert_eq!((part.revision, part.objects.len()), (first, 1));
    let refused = alice.history().restore(restore()).await.unwrap_err();
    assert!(refused.message().contains("cannot update resource \"configmaps\""), "{}", refused.message());

    allow(json!(["history", "update"])).await;
    let restored = alice.history().restore(restore()).await.unwrap().into_inner();
    let object: Value = serde_json::from_slice(&restored.object).unwrap();
    assert_eq!((&object["data"], restored.created), (&json!({"a": "1"}), false));
    portico.admin().delete(ONE).await;
    let refused = alice.history().restore(restore()).await.unwrap_err();
    assert!(refused.message().contains("cannot create resource \"configmaps\""), "{}", refused.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn states_that_cannot_be_shown_or_restored_are_reported() {
    let portico = Portico::start().await;
    let (first, second) = created_and_changed(&portico, json!({})).await;
    let admin = portico.control();
    let restore = async |target: Option<Target>, revision| {
        admin.history().restore(RestoreRequest { target, revision, dry_run: false }).await.unwrap_err()
    };
    assert_eq!(restore(None, first).await.code(), Code::InvalidArgument);
    let collection = target().map(|target| Target { name: String::new(), ..target });
    assert_eq!(restore(collection, first).await.code(), Code::InvalidArgument);
    let unknown = target().map(|target| Target { resource: "nothings".to_owned(), ..target });
    assert_eq!(restore(unknown, first).await.code(), Code::NotFound);
    let refused = restore(target(), 0).await;
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::InvalidArgument, "configmaps \"one\" exists: specify the revision to restore")
    );
    let early = restore(target(), first - 1).await;
    assert_eq!(early.message(), format!("configmaps \"one\" has no stored state at revision {}", first - 1));

    // Refused for an existing object and for a deleted one.
    for gone in [false, true] {
        if gone {
            let deleted = portico.admin().delete("/api/v1/namespaces/default/configmaps/one").await;
            assert_eq!(deleted.status, 200);
        }
        let future = restore(target(), second + 1_000_000).await;
        assert!(future.message().contains("Too large resource version: "), "{future:?}");
    }

    let list = async |at| {
        let request = ListRequest { target: target(), at: Some(at) };
        match admin.history().list(request).await {
            Ok(parts) => parts.into_inner().message().await.unwrap_err(),
            Err(status) => status,
        }
    };
    assert!(list(At::Revision(second + 1_000_000)).await.message().contains("Too large resource version"));
    assert_eq!(list(At::Time(60)).await.message(), "no history is retained from that time");
    admin.admin().compact(CompactRequest { revision: 0 }).await.unwrap();
    let (code, _, error) = verb(&portico, &format!("history cm --at {first}"));
    assert_eq!(code, 2);
    assert!(error.contains("too old") && error.contains("--history-retention"), "{error}");
    for (line, why) in [
        ("history cm", "the name of an object is missing"),
        ("history all x", "\"all\" names several resources"),
        ("diff cm one --to 1000000", "revision 1000000 does not exist yet: the last one is "),
        ("diff cm one --from 1000000", "revision 1000000 does not exist yet: the last one is "),
        ("diff cm two", "no state of configmaps \"two\" is kept"),
        ("get tokenreviews", "the server does not allow this method on the requested resource"),
        ("get cm one -l a=b", "cannot be used with"),
    ] {
        let (code, _, error) = verb(&portico, line);
        assert_eq!(code, 2, "{line}");
        assert!(error.contains(why), "{line}: {error}");
    }
    let (code, _, error) = Launch::new().args(&["--history-retention=a/b=1h"]).run().await;
    assert_ne!(code, Some(0));
    assert!(error.contains("is not a resource"), "{error}");
}

/// Checks the history of a ConfigMap that was created, changed and deleted, in a copy of the store; finally restores it.
async fn check_history(portico: &Portico, (first, second): (i64, i64)) {
    let names = prints(portico, "history cm one -o name");
    let lines: Vec<&str> = names.lines().collect();
    assert_eq!(lines[1..], [second.to_string(), first.to_string()], "{names}");
    let (_, difference, _) = verb(portico, &format!("diff cm one --from {first} --to {second}"));
    assert!(difference.contains("+  b: \"3\""), "{difference}");
    let printed = prints(portico, &format!("history cm one --at {second} -o json"));
    let earlier: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(earlier["items"][0]["data"], json!({"a": "2", "b": "3"}));
    prints(portico, "undelete cm one");
    assert_eq!(portico.admin().get(ONE).await.json()["data"], json!({"a": "2", "b": "3"}));
    prints(portico, &format!("rollback cm one --to-revision {first}"));
    assert_eq!(portico.admin().get(ONE).await.json()["data"], json!({"a": "1"}));
    assert_eq!(portico.admin().delete(ONE).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_part_of_backups_and_migrations() {
    let keeping = |launch: Launch| launch.arg(RETENTION).arg("--compaction-interval=1s");
    let portico = keeping(Launch::new()).start().await;
    let revisions = created_and_changed(&portico, json!({})).await;
    assert_eq!(portico.admin().delete(ONE).await.status, 200);
    let folder = portico.folder();
    let backup = |file: &'static str| async move {
        done(folder, &["backup", "--to", file, "--kubeconfig", "data/admin.kubeconfig"]).await
    };
    // Wait until the archive contains ConfigMaps.
    wait_until("a backup has past states", || async {
        drop(std::fs::remove_file(folder.join("file")));
        backup("file").await.contains(" past states, ")
    })
    .await;
    let printed = done(folder, &["backup", "--check", "file"]).await;
    assert!(printed.contains("file: complete: store ") && printed.contains(" past states, "), "{printed}");
    let whole = std::fs::read(folder.join("file")).unwrap();
    std::fs::write(folder.join("cut"), &whole[..whole.len() - 200]).unwrap();
    refused(folder, 1, &["backup", "--check", "cut"], "truncated at byte").await;
    let lost = portico
        .admin()
        .post(CONFIG_MAPS, &json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "lost"}}))
        .await;
    let lost = revision(&lost.json());

    let (launch, target_folder) = keeping(Launch::new()).prepare_folder();
    let file = folder.join("file");
    let restore = ["restore", "--from", file.to_str().unwrap(), "--data-dir", "data"];
    let printed = done(&target_folder, &restore).await;
    assert!(printed.contains(" past states"), "{printed}");
    let restored = launch.start().await;
    check_history(&restored, revisions).await;
    let (code, _, printed) = verb(&restored, &format!("history cm -A --at {lost}"));
    assert!(code == 2 && printed.contains(&format!("revision {lost} is lost")), "{printed}");

    let Some(server) = PostgresServer::shared() else { return };
    let url = server.url(&server.create_database());
    let from = format!("sqlite://{}", portico.data().display());
    let printed = done(folder, &["migrate", "--from", &from, "--to", &url]).await;
    assert!(printed.contains(" past states and "), "{printed}");
    let moved = keeping(Launch::new().arg("--database-url").arg(&url)).start().await;
    check_history(&moved, revisions).await;
    let Some(etcd) = EtcdServer::start_with(&["--unsafe-no-fsync"]) else { return };
    let printed = done(folder, &["restore", "file", "--etcd-servers", &etcd.url()]).await;
    assert!(
        printed.contains("past states of the backup were left out: etcd keeps only its own history"),
        "{printed}"
    );
}
