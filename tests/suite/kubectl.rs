//! Unmodified kubectl and grpcurl, if they are installed; otherwise the tests are reported as skipped.

use std::process::{Command, Output, Stdio};

use portico_tests::tools::{is_installed, line_with, output};
use portico_tests::{Backend, Portico};

use crate::proxying::routed;

fn kubectl(portico: &Portico) -> Command {
    let mut command = Command::new("kubectl");
    command.arg("--kubeconfig").arg(portico.data().join("admin.kubeconfig"));
    command.arg("--cache-dir").arg(portico.folder().join("kubectl-cache")).env("HOME", portico.folder());
    command
}

pub(crate) fn run(portico: &Portico, args: &[&str]) -> Output {
    output(kubectl(portico).args(args))
}

/// Returns the output of a command, which must succeed.
pub(crate) fn prints(portico: &Portico, args: &[&str]) -> String {
    let output = run(portico, args);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "kubectl {args:?}: {out}{err}");
    out.into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_discovers_and_lists() {
    if !is_installed("kubectl") {
        return;
    }
    let backend = Backend::start("kubectl.example.com").await;
    let portico = routed(&backend).await;
    let versions = prints(&portico, &["api-versions"]);
    for version in ["apiregistration.k8s.io/v1", "kubectl.example.com/v1", "v1\n"] {
        assert!(versions.contains(version), "{version} is not in:\n{versions}");
    }
    let resources = prints(&portico, &["api-resources"]);
    for resource in ["apiservices", "configmaps", "flunders"] {
        assert!(resources.contains(resource), "{resource} is not in:\n{resources}");
    }
    let table = prints(&portico, &["get", "apiservices"]);
    assert!(
        table.contains("AVAILABLE")
            && table.contains("v1.kubectl.example.com")
            && table.contains("default/backend"),
        "{table}"
    );
    assert!(prints(&portico, &["get", "--raw", &backend.path("/flunders")]).contains("\"EchoList\""));
    assert!(prints(&portico, &["version", "-o", "json"]).contains("serverVersion"));
    let explained = prints(&portico, &["explain", "apiservice.spec"]);
    assert!(explained.contains("groupPriorityMinimum"), "{explained}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_creates_applies_waits_and_deletes() {
    if !is_installed("kubectl") {
        return;
    }
    let portico = Portico::start().await;
    let file = portico.folder().join("object.yaml");
    let manifest = |priority: u32| {
        format!(
            "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata:\n  name: v1.applied.example.com\nspec:\n  \
             group: applied.example.com\n  version: v1\n  groupPriorityMinimum: {priority}\n  versionPriority: 10\n"
        )
    };
    let path = file.to_str().unwrap();
    std::fs::write(&file, manifest(100)).unwrap();
    assert!(prints(&portico, &["apply", "-f", path]).contains("created"));
    assert!(prints(&portico, &["apply", "-f", path]).contains("unchanged"));
    std::fs::write(&file, manifest(200)).unwrap();
    assert!(prints(&portico, &["apply", "-f", path]).contains("configured"));
    let json = prints(
        &portico,
        &["get", "apiservice", "v1.applied.example.com", "-o", "jsonpath={.spec.groupPriorityMinimum}"],
    );
    assert_eq!(json, "200");
    prints(
        &portico,
        &["wait", "--for=condition=Available", "apiservice/v1.applied.example.com", "--timeout=10s"],
    );
    prints(&portico, &["label", "apiservice", "v1.applied.example.com", "a=b"]);
    assert!(
        prints(&portico, &["get", "apiservice", "-l", "a=b", "-o", "name"])
            .contains("v1.applied.example.com")
    );
    assert!(prints(&portico, &["describe", "apiservice", "v1.applied.example.com"]).contains("Local"));
    let config_map = portico.folder().join("config-map.yaml");
    std::fs::write(&config_map, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n")
        .unwrap();
    prints(&portico, &["create", "-f", config_map.to_str().unwrap()]);
    assert!(prints(&portico, &["get", "configmap", "c", "-o", "yaml"]).contains("a: b"));
    prints(&portico, &["delete", "configmap", "c"]);
    kubectl_sends_protobuf(&portico);
    assert!(prints(&portico, &["delete", "-f", path]).contains("deleted"));
    let gone = run(&portico, &["get", "apiservice", "v1.applied.example.com"]);
    assert!(String::from_utf8_lossy(&gone.stderr).contains("NotFound"));
}

/// Runs `kubectl create` commands that send protobuf.
fn kubectl_sends_protobuf(portico: &Portico) {
    for (args, read, want) in [
        (
            &["create", "namespace", "demo"][..],
            &["get", "ns", "demo", "-o", "jsonpath={.status.phase}"][..],
            "Active",
        ),
        (
            &["create", "configmap", "c", "-n", "demo", "--from-literal=a=b"],
            &["get", "configmap", "c", "-n", "demo", "-o", "jsonpath={.data.a}"],
            "b",
        ),
        (
            &["create", "secret", "generic", "s", "-n", "demo", "--from-literal=a=b"],
            &["get", "secret", "s", "-n", "demo", "-o", "jsonpath={.data.a}"],
            "Yg==",
        ),
        (
            &["create", "service", "clusterip", "s", "-n", "demo", "--tcp=80:http"],
            &["get", "service", "s", "-n", "demo", "-o", "jsonpath={.spec.ports[0].targetPort}"],
            "http",
        ),
    ] {
        prints(portico, args);
        assert_eq!(prints(portico, read), want, "{args:?}");
    }
    let again = run(portico, &["create", "namespace", "demo"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("(AlreadyExists)"), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_watches() {
    if !is_installed("kubectl") {
        return;
    }
    let portico = Portico::start().await;
    let mut watch = kubectl(&portico)
        .args(["get", "configmaps", "-w", "--no-headers", "-o", "name"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdout = watch.stdout.take().unwrap();
    let object = serde_json::json!({"kind": "ConfigMap", "metadata": {"name": "watched"}});
    let created = portico.admin().post("/api/v1/namespaces/default/configmaps", &object).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let seen = tokio::task::spawn_blocking(|| line_with(stdout, "watched")).await;
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert_eq!(seen.unwrap(), "configmap/watched");
}

fn grpcurl(portico: &Portico, args: &[&str], method: &[&str]) -> (bool, String) {
    let ca = portico.folder().join("ca.crt");
    std::fs::write(&ca, portico.ca()).unwrap();
    let mut command = Command::new("grpcurl");
    command.arg("-cacert").arg(&ca).args(["-H", "authorization: Bearer admin-token"]).args(args);
    let output = output(command.arg(portico.grpc().to_string()).args(method));
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn grpcurl_lists_describes_creates_and_explains() {
    if !is_installed("grpcurl") {
        return;
    }
    let portico = Portico::start().await;
    let (ok, services) = grpcurl(&portico, &[], &["list"]);
    assert!(ok && services.contains("portico.apiregistration.v1.APIServices"), "{services}");
    let (ok, described) = grpcurl(&portico, &[], &["describe", "portico.apiregistration.v1.APIServices"]);
    assert!(ok && described.contains("rpc Explain"), "{described}");
    let request = r#"{"api_service": {"metadata": {"name": "v1.grpcurl.example.com"}, "spec": {"group": "grpcurl.example.com",
        "version": "v1", "group_priority_minimum": 100, "version_priority": 10}}}"#;
    let (ok, created) =
        grpcurl(&portico, &["-d", request], &["portico.apiregistration.v1.APIServices/Create"]);
    assert!(ok && created.contains("resourceVersion"), "{created}");
    let (ok, refused) =
        grpcurl(&portico, &["-d", request], &["portico.apiregistration.v1.APIServices/Create"]);
    assert!(!ok && refused.contains("AlreadyExists") && refused.contains("already exists"), "{refused}");
    let explain = ["portico.routes.v1.Routes/Explain"];
    let (ok, explained) = grpcurl(&portico, &["-d", r#"{"subject": "grpcurl.example.com/v1"}"#], &explain);
    assert!(ok && explained.contains("registered"), "{explained}");
}
