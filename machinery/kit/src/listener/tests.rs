//! Tests of the accept loop over real sockets with real TLS.

use std::future::ready;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::*;
use crate::dial::Connection;
use crate::drain;
use crate::fixture::{
    HOUR, client_pair, client_tls, connector, expired_pair, listener, server_pair, server_tls, target,
};
use crate::pki::{Authority, CertProfile};
use crate::tasks::TaskSet;
use crate::tls::{Alpn, ClientTls, Roots, ServerTlsOptions, SniCert};

struct Server {
    addr: SocketAddr,
    incoming: mpsc::UnboundedReceiver<AcceptedConnection>,
    tls: ServerTls,
    drain: drain::Signal,
    tasks: TaskSet,
    metrics: ListenerMetrics,
}

fn serve(tls: ServerTls, change: impl FnOnce(&mut ListenerOptions)) -> Server {
    let mut options = ListenerOptions::new("test");
    change(&mut options);
    let listener = listener(tls.clone(), options);
    let (addr, metrics) = (listener.local_addr().unwrap(), listener.metrics.clone());
    let (tasks, (signal, watch)) = (TaskSet::new(), drain::channel());
    let (tx, incoming) = mpsc::unbounded_channel();
    let hand_over = move |accepted| {
        // Fails at the end of a test, when the receiver is dropped.
        let _ = tx.send(accepted);
        ready(())
    };
    tasks.spawn("test", listener.serve(tasks.clone(), watch, hand_over));
    Server { addr, incoming, tls, drain: signal, tasks, metrics }
}

async fn dial(addr: SocketAddr, tls: &ClientTls) -> Connection {
    connector(HOUR, HOUR).connect_tls(&target(addr), tls).await.unwrap()
}

#[tokio::test]
async fn a_connection_has_a_peer_address_and_transfers_bytes() {
    let authority = Authority::create("ca").unwrap();
    let mut server = serve(server_tls(server_pair(&authority, &["a.ns.svc"])), |_| {});
    let roots = Roots::bundle("ca", authority.cert_pem().as_bytes());
    // Signed by a CA that the server does not trust: the handshake only proves possession of the key.
    let stranger = client_pair(&Authority::create("stranger").unwrap(), "alice", &["devs"]);
    let tls = ClientTls::builder().roots(roots).server_name("a.ns.svc").alpn(Alpn::Both);
    let mut client = dial(server.addr, &tls.client_cert(Some(stranger)).build().unwrap()).await;
    let mut accepted = server.incoming.recv().await.unwrap();
    let peer = accepted.peer.clone();
    assert!(peer.is_http2());
    assert_eq!(peer.server_name.as_deref(), Some("a.ns.svc"));
    assert_eq!((peer.local_addr, peer.addr.ip().is_loopback()), (server.addr, true));
    let info = crate::pki::CertInfo::parse(&peer.cert_chain.as_ref().unwrap()[0]).unwrap();
    assert_eq!(
        (info.common_name.as_str(), info.organizations.as_slice()),
        ("alice", &["devs".to_owned()][..])
    );
    client.write_all(b"ping").await.unwrap();
    let mut read = [0; 4];
    accepted.io.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"ping");
}

#[tokio::test]
async fn a_client_without_certificate_is_accepted_in_either_version() {
    let authority = Authority::create("ca").unwrap();
    let mut server = serve(server_tls(server_pair(&authority, &["a"])), |_| {});
    let _connection = dial(server.addr, &client_tls(&authority, "a", Alpn::Http1)).await;
    let accepted = server.incoming.recv().await.unwrap();
    assert!(accepted.peer.cert_chain.is_none() && !accepted.peer.is_http2());
}

#[tokio::test]
async fn an_expired_client_certificate_does_not_fail_the_handshake() {
    let authority = Authority::create("ca").unwrap();
    let mut server = serve(server_tls(server_pair(&authority, &["a"])), |_| {});
    let expired = expired_pair(&authority, &CertProfile::client("late", &[], HOUR));
    let roots = Roots::bundle("ca", authority.cert_pem().as_bytes());
    let tls = ClientTls::builder().roots(roots).server_name("a");
    let tls = tls.client_cert(Some(expired)).build().unwrap();
    let _connection = dial(server.addr, &tls).await;
    assert!(server.incoming.recv().await.unwrap().peer.cert_chain.is_some());
}

#[tokio::test]
async fn certificates_are_chosen_by_name_and_replaced_while_serving() {
    let authority = Authority::create("ca").unwrap();
    let pair = |name: &str| server_pair(&authority, &[name]);
    let sni = |name: &str| SniCert { pair: pair(name), names: Vec::new() };
    let options = ServerTlsOptions::default();
    let tls =
        ServerTls::new(pair("default.example"), &[sni("*.wild.example"), sni("one.wild.example")], &options);
    let mut server = serve(tls.unwrap(), |_| {});
    for name in ["default.example", "one.wild.example", "two.wild.example"] {
        let connection = dial(server.addr, &client_tls(&authority, name, Alpn::Http1)).await;
        drop((connection, server.incoming.recv().await.unwrap()));
    }
    server.tls.replace(pair("next.example"), &[]);
    let _connection = dial(server.addr, &client_tls(&authority, "next.example", Alpn::Http1)).await;
    server.incoming.recv().await.unwrap();
}

#[tokio::test]
async fn clients_without_a_valid_handshake_are_dropped_and_counted() {
    let authority = Authority::create("ca").unwrap();
    let server = serve(server_tls(server_pair(&authority, &["a"])), |options| {
        options.handshake_timeout = Duration::from_millis(50);
    });
    let mut silent = TcpStream::connect(server.addr).await.unwrap();
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0);
    let mut foreign = TcpStream::connect(server.addr).await.unwrap();
    foreign.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    let _ = foreign.read_to_end(&mut rest).await;
    assert_eq!(server.metrics.handshake_errors.get(), 2);
    assert!(server.tasks.shutdown(Duration::from_secs(5)).await.is_empty());
    assert_eq!(server.metrics.connections.get(), 0);
}

#[tokio::test]
async fn at_the_maximum_the_next_connection_waits_for_a_permit() {
    let authority = Authority::create("ca").unwrap();
    let mut server =
        serve(server_tls(server_pair(&authority, &["a"])), |options| options.max_connections = 1);
    let tls = client_tls(&authority, "a", Alpn::Http1);
    let first = dial(server.addr, &tls).await;
    let accepted = server.incoming.recv().await.unwrap();
    assert_eq!(server.metrics.connections.get(), 1);
    let (addr, second_tls) = (server.addr, tls.clone());
    let mut second = Box::pin(async move { dial(addr, &second_tls).await });
    assert!(tokio::time::timeout(Duration::from_millis(100), second.as_mut()).await.is_err());
    drop((first, accepted));
    second.await;
    server.incoming.recv().await.unwrap();
}

#[tokio::test]
async fn a_drain_closes_the_listener_and_keeps_open_connections() {
    let authority = Authority::create("ca").unwrap();
    let mut server = serve(server_tls(server_pair(&authority, &["a"])), |_| {});
    let mut client = dial(server.addr, &client_tls(&authority, "a", Alpn::Http1)).await;
    let mut accepted = server.incoming.recv().await.unwrap();
    server.drain.drain().await;
    assert!(server.incoming.recv().await.is_none());
    assert!(TcpStream::connect(server.addr).await.is_err());
    accepted.io.write_all(b"bye").await.unwrap();
    accepted.io.flush().await.unwrap();
    let mut read = [0; 3];
    client.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"bye");
}

#[tokio::test]
async fn connections_rotate_over_the_serving_threads() {
    let authority = Authority::create("ca").unwrap();
    let mut options = ListenerOptions::new("test");
    options.runtimes = Some(Arc::new(ConnectionRuntimes::start("test-runtime", 2).unwrap()));
    let listener = listener(server_tls(server_pair(&authority, &["a.ns.svc"])), options);
    let (addr, tasks, (signal, watch)) = (listener.local_addr().unwrap(), TaskSet::new(), drain::channel());
    let (tx, mut served) = tokio::sync::mpsc::unbounded_channel();
    let set = tasks.clone();
    tasks.spawn("listener", async move {
        let hand_over = move |mut accepted: AcceptedConnection| {
            let tx = tx.clone();
            async move {
                let mut words = [0; 4];
                accepted.io.read_exact(&mut words).await.unwrap();
                accepted.io.write_all(&words).await.unwrap();
                tx.send(std::thread::current().id()).unwrap();
            }
        };
        listener.serve(set, watch, hand_over).await;
    });
    let mut threads = Vec::new();
    for _ in 0..3 {
        let mut client = dial(addr, &client_tls(&authority, "a.ns.svc", Alpn::Http1)).await;
        client.write_all(b"ping").await.unwrap();
        let mut words = [0; 4];
        client.read_exact(&mut words).await.unwrap();
        threads.push(served.recv().await.unwrap());
    }
    assert_eq!(threads[0], threads[2]);
    assert!(threads[0] != threads[1] && !threads.contains(&std::thread::current().id()));
    signal.signal();
    assert!(tasks.shutdown(Duration::from_secs(5)).await.is_empty());
}
