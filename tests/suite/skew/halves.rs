//! A facade of one build with a control service of the other.

use std::collections::HashMap;
use std::path::Path;

use portico_proto::apiregistration::{
    ApiService, ApiServiceSpec, CreateRequest, ObjectMeta, ServiceReference,
};
use portico_proto::config::{FacadesRequest, Refusal};
use portico_tests::http::Http;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Backend, Launch, Portico, eventually, wait_until};
use serde_json::{Value, json};

use super::Builds;
use super::api_use::{Watch, config_map, created, define, thing, things, things_are_served, version};
use super::log_check::assert_quiet;
use crate::audit::{METADATA, lines, with_audit_log};

const GROUP: &str = "halves.example.com";

/// Starts both halves, each with an audit log.
async fn start(server: &Path, facade: &Path) -> [Portico; 2] {
    let (launch, _) = with_audit_log(Launch::server().program_path(server), METADATA);
    let server = launch.start().await;
    let (launch, _) = with_audit_log(Launch::facade(&server).program_path(facade), METADATA);
    let facade = launch.start().await;
    [server, facade]
}

fn recorded(portico: &Portico) -> Vec<Value> {
    lines(&portico.folder().join("audit.log"))
}

/// Registers an API server over gRPC, and checks that it is reached and discovered through the facade.
async fn aggregate(server: &Portico, facade: &Portico, backend: &Backend) {
    let group = backend.name().trim_start_matches("v1.").to_owned();
    let urls = HashMap::from([("portico.dev/backend-urls".to_owned(), backend.url())]);
    let metadata = ObjectMeta { name: backend.name(), annotations: urls, ..Default::default() };
    let service = ServiceReference { namespace: "default".into(), name: "backend".into(), port: Some(443) };
    let spec = ApiServiceSpec {
        group: group.clone(),
        version: "v1".into(),
        group_priority_minimum: 1000,
        version_priority: 10,
        service: Some(service),
        ca_bundle: backend.ca.clone().into_bytes(),
        ..Default::default()
    };
    let object = ApiService { metadata: Some(metadata), spec: Some(spec), status: None };
    let request = CreateRequest { api_service: Some(object), dry_run: false };
    server.control().api_services().create(request).await.unwrap();
    let admin = facade.admin();
    wait_until("the facade routes to the backend", async || {
        admin.get(&backend.path("/flunders")).await.status == 200
    })
    .await;
    eventually("the group is discovered", async || {
        let groups = admin.get("/apis").await.text();
        if groups.contains(&group) { Ok(()) } else { Err(groups) }
    })
    .await;
}

/// Checks that bindings, priority levels and tokens apply as the control service sends them to its facade.
async fn check_configuration(facade: &Portico) {
    let (admin, alice) = (facade.admin(), facade.anonymous().as_user("alice"));
    alice.get(CONFIG_MAPS).await.status_body(403, "Forbidden");
    let role = json!({"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reads"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    created(&admin, &format!("{rbac}/roles"), &role).await;
    let binding = json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "reads"}, "subjects": [{"kind": "User", "name": "alice"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"}});
    created(&admin, &format!("{rbac}/rolebindings"), &binding).await;
    assert_eq!(alice.get(CONFIG_MAPS).await.status, 200, "the next request uses the new binding");
    check_flow_schemas(&admin, &alice).await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    wait_until("the default service account exists", async || admin.get(account).await.status == 200).await;
    let request = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}});
    let token = created(&admin, &format!("{account}/token"), &request).await;
    let caller = facade.anonymous().with_token(token["status"]["token"].as_str().unwrap());
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let user_info = created(&caller, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await;
    assert_eq!(user_info["status"]["userInfo"]["username"], "system:serviceaccount:default:default");
}

async fn check_flow_schemas(admin: &Http, alice: &Http) {
    let flows = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let level = json!({"metadata": {"name": "own"}, "spec": {"type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}}});
    let level = created(admin, &format!("{flows}/prioritylevelconfigurations"), &level).await;
    let rule = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]});
    let schema = json!({"metadata": {"name": "own"}, "spec": {"priorityLevelConfiguration": {"name": "own"},
        "matchingPrecedence": 50, "rules": [{"resourceRules": [rule],
            "subjects": [{"kind": "User", "user": {"name": "alice"}}]}]}});
    created(admin, &format!("{flows}/flowschemas"), &schema).await;
    eventually("requests use the new priority level", async || {
        let found = alice.get(CONFIG_MAPS).await.header("x-kubernetes-pf-prioritylevel-uid").to_owned();
        if level["metadata"]["uid"] == *found { Ok(()) } else { Err(found) }
    })
    .await;
}

/// Checks the audit logs: the facade records requests over HTTPS, the control service calls over gRPC.
fn check_audit(server: &Portico, facade: &Portico, backend: &Backend) {
    let creates = |portico: &Portico, name: &str| {
        let events = recorded(portico).into_iter();
        events.filter(|event| event["verb"] == "create" && event["objectRef"]["name"] == name).count()
    };
    let of_facade = recorded(facade);
    let bound = of_facade.iter().filter(|event| event["objectRef"]["resource"] == "rolebindings");
    assert!(bound.count() >= 1, "{of_facade:?}");
    assert!(creates(server, &backend.name()) >= 1, "{:?}", recorded(server));
    assert_eq!(creates(server, "reads"), 0, "requests that facades forward are not recorded again");
}

/// Checks that a watch misses no event when either half is restarted.
async fn check_watches(server: &mut Portico, facade: &mut Portico) {
    let (path, admin) = (things(GROUP), facade.admin());
    let first = created(&admin, &path, &thing(GROUP, "first")).await;
    let mut watch = Watch::from_version(&path, &version(&first));
    created(&admin, &path, &thing(GROUP, "second")).await;
    assert_eq!(watch.next(&admin).await, "second");
    assert!(server.stop().await.success());
    assert_eq!(admin.get("/readyz").await.status, 200, "the facade serves without its control service");
    server.restart().await;
    wait_until("writes are accepted again", async || {
        let code = admin.post(&path, &thing(GROUP, "third")).await.status.as_u16();
        assert!(matches!(code, 201 | 503), "{code}");
        code == 201
    })
    .await;
    assert_eq!(watch.next(&admin).await, "third");
    assert!(facade.stop().await.success());
    facade.restart().await;
    let admin = facade.admin();
    created(&admin, &path, &thing(GROUP, "fourth")).await;
    assert_eq!(watch.next(&admin).await, "fourth");
}

/// Returns true if a facade has refused only entries that are newer than its build.
fn are_newer(refused: &[Refusal]) -> bool {
    let reasons = ["has an unsupported payload", "has a payload that this build does not know"];
    refused.iter().all(|refused| reasons.iter().any(|reason| refused.reason.ends_with(reason)))
}

/// Waits until the control service lists the facade, which uses all entries that it supports.
async fn wait_acknowledged(server: &Portico) {
    let control = server.control();
    eventually("the facade is listed and uses all entries that it supports", async || {
        let listed = control.config().facades(FacadesRequest::default()).await.map_err(|e| e.to_string())?;
        let facades = listed.into_inner().facades;
        match facades.as_slice() {
            [facade] if facade.behind == 0 && are_newer(&facade.refused) => Ok(()),
            _ => Err(format!("{facades:?}")),
        }
    })
    .await;
}

async fn check_both(server: &Path, facade: &Path) {
    let backend = Backend::start("aggregated.example.com").await;
    let [mut server, mut facade] = start(server, facade).await;
    aggregate(&server, &facade, &backend).await;
    define(&facade.admin(), GROUP).await;
    things_are_served(&facade.admin(), GROUP).await;
    check_configuration(&facade).await;
    wait_acknowledged(&server).await;
    check_audit(&server, &facade, &backend);
    check_watches(&mut server, &mut facade).await;
    assert_eq!(facade.admin().get(&backend.path("/flunders")).await.status, 200);
    assert_quiet(&[&server, &facade]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_facade_works_with_a_newer_control_service() {
    let Some(builds) = Builds::find() else { return };
    check_both(builds.newer, builds.older).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_facade_works_with_an_older_control_service() {
    let Some(builds) = Builds::find() else { return };
    check_both(builds.older, builds.newer).await;
}

/// Checks that a facade of one build starts from the last good state that a facade of the other has saved, during an outage.
async fn check_saved_state(before: &Path, after: &Path) {
    let backend = Backend::start("kept.example.com").await;
    let [mut server, mut facade] = start(before, before).await;
    aggregate(&server, &facade, &backend).await;
    // The state is saved after the response, completely: once it contains a later change, it contains all earlier ones.
    define(&facade.admin(), GROUP).await;
    eventually("the state is on disk", || {
        let state = std::fs::read(facade.data().join("facade-state/state")).unwrap_or_default();
        let found = state.windows(GROUP.len()).any(|part| part == GROUP.as_bytes());
        std::future::ready(if found { Ok(()) } else { Err(state.len()) })
    })
    .await;
    assert!(facade.stop().await.success());
    assert!(server.stop().await.success());
    facade.restart_with(after).await;
    let admin = facade.admin();
    assert_eq!(admin.get(&backend.path("/flunders")).await.status, 200, "{}", facade.log());
    server.restart().await;
    wait_until("writes are accepted", async || {
        let code = admin.post(CONFIG_MAPS, &config_map("after")).await.status.as_u16();
        assert!(matches!(code, 201 | 503), "{code}");
        code == 201
    })
    .await;
    things_are_served(&admin, GROUP).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_facade_starts_from_the_saved_state_of_the_other_build() {
    let Some(builds) = Builds::find() else { return };
    check_saved_state(builds.older, builds.newer).await;
    check_saved_state(builds.newer, builds.older).await;
}
