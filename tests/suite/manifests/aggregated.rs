//! Objects of a folder that another API server stores: applied once it is available, without delaying others, and deleted there.

use std::path::PathBuf;
use std::process::Command;

use portico_tests::objects::API_SERVICES;
use portico_tests::pki::Authority;
use portico_tests::tools::output;
use portico_tests::{Launch, Portico, binary, eventually, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{FILES, SETTINGS, check, config_map, exists, wait_for_field, wait_for_log, write};
use crate::audit::{METADATA, lines, with_audit_log};

const SERVICE: &str = "v1.wardle.example.com";
const FLUNDERS: &str = "/apis/wardle.example.com/v1/namespaces/default/flunders";
const RECORD: &str = "/api/v1/namespaces/kube-system/configmaps/portico-manifests-aggregated";

/// A server that stores flunders and trusts a front proxy; and the launch of a server that is this front proxy and has a folder.
struct Pair {
    backend: Portico,
    launch: Launch,
    folder: PathBuf,
}

impl Pair {
    async fn prepared() -> Self {
        let authority = Authority::new("front proxies");
        let client = authority.client("front-proxy", &[]);
        let (launch, own) = Launch::new().prepare_folder();
        let file = |name: &str, text: &str| {
            let path = own.join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let backend = Launch::new().args(&[
            "--requestheader-client-ca-file",
            &file("front-proxy-ca.crt", &authority.pem),
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
        ]);
        let backend = backend.start().await;
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "flunders.wardle.example.com"},
            "spec": {"group": "wardle.example.com", "scope": "Namespaced",
                "names": {"plural": "flunders", "singular": "flunder", "kind": "Flunder", "listKind": "FlunderList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
                    "properties": {"spec": {"type": "object",
                        "properties": {"size": {"type": "integer", "maximum": 10}}}}}}}]},
        });
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        assert_eq!(backend.admin().post(definitions, &definition).await.status, 201);
        wait_until("flunders are served", async || exists(&backend.admin(), FLUNDERS).await).await;
        let folder = own.join("manifests");
        FILES.iter().for_each(|(name, text)| write(&folder, name, text));
        let (cert, key) = (file("client.crt", &client.cert), file("client.key", &client.key));
        let launch = launch.args(&["--proxy-client-cert-file", &cert, "--proxy-client-key-file", &key]);
        let launch = launch.args(&["--manifests", folder.to_str().unwrap(), "--manifests-look-period=50ms"]);
        Self { backend, launch, folder }
    }

    fn write(&self, name: &str, text: &str) {
        write(&self.folder, name, text);
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.folder.join(name)).unwrap();
    }

    fn service(&self) -> String {
        service(&self.backend.https().to_string())
    }

    /// Returns the backend's object with this name, once its size is this.
    async fn wait_for_size(&self, name: &str, size: u64) -> Value {
        let path = format!("{FLUNDERS}/{name}");
        eventually(&format!("{name} has size {size}"), async || {
            let object = self.backend.admin().get(&path).await.json();
            if object["spec"]["size"] == size { Ok(object) } else { Err(object) }
        })
        .await
    }

    async fn has(&self, name: &str) -> bool {
        exists(&self.backend.admin(), &format!("{FLUNDERS}/{name}")).await
    }
}

fn service(address: &str) -> String {
    format!(
        "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata:\n  name: {SERVICE}\n  \
         annotations: {{portico.dev/backend-urls: \"https://{address}\"}}\nspec:\n  group: wardle.example.com\n  version: v1\n  \
         groupPriorityMinimum: 1000\n  versionPriority: 15\n  insecureSkipTLSVerify: true\n  service: {{name: a, namespace: b}}\n"
    )
}

fn flunder(name: &str, size: u64) -> String {
    format!(
        "apiVersion: wardle.example.com/v1\nkind: Flunder\nmetadata: {{name: {name}}}\nspec: {{size: {size}}}\n"
    )
}

fn explained(portico: &Portico) -> String {
    let mut command = Command::new(binary());
    command.args(["explain", SERVICE]).env("KUBECONFIG", portico.data().join("admin.kubeconfig"));
    String::from_utf8(output(&mut command).stdout).unwrap()
}

/// Returns the message of the folder's readiness check, once it contains this text.
async fn wait_for_check(portico: &Portico, text: &str) -> String {
    eventually(&format!("the check reports {text:?}"), async || {
        let report = portico.admin().get("/readyz/manifests").await.text();
        if report.contains(text) { Ok(report) } else { Err(report) }
    })
    .await
}

async fn wait_ready(portico: &Portico) {
    let http = portico.admin();
    wait_until("the manifests check passes", async || http.get("/readyz/manifests").await.text() == "ok")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregated_objects_are_applied_later_without_delaying_readiness() {
    let mut pair = Pair::prepared().await;
    pair.write("01-early.yaml", &flunder("one", 3));
    pair.write("30-service.yaml", &pair.service());
    pair.backend.signal(Signal::STOP);
    let portico = pair.launch.clone().start().await;
    let waits = "1 of 1 documents wait for their API servers: 01-early.yaml, document 1, Flunder one: APIService v1.wardle.example.com ";
    wait_for_check(&portico, waits).await;
    let http = portico.admin();
    assert_eq!(http.get("/readyz").await.status, 200);
    assert!(exists(&http, SETTINGS).await);
    wait_until("Explain reports the unapplied object", async || {
        explained(&portico).contains("1 of 1 of its objects are not applied")
    })
    .await;
    assert!(http.get("/metrics").await.text().contains("portico_manifests_documents{state=\"waiting\"} 1"));

    pair.backend.signal(Signal::CONT);
    let one = pair.wait_for_size("one", 3).await;
    assert_eq!(one["metadata"]["labels"]["portico.dev/made-by"], "manifests");
    let manager = &one["metadata"]["managedFields"][0];
    assert_eq!((&manager["manager"], &manager["operation"]), (&"portico-manifests".into(), &"Apply".into()));
    wait_ready(&portico).await;
    assert!(!explained(&portico).contains("of its objects"));
    pair.write("01-early.yaml", &flunder("one", 4));
    pair.wait_for_size("one", 4).await;
    assert!(pair.backend.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_aggregated_objects_are_deleted_before_their_api_service() {
    let pair = Pair::prepared().await;
    pair.write("30-service.yaml", &pair.service());
    pair.write("40-flunders.yaml", &format!("{}---\n{}", flunder("one", 1), flunder("two", 2)));
    let (launch, log) = with_audit_log(pair.launch.clone(), &METADATA.replace("Metadata", "RequestResponse"));
    let portico = launch.arg("--manifests-prune").start().await;
    pair.wait_for_size("two", 2).await;
    let theirs = json!({"apiVersion": "wardle.example.com/v1", "kind": "Flunder", "spec": {"size": 7},
        "metadata": {"name": "theirs", "labels": {"portico.dev/made-by": "manifests"}}});
    assert_eq!(pair.backend.admin().post(FLUNDERS, &theirs).await.status, 201);
    pair.write("40-flunders.yaml", &flunder("one", 1));
    wait_until("the removed flunder is pruned", async || !pair.has("two").await).await;
    assert!(pair.has("one").await && exists(&portico.admin(), RECORD).await);

    pair.remove("40-flunders.yaml");
    pair.remove("30-service.yaml");
    let service = format!("{API_SERVICES}/{SERVICE}");
    wait_until("the APIService is deleted", async || !exists(&portico.admin(), &service).await).await;
    assert!(!pair.has("one").await && pair.has("theirs").await);
    assert!(portico.admin().get(RECORD).await.json()["data"]["flunders.wardle.example.com"].is_null());
    for (verb, name, code) in [("patch", "two", 201), ("delete", "two", 200), ("delete", "one", 200)] {
        let event = eventually("the audit event is recorded", || {
            let is_meant = |event: &Value| {
                event["verb"] == verb
                    && event["stage"] == "ResponseComplete"
                    && event["objectRef"]["name"] == name
            };
            std::future::ready(lines(&log).into_iter().find(is_meant).ok_or(()))
        })
        .await;
        assert_eq!(
            (&event["user"]["username"], &event["responseStatus"]["code"]),
            (&"system:portico:manifests".into(), &code.into())
        );
        assert!(event["requestURI"].as_str().unwrap().starts_with(&format!("{FLUNDERS}/{name}")), "{event}");
        assert_eq!(event["objectRef"]["resource"], "flunders");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_server_delays_no_other_file() {
    let pair = Pair::prepared().await;
    pair.write("30-service.yaml", &pair.service());
    pair.write("40-flunders.yaml", &format!("{}---\n{}", flunder("one", 1), flunder("two", 2)));
    let portico = pair.launch.clone().arg("--manifests-prune").start().await;
    pair.wait_for_size("two", 2).await;
    let http = portico.admin();
    pair.backend.signal(Signal::STOP);
    pair.write("40-flunders.yaml", &flunder("one", 5));
    pair.write("20-app.yaml", &FILES[2].1.replace("blue", "green"));
    wait_for_field(&http, SETTINGS, "/data/color", "green").await;
    // The request times out, which is reported.
    assert!(!portico.log().contains("no response from"), "{}", portico.log());
    wait_for_log(&portico, "no response from").await;
    wait_for_check(&portico, "Flunder one: ").await;

    // Its objects are still tracked.
    pair.remove("40-flunders.yaml");
    pair.write("50-more.yaml", &config_map("more", "grey"));
    wait_until("later changes of the folder are applied", async || {
        exists(&http, "/api/v1/namespaces/shop/configmaps/more").await
    })
    .await;
    assert_eq!(http.get(RECORD).await.json()["data"]["flunders.wardle.example.com"], "v1");
    pair.backend.signal(Signal::CONT);
    wait_until("both flunders are pruned", async || !pair.has("one").await && !pair.has("two").await).await;
    wait_until("the APIService's entry in the record is removed", async || {
        http.get(RECORD).await.json()["data"].get("flunders.wardle.example.com").is_none()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_reported_and_keeps_the_server_ready() {
    let pair = Pair::prepared().await;
    let portico = pair.launch.clone().start().await;
    let http = portico.admin();
    // Another client registers it.
    let service = pair.service().replace("kind: APIService", "kind: APIService # by hand");
    let body = http_body_util::Full::new(service.into());
    let request = http::Request::post(API_SERVICES).header("content-type", "application/yaml");
    assert_eq!(http.fetch(request.body(body).unwrap()).await.unwrap().status, 201);
    let doubled = flunder("doubled", 1).replace("{size: 1}", "{size: 1, size: 2}");
    let gadget = flunder("gadget", 1).replace("Flunder", "Gadget");
    pair.write(
        "40.yaml",
        &format!("{}---\n{}---\n{doubled}---\n{gadget}", flunder("big", 30), flunder("small", 3)),
    );
    pair.wait_for_size("small", 3).await;
    let text = wait_for_check(
        &portico,
        "3 of 4 documents are refused by other API servers: 40.yaml, document 1, Flunder big: ",
    )
    .await;
    for expected in [
        "spec.size in body should be less than or equal to 10",
        "document 3, Flunder doubled: key \"size\" already set in map",
        "document 4, Gadget gadget: the API server of APIService v1.wardle.example.com does not serve kind Gadget of wardle.example.com/v1",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    wait_for_log(&portico, "cannot apply a manifest").await;
    assert_eq!(http.get("/readyz").await.status, 200);
    assert!(explained(&portico).contains("3 of 4 of its objects are not applied"), "{}", explained(&portico));
    pair.write("40.yaml", &flunder("big", 10));
    pair.wait_for_size("big", 10).await;
    wait_ready(&portico).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_offline_check_skips_aggregated_objects() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "10-flunder.yaml", &flunder("one", 1));
    write(folder.path(), "20-service.yaml", &service("127.0.0.1:1"));
    write(folder.path(), "30-gadget.yaml", "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}\n");
    let done = check(folder.path(), &[]);
    let text = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(1), "{text}");
    assert!(text.starts_with("30-gadget.yaml:1: error: "), "{text}");
    assert!(
        text.ends_with(
            "3 documents in 3 files: 1 errors, 0 warnings; 1 not checked (stored by other API servers)\n"
        ),
        "{text}"
    );
}
