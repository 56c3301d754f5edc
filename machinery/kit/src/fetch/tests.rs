//! Requests over real TLS sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderValue, Method, Response};
use tokio::net::TcpListener;

use super::*;
use crate::connection_runtimes::ConnectionRuntimes;
use crate::fixture::{Backend, HOUR, client_tls, connector, server_pair, server_tls, target};
use crate::pki::Authority;
use crate::tls::Alpn;

fn request(path: &str) -> FetchRequest {
    let mut headers = HeaderMap::new();
    headers.insert("x-remote-user", HeaderValue::from_static("system:kube-aggregator"));
    FetchRequest {
        method: Method::GET,
        path: path.to_owned(),
        headers,
        timeout: Duration::from_secs(10),
        body: Bytes::new(),
        max_body_bytes: 64,
    }
}

fn backend(authority: &Authority) -> Backend {
    Backend::start(server_tls(server_pair(authority, &["a"])), |request, _| {
        let path = request.uri().path();
        let user = request.headers().get("x-remote-user").and_then(|user| user.to_str().ok()).unwrap_or("");
        let host = request.headers().get("host").and_then(|host| host.to_str().ok());
        let host = host.or(request.uri().authority().map(|host| host.as_str())).unwrap_or("");
        let mut response = Response::new(Bytes::from(format!("{host} {user}")).into());
        match path {
            "/moved" => {
                *response.status_mut() = StatusCode::FOUND;
                response.headers_mut().insert("location", HeaderValue::from_static("/elsewhere"));
            }
            "/long" => *response.body_mut() = Bytes::from(vec![b'x'; 65]).into(),
            "/close" => {
                response.headers_mut().insert("connection", HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    })
}

fn to(backend: &Backend, authority: &Authority, alpn: Alpn) -> FetchTarget {
    let tls = Some(client_tls(authority, "a", alpn));
    FetchTarget { target: target(backend.addr), tls, host: Some("a.ns.svc".to_owned()) }
}

fn fetcher() -> Fetcher {
    Fetcher::new(connector(HOUR, HOUR), TaskSet::new())
}

#[tokio::test]
async fn idle_connections_are_reused_and_closed_in_both_protocols() {
    let authority = Authority::create("ca").unwrap();
    let backend = backend(&authority);
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let (fetcher, to) = (fetcher(), to(&backend, &authority, alpn));
        let first = fetcher.send(&to, &request("/apis/a/v1?x=y")).await.unwrap();
        assert_eq!((first.status, first.reused), (StatusCode::OK, false));
        assert_eq!(first.body, "a.ns.svc system:kube-aggregator");
        assert!(fetcher.send(&to, &request("/")).await.unwrap().reused);
        assert_eq!(fetcher.idle_count(), 1);
        fetcher.close_idle(&to);
        assert!(!fetcher.send(&to, &request("/")).await.unwrap().reused);
    }
}

#[tokio::test]
async fn redirects_are_returned() {
    let authority = Authority::create("ca").unwrap();
    let backend = backend(&authority);
    let fetched = fetcher().send(&to(&backend, &authority, Alpn::Http1), &request("/moved")).await.unwrap();
    assert_eq!(fetched.status, StatusCode::FOUND);
    assert_eq!(fetched.headers["location"], "/elsewhere");
}

#[tokio::test]
async fn long_bodies_and_bad_paths_are_errors() {
    let authority = Authority::create("ca").unwrap();
    let backend = backend(&authority);
    let (fetcher, to) = (fetcher(), to(&backend, &authority, Alpn::Http1));
    let error = fetcher.send(&to, &request("/long")).await.unwrap_err();
    assert_eq!(error.to_string(), format!("the response of {} is longer than 64 bytes", to.target));
    let error = fetcher.send(&to, &request("/ space")).await.unwrap_err();
    assert!(matches!(error, FetchError::Request { .. }), "{error}");
}

#[tokio::test]
async fn a_closed_idle_connection_is_replaced_without_an_error() {
    let authority = Authority::create("ca").unwrap();
    let first = backend(&authority);
    let (fetcher, to) = (fetcher(), to(&first, &authority, Alpn::Http1));
    fetcher.send(&to, &request("/")).await.unwrap();
    assert_eq!(fetcher.idle_count(), 1);
    // All connections of the backend end; its listener stays open.
    fetcher.send(&to, &request("/close")).await.unwrap();
    assert!(!fetcher.send(&to, &request("/")).await.unwrap().reused);
    let error = {
        first.drain.signal();
        first.tasks.shutdown(Duration::ZERO).await;
        fetcher.send(&to, &request("/")).await.unwrap_err()
    };
    // The idle connection is stale; the new dial returns the error.
    assert!(matches!(&error, FetchError::Dial(DialError::Dial { .. })), "{error}");
}

#[tokio::test]
async fn only_connections_closed_by_the_peer_are_reported() {
    let authority = Authority::create("ca").unwrap();
    let first = backend(&authority);
    let (send, mut reported) = tokio::sync::mpsc::unbounded_channel();
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let (fetcher, to) = (fetcher(), to(&first, &authority, alpn));
        let send = send.clone();
        fetcher.on_lost(Box::new(move |target| send.send(target.clone()).unwrap()));
        fetcher.send(&to, &request("/")).await.unwrap();
        fetcher.close_idle(&to);
        fetcher.send(&to, &request("/")).await.unwrap();
        // Keeps the pool alive until both are reported.
        std::mem::forget(fetcher);
    }
    first.drain.signal();
    first.tasks.shutdown(Duration::ZERO).await;
    for _ in 0..2 {
        assert_eq!(reported.recv().await.unwrap(), target(first.addr));
    }
    assert!(reported.try_recv().is_err(), "connections closed by the client are not reported");
}

#[tokio::test]
async fn an_unresponsive_backend_fails_at_the_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = FetchTarget { target: target(silent.local_addr().unwrap()), tls: None, host: None };
    let request = FetchRequest { timeout: Duration::from_millis(50), ..request("/") };
    let error = fetcher().send(&to, &request).await.unwrap_err();
    assert_eq!(error.to_string(), format!("no response from {} within 50ms", to.target));
}

#[tokio::test]
async fn idle_connections_per_target_are_limited() {
    let authority = Authority::create("ca").unwrap();
    let served = Arc::new(AtomicUsize::new(0));
    let count = served.clone();
    let backend = Backend::start(server_tls(server_pair(&authority, &["a"])), move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        Response::new(Bytes::new().into())
    });
    let (fetcher, to) = (fetcher(), to(&backend, &authority, Alpn::Http1));
    let wanted = request("/");
    let all = futures::future::join_all((0..10).map(|_| fetcher.send(&to, &wanted))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!((served.load(Ordering::Relaxed), fetcher.idle_count()), (10, 2));
}

#[tokio::test]
async fn concurrent_requests_use_separate_idle_connections() {
    let authority = Authority::create("ca").unwrap();
    let backend = backend(&authority);
    let (fetcher, to) = (fetcher().with_idle_per_target(4), to(&backend, &authority, Alpn::Http1));
    let wanted = request("/");
    for reused in [0, 4, 4] {
        let all = futures::future::join_all((0..4).map(|_| fetcher.send(&to, &wanted))).await;
        assert_eq!(all.iter().filter(|fetched| fetched.as_ref().unwrap().reused).count(), reused);
        assert_eq!(fetcher.idle_count(), 4);
    }
}

#[test]
fn each_serving_thread_has_its_idle_connections_and_close_idle_closes_all() {
    let authority = Authority::create("ca").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let backend = runtime.block_on(async { backend(&authority) });
    let (fetcher, to) = (fetcher(), to(&backend, &authority, Alpn::Http1));
    let serving = ConnectionRuntimes::start("runtime", 2).unwrap();
    let reused = || {
        let (fetcher, to) = (fetcher.clone(), to.clone());
        let sent =
            serving.next().spawn(async move { fetcher.send(&to, &request("/")).await.unwrap().reused });
        runtime.block_on(sent).unwrap()
    };
    assert_eq!([reused(), reused(), reused(), reused()], [false, false, true, true]);
    assert_eq!(fetcher.idle_count(), 2);
    fetcher.close_idle(&to);
    assert_eq!([reused(), reused()], [false, false]);
}
