//! HTTP/2 to a backend that asks for it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use portico_kit::pki::{Authority, Profile};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{ServerTls, ServerTlsOptions};
use tokio::net::TcpListener;

use crate::backend::{Backend, HOUR, NAME, ok};
use crate::front::{FLUNDERS, Setup};

struct H2 {
    address: SocketAddr,
    authority: Authority,
    connections: Arc<AtomicUsize>,
    tasks: TaskSet,
}

async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let user = request.headers()["x-remote-user"].to_str().unwrap().to_owned();
    let hosts = request.headers().contains_key("host");
    let authority = request.uri().authority().unwrap().to_string();
    let line = format!(
        "{} {} {:?} {authority} {user} {hosts} ",
        request.method(),
        request.uri().path(),
        request.version()
    );
    let body = request.into_body().collect().await.unwrap().to_bytes();
    Ok(Response::new(Full::new([line.into_bytes(), body.to_vec()].concat().into())))
}

async fn start() -> H2 {
    let authority = Authority::create("h2-ca").unwrap();
    let pair =
        authority.issue(&Profile::server("h2", &[NAME.to_owned()], HOUR)).unwrap().cert_pair("h2").unwrap();
    let tls = ServerTls::new(pair, &[], &ServerTlsOptions::default()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, tasks, connections) =
        (listener.local_addr().unwrap(), TaskSet::new(), Arc::new(AtomicUsize::new(0)));
    let (set, count) = (tasks.clone(), connections.clone());
    tasks.spawn_until_cancelled("h2", async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let (acceptor, executor) = (tls.acceptor(), set.executor("h2-stream"));
            set.spawn_until_cancelled("h2-connection", async move {
                let stream = acceptor.accept(stream).await.unwrap();
                assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
                let serving = hyper::server::conn::http2::Builder::new(executor);
                let _ = serving.serve_connection(TokioIo::new(stream), service_fn(echo)).await;
            });
        }
    });
    H2 { address, authority, connections, tasks }
}

#[tokio::test]
async fn requests_share_one_connection_and_name_the_target_as_authority() {
    let backend = start().await;
    let mut setup = Setup::to_addresses(&[backend.address], backend.authority.cert_pem());
    setup.backend().http2 = true;
    let front = setup.start().await;
    for _ in 0..3 {
        let answer = front.send("POST", FLUNDERS, &[], "{}").await;
        assert_eq!(answer.body, format!("POST {FLUNDERS} HTTP/2.0 {} alice false {{}}", backend.address));
    }
    assert_eq!(backend.connections.load(Ordering::SeqCst), 1);
    backend.tasks.cancel();
}

#[tokio::test]
async fn a_full_connection_is_joined_by_another() {
    let backend = start().await;
    let mut setup = Setup::to_addresses(&[backend.address], backend.authority.cert_pem());
    setup.backend().http2 = true;
    setup.limits.http2_max_streams = 1;
    let front = setup.start().await;
    let all = futures::future::join_all((0..4).map(|_| front.send("POST", FLUNDERS, &[], "{}"))).await;
    assert!(all.iter().all(|answer| answer.status == 200));
    assert!(backend.connections.load(Ordering::SeqCst) > 1);
    backend.tasks.cancel();
}

#[tokio::test]
async fn a_backend_without_http2_is_served_over_http1() {
    let mut backend = Backend::start(|_| ok("{}")).await;
    let mut setup = Setup::to(&[&backend]);
    setup.backend().http2 = true;
    let front = setup.start().await;
    assert_eq!(front.get(FLUNDERS).await.status, 200);
    assert_eq!(backend.seen().await.line, format!("GET {FLUNDERS} HTTP/1.1"));
}
