//! HTTP/2 to a backend that supports it.

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
use portico_kit::pki::{Authority, CertProfile};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{ServerTls, ServerTlsOptions};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::backend::{Backend, HOUR, NAME, ok};
use crate::front::{FLUNDERS, Front, Setup};

struct Http2Backend {
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

async fn start() -> Http2Backend {
    let authority = Authority::create("h2-ca").unwrap();
    let pair = authority
        .issue(&CertProfile::server("h2", &[NAME.to_owned()], HOUR))
        .unwrap()
        .cert_pair("h2")
        .unwrap();
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
    Http2Backend { address, authority, connections, tasks }
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
async fn a_full_connection_causes_another_one() {
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
    assert_eq!(backend.next_request().await.line, format!("GET {FLUNDERS} HTTP/1.1"));
}

/// Starts a backend whose responses `serve` sends; also returns the bodies of the requests.
async fn scripted<F, R>(serve: F) -> (Http2Backend, mpsc::UnboundedReceiver<Result<Bytes, h2::Error>>)
where
    F: Fn(h2::server::SendResponse<Bytes>) -> R + Copy + Send + Sync + 'static,
    R: Future<Output = ()> + Send,
{
    let authority = Authority::create("h2-ca").unwrap();
    let pair = authority
        .issue(&CertProfile::server("h2", &[NAME.to_owned()], HOUR))
        .unwrap()
        .cert_pair("h2")
        .unwrap();
    let tls = ServerTls::new(pair, &[], &ServerTlsOptions::default()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, tasks, connections) = (listener.local_addr().unwrap(), TaskSet::new(), Arc::default());
    let (tx, rx) = mpsc::unbounded_channel();
    let set = tasks.clone();
    tasks.spawn_until_cancelled("h2", async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, tx, streams) = (tls.acceptor(), tx.clone(), set.clone());
            set.spawn_until_cancelled("h2-connection", async move {
                let mut connection =
                    h2::server::handshake(acceptor.accept(stream).await.unwrap()).await.unwrap();
                while let Some(Ok((request, respond))) = connection.accept().await {
                    let tx = tx.clone();
                    streams.spawn_until_cancelled("h2-stream", async move {
                        let (mut body, mut whole) = (request.into_body(), Vec::new());
                        serve(respond).await;
                        let read = loop {
                            match body.data().await {
                                Some(Ok(data)) => whole.extend_from_slice(&data),
                                Some(Err(error)) => break Err(error),
                                None => break Ok(Bytes::from(whole)),
                            }
                        };
                        let _ = tx.send(read);
                    });
                }
            });
        }
    });
    (Http2Backend { address, authority, connections, tasks }, rx)
}

async fn front_of(backend: &Http2Backend) -> Front {
    let mut setup = Setup::to_addresses(&[backend.address], backend.authority.cert_pem());
    setup.backend().http2 = true;
    setup.start().await
}

#[tokio::test]
async fn an_upload_that_is_cut_or_malformed_is_reset_at_the_backend() {
    // The backend responds only after the body has ended, so an incomplete request gets no response.
    let (backend, mut arrived) = scripted(|_| async {}).await;
    let front = front_of(&backend).await;
    for (body, code) in [("2\r\nab\r\n", 503), ("2\r\nab\r\n5\r\nhel", 503), ("2\r\nab\r\n0x0\r\n\r\n", 400)]
    {
        let mut client = front.raw().await;
        let head = format!("POST {FLUNDERS} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
        client.write(&format!("{head}{body}")).await;
        tokio::io::AsyncWriteExt::shutdown(&mut client.stream).await.unwrap();
        let answer = client.read_to_end().await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{body:?}: {answer}");
        assert!(arrived.recv().await.unwrap().is_err(), "{body:?} arrived as a whole request");
    }
    backend.tasks.cancel();
}

#[tokio::test]
async fn a_filters_refusal_of_the_body_reaches_the_client_over_http2() {
    let (backend, mut arrived) = scripted(|_| async {}).await;
    let front = front_of(&backend).await;
    let frames = futures::stream::iter([
        Ok::<_, portico_proxy::BoxError>(hyper::body::Frame::data(Bytes::from_static(b"{"))),
        Err(portico_machinery::Status::too_large(1).into()),
    ]);
    let body = portico_proxy::RequestBody::new(http_body_util::StreamBody::new(frames));
    assert_eq!(crate::uploads::post(&front, body).await.status(), 413);
    assert!(arrived.recv().await.unwrap().is_err());
    backend.tasks.cancel();
}

#[tokio::test]
async fn a_reset_response_is_never_complete() {
    // NO_ERROR as well: it refuses more of the request, and does not end the response.
    let codes = [h2::Reason::NO_ERROR, h2::Reason::CANCEL, h2::Reason::INTERNAL_ERROR];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let (backend, _arrived) = scripted(move |mut respond| async move {
        let mut body = respond.send_response(Response::new(()), false).unwrap();
        body.send_data(Bytes::from_static(b"some"), false).unwrap();
        tokio::task::yield_now().await;
        body.send_reset(codes[NEXT.fetch_add(1, Ordering::SeqCst)]);
    })
    .await;
    let front = front_of(&backend).await;
    for code in codes {
        let mut client = front.raw().await;
        client.write(&format!("GET {FLUNDERS} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        let answer = client.read_to_end().await;
        let refused = answer.starts_with("HTTP/1.1 503 ");
        assert!(refused || !answer.ends_with("0\r\n\r\n"), "{code:?}: {answer}");
    }
    backend.tasks.cancel();
}
