//! ImagePolicyWebhook: a backend over HTTPS decides which images pods may run.

use portico_proto::objects::{Call, DoRequest, DoResponse, Target};
use portico_tests::http::{FullResponse, Http};
use portico_tests::objects::PODS;
use portico_tests::{Backend, Behavior, Launch, Portico, wait_until};
use serde_json::{Value, json};

const DRY: &str = "/api/v1/namespaces/default/pods?dryRun=All";

/// A process, and its image review backend.
struct Setup {
    portico: Portico,
    admin: Http,
    images: Backend,
}

impl Setup {
    /// Starts both, with these changes of the plugin's configuration.
    async fn start(more: Value) -> Self {
        let images = Backend::with_names("images", &["127.0.0.1"]).await;
        let (launch, folder) =
            Launch::new().args(&["--enable-admission-plugins", "ImagePolicyWebhook"]).prepare_folder();
        std::fs::write(folder.join("ca.crt"), &images.ca).unwrap();
        let kubeconfig = json!({"kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "images", "user": "me"}}],
            "clusters": [{"name": "images", "cluster": {
                "server": format!("{}/images", images.url()), "certificate-authority": "ca.crt"}}],
            "users": [{"name": "me", "user": {"token": "known"}}, {"name": "*", "user": {"token": "somebody"}}]});
        std::fs::write(folder.join("images.kubeconfig"), kubeconfig.to_string()).unwrap();
        let mut section = json!({"kubeConfigFile": folder.join("images.kubeconfig"), "retryBackoff": 1});
        for (key, value) in more.as_object().into_iter().flatten() {
            section[key] = value.clone();
        }
        let file = folder.join("admission.json");
        std::fs::write(&file, configuration(&section).to_string()).unwrap();
        let portico = launch.args(&["--admission-control-config-file", file.to_str().unwrap()]).start().await;
        let admin = portico.admin();
        Self { portico, admin, images }
    }

    async fn create(&self, image: &str) -> FullResponse {
        self.admin.post(DRY, &pod(&[image])).await
    }

    /// Returns the specs of the received reviews.
    fn reviews(&self) -> Vec<Value> {
        let review =
            |seen: portico_tests::ReceivedRequest| serde_json::from_slice::<Value>(&seen.body).unwrap();
        self.images.requests().into_iter().map(|seen| review(seen)["spec"].take()).collect()
    }
}

fn configuration(section: &Value) -> Value {
    json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [{"name": "ImagePolicyWebhook", "configuration": {"imagePolicy": section}}]})
}

fn pod(images: &[&str]) -> Value {
    let container = |(at, image): (usize, &&str)| json!({"name": format!("c{at}"), "image": image});
    let containers: Vec<Value> = images.iter().enumerate().map(container).collect();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": containers, "automountServiceAccountToken": false}})
}

fn refused(answer: &FullResponse, why: &str) {
    let message = format!("pods \"p\" is forbidden: {why}");
    assert_eq!(answer.status_body(403, "Forbidden")["message"], message);
}

/// Creates a pod by gRPC, whose response contains the audit data.
async fn created_by_grpc(setup: &Setup, image: &str) -> DoResponse {
    let target = Target {
        version: "v1".into(),
        resource: "pods".into(),
        namespace: "default".into(),
        ..Target::default()
    };
    let call = Call {
        target: Some(target),
        verb: "create".into(),
        query: "dryRun=All".into(),
        body: pod(&[image]).to_string().into_bytes().into(),
        ..Call::default()
    };
    let answer = setup.portico.control().objects().r#do(DoRequest { call: Some(call) }).await;
    answer.unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_backend_decides_and_results_are_cached() {
    let setup = Setup::start(json!({})).await;
    let mut allowed = pod(&["a", "b"]);
    allowed["metadata"]["annotations"] = json!({"x.image-policy.k8s.io/ticket": "1", "other": "2"});
    allowed["spec"]["initContainers"] = json!([{"name": "i", "image": "init"}]);
    for _ in 0..2 {
        let created = setup.admin.post(DRY, &allowed).await;
        assert_eq!(created.status, 201, "{}", created.text());
        refused(
            &setup.create("x:denied").await,
            "image policy webhook backend denied one or more images: it is too old",
        );
    }
    let first = json!({"containers": [{"image": "a"}, {"image": "b"}, {"image": "init"}],
        "annotations": {"x.image-policy.k8s.io/ticket": "1"}, "namespace": "default"});
    let second = json!({"containers": [{"image": "x:denied"}], "namespace": "default"});
    assert_eq!(setup.reviews(), [first, second], "both answers are cached");
    refused(&setup.create("x:unwanted").await, "one or more images rejected by webhook backend");
    let seen = setup.images.last_request();
    assert_eq!(
        (seen.target.as_str(), seen.all("authorization")),
        ("/images?timeout=30s", vec!["Bearer known".to_owned()])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ephemeral_containers_are_reviewed_separately() {
    let setup = Setup::start(json!({})).await;
    let created = setup.admin.post(PODS, &pod(&["a"])).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let add = async |image: &str| {
        let added = json!({"spec": {"ephemeralContainers": [{"name": "look", "image": image}]}});
        setup.admin.merge(&format!("{PODS}/p/ephemeralcontainers"), &added).await
    };
    refused(
        &add("look:denied").await,
        "image policy webhook backend denied one or more images: it is too old",
    );
    assert_eq!(setup.reviews()[1]["containers"], json!([{"image": "look:denied"}]));
    assert_eq!(add("look").await.status, 200);
    let labelled =
        setup.admin.merge(&format!("{PODS}/p"), &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(labelled.status, 200);
    assert_eq!(
        setup.reviews().len(),
        3,
        "only creations and image changes are reviewed: {:?}",
        setup.reviews()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn uncached_results_are_reviewed_each_time() {
    let setup = Setup::start(json!({"allowTTL": -1})).await;
    for image in ["a", "a", "x:denied", "x:denied"] {
        setup.create(image).await;
    }
    let images: Vec<Value> =
        setup.reviews().iter().map(|spec| spec["containers"][0]["image"].clone()).collect();
    assert_eq!(images, ["a", "a", "x:denied"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_response_pods_are_refused() {
    let mut setup = Setup::start(json!({})).await;
    for (mood, calls, why) in [
        (
            Behavior::Code(500),
            5,
            "an error on the server (\"the backend says 500 Internal Server Error\") has prevented the request from succeeding",
        ),
        (Behavior::Code(404), 1, "the server could not find the requested resource"),
    ] {
        let before = setup.reviews().len();
        setup.images.set_behavior(mood);
        refused(&setup.create("a").await, why);
        assert_eq!(setup.reviews().len() - before, calls, "{mood:?}");
    }
    setup.images.stop().await;
    let url = format!("{}/images?timeout=30s", setup.images.url());
    let dial = format!("dial tcp {}: connect: connection refused", setup.images.address);
    refused(&setup.create("a").await, &format!("Post {url:?}: {dial}"));
    setup.images.set_behavior(Behavior::Normal);
    setup.images.resume().await;
    wait_until("the backend is called again", || async { setup.create("a").await.status == 201 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_response_the_default_may_allow_pods() {
    let mut setup = Setup::start(json!({"defaultAllow": true})).await;
    let note = |answer: &DoResponse, key: &str| {
        answer.audit_annotations.get(&format!("imagepolicywebhook.image-policy.k8s.io/{key}")).cloned()
    };
    let noted = created_by_grpc(&setup, "a:noted").await;
    assert_eq!((noted.code, note(&noted, "seen").as_deref()), (201, Some("yes")));
    assert_eq!(note(&noted, "failed-open"), None);
    setup.images.stop().await;
    let open = created_by_grpc(&setup, "a").await;
    assert_eq!((open.code, note(&open, "failed-open").as_deref()), (201, Some("true")));
    // Log lines are written after the response.
    let logged = || setup.portico.log().contains("image policy backend failed");
    wait_until("the failure is logged", || std::future::ready(logged())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_requests_do_not_wait_for_the_backend() {
    let setup = Setup::start(json!({})).await;
    setup.images.set_behavior(Behavior::Paused);
    let meanwhile = async {
        wait_until("the backend has received the review", || async { setup.reviews().len() == 1 }).await;
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
        let created = setup.admin.post("/api/v1/namespaces/default/configmaps", &map).await;
        assert_eq!(created.status, 201, "{}", created.text());
        setup.images.set_behavior(Behavior::Normal);
    };
    let held_by = setup.portico.admin();
    let pod_object = pod(&["a"]);
    let (response, ()) = tokio::join!(held_by.post(PODS, &pod_object), meanwhile);
    assert_eq!(response.status, 201, "{}", response.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_configuration_is_reported_in_one_line_at_the_start() {
    for (section, words) in [
        (
            json!({"kubeConfigFile": "/nosuch"}),
            "\"ImagePolicyWebhook\": stat /nosuch: no such file or directory",
        ),
        (
            json!({"kubeConfigFile": "own", "allowTTL": 1801}),
            "valid value is between 1s and 30m0s, got 30m1s",
        ),
        (json!({"kubeConfigFile": "own"}), "own: kubeconfig has no context named \"\""),
        (Value::Null, "\"ImagePolicyWebhook\": no config specified"),
    ] {
        let (launch, folder) =
            Launch::new().args(&["--enable-admission-plugins", "ImagePolicyWebhook"]).prepare_folder();
        std::fs::write(folder.join("own"), "kind: Config").unwrap();
        let launch = if section.is_null() {
            launch
        } else {
            let file = folder.join("admission.json");
            std::fs::write(&file, configuration(&section).to_string()).unwrap();
            launch.args(&["--admission-control-config-file", file.to_str().unwrap()])
        };
        let (code, _, err) = launch.run().await;
        assert!(code != Some(0) && err.contains(words), "{words}: {code:?} {err}");
    }
}
