//! An HTTPS server on separate threads, which measured servers call. It does not depend on the content of requests.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use portico_kit::tasks::TaskSet;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use crate::Failure;

/// A running server; it ends when this is dropped.
pub(crate) struct Server {
    /// Address on which it listens.
    pub(crate) address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Server {
    /// Listens on a free port; `answer` creates the response to each request.
    pub(crate) fn start<F, A>(tls: ServerConfig, respond: F) -> Result<Self, Failure>
    where
        F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
        A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let tasks = TaskSet::new();
        let entered = runtime.enter();
        let listener = TcpListener::from_std(listener)?;
        tasks.clone().spawn("server", accept(listener, TlsAcceptor::from(Arc::new(tls)), tasks, respond));
        drop(entered);
        Ok(Self { address, runtime: Some(runtime) })
    }

    /// `https://address`
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept<F, A>(listener: TcpListener, acceptor: TlsAcceptor, tasks: TaskSet, answer: F)
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    while let Ok((stream, _)) = listener.accept().await {
        tasks.spawn("server-connection", connection(stream, acceptor.clone(), answer.clone()));
    }
}

async fn connection<F, A>(stream: TcpStream, acceptor: TlsAcceptor, answer: F)
where
    F: Fn(Request<Incoming>) -> A,
    A: Future<Output = Response<Full<Bytes>>>,
{
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(Duration::from_secs(10), acceptor.accept(stream));
    // The client observes a failed handshake.
    let Ok(Ok(stream)) = handshake.await else { return };
    let service = service_fn(move |request| {
        let answered = answer(request);
        async { Ok::<_, Infallible>(answered.await) }
    });
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
