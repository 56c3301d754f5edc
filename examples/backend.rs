//! A small aggregated API server to copy from: serves the kind Flunder over TLS and stores it in memory.
//!
//!     cargo run --example backend -- --apiservice apiservice.yaml
//!     kubectl apply -f apiservice.yaml
//!
//! The server prints its APIService and writes it to the file of `--apiservice`. Like every backend of an aggregator, it
//! has a certificate for `<service>.<namespace>.svc`, trusts the client certificate of the front proxy, and reads the
//! caller's identity from the headers `X-Remote-*`. Only an annotation of the APIService is specific to Portico.

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
    /// Address to listen on; port 0 takes a free port.
    #[arg(long, default_value = "127.0.0.1:8443")]
    listen: SocketAddr,
    /// Service in the APIService. The certificate is for `<service>.<namespace>.svc`.
    #[arg(long, default_value = "flunders")]
    service: String,
    /// Namespace of the Service.
    #[arg(long, default_value = "wardle")]
    namespace: String,
    /// Serving certificate (PEM), instead of a generated one; needs --key and --ca.
    #[arg(long, requires_all = ["key", "ca"])]
    cert: Option<PathBuf>,
    /// Private key of --cert (PEM).
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
    /// CA of --cert (PEM), for the APIService.
    #[arg(long, requires = "cert")]
    ca: Option<PathBuf>,
    /// CA of the front proxy's client certificate (PEM). Only clients with such a certificate can connect. Without this
    /// option every client can connect and choose its identity: for trying out only.
    #[arg(long)]
    client_ca: Option<PathBuf>,
    /// File to write the APIService to. A generated certificate is saved next to it and used again after a restart, so
    /// the APIService stays valid.
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
            Some(file) => certs::Identity::load_or_create(file, &names, options.listen.ip())?,
            None => certs::Identity::generate(&names, options.listen.ip())?,
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
        log("no --client-ca: every client is trusted as the front proxy");
    }
    serve(listener, TlsAcceptor::from(Arc::new(tls)), Arc::new(Store::default())).await
}

/// Accepts connections until Ctrl-C, then waits up to one second for open ones.
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
    // Send small responses without waiting for acknowledgements.
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
    // Errors are ignored: a client may disconnect at any time.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// Writes a line to standard error. Standard output has the manifest.
fn log(line: &str) {
    let _ = writeln!(std::io::stderr(), "backend: {line}");
}
