//! `--manifests`: a folder of manifests that is applied before the server is ready, watched, and pruned if enabled; and
//! `portico config check`, which checks a folder without a server.

mod aggregated;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_tests::http::Http;
use portico_tests::tools::output;
use portico_tests::{Launch, Portico, binary, eventually, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use crate::audit::{METADATA, lines, with_audit_log};
use crate::rolling_restarts::servers;

/// A namespace, a definition, and objects that need both; files are named so that each follows the ones that it needs.
const FILES: [(&str, &str); 3] = [
    ("00-namespaces.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"),
    (
        "10-definitions/widgets.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec:\n  \
         group: example.com\n  scope: Namespaced\n  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}\n  \
         versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
         required: [spec]\n        properties:\n          spec:\n            type: object\n            required: [size]\n            \
         properties: {size: {type: integer}}\n            x-kubernetes-validations: [{rule: self.size < 10, message: too large}]\n",
    ),
    (
        "20-app.yaml",
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one, namespace: shop}\nspec: {size: 3}\n---\n# the settings\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {color: blue}\n",
    ),
];

const WIDGET: &str = "/apis/example.com/v1/namespaces/shop/widgets/one";
const SETTINGS: &str = "/api/v1/namespaces/shop/configmaps/settings";

fn config_map(name: &str, color: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: shop}}\ndata: {{color: {color}}}\n"
    )
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Returns the launch of a server with a folder of these files, and the folder.
fn launch(files: &[(&str, &str)]) -> (Launch, PathBuf) {
    let (launch, folder) = Launch::new().prepare_folder();
    let folder = folder.join("manifests");
    std::fs::create_dir(&folder).unwrap();
    files.iter().for_each(|(name, text)| write(&folder, name, text));
    let launch = launch.args(&["--manifests", folder.to_str().unwrap(), "--manifests-look-period=50ms"]);
    (launch, folder)
}

/// Returns a client of a server that may not be ready.
async fn client(portico: &Portico) -> Http {
    let path = portico.data().join("admin.kubeconfig");
    let (address, ca) = eventually("the server serves", async || {
        let read = kube::config::Kubeconfig::read_from(&path).map_err(|error| error.to_string())?;
        let cluster = read.clusters.into_iter().find_map(|c| c.cluster).ok_or("no cluster")?;
        let server = cluster.server.unwrap_or_default();
        let address = server.trim_start_matches("https://").parse().map_err(|_| server.clone())?;
        let ca = STANDARD.decode(cluster.certificate_authority_data.unwrap_or_default()).unwrap();
        Ok::<_, String>((address, ca))
    })
    .await;
    Http::new(address, &ca).with_token("admin-token")
}

async fn exists(http: &Http, path: &str) -> bool {
    http.get(path).await.status == 200
}

/// Waits until a field of an object has this value.
async fn wait_for_field(http: &Http, path: &str, pointer: &str, expected: &str) -> Value {
    eventually(&format!("{path} has {expected}"), async || {
        let object = http.get(path).await.json();
        if object.pointer(pointer).is_some_and(|value| value == expected) { Ok(object) } else { Err(object) }
    })
    .await
}

async fn wait_for_log(portico: &Portico, text: &str) {
    wait_until(&format!("the log contains {text:?}"), async || portico.log().contains(text)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_is_applied_before_readiness_and_a_restart_writes_nothing() {
    let (launch, _folder) = launch(&FILES);
    let mut portico = launch.start().await;
    let http = portico.admin();
    let widget = http.get(WIDGET).await.json();
    let settings = http.get(SETTINGS).await.json();
    assert_eq!((&widget["spec"]["size"], &settings["data"]["color"]), (&3.into(), &"blue".into()));
    assert_eq!(settings["metadata"]["labels"]["portico.dev/made-by"], "manifests");
    let manager = &settings["metadata"]["managedFields"][0];
    assert_eq!((&manager["manager"], &manager["operation"]), (&"portico-manifests".into(), &"Apply".into()));
    assert!(http.get("/readyz?verbose").await.text().contains("[+]manifests ok\n"));
    let metrics = http.get("/metrics").await.text();
    assert!(metrics.contains("portico_manifests_documents{state=\"applied\"} 4"), "{metrics}");

    assert!(portico.stop().await.success());
    portico.restart().await;
    let http = portico.admin();
    for (path, before) in [(WIDGET, &widget), (SETTINGS, &settings)] {
        let now = http.get(path).await.json();
        assert_eq!(now["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_applied_in_order_and_wait_for_required_objects() {
    let [namespace, definition, app] = FILES;
    let files = [("00-app.yaml", app.1), ("50-definition.yaml", definition.1), ("60-namespace.json", "")];
    let (launch, folder) = launch(&files[..2]);
    let list = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \
        \"metadata\": {\"name\": \"shop\"}}]}";
    write(&folder, files[2].0, list);
    assert!(namespace.1.contains("shop"));
    let portico = launch.start().await;
    assert!(exists(&portico.admin(), WIDGET).await && exists(&portico.admin(), SETTINGS).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_not_ready_until_an_invalid_file_is_fixed() {
    let (launch, folder) = launch(&FILES);
    write(&folder, "15-broken.yaml", "kind: ConfigMap\n---\na: [\n");
    write(&folder, "16-unknown.yaml", "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}\n");
    let mut portico = launch.spawn();
    let http = client(&portico).await;
    let reason = eventually("the readiness check names the broken file", async || {
        let answer = http.get("/readyz/manifests").await;
        if answer.text().contains("15-broken.yaml") { Ok(answer) } else { Err(answer.text()) }
    })
    .await;
    assert_eq!(reason.status, 500);
    let text = reason.text();
    for expected in [
        "3 of 7 documents are not applied: 15-broken.yaml, document 1, ConfigMap: a manifest needs apiVersion, kind and metadata.name; ",
        "15-broken.yaml, document 2: error converting YAML to JSON: yaml: line ",
        "16-unknown.yaml, document 1, Gadget g: this server does not serve kind Gadget of example.com/v1",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(http.get("/readyz").await.status, 500);
    wait_for_log(&portico, "manifests cannot be applied, server is not ready; see /readyz/manifests").await;
    assert_eq!(http.get("/livez").await.status, 200, "the liveness check passes");
    assert!(exists(&http, WIDGET).await, "other files are applied");
    assert!(!portico.addresses_file().exists());

    write(&folder, "15-broken.yaml", &config_map("mended", "green"));
    std::fs::remove_file(folder.join("16-unknown.yaml")).unwrap();
    portico.wait_ready().await;
    assert!(exists(&portico.admin(), "/api/v1/namespaces/shop/configmaps/mended").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_applied_and_invalid_ones_keep_the_server_ready() {
    let (launch, folder) = launch(&FILES);
    let portico = launch.start().await;
    let http = portico.admin();
    let widget = http.get(WIDGET).await.json();
    // Other clients may change fields that the folder does not contain.
    let theirs = serde_json::json!({"data": {"theirs": "x", "color": "red"}});
    assert_eq!(http.merge(SETTINGS, &theirs).await.status, 200);
    write(&folder, "20-app.yaml", &FILES[2].1.replace("blue", "green"));
    let settings = wait_for_field(&http, SETTINGS, "/data/color", "green").await;
    assert_eq!(settings["data"]["theirs"], "x");
    assert_eq!(
        http.get(WIDGET).await.json()["metadata"]["resourceVersion"],
        widget["metadata"]["resourceVersion"]
    );

    write(&folder, "20-app.yaml", &FILES[2].1.replace("size: 3", "size: 30").replace("blue", "black"));
    wait_for_field(&http, SETTINGS, "/data/color", "black").await;
    wait_for_log(&portico, "too large").await;
    assert_eq!(http.get("/readyz").await.status, 200);
    wait_until("the verbose readiness check reports a warning", async || {
        let verbose = http.get("/readyz?verbose").await.text();
        verbose.contains("[+]manifests ok, with a warning: see /readyz/manifests\n")
    })
    .await;
    let warning = http.get("/readyz/manifests").await.text();
    assert!(
        warning.contains("20-app.yaml, document 1, Widget shop/one: ") && warning.contains("too large"),
        "{warning}"
    );
    assert_eq!(http.get(WIDGET).await.json()["spec"]["size"], 3);

    write(&folder, "20-app.yaml", FILES[2].1);
    wait_for_field(&http, SETTINGS, "/data/color", "blue").await;
    wait_until("the manifests check passes", async || http.get("/readyz/manifests").await.text() == "ok")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_other_clients_are_reverted() {
    let (launch, _folder) = launch(&FILES);
    let portico = launch.arg("--manifests-resync-period=200ms").start().await;
    let http = portico.admin();
    assert_eq!(http.merge(SETTINGS, &serde_json::json!({"data": {"color": "red"}})).await.status, 200);
    wait_for_field(&http, SETTINGS, "/data/color", "blue").await;
    assert_eq!(http.delete(SETTINGS).await.status, 200);
    wait_for_field(&http, SETTINGS, "/data/color", "blue").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_manifests_are_reported_or_pruned() {
    let (launch, folder) = launch(&FILES);
    write(&folder, "30-more.yaml", &config_map("more", "grey"));
    let more = "/api/v1/namespaces/shop/configmaps/more";
    let mut portico = launch.clone().start().await;
    std::fs::remove_file(folder.join("30-more.yaml")).unwrap();
    wait_for_log(&portico, "configmaps/shop/more (--manifests-prune is not set)").await;
    assert!(exists(&portico.admin(), more).await);
    assert!(portico.admin().get("/metrics").await.text().contains("portico_manifests_left_objects 1"));

    // After a restart with pruning, manifests that were removed before are found.
    assert!(portico.stop().await.success());
    drop(portico);
    let portico = launch.arg("--manifests-prune").start().await;
    let http = portico.admin();
    wait_until("the object is pruned", async || !exists(&http, more).await).await;
    assert!(exists(&http, SETTINGS).await && exists(&http, WIDGET).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_of_the_folder_are_audited() {
    let (launch, folder) = launch(&FILES);
    let (launch, log) = with_audit_log(launch, &METADATA.replace("Metadata", "RequestResponse"));
    let _portico = launch.arg("--manifests-prune").start().await;
    let of_settings = async |verb: &'static str| {
        eventually(&format!("the event of a {verb} is recorded"), || {
            let is_meant = |event: &Value| {
                event["verb"] == verb
                    && event["stage"] == "ResponseComplete"
                    && event["objectRef"]["name"] == "settings"
                    && event["user"]["username"] == "system:portico:manifests"
            };
            std::future::ready(lines(&log).into_iter().find(is_meant).ok_or(()))
        })
        .await
    };
    let event_of_patch = of_settings("patch").await;
    assert_eq!(
        (&event_of_patch["responseStatus"]["code"], &event_of_patch["objectRef"]["namespace"]),
        (&201.into(), &"shop".into())
    );
    let uri = event_of_patch["requestURI"].as_str().unwrap();
    assert!(uri.starts_with(&format!("{SETTINGS}?fieldManager=portico-manifests")), "{uri}");
    let colors = [
        &event_of_patch["requestObject"]["data"]["color"],
        &event_of_patch["responseObject"]["data"]["color"],
    ];
    assert_eq!(colors, ["blue", "blue"], "{event_of_patch}");
    write(&folder, "20-app.yaml", &config_map("other", "grey"));
    let deleted = of_settings("delete").await;
    assert_eq!((&deleted["responseStatus"]["code"], &deleted["requestURI"]), (&200.into(), &SETTINGS.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_disabled_version_are_pruned_by_another_version() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\nspec:\n  \
        group: example.com\n  scope: Cluster\n  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}\n  versions:\n  \
        - {name: v1, served: false, storage: true, schema: {openAPIV3Schema: {type: object}}}\n  \
        - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n";
    let thing = |name: &str| format!("apiVersion: example.com/v2\nkind: Thing\nmetadata: {{name: {name}}}\n");
    let (launch, folder) =
        launch(&[("10.yaml", definition), ("20.yaml", &thing("one")), ("30.yaml", &thing("two"))]);
    let portico = launch.arg("--manifests-prune").start().await;
    let http = portico.admin();
    std::fs::remove_file(folder.join("30.yaml")).unwrap();
    wait_until("the object is pruned", async || !exists(&http, "/apis/example.com/v2/things/two").await)
        .await;
    assert!(exists(&http, "/apis/example.com/v2/things/one").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_objects_created_by_the_folder_are_pruned() {
    let (launch, folder) = launch(&FILES);
    let mut portico = launch.arg("--manifests-prune").start().await;
    let http = portico.admin();
    let maps = "/api/v1/namespaces/shop/configmaps";
    let theirs = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}});
    assert_eq!(http.post(maps, &theirs).await.status, 201);
    // The folder contains an object of another client for a while.
    write(&folder, "30-theirs.yaml", &config_map("theirs", "pink"));
    let path = format!("{maps}/theirs");
    let object = wait_for_field(&http, &path, "/data/color", "pink").await;
    assert_eq!(object.pointer("/metadata/labels"), None, "{object}");
    std::fs::remove_file(folder.join("30-theirs.yaml")).unwrap();
    // Objects of other clients keep a namespace and a definition alive.
    let widget = serde_json::json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "two"}, "spec": {"size": 1}});
    assert_eq!(http.post("/apis/example.com/v1/namespaces/shop/widgets", &widget).await.status, 201);
    write(&folder, "40-other.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n");
    for name in ["00-namespaces.yaml", "10-definitions/widgets.yaml", "20-app.yaml"] {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    wait_until("the objects of the folder are pruned", async || {
        !exists(&http, SETTINGS).await && !exists(&http, WIDGET).await
    })
    .await;
    wait_for_log(&portico, "namespaces/shop (").await;
    assert!(
        exists(&http, &path).await && exists(&http, "/apis/example.com/v1/namespaces/shop/widgets/two").await
    );
    assert!(portico.log().contains("customresourcedefinitions.apiextensions.k8s.io/widgets.example.com (widgets.example.com/two still exists)"));

    // An empty folder must not delete everything.
    std::fs::remove_file(folder.join("40-other.yaml")).unwrap();
    wait_for_log(&portico, "namespaces/other (nothing is deleted for a folder without manifests)").await;
    assert!(exists(&http, "/api/v1/namespaces/other").await && portico.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_does_not_make_an_object_prunable() {
    let named = "metadata: {name: web, namespace: shop, labels: {app: web}}";
    let service = format!(
        "apiVersion: v1\nkind: Service\n{named}\nspec: {{selector: {{app: web}}, ports: [{{port: 80}}]}}\n"
    );
    let slice = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: mine, namespace: shop}\naddressType: IPv4\nendpoints: []\n";
    let (launch, folder) = launch(&[FILES[0], ("10-web.yaml", &service), ("20-slice.yaml", slice)]);
    write(&folder, "30-more.yaml", &config_map("more", "grey"));
    let portico = launch.arg("--manifests-prune").start().await;
    let http = portico.admin();
    let maps = "/api/v1/namespaces/shop/configmaps";
    let mut copy = http.get(&format!("{maps}/more")).await.json();
    copy["metadata"] = serde_json::json!({"name": "mine", "labels": copy["metadata"]["labels"]});
    assert_eq!(copy["metadata"]["labels"]["portico.dev/made-by"], "manifests");
    assert_eq!(http.post(maps, &copy).await.status, 201);
    let list = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices?labelSelector=kubernetes.io/service-name=web";
    let slices = async || http.get(list).await.json()["items"].as_array().unwrap().clone();
    wait_until("the controller has created an EndpointSlice", async || !slices().await.is_empty()).await;
    let before = slices().await;
    assert_eq!(before[0]["metadata"]["labels"]["portico.dev/made-by"], "manifests");

    // An object that the folder created is deleted, and no other object with its label.
    std::fs::remove_file(folder.join("30-more.yaml")).unwrap();
    wait_until("the object is pruned", async || !exists(&http, &format!("{maps}/more")).await).await;
    write(&folder, "40-last.yaml", &config_map("last", "grey"));
    wait_until("the next pass has applied a new file", async || exists(&http, &format!("{maps}/last")).await)
        .await;
    std::fs::remove_file(folder.join("40-last.yaml")).unwrap();
    wait_until("the next pass has pruned the removed file", async || {
        !exists(&http, &format!("{maps}/last")).await
    })
    .await;
    assert!(exists(&http, &format!("{maps}/mine")).await);
    assert_eq!(slices().await[0]["metadata"]["uid"], before[0]["metadata"]["uid"]);
    let pruned = |line: &&str| line.contains("object deleted, manifest removed");
    assert_eq!(portico.log().lines().filter(pruned).count(), 2, "{}", portico.log());

    // An object that existed before is not deleted either, even if the folder contained it.
    write(&folder, "50-mine.yaml", &config_map("mine", "pink"));
    wait_for_field(&http, &format!("{maps}/mine"), "/data/color", "pink").await;
    std::fs::remove_file(folder.join("50-mine.yaml")).unwrap();
    write(&folder, "60-end.yaml", &config_map("end", "grey"));
    wait_until("a pass has applied the new file", async || exists(&http, &format!("{maps}/end")).await).await;
    std::fs::remove_file(folder.join("60-end.yaml")).unwrap();
    wait_until("another pass has pruned the removed file", async || {
        !exists(&http, &format!("{maps}/end")).await
    })
    .await;
    assert!(exists(&http, &format!("{maps}/mine")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_many_events_is_deleted() {
    let (launch, folder) = launch(&FILES[..1]);
    write(&folder, "10-other.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n");
    let portico = launch.arg("--manifests-prune").start().await;
    let http = portico.admin();
    for at in 0..130 {
        let event = serde_json::json!({"metadata": {"name": format!("e{at}")}, "type": "Normal", "reason": "Told",
            "involvedObject": {"kind": "Namespace", "name": "other", "namespace": "other"}});
        let created = http.post("/api/v1/namespaces/other/events", &event).await;
        assert_eq!(created.status, 201, "{}", created.text());
    }
    std::fs::remove_file(folder.join("10-other.yaml")).unwrap();
    wait_until("the object is pruned", async || !exists(&http, "/api/v1/namespaces/other").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_restored_during_their_deletion_are_created_again() {
    let (launch, folder) = launch(&FILES[..1]);
    write(&folder, "30-more.yaml", &config_map("more", "grey"));
    let portico = launch.args(&["--manifests-prune", "--manifests-resync-period=0s"]).start().await;
    let http = portico.admin();
    let path = "/api/v1/namespaces/shop/configmaps/more";
    let held = serde_json::json!({"metadata": {"finalizers": ["example.com/held"]}});
    let before = http.merge(path, &held).await.json();
    std::fs::remove_file(folder.join("30-more.yaml")).unwrap();
    wait_until("the deletion of the object begins", async || {
        http.get(path).await.json()["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    write(&folder, "30-more.yaml", &config_map("more", "blue"));
    wait_until("the check reports the deletion", async || {
        let text = http.get("/readyz/manifests").await.text();
        text.contains("30-more.yaml, document 1, ConfigMap shop/more: the object is being deleted")
    })
    .await;
    let free = serde_json::json!({"metadata": {"finalizers": null}});
    assert_eq!(http.merge(path, &free).await.status, 200);
    let object = wait_for_field(&http, path, "/data/color", "blue").await;
    assert_ne!(object["metadata"]["uid"], before["metadata"]["uid"]);
    wait_until("the manifests check passes", async || http.get("/readyz/manifests").await.text() == "ok")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_during_a_namespace_deletion_creates_it_again() {
    let (launch, _folder) = launch(&FILES);
    let launch = launch.arg("--manifests-resync-period=0s");
    let mut portico = launch.clone().start().await;
    let http = portico.admin();
    let maps = "/api/v1/namespaces/shop/configmaps";
    let held = serde_json::json!({"metadata": {"name": "held", "finalizers": ["example.com/held"]}});
    assert_eq!(http.post(maps, &held).await.status, 201);
    assert_eq!(http.delete("/api/v1/namespaces/shop").await.status, 200);
    wait_until("all but one of the objects are deleted", async || {
        !exists(&http, WIDGET).await && !exists(&http, SETTINGS).await
    })
    .await;
    assert!(portico.stop().await.success());
    std::fs::remove_file(portico.data().join("admin.kubeconfig")).unwrap();
    drop(portico);

    let mut portico = launch.spawn();
    let http = client(&portico).await;
    wait_until("the check reports that the namespace is being deleted", async || {
        let text = http.get("/readyz/manifests").await.text();
        text.contains("00-namespaces.yaml, document 1, Namespace shop: the object is being deleted")
    })
    .await;
    let free = serde_json::json!({"metadata": {"finalizers": null}});
    assert_eq!(http.merge(&format!("{maps}/held"), &free).await.status, 200);
    portico.wait_ready().await;
    assert!(exists(&http, WIDGET).await && exists(&http, SETTINGS).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_does_not_wait_for_an_invalid_folder() {
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let mut command = Command::new(binary());
        command.args(["run", "--ephemeral", "--manifests", "manifests", "--", "touch", "it-ran"]);
        output(command.current_dir(folder.path()))
    };
    let gadget = "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}\n";
    write(folder.path(), "manifests/10-gadget.yaml", gadget);
    write(folder.path(), "manifests/20-app.yaml", FILES[0].1);
    let done = run();
    let error = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{error}");
    let expected = "portico: --manifests: 1 of 2 documents are not applied: 10-gadget.yaml, document 1, Gadget g: \
        this server does not serve kind Gadget of example.com/v1; the command was not run\n";
    assert!(error.ends_with(expected), "{error}");
    assert!(!folder.path().join("it-ran").exists());

    // The command waits for a definition of the folder, and for objects that need it.
    std::fs::remove_file(folder.path().join("manifests/10-gadget.yaml")).unwrap();
    FILES.iter().for_each(|(name, text)| write(folder.path(), &format!("manifests/{name}"), text));
    let done = run();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(folder.path().join("it-ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mounted_config_map_is_watched_through_its_link() {
    let (launch, folder) = launch(&[]);
    let version = |name: &str, color: &str| {
        write(&folder, &format!("{name}/a.yaml"), FILES[0].1);
        write(&folder, &format!("{name}/b.yaml"), &config_map("settings", color));
        std::os::unix::fs::symlink(name, folder.join("..new")).unwrap();
        std::fs::rename(folder.join("..new"), folder.join("..data")).unwrap();
    };
    version("..one", "blue");
    for name in ["a.yaml", "b.yaml"] {
        std::os::unix::fs::symlink(format!("..data/{name}"), folder.join(name)).unwrap();
    }
    let portico = launch.start().await;
    wait_for_field(&portico.admin(), SETTINGS, "/data/color", "blue").await;
    version("..two", "green");
    wait_for_field(&portico.admin(), SETTINGS, "/data/color", "green").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_too_large_folder_is_refused() {
    let (launch, folder) = launch(&FILES);
    let mut portico = launch.clone().arg("--manifests-max-files=2").spawn();
    let http = client(&portico).await;
    wait_until("the check names the limit", async || {
        http.get("/readyz/manifests").await.text().contains("more than 2 files (--manifests-max-files)")
    })
    .await;
    std::fs::remove_file(folder.join("20-app.yaml")).unwrap();
    portico.wait_ready().await;
    let (code, _, error) = Launch::new().args(&["--manifests", "/nowhere"]).run().await;
    assert_eq!((code, &*error), (Some(2), "portico: --manifests: /nowhere: no such file or directory\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_rereads_the_folder_and_duplicates_are_refused() {
    let (mut launch, folder) = Launch::new().prepare_folder();
    let folder = folder.join("manifests");
    FILES.iter().for_each(|(name, text)| write(&folder, name, text));
    launch = launch.args(&["--manifests", folder.to_str().unwrap(), "--manifests-look-period=1h"]);
    let portico = launch.start().await;
    write(&folder, "30-again.yaml", &config_map("settings", "red"));
    portico.signal(Signal::HUP);
    wait_for_log(&portico, "duplicate of the object in 20-app.yaml, document 2, which takes precedence")
        .await;
    assert_eq!(portico.admin().get(SETTINGS).await.json()["data"]["color"], "blue");
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_names_the_manifest_of_an_api_service() {
    let service = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata:\n  name: v1.remote.example.com\n  annotations: {portico.dev/backend-urls: \"https://127.0.0.1:1\"}\nspec:\n  \
        group: remote.example.com\n  version: v1\n  groupPriorityMinimum: 1000\n  versionPriority: 15\n  insecureSkipTLSVerify: true\n  service: {name: a, namespace: b}\n";
    let (launch, folder) = launch(&[("apis/remote.yaml", service)]);
    let portico = launch.start().await;
    let explain = || {
        let mut command = Command::new(binary());
        command
            .args(["explain", "v1.remote.example.com"])
            .env("KUBECONFIG", portico.data().join("admin.kubeconfig"));
        String::from_utf8(output(&mut command).stdout).unwrap()
    };
    let text = explain();
    assert!(text.contains("apis/remote.yaml, document 1"), "{text}");
    write(
        &folder,
        "apis/remote.yaml",
        &service.replace("groupPriorityMinimum: 1000", "groupPriorityMinimum: -1"),
    );
    wait_until("Explain reports the failure", async || explain().contains("groupPriorityMinimum")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_control_services_apply_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    FILES.iter().for_each(|(name, text)| write(folder.path(), name, text));
    let path = folder.path().to_str().unwrap();
    let flags = ["--manifests", path, "--manifests-look-period=50ms", "--manifests-prune"];
    let Some([one, _two]) = servers(|launch| launch.args(&flags)).await else { return };
    let facade = Launch::facade(&one).start().await;
    let http = facade.admin();
    assert!(exists(&http, WIDGET).await);
    let settings = http.get(SETTINGS).await.json();
    assert_eq!(settings["metadata"]["labels"]["portico.dev/made-by"], "manifests", "{settings}");
    write(folder.path(), "20-app.yaml", &FILES[2].1.replace("blue", "green"));
    wait_for_field(&http, SETTINGS, "/data/color", "green").await;
    std::fs::remove_file(folder.path().join("20-app.yaml")).unwrap();
    wait_until("the object is pruned", async || {
        !exists(&http, SETTINGS).await && !exists(&http, WIDGET).await
    })
    .await;
    assert_eq!(http.get("/readyz/manifests").await.text(), "ok");
}

/// Checks a folder without a server.
fn check(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command
        .args(["config", "check"])
        .arg(folder)
        .args(args)
        .env("PORTICO_DATABASE_URL", "postgres://nowhere/x");
    output(&mut command)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_folder_passes_the_check_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    FILES.iter().for_each(|(name, text)| write(folder.path(), name, text));
    let done = check(folder.path(), &[]);
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "4 documents in 3 files: 0 errors, 0 warnings\n");
    assert_eq!((done.status.code(), String::from_utf8(done.stderr).unwrap()), (Some(0), String::new()));
    let nowhere = check(Path::new("/nowhere"), &[]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(nowhere.stderr).unwrap(),
        "portico: config check: /nowhere: no such file or directory\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_names_each_fault_of_a_folder_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    FILES.iter().for_each(|(name, text)| write(folder.path(), name, text));
    let bad = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: big, namespace: shop}\nspec: {size: 12}\n---\n\
        apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: none, namespace: shop}\nspec: {}\n---\n\
        apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b, a: c}\n---\n\
        apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: absent}\nspec: {replica: 3}\n---\n\
        apiVersion: example.com/v2\nkind: Widget\nmetadata: {name: v2}\n---\na: [\n";
    write(folder.path(), "30-bad.yaml", bad);
    write(
        folder.path(),
        "31-elsewhere.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: absent}\n",
    );
    let service = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.a.example.com, annotations: {portico.dev/backend-urls: \"http://a\"}}\n\
        spec: {group: a.example.com, version: v1, groupPriorityMinimum: 1, versionPriority: 1, service: {name: a, namespace: b}}\n";
    write(folder.path(), "40-service.yaml", service);
    write(folder.path(), "50-again.yaml", &config_map("settings", "red"));
    let done = check(folder.path(), &[]);
    let text = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(1), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        ("30-bad.yaml:1: error: document 1: Widget shop/big: ", "too large"),
        ("30-bad.yaml:5: error: document 2: Widget shop/none: ", "spec.size: Required value"),
        ("30-bad.yaml:10: error: document 3: ConfigMap x: ", "key \"a\" already set in map"),
        (
            "30-bad.yaml:15: error: document 4: Deployment absent/web: ",
            ".spec.replica: field not declared in schema",
        ),
        (
            "30-bad.yaml:20: error: document 5: Widget v2: ",
            "this server does not serve kind Widget of example.com/v2",
        ),
        ("30-bad.yaml:24: error: document 6: ", "yaml: line 2"),
        (
            "31-elsewhere.yaml:1: warning: document 1: Secret absent/s: ",
            "namespace \"absent\" is not in the folder",
        ),
        ("40-service.yaml:1: error: document 1: APIService v1.a.example.com: ", "portico.dev/backend-urls"),
        (
            "50-again.yaml:1: error: document 1: ConfigMap shop/settings: ",
            "duplicate of the object in 20-app.yaml, document 2",
        ),
    ];
    for (begins, contains) in expected {
        assert!(
            lines.iter().any(|line| line.starts_with(begins) && line.contains(contains)),
            "{begins}{contains}:\n{text}"
        );
    }
    let json: Value = serde_json::from_slice(&check(folder.path(), &["-o", "json"]).stdout).unwrap();
    assert_eq!(json["findings"].as_array().unwrap().len(), lines.len() - 1);
    assert_eq!(
        (&json["findings"][0]["severity"], &json["findings"][0]["line"]),
        (&"error".into(), &1.into())
    );
}
