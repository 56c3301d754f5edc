//! Error messages of each stage of a dial, over real sockets.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::egress::{EgressConfig, EgressDialer, EgressMetrics};
use crate::fixture::{Backend, HOUR, client_tls, connector, expired_pair, server_pair, server_tls, target};
use crate::metrics::{Format, Registry};
use crate::pki::{Authority, CertProfile};
use crate::tls::{Alpn, CertPair, ClientTls, FaultKind, Roots};

fn echo(pair: CertPair) -> Backend {
    Backend::start(server_tls(pair), |request, peer| {
        let text = format!("{} {:?} h2={}", request.uri().path(), request.version(), peer.is_http2());
        http::Response::new(Bytes::from(text).into())
    })
}

async fn tls_dial_error(target: &Target, tls: &ClientTls) -> DialError {
    connector(HOUR, Duration::from_millis(200)).connect_tls(target, tls).await.err().unwrap()
}

#[tokio::test]
async fn names_are_resolved_and_verified_under_the_override() {
    let authority = Authority::create("ca").unwrap();
    let backend = echo(server_pair(&authority, &["flunders.wardle.svc"]));
    let by_name = Target::new("localhost", backend.addr.port());
    let tls = client_tls(&authority, "flunders.wardle.svc", Alpn::Both);
    let connection = connector(HOUR, HOUR).connect_tls(&by_name, &tls).await.unwrap();
    assert_eq!(connection.alpn(), NegotiatedAlpn::Http2);
    assert_eq!(connection.remote_addr(), Some(backend.addr));
    assert!(connection.peer_certificates().is_some());
}

#[tokio::test]
async fn an_unknown_host_fails_at_resolve() {
    let tls = client_tls(&Authority::create("ca").unwrap(), "a", Alpn::Http1);
    let error = tls_dial_error(&Target::new("no-such-host.invalid", 443), &tls).await;
    assert_eq!(error.stage(), DialStage::Resolve);
    assert!(error.to_string().starts_with("cannot resolve no-such-host.invalid: "), "{error}");
}

#[tokio::test]
async fn a_closed_port_and_a_forbidden_address_fail_at_dial() {
    let tls = client_tls(&Authority::create("ca").unwrap(), "a", Alpn::Http1);
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = tls_dial_error(&target(free), &tls).await;
    assert_eq!(error.stage(), DialStage::Dial);
    assert_eq!(error.to_string(), format!("cannot connect to {free}: connection refused"));
    let error = tls_dial_error(&Target::new("169.254.169.254", 80), &tls).await;
    let words = "refused to dial 169.254.169.254:80: link-local addresses are not dialed";
    assert_eq!((error.stage(), error.to_string().as_str()), (DialStage::Dial, words));
}

#[tokio::test]
async fn listeners_of_this_process_are_refused_after_resolution() {
    let authority = Authority::create("ca").unwrap();
    let backend = echo(server_pair(&authority, &["a"]));
    let dialler = connector(HOUR, HOUR);
    dialler.policy().add_own_listener(backend.addr);
    let by_name = Target::new("localhost", backend.addr.port());
    let error = dialler.connect_tls(&by_name, &client_tls(&authority, "a", Alpn::Http1)).await.err().unwrap();
    // `localhost` may also be ::1, which has no listener; the first failure is returned.
    assert_eq!(error.stage(), DialStage::Dial);
    let error = dialler.connect_plain(&target(backend.addr)).await.err().unwrap();
    assert!(matches!(error, DialError::Refused { refusal: Refusal::OwnListener, .. }), "{error}");
}

#[tokio::test]
async fn a_refused_certificate_is_named_with_its_reason() {
    let (ours, theirs) = (Authority::create("ours").unwrap(), Authority::create("theirs").unwrap());
    let backend = echo(server_pair(&ours, &["a.ns.svc", "10.0.0.1"]));
    let at = target(backend.addr);

    let error = tls_dial_error(&at, &client_tls(&ours, "b.ns.svc", Alpn::Http1)).await;
    assert_eq!(error.certificate().unwrap().kind, FaultKind::NameMismatch);
    assert_eq!(
        error.to_string(),
        format!("TLS to {at}: certificate is valid for a.ns.svc, 10.0.0.1, not b.ns.svc")
    );

    let error = tls_dial_error(&at, &client_tls(&theirs, "a.ns.svc", Alpn::Http1)).await;
    assert_eq!(error.certificate().unwrap().kind, FaultKind::UnknownAuthority);
    let words = format!("TLS to {at}: certificate \"backend\" is signed by unknown authority \"ours\"");
    assert_eq!((error.stage(), error.to_string()), (DialStage::Tls, words));

    let insecure = ClientTls::builder().roots(Roots::Insecure).server_name("b.ns.svc").build().unwrap();
    assert!(connector(HOUR, HOUR).connect_tls(&at, &insecure).await.is_ok());
}

#[tokio::test]
async fn expired_and_nameless_certificates_have_distinct_messages() {
    let authority = Authority::create("ca").unwrap();
    let expired = echo(expired_pair(&authority, &CertProfile::server("old", &["a".to_owned()], HOUR)));
    let error = tls_dial_error(&target(expired.addr), &client_tls(&authority, "a", Alpn::Http1)).await;
    assert_eq!(error.certificate().unwrap().kind, FaultKind::Expired);
    assert!(error.to_string().contains("certificate \"old\" has expired: it was valid until 20"), "{error}");
    let nameless = echo(server_pair(&authority, &[]));
    let error = tls_dial_error(&target(nameless.addr), &client_tls(&authority, "a", Alpn::Http1)).await;
    assert_eq!(error.certificate().unwrap().kind, FaultKind::MissingSan, "{error}");
}

#[tokio::test]
async fn a_server_without_a_tls_handshake_fails_at_tls() {
    let tls = client_tls(&Authority::create("ca").unwrap(), "a", Alpn::Http1);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let error = tls_dial_error(&target(silent.local_addr().unwrap()), &tls).await;
    assert!(error.is_timeout() && error.to_string().ends_with("handshake timed out after 200ms"), "{error}");
    for (answer, words) in [
        (&b""[..], "closed the connection during the handshake"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak TLS"),
    ] {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = target(server.local_addr().unwrap());
        let serve = async {
            let (mut stream, _) = server.accept().await.unwrap();
            let mut hello = [0; 5];
            stream.read_exact(&mut hello).await.unwrap();
            stream.write_all(answer).await.unwrap();
            stream.shutdown().await.unwrap();
            let _ = stream.read_to_end(&mut Vec::new()).await;
        };
        let (error, ()) = tokio::join!(tls_dial_error(&at, &tls), serve);
        assert_eq!(error.stage(), DialStage::Tls);
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn dial_errors_can_be_found_in_errors_of_hyper_util() {
    let authority = Authority::create("ca").unwrap();
    let backend = echo(server_pair(&authority, &["a"]));
    for (alpn, words) in [(Alpn::Http1, "/x HTTP/1.1 h2=false"), (Alpn::Both, "/x HTTP/2.0 h2=true")] {
        let tls = client_tls(&authority, "a", alpn);
        let service = BackendConnector::new(connector(HOUR, HOUR), tls).with_target(target(backend.addr));
        let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build(service);
        let response = client.get("https://a/x".parse().unwrap()).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, words.as_bytes());
    }
    let service = BackendConnector::new(connector(HOUR, HOUR), client_tls(&authority, "b", Alpn::Http1));
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build(service);
    let error = client.get(format!("https://{}/x", backend.addr).parse().unwrap()).await.unwrap_err();
    assert_eq!(DialError::find(&error).unwrap().stage(), DialStage::Tls);
}

#[tokio::test]
async fn a_tunnel_over_a_unix_socket_carries_tls_and_is_counted() {
    let authority = Authority::create("ca").unwrap();
    let backend = echo(server_pair(&authority, &["a"]));
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("proxy.sock");
    let proxy = tokio::net::UnixListener::bind(&socket).unwrap();
    let config = format!(
        "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n\
         - name: cluster\n  connection: {{proxyProtocol: HTTPConnect, transport: {{uds: {{udsName: '{}'}}}}}}\n",
        socket.display()
    );
    let registry = Registry::new();
    let selection = EgressConfig::parse(&config).unwrap().selection("cluster").cloned().unwrap();
    let egress = EgressDialer::new(&selection, Some(EgressMetrics::new(&registry))).unwrap();
    let dialler = Connector::with_egress(ConnectorOptions::default(), egress);

    let addr = backend.addr;
    backend.tasks.spawn("test-proxy", async move {
        let (mut client, _) = proxy.accept().await.unwrap();
        let mut request = [0; 1024];
        let read = client.read(&mut request).await.unwrap();
        assert!(request[..read].starts_with(b"CONNECT backend.nowhere:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n"));
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
        let mut upstream = tokio::net::TcpStream::connect(addr).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut client, &mut upstream).await;
    });
    let tls = client_tls(&authority, "a", Alpn::Http1);
    let connection = dialler.connect_tls(&Target::new("backend.nowhere", 443), &tls).await.unwrap();
    assert!(connection.peer_certificates().is_some() && connection.remote_addr().is_none());
    drop(connection);

    std::fs::remove_file(&socket).unwrap();
    let error = dialler.connect_tls(&Target::new("backend.nowhere", 443), &tls).await.err().unwrap();
    assert_eq!(error.stage(), DialStage::Egress);
    assert!(error.to_string().starts_with("egress proxy, connect: "), "{error}");
    let error = dialler.connect_plain(&Target::new("169.254.169.254", 80)).await.err().unwrap();
    assert_eq!(error.stage(), DialStage::Dial);
    let text = registry.encode(Format::Text);
    let labels = "protocol=\"http_connect\",transport=\"uds\"";
    for line in [
        format!("apiserver_egress_dialer_dial_start_total{{{labels}}} 2"),
        format!("apiserver_egress_dialer_dial_failure_count{{{labels},stage=\"connect\"}} 1"),
        format!("apiserver_egress_dialer_dial_duration_seconds_count{{{labels}}} 1"),
    ] {
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
}

#[test]
fn targets_print_as_they_are_dialed() {
    assert_eq!(Target::new("[::1]", 443).to_string(), "[::1]:443");
    assert_eq!(Target::new("::1", 443), Target::new("[::1]", 443));
    assert_eq!(Target::new("a.b.svc", 8443).to_string(), "a.b.svc:8443");
}
