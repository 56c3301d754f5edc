//! Subresources that connect: logs and streams of kubelets, proxies to nodes, pods and Services.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::Method;
use http_body_util::BodyExt;
use portico_tests::http::{FullResponse, Http};
use portico_tests::http2::{
    self, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, frame, head, literal,
};
use portico_tests::objects::PODS;
use portico_tests::pki::Authority;
use portico_tests::{Backend, Behavior, Launch, WAIT_LIMIT, eventually, own_address};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::proxying::register;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A kubelet, and the files with which a facade connects to it.
struct Node {
    kubelet: Backend,
    flags: Vec<String>,
    _files: tempfile::TempDir,
}

impl Node {
    /// Starts a kubelet at this address, with files for the facade's flags.
    async fn start(ip: IpAddr) -> Self {
        let clients = Authority::new("kubelet-clients");
        let kubelet = Backend::kubelet(ip, &clients.pem).await;
        let pair = clients.client("kube-apiserver", &["system:masters"]);
        let files = tempfile::tempdir().unwrap();
        let mut flags = Vec::new();
        for (flag, text) in [
            ("--kubelet-client-certificate", &pair.cert),
            ("--kubelet-client-key", &pair.key),
            ("--kubelet-certificate-authority", &kubelet.ca),
        ] {
            let path = files.path().join(&flag[2..]);
            std::fs::write(&path, text).unwrap();
            flags.extend([flag.to_owned(), path.to_string_lossy().into_owned()]);
        }
        Self { kubelet, flags, _files: files }
    }

    fn add_flags(&self, launch: Launch) -> Launch {
        self.flags.iter().fold(launch, |launch, flag| launch.arg(flag))
    }

    /// Registers the kubelet as `n1`, with pod `p` on it and pod `idle` without a node.
    async fn register(&self, admin: &Http) {
        let node = node("n1", self.kubelet.address);
        create(admin, "/api/v1/nodes", &node).await;
        create(admin, PODS, &pod("p", Some("n1"), &["stream", "b"])).await;
        create(admin, PODS, &pod("idle", None, &["c"])).await;
    }
}

fn node(name: &str, address: SocketAddr) -> Value {
    json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}, "status": {
        "addresses": [{"type": "InternalIP", "address": address.ip().to_string()}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": address.port()}}}})
}

fn pod(name: &str, node: Option<&str>, containers: &[&str]) -> Value {
    let containers: Vec<Value> = containers.iter().map(|c| json!({"name": c, "image": "x"})).collect();
    let mut pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name},
        "spec": {"automountServiceAccountToken": false, "containers": containers}});
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}

/// Creates an object; the namespace's service account may be created later.
async fn create(admin: &Http, path: &str, object: &Value) {
    eventually(&format!("{path} accepts an object"), || async {
        let answer = admin.post(path, object).await;
        if matches!(answer.status.as_u16(), 201 | 409) { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

fn message(answer: &FullResponse, code: u16) -> String {
    assert_eq!(answer.status.as_u16(), code, "{}", answer.text());
    answer.json()["message"].as_str().unwrap_or_default().to_owned()
}

/// Requests an upgrade to this protocol; returns the head of the response and the connection.
async fn upgrade(http: &Http, method: &str, path: &str, protocol: &str) -> (String, TlsStream<TcpStream>) {
    let mut stream = http.dial().await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: k8s.example.com\r\nAuthorization: Bearer admin-token\r\n\
         Connection: Upgrade\r\nUpgrade: {protocol}\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(tokio::time::timeout(WAIT_LIMIT, stream.read_u8()).await.unwrap().unwrap());
    }
    (String::from_utf8(read).unwrap(), stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_line_by_line() {
    let node = Node::start(LOOPBACK).await;
    let portico = node.add_flags(Launch::new()).start().await;
    let admin = portico.admin();
    node.register(&admin).await;
    let path = format!("{PODS}/p/log?container=stream&follow=true&tailLines=5&unknown=x");
    let request = http::Request::get(path).body(Default::default()).unwrap();
    let response = admin.send(request).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"text/plain".parse().unwrap())
    );
    let mut body = response.into_body();
    let first = tokio::time::timeout(WAIT_LIMIT, body.frame()).await.unwrap().unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "{\"ready\":true}\n");
    for line in ["one\n", "two\n"] {
        assert!(node.kubelet.push_to_streams(line), "the kubelet has a reader");
        let frame = tokio::time::timeout(WAIT_LIMIT, body.frame()).await.unwrap().unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), line, "it comes at once, alone");
    }
    let seen = node.kubelet.last_request();
    assert_eq!(seen.target, "/containerLogs/default/p/stream?follow=true&tailLines=5");
    assert!(seen.all("authorization").is_empty() && seen.all("x-remote-user").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_connections_have_upstreams_messages() {
    let node = Node::start(LOOPBACK).await;
    let portico = node.add_flags(Launch::new()).start().await;
    let admin = portico.admin();
    node.register(&admin).await;
    create(&admin, PODS, &pod("lost", Some("n9"), &["c"])).await;
    create(
        &admin,
        "/api/v1/nodes",
        &json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "bare"}}),
    )
    .await;
    create(&admin, PODS, &pod("nowhere", Some("bare"), &["c"])).await;
    assert_eq!(admin.get(&format!("{PODS}/idle/log")).await.status, 204, "nobody writes it yet");
    for (path, code, want) in [
        ("pods/idle/exec?command=ls", 400, "pod idle does not have a host assigned"),
        ("pods/p/exec?container=b&command=ls", 400, "Upgrade request required"),
        ("pods/p/exec?container=b&dryRun=All", 400, "dryRun is not supported"),
        ("pods/p/log", 400, "a container name must be specified for pod p, choose one of: [stream b]"),
        ("pods/p/attach?container=z", 400, "container z is not valid for pod p"),
        (
            "pods/p/portforward?ports=70000",
            400,
            "cannot convert to []int32: strconv.ParseUint: parsing \"70000\": value out of range",
        ),
        ("pods/lost/log", 404, "pods \"n9\" not found"),
        ("pods/nowhere/log", 500, "no preferred addresses found; known addresses: []"),
        ("pods/none/log", 404, "pods \"none\" not found"),
        ("pods/p/proxy", 400, "address not allowed"),
        ("pods/ftp:p:80/proxy/", 400, "invalid pod request \"ftp:p:80\""),
        ("services/none/proxy/", 404, "services \"none\" not found"),
        ("services/kubernetes:81/proxy/", 503, "no service port 81 found for service \"kubernetes\""),
        ("pods/p/log/more", 404, "the server could not find the requested resource"),
    ] {
        let answer = admin.get(&format!("/api/v1/namespaces/default/{path}")).await;
        assert_eq!(message(&answer, code), want, "{path}");
    }
    for (path, code, want) in [
        ("n1/proxy/pods", 400, "address not allowed"),
        ("n9/proxy/", 404, "nodes \"n9\" not found"),
        ("ftp:n1:1/proxy/", 400, "invalid node request \"ftp:n1:1\""),
    ] {
        assert_eq!(message(&admin.get(&format!("/api/v1/nodes/{path}")).await, code), want, "{path}");
    }
    node.kubelet.set_behavior(Behavior::Code(404));
    let answer = admin.get(&format!("{PODS}/p/log?container=b")).await;
    assert_eq!(message(&answer, 404), "the server could not find the requested resource ( pods/log p)");
    node.kubelet.set_behavior(Behavior::Redirect);
    let answer = admin.get(&format!("{PODS}/p/log?container=b")).await;
    assert!(message(&answer, 500).ends_with(": redirects forbidden"), "{}", answer.text());
    node.kubelet.set_behavior(Behavior::Reset);
    let answer = admin.get(&format!("{PODS}/p/log?container=b")).await;
    assert!(message(&answer, 500).starts_with("Get \"https://127.0.0.1:"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_carry_bytes_both_ways_through_separate_facades() {
    let node = Node::start(LOOPBACK).await;
    let server = Launch::server().start().await;
    let facade = node.add_flags(Launch::facade(&server)).start().await;
    let admin = facade.admin();
    node.register(&admin).await;
    for (method, path, protocol, target) in [
        (
            "POST",
            "p/exec?container=b&command=sh&command=-c&stdin=1&stdout=1&tty=0",
            "SPDY/3.1",
            "/exec/default/p/b?command=sh&command=-c&input=1&output=1",
        ),
        ("GET", "p/attach?container=b&stderr=true", "websocket", "/attach/default/p/b?error=1"),
        ("POST", "p/portforward?ports=80,81", "SPDY/3.1", "/portForward/default/p?port=80%2C81"),
    ] {
        let (head, mut stream) = upgrade(&admin, method, &format!("{PODS}/{path}"), protocol).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        for message in ["hello", "again"] {
            stream.write_all(message.as_bytes()).await.unwrap();
            let mut echoed = [0; 5];
            tokio::time::timeout(WAIT_LIMIT, stream.read_exact(&mut echoed)).await.unwrap().unwrap();
            assert_eq!(echoed, message.as_bytes());
        }
        let seen = node.kubelet.last_request();
        assert_eq!((seen.method.as_str(), seen.target.as_str()), (method, target));
        assert_eq!(seen.all("x-stream-protocol-version"), ["v4.channel.k8s.io"]);
        assert!(seen.all("authorization").is_empty());
    }
    node.kubelet.set_behavior(Behavior::Code(403));
    let (head, _) = upgrade(&admin, "GET", &format!("{PODS}/p/exec?container=b"), "websocket").await;
    assert!(
        head.starts_with("HTTP/1.1 403 "),
        "a refusal is passed on, so that clients try another protocol: {head}"
    );
    node.kubelet.set_behavior(Behavior::Code(204));
    let (head, _) = upgrade(&admin, "GET", &format!("{PODS}/p/exec?container=b"), "websocket").await;
    assert!(head.starts_with("HTTP/1.1 500 "), "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_pods_does_not_run_commands_in_them() {
    let node = Node::start(LOOPBACK).await;
    let portico = node.add_flags(Launch::new()).start().await;
    let admin = portico.admin();
    node.register(&admin).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "reader"}, "rules": [
        {"apiGroups": [""], "resources": ["pods/exec", "pods/log"], "verbs": ["get"]}]});
    assert_eq!(admin.post(&format!("{rbac}/clusterroles"), &role).await.status, 201);
    let binding = json!({"metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}]});
    assert_eq!(admin.post(&format!("{rbac}/clusterrolebindings"), &binding).await.status, 201);
    let bob = portico.anonymous().as_user("bob");
    let refused = bob.get(&format!("{PODS}/p/exec?container=b&command=ls")).await;
    assert_eq!(message(&refused, 403), "pods \"p\" is forbidden: ");
    node.kubelet.set_behavior(Behavior::Code(200));
    assert_eq!(bob.get(&format!("{PODS}/p/log?container=b")).await.text(), "the backend says 200 OK");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_pods_and_services_are_proxied_to() {
    let Some(ip) = own_address() else { return };
    let node = Node::start(ip).await;
    let inside = Backend::on_own_address("pod").await.unwrap();
    let portico = node.add_flags(Launch::new()).start().await;
    let admin = portico.admin();
    node.register(&admin).await;

    let answer = admin.get("/api/v1/nodes/n1/proxy/pods?a=1&a=0").await;
    assert_eq!(answer.json()["target"], "/pods?a=1&a=0", "{}", answer.text());
    let seen = node.kubelet.last_request();
    assert_eq!(seen.all("x-forwarded-uri"), ["/api/v1/nodes/n1/proxy/pods"]);
    assert!(seen.all("authorization").is_empty() && seen.all("x-remote-user").is_empty());
    let bare = admin.get("/api/v1/nodes/n1/proxy?x=1").await;
    assert_eq!((bare.status.as_u16(), bare.header("location")), (301, "/api/v1/nodes/n1/proxy/?x=1"));

    let (host, port) = (inside.address.ip().to_string(), inside.address.port());
    let running = json!({"status": {"phase": "Running", "podIP": host, "podIPs": [{"ip": host}]}});
    let patched = admin.merge(&format!("{PODS}/p/status"), &running).await;
    assert_eq!(patched.status, 200, "{}", patched.text());
    let service = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s"},
        "spec": {"ports": [{"name": "web", "port": 443, "targetPort": port}]}});
    create(&admin, "/api/v1/namespaces/default/services", &service).await;
    let to_service = |rest: &str| format!("/api/v1/namespaces/default/services/https:s:{rest}");
    let missing = admin.get(&to_service("web/proxy/")).await;
    assert_eq!(message(&missing, 404), "services \"s\" not found");
    let reference = json!({"kind": "Pod", "namespace": "default", "name": "p"});
    let endpoints = json!({"kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": "s"}, "subsets": [
        {"addresses": [{"ip": host, "targetRef": reference}], "ports": [{"name": "web", "port": port}]}]});
    create(&admin, "/api/v1/namespaces/default/endpoints", &endpoints).await;

    let to_pod = format!("{PODS}/https:p:{port}/proxy");
    for proxy in [to_pod, to_service("web/proxy"), to_service("443/proxy")] {
        let answer =
            admin.request(Method::PUT, &format!("{proxy}/a%2Fb/?path=c"), "text/plain", "body").await;
        let echoed = answer.json();
        assert_eq!(
            (&echoed["method"], &echoed["target"], &echoed["body"]),
            (&"PUT".into(), &"/a/b/?path=c".into(), &"body".into()),
            "{}",
            answer.text()
        );
        let page = admin.get(&format!("{proxy}/page.html")).await;
        let plain = proxy.as_str();
        assert_eq!(page.text(), format!("<a href=\"{plain}/next\">next</a><a href=\"near\">near</a>"));
        let moved = admin.get(&format!("{proxy}/moved")).await;
        assert_eq!(
            (moved.status.as_u16(), moved.header("location")),
            (302, format!("{plain}/next?x=1").as_str())
        );
    }
    let unknown = admin.get(&to_service("nope/proxy/")).await;
    assert_eq!(message(&unknown, 503), "no endpoints available for service \"https:s:nope\"");
    let plain = admin.get(&format!("{PODS}/p:{port}/proxy/")).await;
    let failure = message(&plain, 503);
    assert!(failure.starts_with("error trying to reach service: "), "TLS is not guessed: {failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_uses_the_urls_of_its_annotation() {
    let backend = Backend::start("urls.example.com").await;
    let portico = crate::proxying::routed(&backend).await;
    for service in ["backend", "https:backend:443"] {
        let path = format!("/api/v1/namespaces/default/services/{service}/proxy/flunders?x=1");
        let answer = portico.admin().get(&path).await;
        assert_eq!(answer.json()["target"], "/flunders?x=1", "{}", answer.text());
        assert!(
            backend.last_request().all("x-remote-user").is_empty(),
            "the identity is for API servers alone"
        );
    }
    let other = portico.admin().get("/api/v1/namespaces/default/services/backend:444/proxy/").await;
    assert_eq!(other.status, 404, "{}", other.text());
}

/// Reads frames until the server has responded to a PING, which it does after all earlier frames.
async fn frames_before_a_ping(
    frames: &mut http2::FrameReader,
    sink: &mut http2::FrameSink,
) -> Vec<http2::ReceivedFrame> {
    sink.write_all(&frame(PING, 0, 0, &[0; 8])).await.unwrap();
    sink.flush().await.unwrap();
    let mut before = Vec::new();
    loop {
        let frame = frames.next().await.unwrap();
        if frame.kind == PING {
            return before;
        }
        before.push(frame);
    }
}

/// curl of Debian 12 discards a response whose stream is reset while curl still sends.
#[tokio::test(flavor = "multi_thread")]
async fn an_early_response_waits_for_the_rest_of_the_body() {
    let portico = Launch::new().start().await;
    let (mut frames, mut sink) = http2::open(&portico.anonymous(), &[]).await.unwrap();
    for (stream, path) in [(1, "/nosuch"), (3, "/api/v1/namespaces/default/configmaps")] {
        sink.write_all(&frame(HEADERS, END_HEADERS, stream, &head("POST", path))).await.unwrap();
        let mut seen = frames_before_a_ping(&mut frames, &mut sink).await;
        sink.write_all(&frame(DATA, END_STREAM, stream, b"{}")).await.unwrap();
        sink.flush().await.unwrap();
        let ends = |frame: &http2::ReceivedFrame| frame.stream == stream && frame.flags & END_STREAM != 0;
        while !seen.iter().any(ends) {
            seen.push(tokio::time::timeout(WAIT_LIMIT, frames.next()).await.unwrap().unwrap());
        }
        seen.extend(frames_before_a_ping(&mut frames, &mut sink).await);
        assert!(seen.iter().all(|frame| frame.kind != RST_STREAM), "{path}: {seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_to_head_has_no_body_over_http2() {
    let portico = Launch::new().start().await;
    let backend = Backend::start("heads.example.com").await;
    register(&portico, &backend).await;
    let (mut frames, mut sink) = http2::open(&portico.anonymous(), &[]).await.unwrap();
    let proxied = backend.path("/flunders");
    let paths = [
        "/api/v1/namespaces",
        "/api/v1/namespaces/default",
        "/api/v1/nosuch",
        "/nosuch",
        "/version",
        "/apis",
        "/openapi/v2",
        "/metrics",
        "/healthz",
        "/console/",
        &proxied,
    ];
    for (at, path) in paths.into_iter().enumerate() {
        for (token, odd) in [("admin-token", 1), ("carol-token", 3)] {
            let stream = u32::try_from(4 * at).unwrap() + odd;
            let mut block = head("HEAD", path);
            block.extend(literal("authorization", &format!("Bearer {token}")));
            sink.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)).await.unwrap();
            sink.flush().await.unwrap();
            let of_stream = async {
                loop {
                    let frame = frames.next().await.unwrap();
                    if frame.stream == stream {
                        return frame;
                    }
                }
            };
            let answer = tokio::time::timeout(WAIT_LIMIT, of_stream).await.unwrap();
            let whole = answer.kind == HEADERS && answer.flags & END_STREAM != 0;
            assert!(whole, "{path} as {token}: {answer:?}");
        }
    }
}
