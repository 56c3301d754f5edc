//! Admission plugins that are off by default or need configuration: their effects on requests.

use std::path::Path;

use portico_tests::http::{FullResponse, Http};
use portico_tests::{Launch, Portico};
use serde_json::{Value, json};

const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n";

/// Starts a process with further plugins and these configuration sections.
async fn with(plugins: &str, sections: &str, further: &[&str]) -> (Portico, Http) {
    let (launch, folder) = Launch::new().args(&["--enable-admission-plugins", plugins]).prepare_folder();
    let file = folder.join("admission.yaml");
    std::fs::write(&file, format!("{HEAD}{sections}")).unwrap();
    let launch = launch.args(&["--admission-control-config-file", file.to_str().unwrap()]).args(further);
    let portico = launch.start().await;
    let admin = portico.admin();
    (portico, admin)
}

/// Starts a process with further plugins and no configuration file.
async fn with_plain(plugins: &str) -> (Portico, Http) {
    let portico = Launch::new().args(&["--enable-admission-plugins", plugins]).start().await;
    let admin = portico.admin();
    (portico, admin)
}

fn pod(spec: Value) -> Value {
    let mut base = json!({"containers": [{"name": "c", "image": "example.com/i"}], "automountServiceAccountToken": false});
    for (key, value) in spec.as_object().into_iter().flatten() {
        base[key] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": base})
}

fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods?dryRun=All")
}

fn refused(answer: &FullResponse, code: u16, message: &str) {
    assert_eq!(
        (answer.status.as_u16(), answer.json()["message"].as_str().unwrap_or_default()),
        (code, message)
    );
}

async fn namespace(admin: &Http, name: &str, metadata: Value) -> FullResponse {
    let mut object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    object["metadata"]["name"] = json!(name);
    let created = admin.post("/api/v1/namespaces", &object).await;
    assert_eq!(created.status, 201, "{}", created.text());
    created
}

#[tokio::test(flavor = "multi_thread")]
async fn loaded_plugins_are_logged_like_upstream() {
    let portico =
        Launch::new().args(&["--admission-control", "Priority,LimitRanger,AlwaysAdmit"]).start().await;
    let log = portico.log();
    for line in [
        "Loaded 3 mutating admission controller(s) successfully in the following order: AlwaysAdmit,LimitRanger,Priority.",
        "Loaded 3 validating admission controller(s) successfully in the following order: AlwaysAdmit,LimitRanger,Priority.",
    ] {
        assert!(log.contains(line), "{line}:\n{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_file_is_reported_in_one_line_with_exit_code_2() {
    for (plugin, section, words) in [
        ("EventRateLimit", "", "limits: Invalid value: null: must not be empty"),
        (
            "PodSecurity",
            "- name: PodSecurity\n  configuration: {apiVersion: v1, kind: Pod}\n",
            "no kind \"Pod\" is registered for version \"v1\"",
        ),
        ("EventRateLimit", "- name: EventRateLimit\n  path: nosuch.yaml\n", "nosuch.yaml: no such file"),
    ] {
        let (launch, folder) = Launch::new().args(&["--enable-admission-plugins", plugin]).prepare_folder();
        let file = folder.join("admission.yaml");
        std::fs::write(&file, format!("{HEAD}{section}")).unwrap();
        let flag = ["--admission-control-config-file", file.to_str().unwrap()];
        let (code, _, err) = launch.args(&flag).run().await;
        assert_eq!((code, err.lines().count()), (Some(2), 1), "{err}");
        assert!(err.contains(flag[0]) && err.contains(words), "{err}");
        assert!(!Path::new(&folder.join("data")).exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mutating_plugins_change_pods() {
    let (_portico, admin) = with_plain("AlwaysPullImages,ExtendedResourceToleration").await;
    let pull_spec = json!({"containers": [{"name": "c", "image": "i", "imagePullPolicy": "Never",
        "resources": {"limits": {"example.com/gpu": "1"}}}]});
    let created = admin.post(&pods("default"), &pod(pull_spec)).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let spec = &created.json()["spec"];
    assert_eq!(spec["containers"][0]["imagePullPolicy"], "Always");
    let tolerated = json!({"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"});
    assert!(spec["tolerations"].as_array().unwrap().contains(&tolerated), "{spec}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_upstreams_messages() {
    let (_portico, admin) = with_plain("LimitPodHardAntiAffinityTopology,DenyServiceExternalIPs").await;
    let term = json!({"topologyKey": "zone", "labelSelector": {}});
    let apart =
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
    refused(
        &admin.post(&pods("default"), &pod(apart)).await,
        403,
        "pods \"p\" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed",
    );
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]}});
    refused(
        &admin.post("/api/v1/namespaces/default/services", &service).await,
        403,
        "services \"s\" is forbidden: Use of external IPs is denied by admission control",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn always_deny_denies_all_admitted_requests() {
    // A new server cannot create its initial objects, and does not start, as upstream.
    let mut before = Portico::start().await;
    assert!(before.stop().await.success());
    let portico =
        Launch::new().with_data_of(&before).args(&["--enable-admission-plugins", "AlwaysDeny"]).start().await;
    let admin = portico.admin();
    let denied = "admission control is denying all modifications";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let maps = "/api/v1/namespaces/default/configmaps";
    refused(&admin.post(maps, &map).await, 403, &format!("configmaps \"m\" is forbidden: {denied}"));
    assert_eq!(admin.get(maps).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_are_created_automatically_or_not_required() {
    let (_portico, admin) = with_plain("NamespaceAutoProvision").await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let maps = "/api/v1/namespaces/made/configmaps";
    refused(&admin.post(&format!("{maps}?dryRun=All"), &map).await, 404, "namespaces \"made\" not found");
    assert_eq!(admin.post(maps, &map).await.status, 201);
    assert_eq!(admin.get("/api/v1/namespaces/made").await.json()["status"]["phase"], "Active");

    let portico = Launch::new().args(&["--disable-admission-plugins", "NamespaceLifecycle"]).start().await;
    let admin = portico.admin();
    assert_eq!(admin.post("/api/v1/namespaces/missing/configmaps", &map).await.status, 201);
    assert_eq!(admin.get("/api/v1/namespaces/missing").await.status, 404);

    let (_portico, admin) = with_plain("NamespaceExists").await;
    refused(
        &admin.post("/api/v1/namespaces/missing/configmaps", &map).await,
        404,
        "namespaces \"missing\" not found",
    );
    refused(
        &admin.delete("/api/v1/namespaces/default").await,
        403,
        "namespaces \"default\" is forbidden: this namespace may not be deleted",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_run_on_the_nodes_of_their_namespace() {
    let sections = "- name: PodNodeSelector\n  configuration:\n    podNodeSelectorPluginConfig:\n      clusterDefaultNodeSelector: tier=any\n      strict: zone=a\n";
    let (_portico, admin) = with("PodNodeSelector", sections, &[]).await;
    let selector = |answer: &FullResponse| answer.json()["spec"]["nodeSelector"].clone();
    let by_default = admin.post(&pods("default"), &pod(json!({}))).await;
    assert_eq!(selector(&by_default), json!({"tier": "any"}));
    let annotation = "scheduler.alpha.kubernetes.io/node-selector";
    namespace(&admin, "strict", json!({"annotations": {annotation: "zone=a"}})).await;
    assert_eq!(selector(&admin.post(&pods("strict"), &pod(json!({}))).await), json!({"zone": "a"}));
    refused(
        &admin.post(&pods("strict"), &pod(json!({"nodeSelector": {"zone": "b"}}))).await,
        403,
        "pods \"p\" is forbidden: pod node label selector conflicts with its namespace node label selector",
    );
    refused(
        &admin.post(&pods("strict"), &pod(json!({"nodeSelector": {"disk": "fast"}}))).await,
        403,
        "pods \"p\" is forbidden: pod node label selector labels conflict with its namespace whitelist",
    );
    namespace(&admin, "broken", json!({"annotations": {annotation: "a in b"}})).await;
    refused(&admin.post(&pods("broken"), &pod(json!({}))).await, 500, "invalid selector: [a in b]");
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_tolerations_are_limited_by_the_namespace() {
    let sections = "- name: PodTolerationRestriction\n  configuration:\n    apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\n    kind: Configuration\n    default: [{key: everywhere, operator: Exists}]\n";
    let (_portico, admin) = with("PodTolerationRestriction", sections, &[]).await;
    let keys = |answer: &FullResponse| -> Vec<String> {
        let list = answer.json()["spec"]["tolerations"].clone();
        list.as_array().unwrap().iter().map(|t| t["key"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let by_default = admin.post(&pods("default"), &pod(json!({}))).await;
    assert!(keys(&by_default).contains(&"everywhere".to_owned()), "{}", by_default.text());
    let own = r#"[{"key": "own", "operator": "Exists"}]"#;
    let allowed = r#"[{"key": "own", "operator": "Exists"}, {"operator": "Exists", "effect": "NoExecute"}]"#;
    namespace(
        &admin,
        "own",
        json!({"annotations": {
        "scheduler.alpha.kubernetes.io/defaultTolerations": own,
        "scheduler.alpha.kubernetes.io/tolerationsWhitelist": allowed}}),
    )
    .await;
    let created = admin.post(&pods("own"), &pod(json!({}))).await;
    assert!(keys(&created).contains(&"own".to_owned()), "{}", created.text());
    let other = json!({"tolerations": [{"key": "other", "operator": "Exists", "effect": "NoSchedule"}]});
    refused(
        &admin.post(&pods("own"), &pod(other)).await,
        500,
        "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_limited_to_the_configured_rate() {
    let sections = "- name: EventRateLimit\n  configuration:\n    apiVersion: eventratelimit.admission.k8s.io/v1alpha1\n    kind: Configuration\n    limits:\n    - {type: Namespace, qps: 1, burst: 2, cacheSize: 8}\n    - {type: User, qps: 1, burst: 1000}\n";
    let (_portico, admin) = with("EventRateLimit", sections, &[]).await;
    namespace(&admin, "busy", json!({})).await;
    let post = async |namespace: &str| {
        let object = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"generateName": "e-"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": namespace}});
        admin.post(&format!("/api/v1/namespaces/{namespace}/events"), &object).await
    };
    let mut answers = Vec::new();
    for _ in 0..20 {
        answers.push(post("busy").await);
    }
    let refusal = answers.iter().find(|answer| answer.status == 429).expect("twenty events are too many");
    refused(refusal, 429, "Too many requests: limit reached on type Namespace for key busy");
    assert_eq!(answers[0].status, 201, "{}", answers[0].text());
    assert_eq!(post("default").await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_references_need_permission() {
    let portico = Launch::new()
        .args(&["--enable-admission-plugins", "OwnerReferencesPermissionEnforcement"])
        // The owner does not exist: the garbage collector would delete its dependents.
        .args(&["--authorization-mode", "RBAC", "--controllers="])
        .start()
        .await;
    let (admin, alice) = (portico.admin(), portico.admin().as_user("alice"));
    let rules =
        json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "update", "get"]}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": rules});
    let base = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    assert_eq!(admin.post(&format!("{base}/roles"), &role).await.status, 201);
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}]});
    assert_eq!(admin.post(&format!("{base}/rolebindings"), &binding).await.status, 201);
    let maps = "/api/v1/namespaces/default/configmaps";
    let owned = |name: &str, kind: &str, blocks: bool| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u", "blockOwnerDeletion": blocks}]}})
    };
    let free = alice.post(maps, &owned("free", "Deployment", false)).await;
    assert_eq!(free.status, 201, "{}", free.text());
    refused(
        &alice.post(maps, &owned("held", "Deployment", true)).await,
        403,
        "configmaps \"held\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>",
    );
    refused(
        &alice.post(maps, &owned("held", "Nothing", true)).await,
        403,
        "configmaps \"held\" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion apps/v1 Kind Nothing: no matches for kind \"Nothing\" in version \"apps/v1\"",
    );
    let mut without = free.json();
    without["metadata"]["ownerReferences"] = json!([]);
    refused(
        &alice.put(&format!("{maps}/free"), &without).await,
        403,
        "configmaps \"free\" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>",
    );
    assert_eq!(admin.put(&format!("{maps}/free"), &without).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_security_has_defaults_and_exemptions() {
    let sections = "- name: PodSecurity\n  configuration:\n    apiVersion: pod-security.admission.config.k8s.io/v1\n    kind: PodSecurityConfiguration\n    defaults: {enforce: baseline}\n    exemptions: {usernames: [bob], namespaces: [free], runtimeClasses: [sandbox]}\n";
    let (portico, admin) = with("PodSecurity", sections, &[]).await;
    let host = pod(json!({"hostNetwork": true}));
    refused(
        &admin.post(&pods("default"), &host).await,
        403,
        "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)",
    );
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "bob"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "bob"}]});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert_eq!(admin.post(bindings, &binding).await.status, 201);
    let by_user = portico.admin().as_user("bob").post(&pods("default"), &host).await;
    assert_eq!(by_user.status, 201, "{}", by_user.text());
    let free =
        namespace(&admin, "free", json!({"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}))
            .await;
    assert_eq!(
        free.header("warning"),
        "299 - \"namespace \\\"free\\\" is exempt from Pod Security, and the policy (enforce=restricted:latest) will be ignored\""
    );
    assert_eq!(admin.post(&pods("free"), &host).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_security_has_evaluation_metrics() {
    let sections = "- name: PodSecurity\n  configuration:\n    apiVersion: pod-security.admission.config.k8s.io/v1\n    kind: PodSecurityConfiguration\n    defaults: {enforce: baseline}\n    exemptions: {namespaces: [free]}\n";
    let (_portico, admin) = with("PodSecurity", sections, &[]).await;
    namespace(&admin, "free", json!({})).await;
    let labels = json!({"pod-security.kubernetes.io/enforce": "privileged",
        "pod-security.kubernetes.io/audit": "baseline", "pod-security.kubernetes.io/audit-version": "v1.24",
        "pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/warn-version": "v1.99"});
    namespace(&admin, "warned", json!({"labels": labels})).await;
    let host = pod(json!({"hostNetwork": true}));
    for (name, code) in [("default", 403), ("free", 201), ("warned", 201)] {
        assert_eq!(admin.post(&pods(name), &host).await.status, code, "{name}");
    }
    assert_eq!(admin.post(&pods("default"), &pod(json!({}))).await.status, 201);
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {
        "spec": {"hostNetwork": true, "restartPolicy": "Never", "containers": [{"name": "c", "image": "example.com/i"}]}}}});
    for name in ["default", "free", "warned"] {
        let jobs = format!("/apis/batch/v1/namespaces/{name}/jobs?dryRun=All");
        assert_eq!(admin.post(&jobs, &job).await.status, 201, "{name}");
    }
    let metrics = admin.get("/metrics").await.text();
    let counted: Vec<&str> =
        metrics.lines().filter(|line| line.starts_with("pod_security") && !line.ends_with(" 0")).collect();
    let expected = [
        evaluated("deny", "baseline", "latest", "enforce", "pod"),
        evaluated("allow", "baseline", "latest", "enforce", "pod"),
        evaluated("allow", "privileged", "latest", "enforce", "pod"),
        evaluated("deny", "baseline", "v1.24", "audit", "pod"),
        evaluated("deny", "restricted", "future", "warn", "pod"),
        evaluated("deny", "baseline", "v1.24", "audit", "controller"),
        evaluated("deny", "restricted", "future", "warn", "controller"),
        exempted("pod"),
        exempted("controller"),
    ];
    assert_eq!(counted.len(), expected.len(), "{counted:#?}");
    for line in &expected {
        assert!(counted.contains(&line.as_str()), "{line}: {counted:#?}");
    }
    let none = r#"pod_security_exemptions_total{request_operation="update",resource="pod",subresource=""} 0"#;
    assert!(metrics.contains(none), "the most common series exists from the start");
}

fn evaluated(decision: &str, level: &str, version: &str, mode: &str, resource: &str) -> String {
    format!(
        r#"pod_security_evaluations_total{{decision="{decision}",policy_level="{level}",policy_version="{version}",mode="{mode}",request_operation="create",resource="{resource}",subresource=""}} 1"#
    )
}

fn exempted(resource: &str) -> String {
    format!(
        r#"pod_security_exemptions_total{{request_operation="create",resource="{resource}",subresource=""}} 1"#
    )
}
