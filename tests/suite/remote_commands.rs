//! WebSockets to kubelets that support only SPDY: commands and ports, with an independent WebSocket client and with kubectl.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use http::{Method, Request};
use portico_tests::http::Http;
use portico_tests::objects::PODS;
use portico_tests::pki::Authority;
use portico_tests::tools::{is_installed, line_with, output};
use portico_tests::{Launch, Portico, SpdyKubelet, WAIT_LIMIT, eventually, report_skip, wait_until};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::audit::{METADATA, lines};

const V5: &str = "v5.channel.k8s.io";

type Socket = WebSocketStream<TlsStream<TcpStream>>;

/// A server with a node that has this kubelet, and pod `p` on it.
struct Cluster<K> {
    kubelet: K,
    portico: Portico,
    _files: tempfile::TempDir,
}

impl Cluster<SpdyKubelet> {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(flags: &[&str]) -> Self {
        let clients = Authority::new("kubelet-clients");
        let kubelet = SpdyKubelet::start(&clients.pem).await;
        let (port, ca) = (kubelet.address.port(), kubelet.ca.clone());
        Self::with_kubelet(kubelet, port, &ca, &clients, flags).await
    }
}

impl<K> Cluster<K> {
    async fn with_kubelet(kubelet: K, port: u16, ca: &str, clients: &Authority, flags: &[&str]) -> Self {
        let pair = clients.client("kube-apiserver", &["system:masters"]);
        let files = tempfile::tempdir().unwrap();
        let mut launch = Launch::new().args(flags);
        for (flag, text) in [
            ("--kubelet-client-certificate", &*pair.cert),
            ("--kubelet-client-key", &pair.key),
            ("--kubelet-certificate-authority", ca),
        ] {
            let path = files.path().join(&flag[2..]);
            std::fs::write(&path, text).unwrap();
            launch = launch.arg(flag).arg(&path.to_string_lossy());
        }
        let portico = launch.start().await;
        let admin = portico.admin();
        create(&admin, "/api/v1/nodes", &node("n1", port, &json!([]))).await;
        create(&admin, PODS, &pod("p", "n1")).await;
        let running = json!({"status": {"phase": "Running"}});
        assert_eq!(admin.merge(&format!("{PODS}/p/status"), &running).await.status, 200);
        Self { kubelet, portico, _files: files }
    }

    async fn open(&self, path: &str, protocols: &str) -> Result<(Socket, String), Error> {
        let url = format!("wss://{}{PODS}/{path}", self.portico.https());
        let mut request: Request<()> = url.into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("authorization", "Bearer admin-token".parse().unwrap());
        headers.insert("sec-websocket-protocol", protocols.parse().unwrap());
        let stream = self.portico.admin().dial().await.unwrap();
        let (socket, response) = client_async(request, stream).await?;
        let protocol = response.headers().get("sec-websocket-protocol");
        Ok((socket, protocol.map(|p| p.to_str().unwrap().to_owned()).unwrap_or_default()))
    }

    /// Waits until a counter has this value.
    async fn wait_for_count(&self, sample: &str) {
        let admin = self.portico.admin();
        eventually(sample, || async {
            let metrics = admin.get("/metrics").await.text();
            if metrics.lines().any(|line| line == sample) { Ok(()) } else { Err(metrics) }
        })
        .await;
    }

    fn kubectl(&self, args: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(self.portico.data().join("admin.kubeconfig"));
        command.arg("--cache-dir").arg(self.portico.folder().join("kubectl-cache"));
        command.env("HOME", self.portico.folder()).args(args);
        command
    }
}

fn node(name: &str, port: u16, declared: &Value) -> Value {
    json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}, "status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "declaredFeatures": declared,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}})
}

fn pod(name: &str, node: &str) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": {
        "automountServiceAccountToken": false, "nodeName": node,
        "containers": [{"name": "c", "image": "x", "stdin": true}]}})
}

/// Creates an object; the namespace's service account may be created later.
async fn create(admin: &Http, path: &str, object: &Value) {
    eventually(&format!("{path} accepts an object"), || async {
        let answer = admin.post(path, object).await;
        if matches!(answer.status.as_u16(), 201 | 409) { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

async fn send(socket: &mut Socket, message: &[u8]) {
    socket.send(Message::binary(message.to_vec())).await.unwrap();
}

async fn next(socket: &mut Socket) -> Message {
    tokio::time::timeout(WAIT_LIMIT, socket.next()).await.unwrap().unwrap().unwrap()
}

/// Returns all data that a client receives until the end, by channel; checks the empty first message and the normal closure.
async fn receive_all(socket: &mut Socket) -> [String; 4] {
    let mut channels = [const { String::new() }; 4];
    loop {
        match next(socket).await {
            Message::Binary(bytes) => {
                channels[usize::from(bytes[0])].push_str(std::str::from_utf8(&bytes[1..]).unwrap())
            }
            Message::Close(frame) => {
                assert_eq!(frame.unwrap().code, CloseCode::Normal);
                return channels;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_gets_input_and_the_client_output_and_status() {
    let cluster = Cluster::start().await;
    let path = "p/exec?command=cat&stdin=true&stdout=true";
    let (mut socket, protocol) = cluster.open(path, &format!("{V5}, v4.channel.k8s.io")).await.unwrap();
    assert_eq!(protocol, V5);
    assert_eq!(next(&mut socket).await, Message::binary(vec![1]), "it stands");
    for words in ["hello", "again"] {
        send(&mut socket, &[b"\0", words.as_bytes()].concat()).await;
        assert_eq!(next(&mut socket).await, Message::binary([b"\x01", words.as_bytes()].concat()));
    }
    send(&mut socket, b"\xff\0").await;
    let [_, out, _, status] = receive_all(&mut socket).await;
    assert_eq!((out.as_str(), status.as_str()), ("", r#"{"metadata":{},"status":"Success"}"#));
    let seen = cluster.kubelet.last_request();
    assert_eq!(
        (&seen.method, seen.target.as_str()),
        (&Method::POST, "/exec/default/p/c?command=cat&input=1&output=1")
    );
    assert_eq!(seen.all("upgrade"), ["SPDY/3.1"]);
    assert_eq!(seen.all("x-stream-protocol-version")[..2], [V5, "v4.channel.k8s.io"]);
    for absent in ["authorization", "sec-websocket-key", "sec-websocket-protocol", "x-remote-user"] {
        assert!(seen.all(absent).is_empty(), "{absent}");
    }
    cluster.wait_for_count("apiserver_stream_translator_requests_total{code=\"200\"} 1").await;
    let metric = "apiserver_websocket_streaming_requests_total{proxy_type=\"translated_at_apiserver\",subresource=\"exec\"} 1";
    cluster.wait_for_count(metric).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_command_has_upstreams_messages() {
    let cluster = Cluster::start().await;
    let exec = |command: &str| format!("p/exec?command={command}&stdout=true&stderr=true");
    let internal = |message: &str| {
        let cause = json!({"message": message});
        json!({"metadata": {}, "status": "Failure", "message": format!("Internal error occurred: {message}"),
            "reason": "InternalError", "details": {"causes": [cause]}, "code": 500})
    };
    let exit = "command terminated with non-zero exit code: command terminated with exit code 7";
    for (command, out, err, want) in [
        (
            "fail",
            "out\n",
            "err\n",
            json!({"metadata": {}, "status": "Failure", "message": exit, "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": "7"}]}}),
        ),
        ("vanish", "out\n", "", internal("the kubelet did not say how the command ended")),
        ("refused", "", "", internal("unable to upgrade connection: no such container")),
    ] {
        let (mut socket, _) = cluster.open(&exec(command), V5).await.unwrap();
        let [_, printed, wrong, status] = receive_all(&mut socket).await;
        assert_eq!((printed.as_str(), wrong.as_str()), (out, err), "{command}");
        assert_eq!(serde_json::from_str::<Value>(&status).unwrap(), want, "{command}");
    }
    cluster.wait_for_count("apiserver_stream_translator_requests_total{code=\"500\"} 2").await;
    let admin = cluster.portico.admin();
    create(&admin, "/api/v1/nodes", &node("dead", 1, &json!([]))).await;
    create(&admin, PODS, &pod("lost", "dead")).await;
    let (mut socket, _) = cluster.open("lost/exec?command=x&stderr=true", V5).await.unwrap();
    assert_eq!(next(&mut socket).await, Message::binary(vec![2]));
    let [.., status] = receive_all(&mut socket).await;
    let message = "Internal error occurred: error sending request: Post \\\"https://127.0.0.1:1/exec/default/lost/c?command=x&error=1\\\": ";
    assert!(status.contains(message), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_has_sizes_and_no_stderr() {
    let cluster = Cluster::start().await;
    let path = "p/attach?stdin=true&stdout=true&stderr=true&tty=true";
    let (mut socket, _) = cluster.open(path, V5).await.unwrap();
    assert_eq!(next(&mut socket).await, Message::binary(vec![1]));
    assert_eq!(next(&mut socket).await, Message::binary(b"\x01attached\n".to_vec()));
    let size = r#"{"Width":80,"Height":24}"#;
    send(&mut socket, &[b"\x04", size.as_bytes()].concat()).await;
    assert_eq!(next(&mut socket).await, Message::binary([b"\x01", size.as_bytes()].concat()));
    send(&mut socket, b"\xff\0").await;
    assert!(receive_all(&mut socket).await[3].contains("Success"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnected_or_stalled_client_affects_only_its_command() {
    let cluster = Cluster::start().await;
    let flood = "p/exec?command=flood&stdout=true";
    let (slow, _) = cluster.open(flood, V5).await.unwrap();
    let (mut quick, _) = cluster.open("p/exec?command=cat&stdin=true&stdout=true", V5).await.unwrap();
    send(&mut quick, b"\0x").await;
    assert_eq!(next(&mut quick).await, Message::binary(vec![1]));
    assert_eq!(next(&mut quick).await, Message::binary(b"\x01x".to_vec()));
    cluster.wait_for_count("portico_proxy_upgraded_connections 2").await;
    drop((slow, quick));
    cluster.wait_for_count("portico_proxy_upgraded_connections 0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnect_while_the_kubelet_hangs_releases_everything() {
    let cluster = Cluster::start().await;
    for (at, command) in ["hangs", "unaccepted"].into_iter().enumerate() {
        let path = format!("p/exec?command={command}&stdout=true");
        let (mut client, _) = cluster.open(&path, V5).await.unwrap();
        client.send(Message::Ping(b"there?".as_slice().into())).await.unwrap();
        wait_until("the kubelet has received the request", || {
            std::future::ready(cluster.kubelet.requests().len() > at)
        })
        .await;
        cluster.wait_for_count("portico_proxy_upgraded_connections 1").await;
        drop(client);
        cluster.wait_for_count("portico_proxy_upgraded_connections 0").await;
        // 500 would mean that the request has waited for the kubelet.
        cluster
            .wait_for_count(&format!("apiserver_stream_translator_requests_total{{code=\"200\"}} {}", at + 1))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_ports_are_counted_and_incomplete_in_the_audit_log_until_they_end() {
    let files = tempfile::tempdir().unwrap();
    let (policy, log) = (files.path().join("policy.yaml"), files.path().join("audit.log"));
    std::fs::write(&policy, METADATA).unwrap();
    let (policy, log_path) = (policy.to_str().unwrap(), log.to_str().unwrap());
    let cluster = Cluster::start_with(&["--audit-policy-file", policy, "--audit-log-path", log_path]).await;
    for (subresource, query, protocol) in [
        ("exec", "command=cat&stdin=true&stdout=true", V5),
        ("portforward", "ports=80", "SPDY/3.1+portforward.k8s.io"),
    ] {
        let (mut socket, _) = cluster.open(&format!("p/{subresource}?{query}"), protocol).await.unwrap();
        cluster.wait_for_count("portico_proxy_upgraded_connections 1").await;
        let ended = || {
            let complete = lines(&log).into_iter().filter(|event| event["stage"] == "ResponseComplete");
            complete.filter(|event| event["objectRef"]["subresource"] == subresource).count()
        };
        assert_eq!(ended(), 0, "{subresource}");
        let under_way = |count| {
            format!(
                "apiserver_longrunning_requests{{verb=\"CONNECT\",group=\"\",version=\"v1\",resource=\"pods\",\
                 subresource=\"{subresource}\",scope=\"resource\",component=\"apiserver\"}} {count}"
            )
        };
        cluster.wait_for_count(&under_way(1)).await;
        socket.close(None).await.unwrap();
        drop(socket);
        cluster.wait_for_count(&under_way(0)).await;
        wait_until("the end of the connection is recorded", || std::future::ready(ended() == 1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_commands_and_oversized_messages_end() {
    let flags = ["--streaming-connection-idle-timeout", "1s", "--streaming-max-message-bytes", "1000"];
    let cluster = Cluster::start_with(&flags).await;
    let cat = "p/exec?command=cat&stdin=true&stdout=true";
    let (mut silent, _) = cluster.open(cat, V5).await.unwrap();
    let [.., status] = receive_all(&mut silent).await;
    assert!(status.contains("Internal error occurred: no data for 1s"), "{status}");
    let (mut long, _) = cluster.open(cat, V5).await.unwrap();
    assert_eq!(next(&mut long).await, Message::binary(vec![1]));
    send(&mut long, &[0; 1001]).await;
    assert_eq!(
        receive_all(&mut long).await,
        [const { String::new() }; 4],
        "no part of the long message was forwarded"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_limited_to_its_rate() {
    let cluster = Cluster::start_with(&["--max-connection-bytes-per-sec", "20000"]).await;
    let (mut socket, _) = cluster.open("p/exec?command=cat&stdin=true&stdout=true", V5).await.unwrap();
    let begin = Instant::now();
    let mut input = vec![0];
    input.resize(30_001, b'x');
    send(&mut socket, &input).await;
    let mut echoed = 0;
    while echoed < 30_000 {
        if let Message::Binary(bytes) = next(&mut socket).await {
            echoed += bytes.len() - 1;
        }
    }
    // The bytes of a tenth of a second may be sent at once.
    assert!(begin.elapsed() >= Duration::from_secs(1), "{:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_with_declared_websocket_support_gets_websocket() {
    let cluster = Cluster::start().await;
    let declared = json!({"status": {"declaredFeatures": ["ExtendWebSocketsToKubelet"]}});
    let admin = cluster.portico.admin();
    assert_eq!(admin.merge("/api/v1/nodes/n1/status", &declared).await.status, 200);
    for (path, protocol) in
        [("p/exec?command=cat&stdout=true", V5), ("p/portforward?ports=80", "SPDY/3.1+portforward.k8s.io")]
    {
        let refused = cluster.open(path, protocol).await.map(drop);
        let Err(Error::Http(response)) = refused else { panic!("{refused:?}") };
        assert_eq!(response.status(), 400, "this request supports no subprotocol");
        let seen = cluster.kubelet.last_request();
        assert_eq!(
            (seen.method.as_str(), seen.all("sec-websocket-protocol")),
            ("GET", vec![protocol.to_owned()])
        );
    }
    let metric = "apiserver_websocket_streaming_requests_total{proxy_type=\"proxied_to_kubelet\",subresource=\"exec\"} 1";
    cluster.wait_for_count(metric).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spdy_in_messages_reaches_the_kubelet_as_spdy() {
    use bytes::BytesMut;
    use portico_spdy::{Decoder, DecoderLimits, Encoder, Frame};

    let cluster = Cluster::start().await;
    let offered = "SPDY/3.1+portforward.k8s.io";
    let (mut socket, protocol) = cluster.open("p/portforward?ports=80", offered).await.unwrap();
    assert_eq!(protocol, offered);
    let seen = cluster.kubelet.last_request();
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/portForward/default/p?port=80"));
    assert_eq!(seen.all("x-stream-protocol-version"), ["portforward.k8s.io"]);
    assert!(seen.all("sec-websocket-key").is_empty() && seen.all("authorization").is_empty());
    let mut ping = BytesMut::new();
    Encoder::new().unwrap().encode(&Frame::Ping(1), &mut ping).unwrap();
    // Frames may span several messages.
    let (first, second) = ping.split_at(5);
    send(&mut socket, first).await;
    send(&mut socket, second).await;
    let Message::Binary(answer) = next(&mut socket).await else { panic!() };
    let mut answer = BytesMut::from(&answer[..]);
    assert_eq!(Decoder::new(DecoderLimits::default()).decode(&mut answer), Ok(Some(Frame::Ping(1))));
    socket.send(Message::Close(None)).await.unwrap();
    let ended = async { while let Some(Ok(_)) = socket.next().await {} };
    tokio::time::timeout(WAIT_LIMIT, ended).await.expect("the tunnel ends");
    cluster.wait_for_count("apiserver_stream_tunnel_requests_total{code=\"101\"} 1").await;
}

/// Runs commands with kubectl over WebSocket and over SPDY.
async fn kubectl_runs_commands<K>(cluster: &Cluster<K>) {
    for web_sockets in ["true", "false"] {
        let exec = |args: &[&str]| {
            let mut command = cluster.kubectl(args);
            command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", web_sockets);
            command
        };
        let failed = output(&mut exec(&["exec", "p", "--", "fail"]));
        let err = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!((failed.status.code(), &*failed.stdout), (Some(7), &b"out\n"[..]), "{err}");
        assert!(err.contains("err\n") && err.contains("exit code 7"), "{err}");
        // Half a megabyte of input, its end, and the complete echo.
        let input = cluster.portico.folder().join("input");
        let sent: Vec<u8> = (0..1 << 19).map(|n: u32| n.to_be_bytes()[2]).collect();
        std::fs::write(&input, &sent).unwrap();
        let script = "exec \"$@\" < \"$INPUT\"";
        let inner = exec(&["exec", "-i", "p", "--", "cat"]);
        let mut piped = Command::new("sh");
        piped.args(["-c", script, "sh"]).arg(inner.get_program()).args(inner.get_args()).env("INPUT", &input);
        piped.env("HOME", cluster.portico.folder()).env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", web_sockets);
        let back = output(&mut piped);
        let err = String::from_utf8_lossy(&back.stderr).into_owned();
        assert!(back.status.success() && back.stdout == sent, "{} bytes; {err}", back.stdout.len());
        let attached = output(&mut exec(&["attach", "p"]));
        assert!(String::from_utf8_lossy(&attached.stdout).contains("attached"), "{attached:?}");
    }
    cluster.wait_for_count("apiserver_stream_translator_requests_total{code=\"200\"} 3").await;
}

/// Forwards ports with kubectl over WebSocket and over SPDY.
async fn kubectl_forwards_ports<K>(cluster: &Cluster<K>) {
    for web_sockets in ["true", "false"] {
        let mut forward = cluster.kubectl(&["port-forward", "--address", "127.0.0.1", "p", ":80"]);
        // Output goes to a file, because kubectl continues to write.
        let lines = cluster.portico.folder().join(format!("forwarded-{web_sockets}"));
        let file = std::fs::File::create(&lines).unwrap();
        let mut forward =
            forward.env("KUBECTL_PORT_FORWARD_WEBSOCKETS", web_sockets).stdout(file).spawn().unwrap();
        let port = eventually("kubectl prints its port", || async {
            let printed = std::fs::read_to_string(&lines).unwrap();
            let words = printed.split([':', ' ']).find_map(|word| word.parse::<u16>().ok());
            words.ok_or(printed)
        })
        .await;
        for round in 0..2 {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let sent = vec![b'a' + round; 100_000];
            let (mut read, mut write) = stream.split();
            let mut back = Vec::new();
            let both = async {
                tokio::join!(
                    async {
                        write.write_all(&sent).await.unwrap();
                        write.shutdown().await.unwrap();
                    },
                    async { read.read_to_end(&mut back).await.unwrap() }
                )
            };
            tokio::time::timeout(WAIT_LIMIT, both).await.unwrap();
            assert!(back == sent, "{} bytes came back", back.len());
        }
        forward.kill().unwrap();
        forward.wait().unwrap();
    }
    cluster.wait_for_count("apiserver_stream_tunnel_requests_total{code=\"101\"} 1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_uses_websocket_with_a_spdy_kubelet() {
    if !is_installed("kubectl") {
        return;
    }
    let cluster = Cluster::start().await;
    kubectl_runs_commands(&cluster).await;
    let methods: Vec<_> = cluster.kubelet.requests().iter().map(|seen| seen.method.clone()).collect();
    assert_eq!(methods, vec![Method::POST; 6], "no client had to ask twice");
    kubectl_forwards_ports(&cluster).await;
}

/// The streaming server that kubelets and container runtimes use (tests/go/kubelet).
struct UpstreamsKubelet {
    process: Child,
    port: u16,
}

impl UpstreamsKubelet {
    /// Builds and starts it. `None`, and a report, if it cannot be built.
    fn start(authority: &Authority, folder: &Path) -> Option<Self> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/go/kubelet");
        let program = folder.join("kubelet");
        let built = Command::new("go")
            .args(["build", "-o"])
            .arg(&program)
            .arg(".")
            .current_dir(source)
            .output()
            .unwrap();
        if !built.status.success() {
            report_skip(&format!(
                "tests/go/kubelet is not built: {}",
                String::from_utf8_lossy(&built.stderr)
            ));
            return None;
        }
        let pair = authority.server(&["127.0.0.1"]);
        let (cert, key) = (folder.join("kubelet.crt"), folder.join("kubelet.key"));
        std::fs::write(&cert, pair.cert).unwrap();
        std::fs::write(&key, pair.key).unwrap();
        let mut process = Command::new(program)
            .arg("--tls-cert-file")
            .arg(cert)
            .arg("--tls-private-key-file")
            .arg(key)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let line = line_with(process.stdout.take().unwrap(), "listening on");
        let port = line.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap();
        Some(Self { process, port })
    }
}

impl Drop for UpstreamsKubelet {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn upstreams_streaming_server_accepts_the_translation() {
    if !is_installed("kubectl") || !is_installed("go") {
        return;
    }
    let (authority, clients) = (Authority::new("kubelet-ca"), Authority::new("kubelet-clients"));
    let folder = tempfile::tempdir().unwrap();
    let Some(kubelet) = UpstreamsKubelet::start(&authority, folder.path()) else { return };
    let port = kubelet.port;
    let cluster = Cluster::with_kubelet(kubelet, port, &authority.pem, &clients, &[]).await;
    kubectl_runs_commands(&cluster).await;
    kubectl_forwards_ports(&cluster).await;
    // The response of kube-apiserver 1.36.3 in front of the same server.
    let terminal = "p/exec?command=sizes&stdin=true&stdout=true&stderr=true&tty=true";
    let (mut socket, _) = cluster.open(terminal, V5).await.unwrap();
    send(&mut socket, b"\x04{\"Width\":80,\"Height\":24}").await;
    let [_, out, _, status] = receive_all(&mut socket).await;
    assert_eq!(
        (&*out, &*status),
        ("{\"Width\":80,\"Height\":24}\n", r#"{"metadata":{},"status":"Success"}"#)
    );
    let (mut socket, _) = cluster.open("p/exec?command=cat", V5).await.unwrap();
    let [.., status] = receive_all(&mut socket).await;
    let why = "unable to upgrade connection: you must specify at least 1 of stdin, stdout, stderr";
    assert!(status.contains(&format!("\"Internal error occurred: {why}\"")), "{status}");
}
