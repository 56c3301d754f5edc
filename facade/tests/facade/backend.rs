//! An aggregated API server over TLS that echoes requests.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use portico_kit::drain;
use portico_kit::listener::{ListenerMetrics, ListenerOptions, TlsListener};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{CertPair, ServerTls, ServerTlsOptions};
use tokio::sync::mpsc;

pub struct Backend {
    pub addr: SocketAddr,
    pub ca: Vec<u8>,
    /// Events of requests whose path ends with `/upload`.
    pub uploads: mpsc::UnboundedReceiver<Upload>,
    _drain: drain::Signal,
    _tasks: TaskSet,
}

/// Event of an upload.
#[derive(Debug, PartialEq, Eq)]
pub enum Upload {
    Started,
    Completed(Bytes),
    Cut,
}

/// Reports a cut unless the complete body arrives.
struct UploadGuard(Option<mpsc::UnboundedSender<Upload>>);

impl Drop for UploadGuard {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            let _ = sender.send(Upload::Cut);
        }
    }
}

/// Issues a CA and a pair that it has signed for this name.
pub fn issue(name: &str) -> (Vec<u8>, CertPair) {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, format!("ca of {name}"));
    let ca_key = rcgen::KeyPair::generate().unwrap();
    let ca = params.self_signed(&ca_key).unwrap();
    let issuer = rcgen::Issuer::new(params, ca_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let leaf =
        rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let pair = CertPair::from_pem("test", leaf.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    (ca.pem().into_bytes(), pair)
}

impl Backend {
    pub fn start(name: &str) -> Self {
        let (ca, pair) = issue(name);
        let tls = ServerTls::new(pair, &[], &ServerTlsOptions::default()).unwrap();
        let options = ListenerOptions::new("backend");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TlsListener::bind(any, tls, options, ListenerMetrics::default()).unwrap();
        let addr = listener.local_addr().unwrap();
        let (signal, watch) = drain::channel();
        let tasks = TaskSet::new();
        let set = tasks.clone();
        let (upload_sender, uploads) = mpsc::unbounded_channel();
        tasks.spawn(
            "backend",
            listener.serve(set.clone(), watch, move |accepted| {
                let (upgraded, upload_sender) = (set.clone(), upload_sender.clone());
                async move {
                    let io = TokioIo::new(accepted.io);
                    let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    // As Go's server: a request that was received completely is handled, even if it is reset afterwards.
                    builder.http1().half_close(true);
                    let service =
                        service_fn(move |request| echo(request, upgraded.clone(), upload_sender.clone()));
                    let _ = builder.serve_connection_with_upgrades(io, service).await;
                }
            }),
        );
        Self { addr, ca, uploads, _drain: signal, _tasks: tasks }
    }
}

/// Responds with method, path and caller, as headers and text.
async fn echo(
    request: Request<Incoming>,
    tasks: TaskSet,
    uploads: mpsc::UnboundedSender<Upload>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let header = |name: &str| request.headers().get(name).map_or("", |v| v.to_str().unwrap()).to_owned();
    let text = format!(
        "{} {} user={} authorization={:?}",
        request.method(),
        request.uri(),
        header("x-remote-user"),
        header("authorization")
    );
    if let Some(protocol) = request.headers().get("upgrade").cloned() {
        let mut response = Response::new(Full::default().boxed());
        *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert("connection", http::HeaderValue::from_static("upgrade"));
        response.headers_mut().insert("upgrade", protocol);
        tasks.spawn("echo", async move {
            let io = hyper::upgrade::on(request).await.unwrap();
            let (mut read, mut write) = tokio::io::split(TokioIo::new(io));
            let _ = tokio::io::copy(&mut read, &mut write).await;
        });
        return Ok(response);
    }
    if request.uri().path().ends_with("/upload") {
        uploads.send(Upload::Started).unwrap();
        let mut uploading = UploadGuard(Some(uploads));
        if let Ok(body) = request.into_body().collect().await {
            uploading.0.take().unwrap().send(Upload::Completed(body.to_bytes())).unwrap();
        }
        return Ok(Response::new(Full::default().boxed()));
    }
    if request.uri().path().ends_with("/hang") {
        std::future::pending::<()>().await;
    }
    if request.uri().path().ends_with("/stall") {
        let first_frame = stream::once(std::future::ready(Ok(Frame::data(Bytes::from_static(b"begun")))));
        return Ok(Response::new(BodyExt::boxed(StreamBody::new(first_frame.chain(stream::pending())))));
    }
    Ok(Response::new(Full::new(Bytes::from(text)).boxed()))
}
