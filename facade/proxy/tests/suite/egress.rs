//! Requests and upgrades use the egress proxy, or fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use portico_kit::dial::{Connector, ConnectorOptions};
use portico_kit::egress::{EgressDialer, Protocol, Selection, Transport};
use portico_kit::tasks::TaskSet;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::backend::{Backend, Reply, ok};
use crate::front::{FLUNDERS, Front, Setup};

const UPGRADE_REQUEST: &str = "GET /apis/wardle.example.com/v1/flunders HTTP/1.1\r\nHost: front\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

/// A CONNECT proxy with this response; it counts the requests.
async fn proxy(tasks: &TaskSet, answer: &'static str) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, connects) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let (count, set) = (connects.clone(), tasks.clone());
    tasks.spawn_until_cancelled("egress-proxy", async move {
        while let Ok((mut from, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            set.spawn_until_cancelled("egress-tunnel", async move {
                let mut head = [0; 1024];
                let read = from.read(&mut head).await.unwrap();
                let line = String::from_utf8_lossy(&head[..read]).into_owned();
                let target = line.split(' ').nth(1).unwrap().to_owned();
                assert!(line.starts_with("CONNECT "), "{line}");
                from.write_all(answer.as_bytes()).await.unwrap();
                if answer.contains(" 200 ") {
                    let mut to = TcpStream::connect(target).await.unwrap();
                    let _ = copy_bidirectional(&mut from, &mut to).await;
                }
            });
        }
    });
    (port, connects)
}

async fn front(backend: &Backend, answer: &'static str) -> (Front, Arc<AtomicUsize>) {
    let (port, connects) = proxy(&backend.tasks, answer).await;
    let transport = Transport::Tcp { host: "127.0.0.1".into(), port, tls: None };
    let selection = Selection { protocol: Protocol::HttpConnect(transport) };
    let dialer = EgressDialer::new(&selection, None).unwrap();
    let mut setup = Setup::to(&[backend]);
    setup.connector = Connector::with_egress(ConnectorOptions::default(), dialer);
    (setup.start().await, connects)
}

#[tokio::test]
async fn requests_and_upgrades_each_use_the_egress_proxy_once() {
    let backend = Backend::start(|seen| match seen.all("upgrade").is_empty() {
        true => ok("{}"),
        false => Reply::Echo("HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n".into()),
    })
    .await;
    let (front, connects) = front(&backend, "HTTP/1.1 200 Connection established\r\n\r\n").await;
    for _ in 0..3 {
        assert_eq!(front.get(FLUNDERS).await.body, "{}");
    }
    assert_eq!(connects.load(Ordering::SeqCst), 1);
    let mut raw = front.raw().await;
    raw.write(UPGRADE_REQUEST).await;
    raw.read_until("\r\n\r\n").await;
    raw.write("through the tunnel").await;
    raw.read_until("through the tunnel").await;
    assert_eq!(connects.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_broken_egress_proxy_answers_503_and_the_backend_is_never_called() {
    let mut backend = Backend::start(|_| ok("{}")).await;
    let (front, connects) = front(&backend, "HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
    let (code, reason, message) = front.get(FLUNDERS).await.cause();
    assert_eq!((code, reason.as_str()), (503, "DialFailed"));
    assert!(message.contains("egress proxy"), "{message}");
    let mut raw = front.raw().await;
    raw.write(UPGRADE_REQUEST).await;
    assert!(raw.read_until("}\n").await.starts_with("HTTP/1.1 503 "));
    assert_eq!(connects.load(Ordering::SeqCst), 2);
    assert!(!backend.has_unread_request() && backend.connections.load(Ordering::SeqCst) == 0);
}
