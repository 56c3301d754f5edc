//! Encryption at rest: content of files, key rotation, and unavailable key services.

use std::path::{Path, PathBuf};
use std::process::Command;

use portico_machinery::digest::sha256_label;
use portico_proto::admin::MetricsRequest;
use portico_tests::binary::binary;
use portico_tests::http::Http;
use portico_tests::{KeyServicePlugin, Launch, Portico, PostgresServer, eventually, wait_until};
use serde_json::json;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// Value of the Secrets of these tests, as in requests and, without encryption, in the database.
const PLAIN: &str = "dGhlLXBsYWluLXRleHQtb2YtYS1zZWNyZXQ=";
const CONFIG: &str = "--encryption-provider-config";
const RELOAD: &str = "--encryption-provider-config-automatic-reload";

/// Returns a configuration with these providers for Secrets.
fn config(providers: &str) -> String {
    format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\n\
         resources: [{{resources: [secrets], providers: [{providers}]}}]\n"
    )
}

/// Returns a provider of a cipher, with keys of these names.
fn keys(cipher: &str, names: &[&str]) -> String {
    let key = |name: &&str| {
        let secret = [name.as_bytes()[name.len() - 1]; 32];
        let secret = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, secret);
        format!("{{name: {name}, secret: '{secret}'}}")
    };
    format!("{{{cipher}: {{keys: [{}]}}}}", names.iter().map(key).collect::<Vec<_>>().join(", "))
}

/// Returns a launch with a configuration in a new folder, and its path.
fn prepared(providers: &str) -> (Launch, PathBuf) {
    let (launch, folder) = Launch::new().prepare_folder();
    let file = folder.join("encryption.yaml");
    std::fs::write(&file, config(providers)).unwrap();
    (launch.args(&[CONFIG, &file.to_string_lossy()]), file)
}

fn secret(name: &str) -> serde_json::Value {
    json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": name}, "data": {"key": PLAIN}})
}

async fn create(http: &Http, name: &str) {
    let created = http.post(SECRETS, &secret(name)).await;
    assert_eq!(created.status.as_u16(), 201, "{}", created.text());
}

/// Reads a Secret; returns the code, and the content or the message.
async fn read(http: &Http, name: &str) -> (u16, String) {
    let answer = http.get(&format!("{SECRETS}/{name}")).await;
    let object = answer.json();
    let field = if answer.status.is_success() { &object["data"]["key"] } else { &object["message"] };
    (answer.status.as_u16(), field.as_str().unwrap_or_default().to_owned())
}

/// Returns the files in and next to the data folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
            continue;
        }
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            // A file may be deleted while the server runs.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

/// Runs a verb of the binary on the data of a server; returns exit code and output.
fn run(portico: &Portico, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(binary())
        .current_dir(portico.folder())
        .args(arguments)
        .env("PORTICO_DATA_DIR", portico.data())
        .env("KUBECONFIG", portico.data().join("admin.kubeconfig"))
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(printed).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_contain_no_plain_text_of_encrypted_objects() {
    for cipher in ["aescbc", "aesgcm", "secretbox"] {
        let (launch, _) = prepared(&keys(cipher, &["k1"]));
        let mut portico = launch.start().await;
        let http = portico.admin();
        for name in ["a", "b", "c"] {
            create(&http, name).await;
        }
        let patched = http.merge(&format!("{SECRETS}/a"), &json!({"data": {"more": PLAIN}})).await;
        assert_eq!(patched.status.as_u16(), 200, "{}", patched.text());
        assert_eq!(http.delete(&format!("{SECRETS}/b")).await.status.as_u16(), 200);
        let list = http.get(SECRETS).await.json();
        assert_eq!(list["items"].as_array().unwrap().len(), 2);
        let (code, printed) = run(&portico, &["backup", "copy.db"]);
        assert_eq!(code, Some(0), "{printed}");
        assert_eq!(files_with(portico.folder(), PLAIN), Vec::<String>::new(), "{cipher}");
        let mut plain = secret("plain");
        plain["kind"] = "ConfigMap".into();
        let created = http.post("/api/v1/namespaces/default/configmaps", &plain).await;
        assert_eq!(created.status.as_u16(), 201, "{}", created.text());
        assert!(!files_with(portico.folder(), PLAIN).is_empty(), "the search finds unencrypted data");
        portico.stop().await;
        portico.restart().await;
        assert_eq!(read(&portico.admin(), "a").await, (200, PLAIN.to_owned()));
        let found = files_with(&portico.data(), &format!("k8s:enc:{cipher}:v1:k1:"));
        assert!(!found.is_empty(), "{cipher}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rewrap_encrypts_present_objects_once() {
    let mut portico = Portico::start().await;
    for n in 0..250 {
        create(&portico.admin(), &format!("old-{n}")).await;
    }
    assert!(!files_with(&portico.data(), PLAIN).is_empty());
    portico.stop().await;
    let file = portico.folder().join("encryption.yaml");
    std::fs::write(&file, config(&format!("{}, {{identity: {{}}}}", keys("secretbox", &["k1"])))).unwrap();
    let launch = Launch::new().with_data_of(&portico).args(&[CONFIG, &file.to_string_lossy()]);
    let mut portico = launch.start().await;
    assert_eq!(read(&portico.admin(), "old-7").await, (200, PLAIN.to_owned()));
    let (code, printed) = run(&portico, &["secrets", "rewrap"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("secrets: 0 of 250 rewritten"), "{printed}");
    assert!(printed.contains("secrets: 250 of 250 rewritten"), "{printed}");
    let (code, printed) = run(&portico, &["secrets", "rewrap"]);
    assert_eq!((code, printed.contains("secrets: 0 of 0 rewritten")), (Some(0), true), "{printed}");
    assert_eq!(read(&portico.admin(), "old-7").await, (200, PLAIN.to_owned()));
    portico.stop().await;
    assert_eq!(files_with(&portico.data(), PLAIN), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rewrap_decrypts_only_with_a_configuration() {
    let mut portico = Portico::start().await;
    create(&portico.admin(), "plain").await;
    let list = portico.admin().get(SECRETS).await.json();
    let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    create(&portico.admin(), "later").await;
    let (code, printed) = run(&portico, &["secrets", "rewrap"]);
    assert_eq!(code, Some(2), "{printed}");
    let why = "encryption at rest is not configured: the control service has no --encryption-provider-config";
    assert!(printed.contains(why), "{printed}");
    let exact = format!("{SECRETS}?resourceVersion={version}&resourceVersionMatch=Exact");
    assert_eq!(portico.admin().get(&exact).await.json()["items"], list["items"]);
    portico.stop().await;
    // Encrypted, then plain again, with `identity` as the first provider.
    let file = portico.folder().join("encryption.yaml");
    let launch = Launch::new().with_data_of(&portico).args(&[CONFIG, &file.to_string_lossy()]);
    let sealing = keys("secretbox", &["k1"]);
    std::fs::write(&file, config(&format!("{sealing}, {{identity: {{}}}}"))).unwrap();
    let mut portico = launch.start().await;
    let (code, printed) = run(&portico, &["secrets", "rewrap"]);
    assert!(code == Some(0) && printed.contains("secrets: 2 of 2 rewritten"), "{printed}");
    for (providers, written) in
        [(format!("{{identity: {{}}}}, {sealing}"), 2), ("{identity: {}}".to_owned(), 0)]
    {
        std::fs::write(&file, config(&providers)).unwrap();
        portico.stop().await;
        portico.restart().await;
        let (code, printed) = run(&portico, &["secrets", "rewrap"]);
        let line = format!("secrets: {written} of {written} rewritten");
        assert!(code == Some(0) && printed.contains(&line), "{printed}");
        assert_eq!(read(&portico.admin(), "plain").await, (200, PLAIN.to_owned()));
    }
}

/// Returns the result of `portico history` for the Secret `old`.
fn history(portico: &Portico) -> (Option<i32>, String) {
    run(portico, &["history", "secrets", "old", "-n", "default", "-o", "yaml"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rewrap_encrypts_histories_so_that_the_old_key_can_be_removed() {
    let postgres = PostgresServer::shared().map(|server| server.url(&server.create_database()));
    for database in [None, postgres.as_deref()] {
        let (launch, file) = prepared("{identity: {}}");
        let mut launch = launch.args(&[RELOAD, "--history-retention=secrets=1h"]);
        if let Some(url) = database {
            launch = launch.args(&["--database-url", url]);
        }
        let mut portico = launch.start().await;
        create(&portico.admin(), "old").await;
        let patched =
            portico.admin().merge(&format!("{SECRETS}/old"), &json!({"data": {"key": "bmV3"}})).await;
        assert_eq!(patched.status.as_u16(), 200, "{}", patched.text());
        let (code, before) = history(&portico);
        assert!(code == Some(0) && before.contains(PLAIN), "{before}");
        for providers in
            [format!("{}, {{identity: {{}}}}", keys("aesgcm", &["k1"])), keys("aesgcm", &["k2", "k1"])]
        {
            std::fs::write(&file, config(&providers)).unwrap();
            portico.stop().await;
            portico.restart().await;
            let (code, printed) = run(&portico, &["secrets", "rewrap"]);
            assert_eq!(code, Some(0), "{printed}");
            assert!(printed.contains("secrets: 1 of 1 rewritten"), "{printed}");
            let (code, printed) = run(&portico, &["secrets", "rewrap"]);
            assert_eq!((code, printed.contains("done: 0 of ")), (Some(0), true), "{printed}");
        }
        portico.stop().await;
        if database.is_none() {
            assert_eq!(files_with(&portico.data(), PLAIN), Vec::<String>::new());
            assert_eq!(files_with(&portico.data(), "k8s:enc:aesgcm:v1:k1:"), Vec::<String>::new());
        }
        std::fs::write(&file, config(&keys("aesgcm", &["k2"]))).unwrap();
        portico.restart().await;
        let (code, after) = history(&portico);
        assert!(code == Some(0) && after.contains(PLAIN), "{after}");
    }
}

async fn metrics(portico: &Portico) -> String {
    portico.control().admin().metrics(MetricsRequest {}).await.unwrap().into_inner().text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_rotated_without_a_restart() {
    let (launch, file) = prepared(&keys("aescbc", &["k1"]));
    let mut portico = launch.arg(RELOAD).start().await;
    let http = portico.admin();
    create(&http, "a").await;
    assert_eq!(http.get("/readyz/kms-providers").await.status.as_u16(), 200);
    std::fs::write(&file, "nonsense").unwrap();
    let counted = async |status: &str| {
        let name = "apiserver_encryption_config_controller_automatic_reloads_total";
        let counted = format!("{name}{{status=\"{status}\",apiserver_id_hash=\"sha256:");
        metrics(&portico).await.contains(&counted)
    };
    let in_force = async || {
        let name = "apiserver_encryption_config_controller_last_config_info{";
        let metrics = metrics(&portico).await;
        let mut lines = metrics.lines().filter(|line| line.starts_with(name));
        let only = (lines.next().unwrap().to_owned(), lines.next());
        assert_eq!(only.1, None, "{metrics}");
        only.0
    };
    let first = in_force().await;
    wait_until("the failed reload is counted", || counted("failure")).await;
    create(&http, "b").await;
    std::fs::write(&file, config(&keys("aescbc", &["k2", "k1"]))).unwrap();
    wait_until("the valid file is loaded", || counted("success")).await;
    assert_ne!(in_force().await, first, "the configuration has changed");
    create(&http, "c").await;
    assert_eq!(read(&http, "a").await, (200, PLAIN.to_owned()));
    let holds = |portico: &Portico, key: &str| {
        !files_with(&portico.data(), &format!("k8s:enc:aescbc:v1:{key}:")).is_empty()
    };
    assert!(holds(&portico, "k1") && holds(&portico, "k2"));
    let (code, printed) = run(&portico, &["secrets", "rewrap"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("secrets: 2 of 2 rewritten, 3 objects"), "{printed}");
    portico.stop().await;
    assert!(!holds(&portico, "k1") && holds(&portico, "k2"));
    std::fs::write(&file, config(&keys("aescbc", &["k2"]))).unwrap();
    portico.restart().await;
    assert_eq!(read(&portico.admin(), "a").await, (200, PLAIN.to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_without_a_key_fail_separately() {
    let (launch, file) = prepared(&keys("aesgcm", &["k1"]));
    let mut portico = launch.start().await;
    create(&portico.admin(), "lost").await;
    portico.stop().await;
    std::fs::write(&file, config(&keys("aesgcm", &["k2"]))).unwrap();
    portico.restart().await;
    let http = portico.admin();
    let answer = http.get(&format!("{SECRETS}/lost")).await;
    let status = answer.status_body(500, "StorageReadError");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("no matching key was found for the provided AES transformer"), "{message}");
    create(&http, "new").await;
    let list = http.get(SECRETS).await;
    assert_eq!(list.json()["items"].as_array().unwrap().len(), 1);
    assert!(list.header("warning").contains("secrets default/lost"), "{}", list.header("warning"));
    let (code, printed) = run(&portico, &["secrets", "rewrap"]);
    assert_eq!((code, printed.contains("1 cannot be decrypted")), (Some(1), true), "{printed}");
    portico.stop().await;
    let (_, printed) = run(&portico, &["doctor", &portico.data().to_string_lossy(), "--remove-unreadable"]);
    assert!(printed.contains("encrypted and were not examined") && !printed.contains("removed"), "{printed}");
    std::fs::write(&file, config(&keys("aesgcm", &["k2", "k1"]))).unwrap();
    portico.restart().await;
    assert_eq!(read(&portico.admin(), "lost").await, (200, PLAIN.to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_that_cannot_be_used_is_refused_before_anything_starts() {
    for (providers, why) in [
        ("{aesgcm: {keys: [{name: a, secret: YQ==}]}}", "secret is not of the expected length, got 1"),
        ("{kms: {name: a, endpoint: 'unix:///a.sock'}}", "KMSv1 is deprecated"),
        ("{rot13: {}}", "unknown field \"resources[0].providers[0].rot13\""),
    ] {
        let (code, _, printed) = prepared(providers).0.run().await;
        assert_eq!(code, Some(2), "{printed}");
        assert!(
            printed.starts_with(&format!("portico: {CONFIG}: error while")) && printed.contains(why),
            "{printed}"
        );
        assert!(!printed.contains("YQ=="), "{printed}");
    }
    let (code, _, printed) = Launch::new().arg(RELOAD).run().await;
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains(&format!("{RELOAD} must be set with {CONFIG}")), "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_service_is_called_once_per_key_and_may_be_unavailable() {
    let sockets = tempfile::tempdir().unwrap();
    let socket = sockets.path().join("kms.sock");
    let plugin = KeyServicePlugin::start(&socket, "one");
    let provider = format!("{{kms: {{apiVersion: v2, name: kms, endpoint: 'unix://{}'}}}}", socket.display());
    let (launch, _) = prepared(&provider);
    let mut portico = launch.start().await;
    for name in ["a", "b", "c"] {
        create(&portico.admin(), name).await;
    }
    assert_eq!(plugin.calls(), (1, 0));
    assert_eq!(files_with(&portico.data(), PLAIN), Vec::<String>::new());
    assert!(!files_with(&portico.data(), "k8s:enc:kms:v2:kms:").is_empty());
    assert_eq!(portico.admin().get("/readyz/kms-providers").await.status.as_u16(), 200);
    // Without the key service, cached keys still work; the health check fails.
    drop(plugin);
    let http = portico.admin();
    let failing = || async { http.get("/readyz/kms-providers").await.status.as_u16() == 500 };
    wait_until("the check fails", failing).await;
    assert_eq!(read(&http, "a").await, (200, PLAIN.to_owned()));
    create(&http, "d").await;
    // A server that starts without it serves everything except the encrypted objects, until it is available.
    portico.stop().await;
    let plugin = KeyServicePlugin::start(&socket, "two");
    portico.restart().await;
    let http = portico.admin();
    assert_eq!(read(&http, "a").await, (200, PLAIN.to_owned()));
    assert_eq!(plugin.calls(), (1, 1), "one call for the stored data key, one for the new one");
    let (code, printed) = run(&portico, &["secrets", "rewrap"]);
    assert_eq!((code, printed.contains("secrets: 4 of 4 rewritten")), (Some(0), true), "{printed}");
    plugin.rotate("three");
    create(&http, "e").await;
    eventually("values are sealed with the third key", || {
        let (code, printed) = run(&portico, &["secrets", "rewrap"]);
        let rotated = code == Some(0) && printed.contains("secrets: 5 of 5 rewritten");
        std::future::ready(if rotated { Ok(()) } else { Err(printed) })
    })
    .await;
    plugin.lose_key("two");
    portico.stop().await;
    portico.restart().await;
    assert_eq!(read(&portico.admin(), "e").await, (200, PLAIN.to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_requests_that_need_a_late_key_service_wait() {
    let sockets = tempfile::tempdir().unwrap();
    let socket = sockets.path().join("kms.sock");
    let plugin = KeyServicePlugin::start(&socket, "one");
    let provider = format!("{{kms: {{apiVersion: v2, name: kms, endpoint: 'unix://{}'}}}}", socket.display());
    let (launch, file) = prepared(&provider);
    let mut portico = launch.start().await;
    create(&portico.admin(), "a").await;
    portico.stop().await;
    drop(plugin);
    let launch = Launch::new().with_data_of(&portico).args(&[CONFIG, &file.to_string_lossy()]);
    let mut late = launch.args(&["--secure-port", "0"]).spawn();
    let spoken = || async { late.log().contains("key service is not healthy") };
    wait_until("the server has tried to reach the key service", spoken).await;
    let plugin = KeyServicePlugin::start(&socket, "one");
    late.wait_ready().await;
    assert_eq!(read(&late.admin(), "a").await, (200, PLAIN.to_owned()));
    create(&late.admin(), "b").await;
    assert_eq!(plugin.calls(), (1, 1));
}

/// Returns a launch with a configuration of these rules (resources, cipher and key, or `identity`) in a new folder.
fn launch_with_rules(rules: &[(&str, &str)]) -> Launch {
    let (launch, folder) = Launch::new().prepare_folder();
    let rule = |(resources, cipher): &(&str, &str)| {
        let provider =
            if *cipher == "identity" { "{identity: {}}".to_owned() } else { keys(cipher, &["k1"]) };
        format!("{{resources: [{resources}], providers: [{provider}]}}")
    };
    let rules: Vec<_> = rules.iter().map(rule).collect();
    let file = folder.join("encryption.yaml");
    let head = "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources";
    std::fs::write(&file, format!("{head}: [{}]\n", rules.join(", "))).unwrap();
    launch.args(&[CONFIG, &file.to_string_lossy()])
}

/// Resources of these tests: name in a rule, path, and the rest of an object.
fn kinds() -> [(&'static str, &'static str, serde_json::Value); 6] {
    let role = json!({"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1", "rules": []});
    let labels = json!({"app": "a"});
    let pods = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let event = json!({"kind": "Event", "apiVersion": "events.k8s.io/v1", "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Normal", "reason": "Tested", "action": "Test", "reportingController": "example.com/test",
        "reportingInstance": "test", "regarding": {"kind": "ConfigMap", "namespace": "default", "name": "x"}});
    [
        ("secrets", SECRETS, json!({"kind": "Secret", "apiVersion": "v1"})),
        (
            "configmaps",
            "/api/v1/namespaces/default/configmaps",
            json!({"kind": "ConfigMap", "apiVersion": "v1"}),
        ),
        ("events", "/apis/events.k8s.io/v1/namespaces/default/events", event),
        (
            "deployments.apps",
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"kind": "Deployment", "apiVersion": "apps/v1",
                "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pods}}),
        ),
        ("roles.rbac", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", role),
        (
            "things.example.com",
            "/apis/example.com/v1/namespaces/default/things",
            json!({"kind": "Thing", "apiVersion": "example.com/v1"}),
        ),
    ]
}

/// Returns the mark of an object, which appears in no name, label or owner: these are not encrypted.
fn mark(resource: &str) -> String {
    format!("the-plain-mark-of-{resource}-objects")
}

/// Creates one object of each resource, with its mark.
async fn create_marked(http: &Http) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    let defined = http.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    assert_eq!(defined.status.as_u16(), 201, "{}", defined.text());
    for (resource, path, mut object) in kinds() {
        object["metadata"] = json!({"name": "x", "annotations": {"example.com/mark": mark(resource)}});
        // A new definition is served with a short delay.
        eventually(resource, || async {
            let answer = http.post(path, &object).await;
            if answer.status.as_u16() == 201 { Ok(()) } else { Err(answer.text()) }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wildcard_rules_apply_after_narrower_ones() {
    let core = ["secrets", "configmaps", "events"];
    for (rules, sealed) in [
        (vec![("'*.'", "aescbc")], core.to_vec()),
        (vec![("configmaps", "identity"), ("'*.'", "aesgcm")], vec!["secrets", "events"]),
        (vec![("'*.apps'", "secretbox")], vec!["deployments.apps"]),
        (vec![("'*.example.com', secrets", "aescbc")], vec!["secrets", "things.example.com"]),
        (
            vec![("events", "identity"), ("'*.apps'", "identity"), ("'*.*'", "aesgcm")],
            vec!["secrets", "configmaps", "roles.rbac", "things.example.com"],
        ),
        (
            vec![("things.example.com", "identity"), ("'*.example.com'", "aescbc"), ("'*.'", "aescbc")],
            core.to_vec(),
        ),
    ] {
        let mut portico = launch_with_rules(&rules).start().await;
        create_marked(&portico.admin()).await;
        // While the server runs, with its log; after its end, with everything in the database; and after a new start.
        for is_running in [true, false] {
            if !is_running {
                portico.stop().await;
            }
            for (resource, ..) in kinds() {
                let found = files_with(&portico.data(), &mark(resource));
                assert_eq!(found.is_empty(), sealed.contains(&resource), "{rules:?}: {resource}: {found:?}");
            }
        }
        portico.restart().await;
        for (resource, path, _) in kinds() {
            let object = portico.admin().get(&format!("{path}/x")).await.json();
            let stored_mark = &object["metadata"]["annotations"]["example.com/mark"];
            assert_eq!(*stored_mark, mark(resource), "{rules:?}: {object}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_that_mask_each_other_are_refused_before_anything_starts() {
    let overlapping = "using overlapping resources such as 'secrets' and '*.' in the same resource list";
    for (rules, why) in [
        (vec![("secrets, '*.'", "aescbc")], overlapping),
        (vec![("'*.apps', deployments.apps", "aescbc")], overlapping),
        (vec![("'*.*', things.example.com", "aescbc")], overlapping),
        (vec![("'*.apps', '*.*'", "aescbc")], overlapping),
        (vec![("'*.', '*.'", "aescbc")], "the same resource cannot be specified multiple times"),
        (vec![("'*'", "aescbc")], "use '*.' to encrypt all the resources from core API group or *.*"),
        (vec![("secrets.*", "aescbc")], "encrypting the same resource across groups is not supported"),
        (vec![("'*.events.k8s.io'", "aescbc")], "Use 'events' instead in the config file"),
        (vec![("'*.extensions'", "aescbc")], "'extensions' group has been removed"),
        (
            vec![("'*.'", "aescbc"), ("secrets", "aescbc")],
            r#"resource "secrets" is masked by earlier rule "*.""#,
        ),
        (
            vec![("'*.example.com'", "aescbc"), ("things.example.com", "identity")],
            r#"resource "things.example.com" is masked by earlier rule "*.example.com""#,
        ),
        (
            vec![("'*.*'", "aescbc"), ("'*.apps'", "aescbc")],
            r#"resource "*.apps" is masked by earlier rule "*.*""#,
        ),
        (vec![("'*.*'", "aescbc"), ("'*.'", "aescbc")], r#"resource "*." is masked by earlier rule "*.*""#),
        (
            vec![("'*.*'", "aescbc"), ("'*.*'", "identity")],
            r#"resource "*.*" is masked by earlier rule "*.*""#,
        ),
    ] {
        let (code, _, printed) = launch_with_rules(&rules).run().await;
        assert_eq!(code, Some(2), "{rules:?}: {printed}");
        assert!(
            printed.starts_with(&format!("portico: {CONFIG}: error while")) && printed.contains(why),
            "{rules:?}: {printed}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storage_version_migration_encrypts_every_object_with_the_newest_key() {
    let (launch, file) = prepared(&keys("aesgcm", &["k1"]));
    let served = ["--runtime-config", "storagemigration.k8s.io/v1beta1=true"];
    let mut portico = launch.args(&served).start().await;
    for name in ["a", "b", "c"] {
        create(&portico.admin(), name).await;
    }
    portico.stop().await;
    std::fs::write(&file, config(&keys("aesgcm", &["k2", "k1"]))).unwrap();
    portico.restart().await;
    let http = portico.admin();
    let holds = |portico: &Portico, key: &str| {
        !files_with(&portico.data(), &format!("k8s:enc:aesgcm:v1:{key}:")).is_empty()
    };
    assert!(holds(&portico, "k1") && !holds(&portico, "k2"));
    let migrations = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations";
    let migration = json!({"kind": "StorageVersionMigration", "apiVersion": "storagemigration.k8s.io/v1beta1",
        "metadata": {"name": "rotate"}, "spec": {"resource": {"group": "", "resource": "secrets"}}});
    let created = http.post(migrations, &migration).await;
    assert_eq!(created.status.as_u16(), 201, "{}", created.text());
    eventually("the migration succeeds", || async {
        let status = http.get(&format!("{migrations}/rotate")).await.json()["status"].clone();
        let is = |kind: &str, value: &str| {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            conditions.clone().any(|one| one["type"] == kind && one["status"] == value)
        };
        if is("Succeeded", "True") && is("Running", "False") { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
    assert!(holds(&portico, "k2"));
    // Rewrap has nothing to do, and the old key can be removed: only past states use it.
    let (code, printed) = run(&portico, &["secrets", "rewrap"]);
    assert_eq!((code, printed.contains("secrets: 0 of 0 rewritten")), (Some(0), true), "{printed}");
    portico.stop().await;
    assert!(!holds(&portico, "k1") && holds(&portico, "k2"));
    std::fs::write(&file, config(&keys("aesgcm", &["k2"]))).unwrap();
    portico.restart().await;
    for name in ["a", "b", "c"] {
        assert_eq!(read(&portico.admin(), name).await, (200, PLAIN.to_owned()));
    }
}

/// Returns the value of the only series of a metric with all of these labels.
async fn measured(portico: &Portico, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let text = portico.control().admin().metrics(MetricsRequest {}).await.unwrap().into_inner().text;
    let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    let of_metric = text.lines().filter(|line| line.starts_with(&format!("{name}{{")));
    let found: Vec<_> = of_metric.filter(|line| labels.iter().all(|label| line.contains(label))).collect();
    assert!(found.len() <= 1, "{found:?}");
    found.first().and_then(|line| line.rsplit(' ').next()).map(|value| value.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_service_metrics_have_upstreams_names() {
    const ENVELOPE: &str = "apiserver_envelope_encryption";
    let sockets = tempfile::tempdir().unwrap();
    let socket = sockets.path().join("kms.sock");
    let plugin = KeyServicePlugin::start(&socket, "one");
    let provider = format!("{{kms: {{apiVersion: v2, name: kms, endpoint: 'unix://{}'}}}}", socket.display());
    let mut portico = prepared(&provider).0.start().await;
    create(&portico.admin(), "a").await;
    portico.stop().await;
    plugin.rotate("two");
    let before = jiff::Timestamp::now().as_second() as f64;
    portico.restart().await;
    assert_eq!(read(&portico.admin(), "a").await, (200, PLAIN.to_owned()));
    create(&portico.admin(), "b").await;
    let [one, two] = ["one", "two"].map(|id| sha256_label(id.as_bytes()));
    for (transformation, key, other) in [("from_storage", &one, &two), ("to_storage", &two, &one)] {
        let labels =
            [("transformation_type", transformation), ("provider_name", "kms"), ("key_id_hash", key)];
        let uses = measured(&portico, &format!("{ENVELOPE}_key_id_hash_total"), &labels).await;
        assert!(uses >= Some(1.0), "{transformation}: {uses:?}");
        let last = format!("{ENVELOPE}_key_id_hash_last_timestamp_seconds");
        assert!(measured(&portico, &last, &labels).await >= Some(before), "{transformation}");
        let others = [("transformation_type", transformation), ("key_id_hash", other)];
        assert_eq!(measured(&portico, &last, &others).await, None, "{transformation}");
    }
    let metric = format!("{ENVELOPE}_key_id_hash_status_last_timestamp_seconds");
    assert!(measured(&portico, &metric, &[("key_id_hash", &two)]).await >= Some(before));
    assert_eq!(measured(&portico, &metric, &[("key_id_hash", &one)]).await, None);
    let cache_size = format!("{ENVELOPE}_dek_source_cache_size");
    let cache_size = measured(&portico, &cache_size, &[("provider_name", "kms")]).await;
    assert_eq!(cache_size, Some(2.0), "one is unwrapped, one is new");
    let latency = format!("{ENVELOPE}_kms_operations_latency_seconds_count");
    for method in ["Status", "Encrypt", "Decrypt"] {
        let method = format!("/v2.KeyManagementService/{method}");
        let labels = [("provider_name", "kms"), ("method_name", &*method), ("grpc_status_code", "OK")];
        assert!(measured(&portico, &latency, &labels).await >= Some(1.0), "{method}");
    }
    for transformation in ["from_storage", "to_storage"] {
        let prefix = ("transformer_prefix", "k8s:enc:kms:v2:kms:");
        let labels =
            [("resource", "secrets"), ("transformation_type", transformation), prefix, ("status", "OK")];
        let done = measured(&portico, "apiserver_storage_transformation_operations_total", &labels).await;
        assert!(done >= Some(1.0), "{transformation}: {done:?}");
    }
    let invalid = format!("{ENVELOPE}_invalid_key_id_from_status_total");
    let long_id = "x".repeat(1025);
    for (id, error) in [("", "empty"), (&*long_id, "too_long")] {
        plugin.rotate(id);
        let labels = [("provider_name", "kms"), ("error", error)];
        let counted = || async { measured(&portico, &invalid, &labels).await.is_some() };
        wait_until("the key service's new response is checked", counted).await;
    }
    // Neither is a key, so there is no new series.
    assert!(measured(&portico, &metric, &[]).await >= Some(before));
}
