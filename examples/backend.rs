//! A small aggregated API server: kind Flunder over TLS, kept in memory. A pattern to copy.
//!
//! It prints an APIService that leads to itself (and writes it to a file when asked), so that
//! `kubectl apply -f` of that file puts it behind Portico. It knows nothing of Portico: what it needs is what every
//! backend of an aggregator needs: a certificate for `<service>.<namespace>.svc`, trust in the front proxy's client
//! certificate, and the caller's identity from `X-Remote-*`.
//!
//!     cargo run --example backend -- --apiservice flunders.yaml

#[path = "backend/api.rs"]
mod api;
#[path = "backend/certs.rs"]
mod certs;
#[path = "backend/documents.rs"]
mod documents;
#[path = "backend/flunder.rs"]
mod flunder;
#[path = "backend/store.rs"]
mod store;

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use store::Store;

/// Serves flunders (wardle.example.com/v1alpha1) over HTTPS.
#[derive(Parser)]
struct Options {
    /// Where to listen; port 0 is any.
    #[arg(long, default_value = "127.0.0.1:8443")]
    listen: SocketAddr,
    /// The Service that the APIService names; the certificate is for `<name>.<namespace>.svc`.
    #[arg(long, default_value = "flunders")]
    service: String,
    /// The Service's namespace.
    #[arg(long, default_value = "wardle")]
    namespace: String,
    /// A certificate (PEM) instead of a self-made one; needs --key and --ca.
    #[arg(long, requires_all = ["key", "ca"])]
    cert: Option<PathBuf>,
    /// Its private key.
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
    /// The CA that signed it, for the APIService.
    #[arg(long, requires = "cert")]
    ca: Option<PathBuf>,
    /// The CA of the front proxy's client certificate (PEM). Given, nobody else may connect. Without it, anybody may,
    /// and the identity that they claim is believed: only for trying out.
    #[arg(long)]
    client_ca: Option<PathBuf>,
    /// Also write the APIService to this file, and keep a self-made certificate beside it: registered once, it is found
    /// again after a restart.
    #[arg(long)]
    apiservice: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let names = [format!("{}.{}.svc", options.service, options.namespace), "localhost".to_owned()];
    let identity = match (&options.cert, &options.key, &options.ca) {
        (Some(cert), Some(key), Some(ca)) => certs::Identity::read(cert, key, ca)?,
        _ => match &options.apiservice {
            Some(file) => certs::Identity::kept(file, &names, options.listen.ip())?,
            None => certs::Identity::make(&names, options.listen.ip())?,
        },
    };
    let client_ca = options.client_ca.as_ref().map(std::fs::read).transpose()?;
    let tls = certs::server_config(&identity, client_ca.as_deref())?;
    let listener = TcpListener::bind(options.listen).await?;
    let address = listener.local_addr()?;

    let manifest = documents::api_service(&options.service, &options.namespace, address, &identity.ca_pem);
    if let Some(file) = &options.apiservice {
        std::fs::write(file, &manifest)?;
    }
    std::io::stdout().write_all(manifest.as_bytes())?;
    log(&format!("serving flunders on https://{address}"));
    if client_ca.is_none() {
        log("no --client-ca: whoever connects is believed to be the front proxy");
    }
    serve(listener, TlsAcceptor::from(Arc::new(tls)), Arc::new(Store::default())).await
}

/// Accepts until the process is told to stop, then gives open requests a moment.
async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    store: Arc<Store>,
) -> Result<(), Box<dyn Error>> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                connections.spawn(connection(stream, acceptor.clone(), store.clone()));
            }
            Some(_) = connections.join_next() => {}
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    let _ = tokio::time::timeout(Duration::from_secs(1), connections.join_all()).await;
    Ok(())
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, store: Arc<Store>) {
    // Without this, small answers wait for the peer's acknowledgement.
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_secs(10), acceptor.accept(stream)).await else {
        return;
    };
    let service = service_fn(move |request| {
        let store = store.clone();
        async move { Ok::<_, std::convert::Infallible>(api::handle(&store, request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10));
    // A peer that goes away in the middle is no news.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// One line on standard error; standard output is the manifest's.
fn log(line: &str) {
    let _ = writeln!(std::io::stderr(), "backend: {line}");
}
