//! The blocks of commands of the README, of docs/CLIENT.md and of docs/TESTING.md, run as they stand: only ports differ, so that tests can run beside
//! each other.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use portico_tests::tools::{output, there_is};
use portico_tests::{Portico, eventually};
use serde_json::Value;

const README: &str = include_str!("../../README.md");
const TESTING: &str = include_str!("../../docs/TESTING.md");
const MANIFESTS: &str = include_str!("../../docs/MANIFESTS.md");
const CLIENT: &str = include_str!("../../docs/CLIENT.md");

crate::documentation::pages! {}

/// How the blocks begin, in their order. A block that is not here is run by nobody.
const BLOCKS: [&str; 8] = [
    "cargo build --release        #",
    "export KUBECONFIG=",
    "cargo build --release --example backend",
    "kubectl apply -f apiservice.yaml",
    "D=portico-data/certs",
    "target/release/portico run --ephemeral",
    "target/release/portico server",
    "kubectl apply -f definition.yaml",
];

fn blocks() -> Vec<&'static str> {
    blocks_of(README)
}

pub(crate) fn blocks_of(page: &str) -> Vec<&str> {
    page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

fn block(beginning: &str) -> &'static str {
    blocks().into_iter().find(|block| block.starts_with(beginning)).unwrap()
}

/// A folder as the one in which a reader has built and started Portico.
pub(crate) struct Checkout(tempfile::TempDir);

impl Checkout {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let release = folder.path().join("target/release");
        std::fs::create_dir_all(release.join("examples")).unwrap();
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, release.join(name)).unwrap();
        link(portico_tests::binary(), "portico");
        link(&portico_tests::example_backend(), "examples/backend");
        Self(folder)
    }

    /// With the data folder of this process, as if it had been started here.
    pub(crate) fn of(portico: &Portico) -> Self {
        let checkout = Self::new();
        std::os::unix::fs::symlink(portico.data(), checkout.0.path().join("portico-data")).unwrap();
        checkout
    }

    fn bash(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        command
            .args(["-euo", "pipefail", "-c", script])
            .current_dir(self.0.path())
            .env("HOME", self.0.path());
        command
    }

    /// What a script prints, with the administrator's kubeconfig; it must succeed.
    pub(crate) fn run(&self, script: &str) -> String {
        let kubeconfig = self.0.path().join("portico-data/admin.kubeconfig");
        let output = output(self.bash(script).env("KUBECONFIG", kubeconfig));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{script}\n{out}{err}");
        out
    }

    /// A process that runs until it is dropped.
    fn serve(&self, line: &str) -> Server {
        let mut command = self.bash(&format!("exec {line}"));
        Server(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }

    /// Waits until this file is there and gives its text.
    async fn file(&self, name: &str) -> String {
        let path = self.0.path().join(name);
        let read = || std::future::ready(std::fs::read_to_string(&path).map_err(|error| error.to_string()));
        eventually(&format!("{name} is written"), read).await
    }
}

/// A running process.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn each_block_of_commands_is_run_by_a_test() {
    let beginnings = blocks();
    assert_eq!(beginnings.len(), BLOCKS.len());
    for (block, beginning) in beginnings.iter().zip(BLOCKS) {
        assert!(block.starts_with(beginning), "{beginning:?} is not how this block begins:\n{block}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_walk_works_when_it_is_copied() {
    if !there_is("kubectl") {
        return;
    }
    let portico = Portico::start().await;
    let checkout = Checkout::of(&portico);
    assert!(checkout.run(block("export KUBECONFIG=")).contains("a: b"));
    let start = block("cargo build --release --example backend").lines().nth(1).unwrap();
    let _backend = checkout.serve(&format!("{start} --listen 127.0.0.1:0"));
    checkout.file("apiservice.yaml").await;
    assert!(checkout.run(block("kubectl apply -f apiservice.yaml")).contains("one"));
    if there_is("grpcurl") {
        let calls = block("D=portico-data/certs").replace("127.0.0.1:6444", &portico.grpc().to_string());
        // The last one watches until its time is over, which is how it ends.
        let printed = checkout.run(&format!("{} || test $? = 68", calls.trim_end()));
        assert!(
            printed.contains("service APIServices") && printed.contains("\"available\": true"),
            "{printed}"
        );
    }
}

#[test]
fn a_program_runs_beside_a_server_of_which_nothing_is_left() {
    if !there_is("kubectl") {
        return;
    }
    let checkout = Checkout::new();
    let out = checkout.run(block("target/release/portico run --ephemeral"));
    assert_eq!(out, "configmap/two created\n");
    assert!(!checkout.0.path().join("portico-data").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_on_manifests_works_when_it_is_copied() {
    if !there_is("kubectl") {
        return;
    }
    let checkout = Checkout::new();
    for block in blocks_of(MANIFESTS) {
        let printed = checkout.run(block);
        assert!(
            printed.contains("2 documents in 2 files: 0 errors") && printed.contains("settings"),
            "{printed}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clients_page_works_when_it_is_copied() {
    let portico = Portico::start().await;
    let checkout = Checkout::of(&portico);
    let manifests = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}"#;
    std::fs::write(checkout.0.path().join("manifests.yaml"), manifests).unwrap();
    let [verbs, calls, refused] = blocks_of(CLIENT).try_into().unwrap();
    let printed = checkout.run(&format!("PATH=target/release:$PATH\n{verbs}"));
    assert!(printed.contains("configmap/one serverside-applied"), "{printed}");
    if !there_is("grpcurl") {
        return;
    }
    let with_port = |block: &str| block.replace("127.0.0.1:6444", &portico.grpc().to_string());
    let printed = checkout.run(&with_port(calls));
    for expected in [
        "\"kind\": \"Deployment\"",
        "\"reason\": \"ServiceNotFound\"",
        "\"versionPriority\": 20",
        "\"code\": 201",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
    checkout.run(&with_port(refused));
}

#[test]
fn the_page_about_faults_works_when_it_is_copied() {
    if !there_is("kubectl") || !there_is("curl") {
        return;
    }
    let [block] = blocks_of(TESTING).try_into().unwrap();
    let printed = Checkout::new().run(&format!("PATH=$PWD/target/release:$PATH\n{block}"));
    for expected in [r#""reason":"AlreadyExists""#, "refused", "configmap/one created", r#""hits":1"#] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn control_service_and_facades_start_as_processes_of_their_own() {
    let checkout = Checkout::new();
    let mut servers = Vec::new();
    for line in block("target/release/portico server").lines() {
        let folder = line.split("--data-dir ").nth(1).unwrap().split(' ').next().unwrap();
        let ports =
            ["7444", "7443", "7543"].iter().fold(line.to_owned(), |line, port| line.replace(port, "0"));
        servers.push(checkout.serve(&format!("{ports} --addresses-file {folder}.json")));
        let addresses: Value = serde_json::from_str(&checkout.file(&format!("{folder}.json")).await).unwrap();
        let kind = if folder.starts_with("facade") { "https" } else { "grpc" };
        assert!(addresses[kind].is_string(), "{addresses}");
    }
    assert_eq!(servers.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_definition_is_checked_before_it_is_applied() {
    if !there_is("kubectl") {
        return;
    }
    let portico = Portico::start().await;
    let checkout = Checkout::of(&portico);
    let definition = |maximum: u32| {
        let properties = serde_json::json!({"size": {"type": "integer", "maximum": maximum}});
        let schema = serde_json::json!({"type": "object", "properties": properties});
        serde_json::json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "boxes.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "boxes", "singular": "box", "kind": "Box"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            },
        })
        .to_string()
    };
    std::fs::write(checkout.0.path().join("definition.yaml"), definition(10)).unwrap();
    std::fs::write(checkout.0.path().join("changed-definition.yaml"), definition(20)).unwrap();
    let printed = checkout.run(block("kubectl apply -f definition.yaml"));
    assert!(printed.contains("condition met"), "{printed}");
}
