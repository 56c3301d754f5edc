//! Histories of objects in the console, and their source: past states as JSON, which need the verb `history`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_tests::browser::key;
use portico_tests::http::Http;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Browser, Launch, Portico, wait_until};
use serde_json::{Value, json};

use crate::audit::{METADATA, lines, with_audit_log};

use super::browsing::{address, at, complaints, map, picture};

const STATES: &str = "/grpc/portico.history.v1.History/States";
const LIST: &str = "/grpc/portico.history.v1.History/List";
const RESTORE: &str = "/grpc/portico.history.v1.History/Restore";
const ONE: &str = "/api/v1/namespaces/default/configmaps/settings";

fn target(name: &str) -> Value {
    json!({"version": "v1", "resource": "configmaps", "namespace": "default", "name": name})
}

fn revision(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

/// Creates a ConfigMap `settings` with a blue color, then changes it to green; returns both revisions.
async fn blue_then_green(portico: &Portico) -> (String, String) {
    let admin = portico.admin();
    let created = admin
        .post(&format!("{CONFIG_MAPS}?fieldManager=maker"), &map("settings", json!({"color": "blue"})))
        .await;
    assert_eq!(created.status, 201, "{}", created.text());
    let changed =
        admin.merge(&format!("{ONE}?fieldManager=painter"), &json!({"data": {"color": "green"}})).await;
    (revision(&created.json()), revision(&changed.json()))
}

fn decoded(base64: &Value) -> Value {
    serde_json::from_slice(&STANDARD.decode(base64.as_str().unwrap()).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn past_states_are_json_and_a_stream_is_a_line_for_each_message() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let (first, second) = blue_then_green(&portico).await;
    let states = admin.post(STATES, &json!({"target": target("settings"), "objects": true})).await.json();
    let state_at = |at: usize| states["states"][at].clone();
    assert_eq!(
        (&state_at(0)["revision"], &state_at(1)["revision"]),
        (&json!(second), &json!(first)),
        "{states}"
    );
    assert_eq!(
        (&state_at(0)["change"], &state_at(0)["manager"]),
        (&json!("CHANGE_UPDATED"), &json!("painter"))
    );
    assert_eq!(decoded(&state_at(1)["object"])["data"], json!({"color": "blue"}));

    let list = admin.post(LIST, &json!({"target": target(""), "revision": first})).await;
    assert_eq!(list.header("content-type"), "application/json;stream=watch");
    let line: Value = serde_json::from_str(list.text().lines().next().unwrap()).unwrap();
    let objects: Vec<_> = line["result"]["objects"].as_array().unwrap().iter().map(decoded).collect();
    assert!(objects.iter().any(|object| object["data"] == json!({"color": "blue"})), "{objects:?}");
    admin.post(LIST, &json!({"target": target(""), "revision": "9999999"})).await.status_body(504, "Timeout");
    admin
        .post(LIST, &json!({"target": target(""), "revision": 1, "time": 1}))
        .await
        .status_body(400, "BadRequest");

    let dry = json!({"target": target("settings"), "revision": first, "dryRun": true});
    let tried = admin.post(RESTORE, &dry).await.json();
    assert_eq!(decoded(&tried["object"])["data"], json!({"color": "blue"}));
    assert_eq!(admin.get(ONE).await.json()["data"]["color"], "green");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_verb_history_decides_and_writing_needs_its_own() {
    let portico = Portico::start().await;
    let (first, _) = blue_then_green(&portico).await;
    let (admin, alice) = (portico.admin(), portico.anonymous().as_user("alice"));
    let restore = json!({"target": target("settings"), "revision": first});
    for (path, body) in [
        (STATES, json!({"target": target("settings")})),
        (LIST, json!({"target": target("")})),
        (RESTORE, restore.clone()),
    ] {
        assert_eq!(portico.anonymous().post(path, &body).await.status, 403, "{path}");
        let refused = alice.post(path, &body).await.status_body(403, "Forbidden");
        assert!(
            refused["message"].as_str().unwrap().contains("cannot history resource"),
            "{path}: {refused}"
        );
    }
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["history"]}]);
    let role = json!({"metadata": {"name": "historian"}, "rules": rules});
    let binding = json!({"metadata": {"name": "historian"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "historian"},
        "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    assert_eq!(admin.post(&format!("{rbac}/clusterroles"), &role).await.status, 201);
    assert_eq!(admin.post(&format!("{rbac}/clusterrolebindings"), &binding).await.status, 201);
    assert_eq!(alice.post(STATES, &json!({"target": target("settings")})).await.status, 200);
    assert_eq!(alice.post(LIST, &json!({"target": target("")})).await.status, 200);
    let refused = alice.post(RESTORE, &restore).await.status_body(403, "Forbidden");
    assert!(refused["message"].as_str().unwrap().contains("cannot update resource"), "{refused}");
    assert_eq!(admin.get(ONE).await.json()["data"]["color"], "green");
}

#[tokio::test(flavor = "multi_thread")]
async fn namespace_admins_see_no_cluster_scoped_history() {
    let portico = Portico::start().await;
    let (admin, bob) = (portico.admin(), portico.anonymous().as_user("bob"));
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let binding = json!({"metadata": {"name": "all"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}]});
    let bound = admin.post(&format!("{rbac}/namespaces/default/rolebindings"), &binding).await;
    assert_eq!(bound.status, 201, "{}", bound.text());
    let created = admin.post(CONFIG_MAPS, &map("settings", json!({"color": "blue"}))).await;
    let first = revision(&created.json());
    assert_eq!(bob.post(STATES, &json!({"target": target("settings")})).await.status, 200);
    assert_eq!(bob.post(LIST, &json!({"target": target("")})).await.status, 200);
    let reference = |group: &str, resource: &str, name: &str, namespace: &str| {
        let target = json!({"group": group, "version": "v1", "resource": resource, "namespace": namespace, "name": name});
        json!({"target": target, "objects": true, "revision": first})
    };
    let of_states = |mut body: Value| {
        body.as_object_mut().unwrap().remove("revision");
        body
    };
    let of_list = |mut body: Value| {
        body.as_object_mut().unwrap().remove("objects");
        body
    };
    for (group, resource, name) in [
        ("rbac.authorization.k8s.io", "clusterrolebindings", "cluster-admin"),
        ("apiregistration.k8s.io", "apiservices", "v1."),
        ("", "namespaces", "kube-system"),
    ] {
        for namespace in ["", "default"] {
            let states = bob.post(STATES, &of_states(reference(group, resource, name, namespace))).await;
            assert!(
                [403, 404].contains(&states.status.as_u16()),
                "{resource} {namespace:?}: {}",
                states.text()
            );
            let list = bob.post(LIST, &of_list(reference(group, resource, "", namespace))).await;
            assert!([403, 404].contains(&list.status.as_u16()), "{resource} {namespace:?}: {}", list.text());
            let restored = bob.post(RESTORE, &of_list(reference(group, resource, name, namespace))).await;
            assert!([403, 404].contains(&restored.status.as_u16()), "{resource}: {}", restored.text());
        }
    }
}

/// Creates the namespace `tenant`, retrying until an earlier one is gone, and gives a user all rights in it.
async fn give_namespace(admin: &Http, user: &str) {
    let namespace = json!({"metadata": {"name": "tenant"}});
    wait_until("the namespace is created", || async {
        admin.post("/api/v1/namespaces", &namespace).await.status == 201
    })
    .await;
    let binding = json!({"metadata": {"name": "all"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/tenant/rolebindings";
    let bound = admin.post(bindings, &binding).await;
    assert_eq!(bound.status, 201, "{}", bound.text());
}

/// Returns the revisions of the states that a user can read, newest first.
async fn states_of(user: &Http, target: &Value) -> Vec<String> {
    let answer = user.post(STATES, &json!({"target": target})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let states = answer.json()["states"].as_array().cloned().unwrap_or_default();
    states.iter().map(|state| state["revision"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_a_namespace_begins_with_its_creation_for_its_owner() {
    let portico = Portico::start().await;
    let (admin, anyone) = (portico.admin(), portico.anonymous());
    let (former, present) = (anyone.as_user("alice"), anyone.as_user("bob"));
    let definition = json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"}, "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(admin.post(definitions, &definition).await.status, 201);
    let things = "/apis/example.com/v1/namespaces/tenant/things";
    wait_until("things are served", || async { admin.get(things).await.status == 200 }).await;
    let secret = json!({"metadata": {"name": "key"}, "stringData": {"password": "of alice"}});
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "key"}, "spec": "of alice"});
    let secrets = "/api/v1/namespaces/tenant/secrets";
    let kinds = [("", "secrets", secrets, secret), ("example.com", "things", things, thing)];
    let target = |group: &str, resource: &str, name: &str| json!({"group": group, "version": "v1", "resource": resource, "namespace": "tenant", "name": name});
    let (of_namespace, namespace) =
        (json!({"version": "v1", "resource": "namespaces", "name": "tenant"}), "/api/v1/namespaces/tenant");

    give_namespace(&admin, "alice").await;
    let mut first = Vec::new();
    for (group, resource, path, object) in &kinds {
        let created = former.post(path, object).await;
        assert_eq!(created.status, 201, "{}", created.text());
        first.push(revision(&created.json()));
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        assert_eq!(former.merge(&format!("{path}/key"), &labels).await.status, 200);
        assert_eq!(states_of(&former, &target(group, resource, "key")).await.len(), 2);
    }
    assert_eq!(states_of(&former, &of_namespace).await.len(), 1);
    assert_eq!(admin.delete(namespace).await.status, 200);
    give_namespace(&admin, "bob").await;

    for ((group, resource, path, object), first) in kinds.iter().zip(&first) {
        let (named, all) = (target(group, resource, "key"), target(group, resource, ""));
        assert_eq!(states_of(&present, &named).await, [""; 0], "{resource}");
        for target in [&named, &all] {
            let request = json!({"target": target, "revision": first});
            let refused = present.post(LIST, &request).await.status_body(410, "Expired");
            assert!(refused["message"].as_str().unwrap().contains("begins at revision"), "{refused}");
            assert_eq!(admin.post(LIST, &request).await.status, 200, "{resource}");
        }
        for restore in [json!({"target": named, "revision": first}), json!({"target": named})] {
            present.post(RESTORE, &restore).await.status_body(404, "NotFound");
        }
        assert!(states_of(&admin, &named).await.contains(first), "{resource}");

        let created = present.post(path, object).await;
        assert_eq!(created.status, 201, "{}", created.text());
        let again = revision(&created.json());
        assert_eq!(states_of(&present, &named).await, [&*again], "{resource}");
        assert_eq!(present.post(LIST, &json!({"target": all, "revision": again})).await.status, 200);
        present
            .post(RESTORE, &json!({"target": named, "revision": first}))
            .await
            .status_body(404, "NotFound");
    }
    assert_eq!(admin.merge(namespace, &json!({"metadata": {"labels": {"a": "b"}}})).await.status, 200);
    assert_eq!(states_of(&present, &of_namespace).await.len(), 2);
    assert!(states_of(&admin, &of_namespace).await.len() > 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn history_calls_are_audited_with_their_object() {
    let policy = METADATA.replace(
        "[{level: Metadata}]",
        "[{level: RequestResponse, resources: [{group: \"\", resources: [configmaps]}]}, {level: None}]",
    );
    let (launch, log) = with_audit_log(Launch::new(), &policy);
    let portico = launch.start().await;
    let (first, _) = blue_then_green(&portico).await;
    let restore = json!({"target": target("settings"), "revision": first});
    assert_eq!(portico.admin().post(RESTORE, &restore).await.status, 200);
    assert_eq!(portico.anonymous().as_user("alice").post(RESTORE, &restore).await.status, 403);
    let event_of = |user: &'static str| {
        let is_meant = move |event: &Value| {
            event["verb"] == "history"
                && event["stage"] == "ResponseComplete"
                && event["user"]["username"] == user
        };
        lines(&log).into_iter().find(is_meant).unwrap_or_else(|| panic!("no event of {user}"))
    };
    let restored = event_of("admin");
    assert_eq!(restored["objectRef"]["name"], "settings", "{restored}");
    assert_eq!(restored["annotations"]["authorization.k8s.io/decision"], "allow", "{restored}");
    let refused = event_of("alice");
    assert_eq!(refused["objectRef"]["resource"], "configmaps", "{refused}");
    assert_eq!(refused["responseStatus"]["code"], 403, "{refused}");
    assert_eq!(refused["annotations"]["authorization.k8s.io/decision"], "forbid", "{refused}");
}

/// Waits until the dry run in the dialog has succeeded, and confirms the write, with keys only.
async fn confirm(browser: &Browser, shows: &str) {
    browser.wait_for_text(shows).await;
    browser
        .wait_for_script("the button has the focus", "return document.activeElement?.id === 'restore-now'")
        .await;
    browser.press(&[key::ENTER]).await;
    browser.wait_for_script("the dialog is gone", "return document.querySelector('dialog') === null").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn states_are_compared_restored_and_undeleted_by_keys_alone() {
    let portico = Launch::new().arg("--history-retention=5m,configmaps=1h").start().await;
    let admin = portico.admin();
    let (first, second) = blue_then_green(&portico).await;
    let Some(browser) = at(&portico, "object/core/v1/configmaps/default/settings").await else { return };
    browser.wait_for_text("● Live").await;
    browser.press(&["5"]).await;
    browser.wait_for_text(&format!("From revision {first} to revision {second}")).await;
    let page = browser.text().await;
    for text in ["painter", "maker", "created", "updated", "-   color: blue", "+   color: green"] {
        assert!(page.contains(text), "{text:?} is not in {page}");
    }
    // Further writes appear without a reload.
    admin.merge(&format!("{ONE}?fieldManager=painter"), &json!({"data": {"color": "red"}})).await;
    browser.wait_for_text("+   color: red").await;
    picture(&browser, "history").await;
    browser.run(&format!("document.getElementById('restore-{first}').focus()"), json!([])).await;
    browser.press(&[key::ENTER]).await;
    confirm(&browser, "+   color: blue").await;
    browser
        .wait_for_script(
            "the state that it was given",
            "return document.querySelectorAll('#panel tbody tr').length === 4",
        )
        .await;
    assert_eq!(admin.get(ONE).await.json()["data"]["color"], "blue");

    admin.delete(ONE).await;
    browser.wait_for_text("○ Deleted").await;
    browser.wait_for_script("the button", "return document.getElementById('undelete') !== null").await;
    // A page opened after the deletion shows the same.
    browser.open("about:blank").await;
    browser.open(&address(&portico, "object/core/v1/configmaps/default/settings")).await;
    browser.wait_for_text("○ Not found").await;
    browser.wait_for_text("✗ deleted").await;
    browser.run("document.getElementById('undelete').focus()", json!([])).await;
    browser.press(&[key::ENTER]).await;
    confirm(&browser, "+   color: blue").await;
    browser.wait_for_text("● Live").await;
    assert_eq!(admin.get(ONE).await.json()["data"]["color"], "blue");
    assert_eq!(complaints(&browser).await, Vec::<String>::new());
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_past_list_shows_later_changes_of_its_objects() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    for name in ["stays", "changes", "goes"] {
        admin.post(CONFIG_MAPS, &map(name, json!({}))).await;
    }
    let revision_before = revision(&admin.get(&format!("{CONFIG_MAPS}/goes")).await.json());
    admin.merge(&format!("{CONFIG_MAPS}/changes"), &json!({"data": {"a": "1"}})).await;
    admin.delete(&format!("{CONFIG_MAPS}/goes")).await;
    let Some(browser) = at(&portico, "objects/core/v1/configmaps?namespace=default").await else { return };
    browser.wait_for_text("● Live").await;
    browser.press(&["t"]).await;
    browser.fill("#at", &revision_before).await;
    browser.press(&[key::ENTER]).await;
    browser.wait_for_text(&format!("ConfigMap as of revision {revision_before}")).await;
    let row = |name: &str, state: &str| {
        format!(
            "return [...document.querySelectorAll('.grid-row')].some((row) => row.children[1].textContent === '{name}' && row.lastChild.textContent.includes('{state}'))"
        )
    };
    for (name, state) in [("stays", "unchanged"), ("changes", "changed"), ("goes", "deleted")] {
        browser.wait_for_script(name, &row(name, state)).await;
    }
    picture(&browser, "past").await;
    browser.click("#deleted").await;
    browser.wait_for_script("one row", "return document.querySelectorAll('.grid-row').length === 1").await;
    admin.delete(&format!("{CONFIG_MAPS}/stays")).await;
    browser.wait_for_script("what is deleted meanwhile", &row("stays", "deleted")).await;
    browser.run("document.querySelector('.grid-body').focus()", json!([])).await;
    browser.press(&["j", key::ENTER]).await;
    browser.wait_for_text("Undelete").await;
    // The page names the flag for history that is older than the retention period.
    browser.open(&address(&portico, "past/core/v1/configmaps?at=8h")).await;
    browser.wait_for_text("--history-retention").await;
    browser.wait_for_text("no longer kept").await;
    browser.quit().await;
}
