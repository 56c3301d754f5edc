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
        max_body: 64,
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
async fn connections_are_kept_and_forgotten_in_both_protocols() {
    let authority = Authority::create("ca").unwrap();
    let backend = backend(&authority);
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let (fetcher, to) = (fetcher(), to(&backend, &authority, alpn));
        let first = fetcher.send(&to, &request("/apis/a/v1?x=y")).await.unwrap();
        assert_eq!((first.status, first.reused), (StatusCode::OK, false));
        assert_eq!(first.body, "a.ns.svc system:kube-aggregator");
        assert!(fetcher.send(&to, &request("/")).await.unwrap().reused);
        assert_eq!(fetcher.idle(), 1);
        fetcher.forget(&to);
        assert!(!fetcher.send(&to, &request("/")).await.unwrap().reused);
    }
}

#[tokio::test]
async fn redirects_are_answers() {
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
    assert_eq!(error.to_string(), format!("the answer of {} is longer than 64 bytes", to.target));
    let error = fetcher.send(&to, &request("/ space")).await.unwrap_err();
    assert!(matches!(error, FetchError::Request { .. }), "{error}");
}

#[tokio::test]
async fn a_kept_connection_that_died_costs_a_fresh_dial_and_no_error() {
    let authority = Authority::create("ca").unwrap();
    let first = backend(&authority);
    let (fetcher, to) = (fetcher(), to(&first, &authority, Alpn::Http1));
    fetcher.send(&to, &request("/")).await.unwrap();
    assert_eq!(fetcher.idle(), 1);
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
async fn a_lost_connection_is_reported_when_the_other_side_closes_it_and_only_then() {
    let authority = Authority::create("ca").unwrap();
    let first = backend(&authority);
    let (send, mut reported) = tokio::sync::mpsc::unbounded_channel();
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let (fetcher, to) = (fetcher(), to(&first, &authority, alpn));
        let send = send.clone();
        fetcher.on_lost(Box::new(move |target| send.send(target.clone()).unwrap()));
        fetcher.send(&to, &request("/")).await.unwrap();
        fetcher.forget(&to);
        fetcher.send(&to, &request("/")).await.unwrap();
        // Keeps the pool alive until both are reported.
        std::mem::forget(fetcher);
    }
    first.drain.signal();
    first.tasks.shutdown(Duration::ZERO).await;
    for _ in 0..2 {
        assert_eq!(reported.recv().await.unwrap(), target(first.addr));
    }
    assert!(reported.try_recv().is_err(), "what we closed ourselves is not lost");
}

#[tokio::test]
async fn a_silent_backend_costs_the_timeout_and_not_more() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = FetchTarget { target: target(silent.local_addr().unwrap()), tls: None, host: None };
    let wanted = FetchRequest { timeout: Duration::from_millis(50), ..request("/") };
    let error = fetcher().send(&to, &wanted).await.unwrap_err();
    assert_eq!(error.to_string(), format!("no answer from {} within 50ms", to.target));
}

#[tokio::test]
async fn many_at_once_keep_only_a_few_connections() {
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
    assert_eq!((served.load(Ordering::Relaxed), fetcher.idle()), (10, 2));
}

#[tokio::test]
async fn calls_at_the_same_time_take_a_kept_connection_each() {
    let authority = Authority::create("ca").unwrap();
    let backend = backend(&authority);
    let (fetcher, to) = (fetcher().keeping(4), to(&backend, &authority, Alpn::Http1));
    let wanted = request("/");
    for reused in [0, 4, 4] {
        let all = futures::future::join_all((0..4).map(|_| fetcher.send(&to, &wanted))).await;
        assert_eq!(all.iter().filter(|fetched| fetched.as_ref().unwrap().reused).count(), reused);
        assert_eq!(fetcher.idle(), 4);
    }
}

#[test]
fn a_serving_thread_keeps_what_it_has_opened_and_all_is_forgotten_together() {
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
    assert_eq!(fetcher.idle(), 2);
    fetcher.forget(&to);
    assert_eq!([reused(), reused()], [false, false]);
}
