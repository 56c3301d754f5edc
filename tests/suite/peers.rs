//! Servers of two releases behind one address: the newer one serves the APIs that the older one lacks.

use http::Request;
use http_body_util::Full;
use portico_tests::http::{FullResponse, Http};
use portico_tests::pki::Authority;
use portico_tests::{Launch, Portico, eventually};
use serde_json::{Value, json};

const GATE: &str = "--feature-gates=UnknownVersionInteroperabilityProxy=true";
const ALL: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const OWN: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer";
/// Collection of a version that exists since 1.34.
const CLASSES: &str = "/apis/resource.k8s.io/v1/deviceclasses";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// A server of 1.33 and one of 1.36, which trusts the identity headers of the other one.
struct PeerPair {
    older: Portico,
    newer: Portico,
}

impl PeerPair {
    async fn start() -> Self {
        let authority = Authority::new("front proxies");
        let client = authority.client("front-proxy", &[]);
        let (launch, folder) = Launch::new().prepare_folder();
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let trusted = file("front-proxy-ca.crt", &authority.pem);
        let newer = Launch::new().args(&["--requestheader-client-ca-file", &trusted]).args(&[
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-uid-headers=X-Remote-Uid",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        ]);
        let newer = newer.start().await;
        let peer_ca = file("peer-ca.crt", std::str::from_utf8(newer.ca()).unwrap());
        let (cert, key) = (file("client.crt", &client.cert), file("client.key", &client.key));
        let launch = launch.args(&["--emulated-version=kube=1.33", GATE, "--peer-ca-file", &peer_ca]);
        let launch = launch.args(&["--proxy-client-cert-file", &cert, "--proxy-client-key-file", &key]);
        Self { older: launch.start().await, newer }
    }

    /// Creates the newer server's identity Lease at the older one, as a shared store would have it.
    async fn introduce(&self) {
        let lease = lease("apiserver-newer", &self.newer.https().to_string());
        assert_eq!(self.older.admin().post(LEASES, &lease).await.status, 201);
    }

    /// Starts both, and waits until the older one forwards requests.
    async fn introduced() -> Self {
        let pair = Self::start().await;
        assert_eq!(pair.older.admin().get(CLASSES).await.status, 404);
        pair.introduce().await;
        wait_for_code(&pair.older.admin(), CLASSES, 200).await;
        pair
    }
}

fn lease(name: &str, address: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"},
            "annotations": {"kubernetes.io/peer-advertise-address": address},
        },
        "spec": {"holderIdentity": format!("{name}_1"), "leaseDurationSeconds": 3600,
                 "renewTime": "2999-01-01T00:00:00.000000Z"},
    })
}

async fn wait_for_code(http: &Http, path: &str, code: u16) -> FullResponse {
    let get_path = || async {
        let answer = http.get(path).await;
        if answer.status == code { Ok(answer) } else { Err(answer) }
    };
    eventually("the path has the expected status", get_path).await
}

/// Returns the versions of a group in `/apis`, and the ETag.
async fn versions(http: &Http, form: &str, group: &str) -> (Vec<String>, String) {
    let answer = http.get_as("/apis", form).await;
    let all = answer.json();
    let groups = all["items"].as_array().unwrap().iter();
    let of_group = groups.filter(|item| item["metadata"]["name"] == group);
    let names = of_group.flat_map(|item| item["versions"].as_array().unwrap());
    let names = names.map(|version| version["version"].as_str().unwrap().to_owned()).collect();
    (names, answer.header("etag").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn apis_of_a_peer_are_forwarded() {
    let pair = PeerPair::introduced().await;
    let (older, newer) = (pair.older.admin(), pair.newer.admin());
    let class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpus"}, "spec": {}});
    assert_eq!(older.post(CLASSES, &class).await.status, 201);
    let one = format!("{CLASSES}/gpus");
    assert_eq!(newer.get(&one).await.json()["metadata"]["name"], "gpus");
    assert_eq!(older.get(&one).await.json(), newer.get(&one).await.json());
    older.get(&format!("{CLASSES}/none")).await.status_body(404, "NotFound");
    let metrics = older.get("/metrics").await.text();
    let counted = r#"apiserver_rerouted_request_total{code="201",group="resource.k8s.io",version="v1",resource="deviceclasses"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_authorizes_the_original_caller() {
    let pair = PeerPair::introduced().await;
    let carol = pair.older.admin().as_user("carol");
    carol.get(CLASSES).await.status_body(403, "Forbidden");
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "classes"},
                      "rules": [{"apiGroups": ["resource.k8s.io"], "resources": ["*"], "verbs": ["list"]}]});
    let binding = json!({"metadata": {"name": "carol"}, "roleRef": {"kind": "ClusterRole", "name": "classes"},
                         "subjects": [{"kind": "User", "name": "carol"}]});
    for (server, code) in [(&pair.older, 403), (&pair.newer, 200)] {
        let admin = server.admin();
        assert_eq!(admin.post(&format!("{roles}/clusterroles"), &role).await.status, 201);
        assert_eq!(admin.post(&format!("{roles}/clusterrolebindings"), &binding).await.status, 201);
        let answer = wait_for_code(&carol, CLASSES, code).await;
        if code == 403 {
            // Permitted here, so this is the peer's response: it names the user.
            assert!(answer.json()["message"].as_str().unwrap().contains(r#"User "carol" cannot list"#));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_includes_peers_unless_excluded() {
    let pair = PeerPair::start().await;
    let older = pair.older.admin();
    let (own, tag) = versions(&older, ALL, "resource.k8s.io").await;
    assert!(own.is_empty(), "{own:?}");
    pair.introduce().await;
    wait_for_code(&older, CLASSES, 200).await;
    let (all, merged_tag) = versions(&older, ALL, "resource.k8s.io").await;
    assert_eq!(all, ["v1"]);
    assert_ne!(merged_tag, tag);
    assert_eq!(versions(&older, OWN, "resource.k8s.io").await, (own, tag.clone()));
    assert_eq!(versions(&pair.newer.admin(), ALL, "resource.k8s.io").await.0, ["v1"]);
    // Groups that both have are unchanged, and the legacy form shows only this server.
    assert_eq!(versions(&older, ALL, "apps").await.0, ["v1"]);
    assert_eq!(older.get("/apis/resource.k8s.io").await.status, 404);
    assert_eq!(older.delete(&format!("{LEASES}/apiserver-newer")).await.status, 200);
    wait_for_code(&older, CLASSES, 404).await;
    assert_eq!(versions(&older, ALL, "resource.k8s.io").await.1, tag);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_forwarded_once() {
    let pair = PeerPair::introduced().await;
    let request = Request::get(CLASSES).header("x-kubernetes-peer-proxied", "true");
    let answer = pair.older.admin().fetch(request.body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(answer.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_peer_causes_503_and_an_untrusted_peer_gets_no_requests() {
    let mut pair = PeerPair::introduced().await;
    let older = pair.older.admin();
    pair.newer.kill();
    let refused = wait_for_code(&older, CLASSES, 503).await;
    refused.status_body(503, "ServiceUnavailable");
    // A server with an untrusted certificate, under the Lease of a third server.
    let stranger = Launch::new().start().await;
    let lease = lease("apiserver-stranger", &stranger.https().to_string());
    assert_eq!(older.post(LEASES, &lease).await.status, 201);
    let failed =
        || async { if never_failed(&older).await { Err("no request to a peer has failed") } else { Ok(()) } };
    eventually("a request to the stranger has failed", failed).await;
    // The peer's APIs are still known, and not replaced.
    assert_eq!(older.get(CLASSES).await.status, 503);
}

/// Returns true if no request to a peer has failed.
async fn never_failed(http: &Http) -> bool {
    let metrics = http.get("/metrics").await.text();
    metrics.contains("apiserver_peer_discovery_sync_errors_total{type=\"fetch_discovery\"} 0\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_peer_delays_no_other() {
    let pair = PeerPair::start().await;
    let older = pair.older.admin();
    // Connections are established, and never accepted.
    let stalled = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = stalled.local_addr().unwrap().to_string();
    assert_eq!(older.post(LEASES, &lease("apiserver-stalled", &address)).await.status, 201);
    pair.introduce().await;
    wait_for_code(&older, CLASSES, 200).await;
    assert_eq!(older.delete(&format!("{LEASES}/apiserver-newer")).await.status, 200);
    wait_for_code(&older, CLASSES, 404).await;
    assert!(never_failed(&older).await, "the stalled peer has not failed yet");
}

#[tokio::test(flavor = "multi_thread")]
async fn group_versions_of_definitions_are_not_forwarded() {
    let pair = PeerPair::start().await;
    let things = |kind: &str| {
        json!({
            "metadata": {"name": "things.example.org"},
            "spec": {
                "group": "example.org", "scope": "Cluster", "names": {"plural": "things", "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true,
                              "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        })
    };
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let path = "/apis/example.org/v1/things";
    for (server, kind) in [(&pair.older, "Old"), (&pair.newer, "New")] {
        let admin = server.admin();
        assert_eq!(admin.post(definitions, &things(kind)).await.status, 201);
        assert_eq!(wait_for_code(&admin, path, 200).await.json()["kind"], format!("{kind}List"));
    }
    pair.introduce().await;
    let older = pair.older.admin();
    wait_for_code(&older, CLASSES, 200).await;
    assert_eq!(older.get(path).await.json()["kind"], "OldList");
    // After its deletion here it is not served: discovery of peers may be outdated.
    assert_eq!(older.delete(&format!("{definitions}/things.example.org")).await.status, 200);
    wait_for_code(&older, path, 404).await;
    assert_eq!(wait_for_code(&older, CLASSES, 200).await.json()["kind"], "DeviceClassList");
    assert_eq!(older.get(path).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_identity_lease_contains_the_peer_address() {
    for (args, want) in [
        (&["--peer-advertise-ip=2001:db8::7", "--peer-advertise-port=7443"][..], Some("[2001:db8::7]:7443")),
        (&["--feature-gates=UnknownVersionInteroperabilityProxy=false"], None),
    ] {
        let portico = Launch::new().args(args).start().await;
        let admin = portico.admin();
        let named = || async {
            let leases = admin.get(LEASES).await.json();
            let lease = leases["items"].as_array().unwrap().iter().find_map(|lease| {
                let label = &lease["metadata"]["labels"]["apiserver.kubernetes.io/identity"];
                (label == "kube-apiserver").then(|| lease["metadata"].clone())
            });
            lease.ok_or(leases)
        };
        let metadata = eventually("the server has a Lease", named).await;
        let address = metadata["annotations"]["kubernetes.io/peer-advertise-address"].as_str();
        assert_eq!(address, want, "{metadata}");
    }
}
