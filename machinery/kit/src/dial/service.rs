//! Connector as a tower service, for the clients of hyper-util.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::rt::TokioIo;

use super::{Connection, Connector, DialError, Target};
use crate::tls::ClientTls;

/// Service that dials the authority of a URI, or always one target, with fixed TLS settings. `https` (or no scheme) means
/// TLS; `http` is plain.
#[derive(Clone)]
pub struct BackendConnector {
    connector: Connector,
    tls: ClientTls,
    target: Option<Target>,
}

impl BackendConnector {
    /// Returns a service that dials the authority of the URI.
    pub fn new(connector: Connector, tls: ClientTls) -> Self {
        Self { connector, tls, target: None }
    }

    /// Dials `target` for every URI.
    pub fn with_target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    fn target_of(&self, uri: &Uri) -> Result<Target, DialError> {
        if let Some(target) = &self.target {
            return Ok(target.clone());
        }
        let host = uri.host().ok_or_else(|| DialError::Resolve {
            host: uri.to_string(),
            reason: "the address has no host".to_owned(),
        })?;
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
        Ok(Target::new(host, port))
    }
}

impl tower::Service<Uri> for BackendConnector {
    type Response = TokioIo<Connection>;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, DialError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let target = this.target_of(&uri)?;
            let connection = if uri.scheme_str() == Some("http") {
                this.connector.connect_plain(&target).await?
            } else {
                this.connector.connect_tls(&target, &this.tls).await?
            };
            Ok(TokioIo::new(connection))
        })
    }
}
