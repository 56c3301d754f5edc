//! A kubelet that supports only SPDY, as all did before nodes could declare more: `exec` and `attach` by the rules of
//! upstream's `cri-streaming`, with a few commands for tests, and ports that echo.

mod commands;
mod wire;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use portico_kit::tasks::TaskSet;
use tokio::net::TcpListener;

use crate::backend::ReceivedRequest;
use crate::pki::{Authority, Clients};

/// Supported protocols by the first segment of a path.
const PROTOCOLS: [(&str, &str); 3] =
    [("exec", "v4.channel.k8s.io"), ("attach", "v4.channel.k8s.io"), ("portForward", "portforward.k8s.io")];
const STREAM_PROTOCOL: &str = "x-stream-protocol-version";

/// A running kubelet. Dropping it stops it.
pub struct SpdyKubelet {
    /// Address on which it listens.
    pub address: SocketAddr,
    /// The CA of its certificate (PEM).
    pub ca: String,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    tasks: TaskSet,
}

impl SpdyKubelet {
    /// Starts a kubelet that requires client certificates of this CA (PEM).
    pub async fn start(clients: &str) -> Self {
        let authority = Authority::new("kubelet-ca");
        let ip = Ipv4Addr::LOCALHOST;
        let acceptor = authority.server(&[&ip.to_string()]).acceptor(Clients::Required(clients));
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let this = Self {
            address: listener.local_addr().unwrap(),
            ca: authority.pem,
            seen: Arc::default(),
            tasks: TaskSet::new(),
        };
        let (set, seen) = (this.tasks.clone(), this.seen.clone());
        this.tasks.spawn_until_cancelled("kubelet", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen, tasks) = (acceptor.clone(), seen.clone(), set.clone());
                set.spawn_until_cancelled("kubelet-connection", async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request| {
                        let hangs = request.uri().to_string().contains("command=hangs");
                        let answer = respond(request, &seen, &tasks);
                        async move {
                            if hangs {
                                std::future::pending::<()>().await;
                            }
                            Ok::<_, Infallible>(answer)
                        }
                    });
                    let http = hyper::server::conn::http1::Builder::new();
                    // Errors do not matter: tests check the data that was sent.
                    let _ = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
                });
            }
        });
        this
    }

    /// Returns the requests that arrived.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the newest request.
    pub fn last_request(&self) -> ReceivedRequest {
        self.requests().pop().expect("a request arrived")
    }
}

impl Drop for SpdyKubelet {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

fn respond(
    mut request: Request<Incoming>,
    seen: &Mutex<Vec<ReceivedRequest>>,
    tasks: &TaskSet,
) -> Response<Full<Bytes>> {
    let target = request.uri().to_string();
    seen.lock().unwrap().push(ReceivedRequest {
        client: None,
        method: request.method().clone(),
        target: target.clone(),
        headers: request.headers().clone(),
        body: Bytes::new(),
    });
    let refused = |code, text: &str| {
        let mut response = Response::new(Full::from(format!("{text}\n")));
        *response.status_mut() = code;
        response
    };
    let says_spdy =
        request.headers().get("upgrade").is_some_and(|u| u.as_bytes().eq_ignore_ascii_case(b"SPDY/3.1"));
    if !says_spdy {
        return refused(StatusCode::BAD_REQUEST, "unable to upgrade: missing upgrade headers in request");
    }
    let first = target.split('/').nth(1).unwrap_or_default();
    let Some((_, protocol)) = PROTOCOLS.iter().find(|(segment, _)| *segment == first) else {
        return refused(StatusCode::NOT_FOUND, "404 page not found");
    };
    if !offers(request.headers(), protocol) {
        return refused(StatusCode::FORBIDDEN, "unable to upgrade: unable to negotiate protocol");
    }
    if target.contains("command=refused") {
        return refused(StatusCode::NOT_FOUND, "no such container");
    }
    let upgrade = hyper::upgrade::on(&mut request);
    tasks.spawn_until_cancelled("kubelet-streams", async move {
        let Ok(io) = upgrade.await else { return };
        commands::serve(wire::FrameConnection::new(TokioIo::new(io)), &target).await;
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("connection", "Upgrade")
        .header("upgrade", "SPDY/3.1")
        .header(STREAM_PROTOCOL, *protocol)
        .body(Full::default())
        .unwrap()
}

fn offers(headers: &HeaderMap, protocol: &str) -> bool {
    let offered = headers.get_all(STREAM_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    offered.flat_map(|value| value.split(',')).any(|offered| offered.trim() == protocol)
}
