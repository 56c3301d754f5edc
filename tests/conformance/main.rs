//! Conformance: requests of about forty topics with the responses of a real kube-apiserver 1.36.3, replayed against a new
//! server and compared.
//!
//! The responses were recorded from a kube-apiserver with etcd and RBAC, without controllers. CONTRIBUTING.md
//! describes how to record more. Steps that differ intentionally are listed in `differences.rs`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod admission;
mod backend;
mod campaign;
mod differences;
mod documents;
mod fixture;
mod normalization;
mod paths;
mod player;
mod step;

use std::path::PathBuf;
use std::time::Duration;

use fixture::Fixture;
use player::Player;
use portico_tests::Launch;
use portico_tests::process::pause;
use step::Recording;
use tokio::sync::Semaphore;

/// Number of servers that run at the same time: topics mostly wait, but some of their steps have deadlines.
static SERVERS: Semaphore = Semaphore::const_new(4);

/// Paths of objects that kube-apiserver's informers see with a delay.
const DELAYED_PATHS: &str = "/admissionregistration.k8s.io/";
const INFORMER_DELAY: Duration = Duration::from_millis(400);

/// Server to record: its address, its CA, and the folder of the fixture that it was started with.
struct Reference {
    address: std::net::SocketAddr,
    ca: Vec<u8>,
    fixture: PathBuf,
}

impl Reference {
    fn from_env() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
        let address = std::env::var("PORTICO_RECORD").ok()?;
        let address =
            address.parse().unwrap_or_else(|_| panic!("PORTICO_RECORD={address} is no ADDRESS:PORT"));
        let ca = std::fs::read(variable("PORTICO_RECORD_CA")).unwrap();
        Some(Self { address, ca, fixture: variable("PORTICO_RECORD_FIXTURE").into() })
    }
}

/// Replays a topic, or records it.
async fn topic(name: &str) {
    let recording = Recording::read(name);
    match Reference::from_env() {
        Some(reference) => record(name, recording, &reference).await,
        None => play(name, &recording).await,
    }
}

async fn record(name: &str, mut recording: Recording, reference: &Reference) {
    let fixture = Fixture::at(&reference.fixture);
    let mut player = Player::new(&fixture, reference.address, &reference.ca, recording.needs_backend()).await;
    for step in &mut recording.steps {
        let answer = player.play(step).await;
        if step.method != "GET" && step.target.contains(DELAYED_PATHS) {
            pause(INFORMER_DELAY).await;
        }
        step.answer = if normalization::is_compared(step) { answer } else { serde_json::Value::Null };
    }
    recording.write(name);
}

async fn play(name: &str, recording: &Recording) {
    let _running = SERVERS.acquire().await.unwrap();
    let (launch, folder) = Launch::new().prepare_folder();
    let fixture = Fixture::at(&folder.join("fixture"));
    let flags = fixture.flags();
    let portico = launch
        .args(&flags.iter().map(String::as_str).collect::<Vec<_>>())
        .arg("--controllers=")
        .start()
        .await;
    let mut player = Player::new(&fixture, portico.https(), portico.ca(), recording.needs_backend()).await;
    let known_differences = differences::steps_of(name);
    let mut wrong = Vec::new();
    for step in &recording.steps {
        let answer = player.play(step).await;
        if !normalization::is_compared(step) {
            continue;
        }
        match (answer == step.answer, known_differences.contains(&step.name.as_str())) {
            (true, true) => wrong.push(format!("{}: listed in differences.rs, and the same\n", step.name)),
            (false, false) => {
                let difference = normalization::difference(&step.answer, &answer);
                wrong.push(format!("{}: {} {}\n{difference}\n", step.name, step.method, step.target));
            }
            _ => {}
        }
    }
    assert!(
        wrong.is_empty(),
        "{name}: {} of {} steps:\n{}",
        wrong.len(),
        recording.steps.len(),
        wrong.join("\n")
    );
}

/// Creates a test of each topic.
macro_rules! topics {
    ($($test:ident: $name:literal;)*) => {
        const TOPICS: &[&str] = &[$($name),*];

        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            topic($name).await;
        })*
    };
}

topics! {
    access_reviews: "access-reviews";
    admission_builtin: "admission-builtin";
    admission_webhook_calls: "admission-webhook-calls";
    aggregation_availability: "aggregation-availability";
    aggregation_discovery: "aggregation-discovery";
    aggregation_proxy: "aggregation-proxy";
    apiservice: "apiservice";
    apply: "apply";
    authentication: "authentication";
    bodies: "bodies";
    builtin_access: "builtin-access";
    builtin_apps: "builtin-apps";
    builtin_batch: "builtin-batch";
    builtin_core: "builtin-core";
    builtin_networking: "builtin-networking";
    builtin_pods: "builtin-pods";
    builtin_policy: "builtin-policy";
    builtin_put: "builtin-put";
    builtin_rules: "builtin-rules";
    builtin_services: "builtin-services";
    builtin_storage: "builtin-storage";
    builtin_updates: "builtin-updates";
    builtin_validation: "builtin-validation";
    mended_after_a_campaign: "campaign";
    certificate_requests: "certificate-requests";
    cr_cel: "cr-cel";
    cr_lists: "cr-lists";
    cr_subresources: "cr-subresources";
    cr_values: "cr-values";
    crd: "crd";
    crd_cel: "crd-cel";
    crd_names: "crd-names";
    crd_schema: "crd-schema";
    crd_validation: "crd-validation";
    crd_versions: "crd-versions";
    create_update: "create-update";
    delete: "delete";
    discovery: "discovery";
    edges: "edges";
    endpoints: "endpoints";
    impersonation: "impersonation";
    list: "list";
    negotiation: "negotiation";
    node_restriction: "node-restriction";
    openapi: "openapi";
    openapi_documents: "openapi-documents";
    patch: "patch";
    policies_evaluated: "policies-evaluated";
    policies_written: "policies-written";
    rbac_authorization: "rbac-authorization";
    rbac_bootstrap: "rbac-bootstrap";
    rbac_objects: "rbac-objects";
    resource_quota: "resource-quota";
    serviceaccount_tokens: "serviceaccount-tokens";
    watch: "watch";
    wrong_requests: "wrong-requests";
    yaml_tags: "yaml-tags";
}

#[test]
fn every_recording_is_played() {
    let files = std::fs::read_dir(step::folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut files: Vec<String> = files.map(|file| file.to_string_lossy().replace(".jsonl", "")).collect();
    files.sort();
    let mut topics = TOPICS.to_vec();
    topics.sort_unstable();
    assert_eq!(files, topics);
}

#[test]
fn every_step_has_a_unique_name_and_a_response() {
    let mut compared = 0;
    for topic in TOPICS {
        let recording = Recording::read(topic);
        let mut names: Vec<&str> = recording.steps.iter().map(|step| step.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), recording.steps.len(), "{topic}: two steps have the same name");
        for step in recording.steps.iter().filter(|step| normalization::is_compared(step)) {
            assert!(step.answer.is_object(), "{topic}: {}: no answer", step.name);
            compared += 1;
        }
        for known in differences::steps_of(topic) {
            assert!(names.contains(&known), "{topic}: differences.rs names the missing step {known:?}");
        }
    }
    assert!(compared > 2_000, "{compared} steps are compared");
}

#[test]
#[ignore = "writes the files that a server to be recorded is started with; CONTRIBUTING.md says how"]
fn fixture() {
    let folder = PathBuf::from(std::env::var("PORTICO_RECORD_FIXTURE").unwrap());
    let flags = Fixture::at(&folder).flags();
    std::fs::write(folder.join("flags"), format!("{}\n", flags.join("\n"))).unwrap();
}
