//! kube-rs as a client: typed objects, every kind of patch, subresources, discovery, tables, eviction, tokens.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use kube::api::{Api, DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::discovery::{Discovery, Scope};
use kube::{Client, ResourceExt};
use portico_tests::Portico;
use portico_tests::pki::certificates;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn typed<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

fn config_map(name: &str, data: Value) -> ConfigMap {
    typed(json!({"metadata": {"name": name}, "data": data}))
}

fn deployment(replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "web:1"}]},
            },
        },
    })
}

fn pod(name: &str) -> Pod {
    typed(json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]},
    }))
}

/// Returns a configuration of kube-rs with this token, without automatic retries.
fn config(portico: &Portico, token: &str) -> kube::Config {
    let mut config = kube::Config::new(format!("https://{}", portico.https()).parse().unwrap());
    config.root_cert = Some(certificates(portico.ca()).iter().map(|c| c.to_vec()).collect());
    config.auth_info.token = Some(token.into());
    config.default_retry = false;
    config
}

/// Returns the status of a refused API call.
fn refused<T: std::fmt::Debug>(answer: kube::Result<T>) -> kube::core::Status {
    match answer.unwrap_err() {
        kube::Error::Api(status) => *status,
        other => panic!("no answer of the API: {other}"),
    }
}

fn images(deployment: &Deployment) -> Vec<(&str, &str)> {
    let template = &deployment.spec.as_ref().unwrap().template;
    let containers = &template.spec.as_ref().unwrap().containers;
    containers.iter().map(|c| (c.name.as_str(), c.image.as_deref().unwrap_or_default())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_objects_are_created_read_replaced_listed_and_deleted() {
    let portico = Portico::start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(portico.kube().await);
    let post = PostParams::default();
    let created = api.create(&post, &config_map("one", json!({"a": "1"}))).await.unwrap();
    assert_eq!(api.get("one").await.unwrap(), created);
    let again = refused(api.create(&post, &config_map("one", json!({}))).await);
    assert!(again.is_already_exists(), "{again:?}");
    let mut changed = created.clone();
    changed.data.get_or_insert_default().insert("b".into(), "2".into());
    let replaced = api.replace("one", &post, &changed).await.unwrap();
    assert_ne!(replaced.resource_version(), created.resource_version());
    let late = refused(api.replace("one", &post, &created).await);
    assert!(late.is_conflict(), "{late:?}");
    let invalid = refused(api.create(&post, &config_map("Not_A_Name", json!({}))).await);
    assert!(invalid.is_invalid(), "{invalid:?}");
    let by_name = api.list(&ListParams::default().fields("metadata.name=one")).await.unwrap();
    assert_eq!(by_name.items, [replaced]);
    api.delete("one", &DeleteParams::default()).await.unwrap();
    assert_eq!(api.get_opt("one").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_paged_and_collections_deleted() {
    let portico = Portico::start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(portico.kube().await);
    for n in 0..5 {
        let mut object = config_map(&format!("page-{n}"), json!({}));
        object.labels_mut().insert("page".into(), "yes".into());
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let mut params = ListParams::default().labels("page=yes").limit(2);
    let mut names = Vec::new();
    loop {
        let page = api.list(&params).await.unwrap();
        assert!(page.items.len() <= 2);
        names.extend(page.items.iter().map(ResourceExt::name_any));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names, ["page-0", "page-1", "page-2", "page-3", "page-4"]);
    let all = ListParams::default().labels("page=yes");
    api.delete_collection(&DeleteParams::default(), &all).await.unwrap();
    assert!(api.list(&all).await.unwrap().items.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_patch_is_applied() {
    let portico = Portico::start().await;
    let api: Api<Deployment> = Api::default_namespaced(portico.kube().await);
    api.create(&PostParams::default(), &typed(deployment(1))).await.unwrap();
    let plain = PatchParams::default();
    let added =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}});
    let strategic = api.patch("web", &plain, &Patch::Strategic(added)).await.unwrap();
    assert_eq!(images(&strategic), [("side", "side:1"), ("main", "web:1")], "lists merge by key");
    let whole =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "only", "image": "only:1"}]}}}});
    let merged = api.patch("web", &plain, &Patch::Merge(whole)).await.unwrap();
    assert_eq!(images(&merged), [("only", "only:1")], "lists are replaced");
    let steps = typed(json!([
        {"op": "test", "path": "/spec/replicas", "value": 1},
        {"op": "replace", "path": "/spec/replicas", "value": 4},
    ]));
    let steps = Patch::<()>::Json(steps);
    let stepped = api.patch("web", &plain, &steps).await.unwrap();
    assert_eq!(stepped.spec.unwrap().replicas, Some(4));
    assert!(refused(api.patch("web", &plain, &steps).await).is_invalid(), "the test operation fails");
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    let tried = api.patch("web", &dry, &Patch::Merge(json!({"spec": {"replicas": 9}}))).await.unwrap();
    assert_eq!(tried.spec.unwrap().replicas, Some(9));
    assert_eq!(api.get("web").await.unwrap().spec.unwrap().replicas, Some(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn server_side_apply_tracks_owners_and_conflicts() {
    let portico = Portico::start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(portico.kube().await);
    let configuration = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": data});
    let (one, two) = (PatchParams::apply("one"), PatchParams::apply("two"));
    let applied =
        api.patch("shared", &one, &Patch::Apply(configuration(json!({"a": "1", "b": "1"})))).await.unwrap();
    assert_eq!(applied.managed_fields()[0].manager.as_deref(), Some("one"));
    api.patch("shared", &two, &Patch::Apply(configuration(json!({"c": "2"})))).await.unwrap();
    let conflict =
        refused(api.patch("shared", &two, &Patch::Apply(configuration(json!({"a": "2", "c": "2"})))).await);
    assert!(conflict.is_conflict() && conflict.message.contains("\"one\""), "{conflict:?}");
    let forced = Patch::Apply(configuration(json!({"a": "2", "c": "2"})));
    api.patch("shared", &two.clone().force(), &forced).await.unwrap();
    let reapplied = api.patch("shared", &one, &Patch::Apply(configuration(json!({})))).await.unwrap();
    let data: Vec<(String, String)> = reapplied.data.unwrap_or_default().into_iter().collect();
    assert_eq!(
        data,
        [("a".into(), "2".into()), ("c".into(), "2".into())],
        "a field without a manager is removed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_applied_deployment_is_scaled_and_has_a_separate_status() {
    let portico = Portico::start().await;
    let api: Api<Deployment> = Api::default_namespaced(portico.kube().await);
    let applier = PatchParams::apply("deployer");
    let applied = api.patch("web", &applier, &Patch::Apply(deployment(2))).await.unwrap();
    assert_eq!(applied.metadata.generation, Some(1));
    let mut scale = api.get_scale("web").await.unwrap();
    assert_eq!(scale.status.as_ref().unwrap().selector.as_deref(), Some("app=web"));
    scale.spec.as_mut().unwrap().replicas = Some(5);
    api.replace_scale("web", &PostParams::default(), &scale).await.unwrap();
    let scaled = api.get("web").await.unwrap();
    assert_eq!((scaled.spec.unwrap().replicas, scaled.metadata.generation), (Some(5), Some(2)));
    let conflict = refused(api.patch("web", &applier, &Patch::Apply(deployment(2))).await);
    assert!(conflict.message.contains("subresource \"scale\""), "{conflict:?}");
    let patch = Patch::Merge(json!({"spec": {"replicas": 3}}));
    let patched = api.patch_scale("web", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.spec.unwrap().replicas, Some(3));
    let report = json!({"spec": {"replicas": 8}, "status": {"replicas": 3, "observedGeneration": 3}});
    let reported = api.patch_status("web", &PatchParams::default(), &Patch::Merge(report)).await.unwrap();
    assert_eq!(reported.spec.as_ref().unwrap().replicas, Some(3), "a status patch does not change the spec");
    assert_eq!(reported.status.as_ref().unwrap().replicas, Some(3));
    assert_eq!(api.get_scale("web").await.unwrap().status.unwrap().replicas, 3);
    assert_eq!(api.get_status("web").await.unwrap(), reported);
    let restarted = api.restart("web").await.unwrap();
    assert_eq!(restarted.metadata.generation, Some(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_finds_every_group_by_either_protocol() {
    let portico = Portico::start().await;
    let client = portico.kube().await;
    let served = client.list_api_groups().await.unwrap();
    let old = Discovery::new(client.clone()).run().await.unwrap();
    let aggregated = Discovery::new(client).run_aggregated().await.unwrap();
    for found in [&old, &aggregated] {
        for group in &served.groups {
            assert!(found.has_group(&group.name), "{}", group.name);
        }
        assert_eq!(found.groups().count(), served.groups.len() + 1, "the core group, too");
        let core = found.get("").unwrap().recommended_kind("Pod").unwrap();
        assert_eq!((core.0.plural.as_str(), &core.1.scope), ("pods", &Scope::Namespaced));
        let (resource, capabilities) = found.get("apps").unwrap().recommended_kind("Deployment").unwrap();
        assert_eq!(resource.api_version, "apps/v1");
        let subresources: Vec<&str> =
            capabilities.subresources.iter().map(|(resource, _)| resource.plural.as_str()).collect();
        assert_eq!(subresources.len(), 2, "{subresources:?}");
        for verb in ["create", "deletecollection", "watch"] {
            assert!(capabilities.supports_operation(verb), "{verb}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_served_as_tables_and_as_metadata() {
    let portico = Portico::start().await;
    let client = portico.kube().await;
    let api: Api<Deployment> = Api::default_namespaced(client.clone());
    api.create(&PostParams::default(), &typed(deployment(2))).await.unwrap();
    let request = http::Request::get("/apis/apps/v1/namespaces/default/deployments")
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .unwrap();
    let table: Value = client.request(request).await.unwrap();
    let names: Vec<&str> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names[..5], ["Name", "Ready", "Up-to-date", "Available", "Age"]);
    assert_eq!(
        (&table["rows"][0]["cells"][0], &table["rows"][0]["cells"][1]),
        (&json!("web"), &json!("0/2"))
    );
    let bare = api.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(bare.items[0].metadata, api.get("web").await.unwrap().metadata);
    assert_eq!(api.get_metadata("web").await.unwrap().metadata.name.as_deref(), Some("web"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_evicted_unless_a_budget_forbids_it() {
    let portico = Portico::start().await;
    let client = Client::try_from(config(&portico, "admin-token")).unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for name in ["free", "kept"] {
        pods.create(&PostParams::default(), &pod(name)).await.unwrap();
    }
    pods.evict("free", &EvictParams::default()).await.unwrap();
    assert_eq!(pods.get_opt("free").await.unwrap(), None, "a pod without a node is deleted at once");
    let running =
        json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    pods.patch_status("kept", &PatchParams::default(), &Patch::Merge(running)).await.unwrap();
    let budgets: Api<k8s_openapi::api::policy::v1::PodDisruptionBudget> = Api::default_namespaced(client);
    let budget = json!({
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    budgets.create(&PostParams::default(), &typed(budget)).await.unwrap();
    let answer = refused(pods.evict("kept", &EvictParams::default()).await);
    assert_eq!((answer.code, answer.reason.as_str()), (429, "TooManyRequests"), "{answer:?}");
    assert!(pods.get_opt("kept").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_accounts_token_authenticates() {
    let portico = Portico::start().await;
    let client = portico.kube().await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client);
    let account = typed(json!({"metadata": {"name": "robot"}}));
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let token_request = TokenRequest::default();
    let token_response =
        accounts.create_token_request("robot", &PostParams::default(), &token_request).await.unwrap();
    let config = config(&portico, &token_response.status.unwrap().token.unwrap());
    let robot = Client::try_from(config).unwrap();
    let reviews: Api<SelfSubjectReview> = Api::all(robot.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
    let user = review.status.unwrap().user_info.unwrap();
    assert_eq!(user.username.as_deref(), Some("system:serviceaccount:default:robot"));
    let namespaces: Api<Namespace> = Api::all(robot);
    assert!(refused(namespaces.list(&ListParams::default()).await).is_forbidden());
}
