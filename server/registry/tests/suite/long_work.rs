//! Long work runs on other threads than connections, so that other requests on the same thread are not delayed.

use std::fmt::Write as _;
use std::future::pending;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures::StreamExt;
use portico_kit::offload::Offload;
use portico_kit::tasks::TaskSet;
use portico_machinery::GroupResource;
use portico_registry::{Body, Context, MAX_INLINE_BYTES, PastRange, RestoreRequest};
use tokio::sync::oneshot;

use crate::custom_resources::open_with_definition;
use crate::harness::{Harness, MERGE, PROTOBUF, TABLE, YAML, object};

/// Timeout of a test that hangs.
const WAIT_LIMIT: Duration = Duration::from_secs(90);

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CRON_TABS: &str = "/apis/stable.example.com/v1/namespaces/default/crontabs";

/// ConfigMap with very many small values.
fn large(name: &str) -> String {
    let mut data = String::new();
    for key in 0..30_000 {
        write!(data, r#","k{key}":"v""#).unwrap();
    }
    assert!(data.len() > 4 * MAX_INLINE_BYTES);
    object("ConfigMap", name, &format!(r#","data":{{"first":"v"{data}}}"#))
}

/// Version with a large schema and a validation rule.
fn wide_version() -> String {
    let mut properties = String::from(r#""first":{"type":"string"}"#);
    for name in 0..6_000 {
        write!(properties, r#","p{name}":{{"type":"string","maxLength":{name}}}"#).unwrap();
    }
    assert!(properties.len() > 2 * MAX_INLINE_BYTES);
    format!(
        r#"{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","properties":
        {{"spec":{{"type":"object","properties":{{{properties}}},"x-kubernetes-validations":[{{"rule":"self.first != 'bad'"}}]}}}}}}}}}}"#
    )
}

/// Thread for long work that is busy until this value is dropped.
struct BusyThread {
    offload: Arc<Offload>,
    tasks: TaskSet,
    _end: mpsc::Sender<()>,
}

impl BusyThread {
    async fn start() -> Self {
        let tasks = TaskSet::new();
        let offload = Arc::new(Offload::with_threads("long", 1, &tasks).unwrap());
        let (begun, is_busy) = oneshot::channel();
        let (end, ended) = mpsc::channel();
        let work = Arc::clone(&offload);
        tasks.spawn("busy", async move {
            let blocks = async move {
                begun.send(()).unwrap();
                // Blocks the thread until the other side is dropped.
                let _: Result<(), _> = ended.recv();
            };
            let _ended: Option<()> = work.run_light("blocks", blocks).await;
        });
        is_busy.await.unwrap();
        Self { offload, tasks, _end: end }
    }

    /// Waits until the work of a request has moved to the busy thread, where it waits.
    async fn expect_offloaded(&self, what: &str, request: impl Future) {
        let before = self.waiting_count();
        let has_left = async {
            while self.waiting_count() == before {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            _ = request => panic!("{what}: executed by the serving thread"),
            left = tokio::time::timeout(WAIT_LIMIT, has_left) => assert!(left.is_ok(), "{what}"),
        }
    }

    fn waiting_count(&self) -> usize {
        let running = self.tasks.running();
        running.iter().filter(|(name, _)| name.starts_with("long-")).map(|(_, tasks)| tasks).sum()
    }
}

/// Reads a complete list.
async fn list(harness: &Harness, accept: &str) {
    let list = harness.answer("GET", CONFIG_MAPS, accept, "", "").await;
    assert_eq!(list.code, 200);
    if let Body::List(pieces) = list.body {
        assert!(pieces.collect::<Vec<_>>().await.into_iter().all(|piece| piece.is_ok()));
    }
}

#[tokio::test]
async fn long_work_does_not_run_on_the_thread_of_its_connection() {
    let harness = open_with_definition(&wide_version()).await;
    fill(&harness).await;
    assert_eq!(harness.post(CONFIG_MAPS, &large("large")).await.code, 201);
    let (body, url, bomb) = (large("other"), format!("{CONFIG_MAPS}/large"), aliases(5_000));
    let small = r#"{"data":{"first":"w"}}"#;
    let tab = r#"{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"t"},"spec":{"first":"ok"}}"#;
    let thread = BusyThread::start().await;
    harness.registry.offload_to(Arc::clone(&thread.offload));
    thread.expect_offloaded("a large body", harness.post(CONFIG_MAPS, &body)).await;
    thread.expect_offloaded("a change of a large object", harness.patch(&url, MERGE, small)).await;
    thread.expect_offloaded("a schema to compile", harness.post(CRON_TABS, tab)).await;
    thread.expect_offloaded("aliases", harness.request("POST", CONFIG_MAPS, "", YAML, &bomb)).await;
    thread.expect_offloaded("a Table", list(&harness, TABLE)).await;
    thread.expect_offloaded("protobuf", list(&harness, PROTOBUF)).await;
}

/// Expression with ten thousand iterations for an object with a hundred values.
const LONG_EXPRESSION: &str = "object.data.all(a, object.data.all(b, a + b != ''))";
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// Creates an object of the group that configures admission.
async fn configure(harness: &Harness, resource: &str, kind: &str, fields: &str) {
    let rules = r#"[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["*"]}]"#;
    let fields = fields.replace("RULES", rules).replace("LONG", LONG_EXPRESSION);
    let object = format!(
        r#"{{"apiVersion":"admissionregistration.k8s.io/v1","kind":"{kind}","metadata":{{"name":"long"}},{fields}}}"#
    );
    let created = harness.post(&format!("{ADMISSION}/{resource}"), &object).await;
    assert_eq!(created.code, 201, "{}", created.text);
}

/// Creates an admission policy or webhook for ConfigMaps whose expressions take long for objects with many values.
async fn enforce(harness: &Harness, kind: &str) {
    match kind {
        "ValidatingAdmissionPolicy" => {
            let spec = r#""spec":{"matchConstraints":{"resourceRules":RULES},"validations":[{"expression":"LONG"}]}"#;
            configure(harness, "validatingadmissionpolicies", kind, spec).await;
            let spec = r#""spec":{"policyName":"long","validationActions":["Deny"]}"#;
            let kind = "ValidatingAdmissionPolicyBinding";
            configure(harness, "validatingadmissionpolicybindings", kind, spec).await;
        }
        "MutatingAdmissionPolicy" => {
            let spec = r#""spec":{"matchConstraints":{"resourceRules":RULES},"reinvocationPolicy":"Never","mutations":[{"patchType":
                "JSONPatch","jsonPatch":{"expression":"LONG ? [JSONPatch{op: 'add', path: '/data/k', value: 'v'}] : []"}}]}"#;
            configure(harness, "mutatingadmissionpolicies", kind, spec).await;
            let spec = r#""spec":{"policyName":"long"}"#;
            let kind = "MutatingAdmissionPolicyBinding";
            configure(harness, "mutatingadmissionpolicybindings", kind, spec).await;
        }
        kind => {
            let webhooks = r#""webhooks":[{"name":"long.example.com","clientConfig":{"url":"https://127.0.0.1:1/"},"rules":RULES,
                "sideEffects":"None","admissionReviewVersions":["v1"],"matchConditions":[{"name":"long","expression":"!(LONG)"}]}]"#;
            configure(harness, "validatingwebhookconfigurations", kind, webhooks).await;
        }
    }
}

#[tokio::test]
async fn other_requests_are_answered_during_a_long_evaluation() {
    let values: String = (0..99).map(|key| format!(r#","k{key}":"v""#)).collect();
    let long = object("ConfigMap", "long", &format!(r#","data":{{"first":"v"{values}}}"#));
    assert!(long.len() < MAX_INLINE_BYTES);
    let short = object("ConfigMap", "short", r#","data":{"first":"v"}"#);
    for kind in ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy", "ValidatingWebhookConfiguration"] {
        let harness = Harness::open().await;
        enforce(&harness, kind).await;
        let thread = BusyThread::start().await;
        harness.registry.offload_to(Arc::clone(&thread.offload));
        let mut evaluated = Box::pin(harness.post(CONFIG_MAPS, &long));
        thread.expect_offloaded(kind, &mut evaluated).await;
        let other = harness.post(CONFIG_MAPS, &short).await;
        assert_eq!(other.code, 201, "{kind}: {}", other.text);
        assert!(futures::poll!(&mut evaluated).is_pending(), "{kind}");
        drop(thread);
        let answer = evaluated.await;
        assert_eq!(answer.code, 201, "{kind}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_past_state_is_restored_on_the_threads_for_long_work() {
    let harness = open_with_definition(&wide_version()).await;
    let registry = &harness.registry;
    let tab = r#"{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"t"},"spec":{"first":"ok"}}"#;
    let created = harness.post(CRON_TABS, tab).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let revision = created.at("metadata.resourceVersion").parse().unwrap();
    let url = format!("{CRON_TABS}/t");
    assert_eq!(harness.patch(&url, MERGE, r#"{"spec":{"first":"other"}}"#).await.code, 200);
    let served_resource =
        registry.objects().served_resource(&GroupResource::new("stable.example.com", "crontabs")).unwrap();
    let request = RestoreRequest { revision: Some(revision), since: 0, exists: true, dry_run: false };
    let context = Context::system("test");
    let thread = BusyThread::start().await;
    registry.offload_to(Arc::clone(&thread.offload));
    let mut restored = Box::pin(registry.restore(&context, &served_resource, ("default", "t"), &request));
    thread.expect_offloaded("a restore", &mut restored).await;
    drop(thread);
    assert_eq!(restored.await.unwrap().revision, revision);
    assert_eq!(harness.get(&url).await.at("spec.first"), "ok");
}

#[tokio::test]
async fn large_past_states_are_decoded_on_the_threads_for_long_work() {
    let harness = Harness::open().await;
    let registry = &harness.registry;
    assert_eq!(harness.post(CONFIG_MAPS, &object("ConfigMap", "small", "")).await.code, 201);
    assert_eq!(harness.post(CONFIG_MAPS, &large("large")).await.code, 201);
    let served_resource = registry.objects().served_resource(&GroupResource::new("", "configmaps")).unwrap();
    let range = PastRange { since: 0, before: None, limit: 100 };
    let thread = BusyThread::start().await;
    registry.offload_to(Arc::clone(&thread.offload));
    // The only thread for long work is busy, so this thread decodes.
    let small =
        registry.past_states(&served_resource, ("default", "small"), range, |past| past).await.unwrap();
    assert_eq!(small.states.len(), 1);
    let mut decoded =
        Box::pin(registry.past_states(&served_resource, ("default", "large"), range, |past| past));
    thread.expect_offloaded("a large state", &mut decoded).await;
    drop(thread);
    assert!(decoded.await.unwrap().states[0].object.is_ok());
}

/// YAML with nested lists of aliases that expand almost to the limit for its size, and a comment of this length.
fn aliases(bytes: usize) -> String {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(",");
        writeln!(text, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    format!("{text}# {}\n", "x".repeat(bytes))
}

/// Creates ConfigMaps whose Table and protobuf representations take long.
async fn fill(harness: &Harness) {
    for index in 0..40 {
        let data: String = (0..500).map(|key| format!(r#","k{key}":"v""#)).collect();
        let object = object("ConfigMap", &format!("m{index}"), &format!(r#","data":{{"first":"v"{data}}}"#));
        assert_eq!(harness.post(CONFIG_MAPS, &object).await.code, 201);
    }
}

#[tokio::test]
async fn reads_do_not_wait_for_slots_of_writes() {
    let harness = Harness::open().await;
    fill(&harness).await;
    let offload = Arc::new(Offload::with_threads("long", 1, harness.tasks()).unwrap());
    harness.registry.offload_to(Arc::clone(&offload));
    // More writes than slots: each one waits, as if for a webhook.
    let mut writes: Vec<_> = (0..16).map(|_| Box::pin(offload.run("waits", pending::<()>()))).collect();
    for write in &mut writes {
        assert!(futures::poll!(write).is_pending());
    }
    for accept in [TABLE, PROTOBUF] {
        list(&harness, accept).await;
    }
}

/// Status code of a deletion of the ConfigMaps while the process ends, so that the response cannot be encoded.
async fn delete_while_ending(harness: &Harness, accept: &str) -> u16 {
    let tasks = TaskSet::new();
    let offload = Arc::new(Offload::with_threads("long", 1, &tasks).unwrap());
    harness.registry.offload_to(Arc::clone(&offload));
    // Occupies the thread until the tasks are aborted.
    let (held, released) = std::sync::mpsc::channel::<()>();
    tasks.spawn("keeps the thread busy", async move {
        let _held = held;
        pending::<()>().await;
    });
    let mut holds = Box::pin(offload.run_light("held", async move { released.recv().is_err() }));
    assert!(futures::poll!(&mut holds).is_pending());
    let ending = async {
        while !tasks.running().contains_key("long-work") {
            tokio::task::yield_now().await;
        }
        tasks.shutdown(Duration::ZERO).await;
    };
    let ending = tokio::time::timeout(WAIT_LIMIT, ending);
    let (answer, ended) = tokio::join!(harness.answer("DELETE", CONFIG_MAPS, accept, "", ""), ending);
    assert!(ended.is_ok(), "the deletion stays on the serving thread");
    answer.code
}

#[tokio::test]
async fn a_collection_is_not_deleted_if_the_response_cannot_be_encoded() {
    for accept in [TABLE, PROTOBUF] {
        let harness = Harness::open().await;
        fill(&harness).await;
        assert_eq!(delete_while_ending(&harness, accept).await, 500, "{accept}");
        assert_eq!(harness.get(CONFIG_MAPS).await.names().len(), 40, "{accept}");
    }
}

#[tokio::test]
async fn an_offloaded_request_gets_the_same_answer() {
    let harness = Harness::open().await;
    harness.registry.offload_to(Arc::new(Offload::with_threads("long", 1, harness.tasks()).unwrap()));
    assert_eq!(harness.post(CONFIG_MAPS, &large("one")).await.code, 201);
    let again = harness.post(CONFIG_MAPS, &large("one")).await;
    assert_eq!((again.code, again.at("reason")), (409, "AlreadyExists".to_owned()));
    let patched = harness.patch(&format!("{CONFIG_MAPS}/one"), MERGE, r#"{"data":{"k7":null}}"#).await;
    assert_eq!(patched.code, 200);
    assert!(patched.text.contains(r#""k6":"v""#) && !patched.text.contains(r#""k7":"#));
}
