//! A dead backend costs nothing, is reported, and recovers without intervention.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portico_proxy::{RouteEntry, Stage};

use crate::backend::{Backend, EVENT_TIMEOUT, ok};
use crate::front::{FLUNDERS, Setup};

#[tokio::test]
async fn a_dead_backend_is_dialed_rarely_and_recovers() {
    let backend = Backend::start(|_| ok("{}")).await;
    let reserve = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = reserve.local_addr().unwrap();
    drop(reserve);
    let mut setup = Setup::to_addresses(&[address], backend.authority.cert_pem());
    setup.limits.circuit_failures = 2;
    (setup.limits.circuit_open, setup.limits.circuit_open_max) =
        (Duration::from_secs(60), Duration::from_secs(60));
    let front = setup.start().await;
    for _ in 0..2 {
        assert_eq!(front.get(FLUNDERS).await.cause().1, "DialFailed");
    }
    for _ in 0..50 {
        let (code, reason, message) = front.get(FLUNDERS).await.cause();
        assert_eq!((code, reason.as_str()), (503, "CircuitOpen"));
        assert!(message.starts_with("dial: cannot connect"), "{message}");
    }
    assert_eq!(front.metric("portico_proxy_dials_total{result=\"dial\"}"), "2");
    // A changed route is tried at once.
    let ca = Bytes::copy_from_slice(backend.authority.cert_pem().as_bytes());
    let changed = RouteEntry::new(Arc::new(front.upstream.route().clone()), &|_| Some(ca.clone()));
    assert_eq!(front.direct(&changed).await, 503);
    assert_eq!(front.metric("portico_proxy_dials_total{result=\"dial\"}"), "3");
    let seen = front.upstream.observation().unwrap();
    assert_eq!((seen.failed, seen.failures, seen.target), (Some(Stage::Dial), 3, address.to_string()));
    assert_eq!(front.proxy.observations().len(), 1);
}

#[tokio::test]
async fn a_recovered_backend_is_found_by_the_next_probe() {
    let stopped = Backend::start(|_| ok("{}")).await;
    let reserve = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = reserve.local_addr().unwrap();
    drop(reserve);
    let mut setup = Setup::to_addresses(&[address], stopped.authority.cert_pem());
    setup.limits.circuit_failures = 1;
    (setup.limits.circuit_open, setup.limits.circuit_open_max) =
        (Duration::from_millis(1), Duration::from_millis(1));
    let front = setup.start().await;
    assert_eq!(front.get(FLUNDERS).await.status, 503);
    let relay = tokio::net::TcpListener::bind(address).await.unwrap();
    let to = stopped.address;
    front.tasks.spawn_until_cancelled("relay", async move {
        while let Ok((mut from, _)) = relay.accept().await {
            let mut to = tokio::net::TcpStream::connect(to).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
        }
    });
    let recovered = async { while front.get(FLUNDERS).await.status != 200 {} };
    tokio::time::timeout(EVENT_TIMEOUT, recovered).await.expect("the backend is back");
    assert_eq!(front.upstream.observation().unwrap().failed, None);
}
