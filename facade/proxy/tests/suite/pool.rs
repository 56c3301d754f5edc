//! Connections: reused, bounded, closed when dead, never mixed up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use portico_proxy::RouteEntry;
use tokio::sync::{mpsc, oneshot};

use crate::backend::{Backend, EVENT_TIMEOUT, Reply, ok};
use crate::front::{FLUNDERS, Setup};

#[tokio::test]
async fn one_request_after_another_uses_one_connection() {
    let mut backend = Backend::start(|_| ok("{}")).await;
    let front = Setup::to(&[&backend]).start().await;
    for _ in 0..5 {
        assert_eq!(front.get(FLUNDERS).await.body, "{}");
        assert_eq!(backend.next_request().await.connection, 0);
    }
}

#[tokio::test]
async fn a_connection_that_the_backend_has_closed_is_not_used_again() {
    let backend =
        Backend::start(|_| Reply::Close("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".into())).await;
    let front = Setup::to(&[&backend]).start().await;
    for _ in 0..5 {
        assert_eq!(front.get(FLUNDERS).await.status, 200);
    }
    assert_eq!(backend.connections.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn idle_connections_are_bounded() {
    let waiting = Arc::new(Mutex::new(Vec::new()));
    let kept = waiting.clone();
    let mut backend = Backend::start(move |seen| match seen.target().ends_with("wait") {
        true => {
            let (tx, rx) = mpsc::channel(2);
            kept.lock().unwrap().push(tx);
            Reply::Pieces(rx)
        }
        false => ok("{}"),
    })
    .await;
    let mut setup = Setup::to(&[&backend]);
    setup.limits.max_idle_per_target = 0;
    let front = setup.start().await;
    for expected in 0..3 {
        front.get(FLUNDERS).await;
        assert_eq!(backend.next_request().await.connection, expected);
    }
    assert!(waiting.lock().unwrap().is_empty());
}

#[tokio::test]
async fn idle_connections_are_bounded_over_all_runtimes() {
    let mut backend = Backend::start(|_| ok("{}")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.limits.max_idle_per_target = 1;
    let front = Arc::new(setup.start().await);
    assert_eq!(front.direct(&front.upstream).await, 200);
    let (elsewhere, (end, ended)) = (front.clone(), oneshot::channel::<()>());
    let other = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            assert_eq!(elsewhere.direct(&elsewhere.upstream).await, 200);
            // The end of a runtime would close its connections.
            let _ = ended.await;
        });
    });
    for connection in 0..2 {
        assert_eq!(backend.next_request().await.connection, connection, "each runtime dials");
    }
    backend.wait_connections(1).await;
    drop(end);
    other.join().unwrap();
}

#[tokio::test]
async fn an_unsolicited_response_on_an_idle_connection_is_discarded() {
    // Two responses to one request: the second must not reach the next client.
    let backend = Backend::start(|_| {
        let one = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nmine";
        let two = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nothers";
        Reply::Bytes(format!("{one}{two}"))
    })
    .await;
    let front = Setup::to(&[&backend]).start().await;
    for _ in 0..3 {
        assert_eq!(front.get(FLUNDERS).await.body, "mine");
    }
}

#[tokio::test]
async fn equal_routes_share_connections_and_an_edited_one_keeps_them() {
    let mut backend = Backend::start(|_| ok("{}")).await;
    let front = Setup::to(&[&backend]).start().await;
    front.get(FLUNDERS).await;
    assert_eq!(backend.next_request().await.connection, 0);
    // The same content under another name and revision.
    let mut route = front.upstream.route().clone();
    (route.name, route.revision) = ("v2.wardle.example.com".into(), 9);
    let ca = Bytes::copy_from_slice(backend.authority.cert_pem().as_bytes());
    let other = RouteEntry::new(Arc::new(route), &|_| Some(ca.clone()));
    assert_eq!(front.direct(&other).await, 200);
    assert_eq!(backend.next_request().await.connection, 0);
    // Another server name needs another transport.
    let mut route = front.upstream.route().clone();
    Arc::make_mut(route.backend.as_mut().unwrap()).server_name = "other.wardle.svc".into();
    let other = RouteEntry::new(Arc::new(route), &|_| Some(ca.clone()));
    assert_eq!(front.direct(&other).await, 503);
}

#[tokio::test]
async fn requests_rotate_over_the_targets_and_skip_a_dead_one() {
    let count = Arc::new(AtomicUsize::new(0));
    let (a, b) = (Backend::start(|_| ok("a")).await, count.clone());
    let pair =
        portico_kit::pki::CertProfile::server("b", &[crate::backend::NAME.to_owned()], crate::backend::HOUR);
    let pair = a.authority.issue(&pair).unwrap().cert_pair("b").unwrap();
    let b = Backend::with_pair(a.authority.clone(), pair, move |_| {
        b.fetch_add(1, Ordering::SeqCst);
        ok("b")
    })
    .await;
    let front = Setup::to(&[&a, &b]).start().await;
    let mut bodies = Vec::new();
    for _ in 0..4 {
        bodies.push(front.get(FLUNDERS).await.body);
    }
    assert_eq!(bodies, ["a", "b", "a", "b"]);
    b.tasks.shutdown(std::time::Duration::from_secs(5)).await;
    for _ in 0..6 {
        assert_eq!(front.get(FLUNDERS).await.body, "a");
    }
}

#[tokio::test]
async fn counters_continue_in_a_new_entry_of_the_same_service() {
    let backend = Backend::start(|_| ok("{}")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.limits.max_requests_per_backend = 0;
    let front = setup.start().await;
    assert_eq!(front.get(FLUNDERS).await.status, 503);
    let refused = |service: &str| {
        let text = front.registry.encode(portico_kit::metrics::Format::Text);
        let series = format!("portico_proxy_backend_refused_requests_total{{service=\"{service}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&series)).map(|count| count.parse::<u64>().unwrap())
    };
    let service = front.upstream.route().backend.as_ref().unwrap().service.clone();
    let of_port = |port: u16| format!("{}/{}:{port}", service.namespace, service.name);
    let (first, next) = (of_port(service.port), of_port(service.port + 1));
    assert_eq!(refused(&first), Some(1));
    let ca = Bytes::copy_from_slice(backend.authority.cert_pem().as_bytes());
    let mut route = front.upstream.route().clone();
    Arc::make_mut(route.backend.as_mut().unwrap()).policy.retries = 1;
    let changed = RouteEntry::new(Arc::new(route.clone()), &|_| Some(ca.clone()));
    changed.take_counts(&front.upstream);
    assert_eq!(front.direct(&changed).await, 503);
    assert_eq!(refused(&first), Some(2), "one series for all policies");
    // The same addresses through another port of the Service.
    Arc::make_mut(route.backend.as_mut().unwrap()).service.port += 1;
    let other = RouteEntry::new(Arc::new(route), &|_| Some(ca.clone()));
    other.take_counts(&changed);
    assert_eq!(front.direct(&other).await, 503);
    assert_eq!((refused(&first), refused(&next)), (Some(2), Some(1)));
}

#[tokio::test]
async fn a_copy_of_a_request_counts_as_a_request_in_flight() {
    let (held, _hold) = mpsc::channel(1);
    let mut slow = Backend::start(move |_| Reply::Hang(held.clone())).await;
    let spare = Backend::start(|_| ok("{}")).await;
    let mut setup = Setup::to(&[&slow, &spare]);
    setup.limits.max_requests_per_backend = 1;
    setup.backend().policy.hedge_after = Some(std::time::Duration::from_millis(1));
    let front = setup.start().await;
    let mut raw = front.raw().await;
    raw.write(&format!("GET {FLUNDERS} HTTP/1.1\r\nHost: front\r\n\r\n")).await;
    slow.next_request().await;
    let refused = async {
        while front.metric("portico_proxy_repeated_requests_total{reason=\"too_many\"}") != "1" {
            tokio::task::yield_now().await;
        }
    };
    let refused = tokio::time::timeout(EVENT_TIMEOUT, refused).await;
    refused.expect("the copy is not refused");
    assert_eq!(spare.connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_backend_has_a_limit_of_requests_in_flight() {
    let (held, _hold) = mpsc::channel(1);
    let mut backend = Backend::start(move |seen| match seen.target().ends_with("hang") {
        true => Reply::Hang(held.clone()),
        false => ok(""),
    })
    .await;
    let mut setup = Setup::to(&[&backend]);
    setup.limits.max_requests_per_backend = 1;
    let front = setup.start().await;
    let mut raw = front.raw().await;
    raw.write(&format!("GET {FLUNDERS}/hang HTTP/1.1\r\nHost: front\r\n\r\n")).await;
    backend.next_request().await;
    let (code, reason, _) = front.get(FLUNDERS).await.cause();
    assert_eq!((code, reason.as_str()), (503, "TooManyRequests"));
    drop(raw);
    while front.upstream_in_flight() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(front.get(FLUNDERS).await.status, 200);
}
