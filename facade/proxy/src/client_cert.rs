//! A client certificate that can be replaced. Connections opened after a replacement present the new certificate.

use std::sync::Arc;

use portico_kit::tls::CertPair;
use tokio::sync::watch;

/// A client certificate that its source can replace.
#[derive(Clone)]
pub enum ClientCert {
    /// A certificate that always exists, such as one in files (`FileWatch::pair(..).subscribe()`).
    Present(watch::Receiver<Arc<CertPair>>),
    /// A certificate that may not exist yet; until it exists, connections present none.
    Optional(watch::Receiver<Option<Arc<CertPair>>>),
}

impl ClientCert {
    /// Returns the current certificate, or `None` if there is none yet.
    #[must_use]
    pub fn current(&self) -> Option<Arc<CertPair>> {
        match self {
            Self::Present(pair) => Some(pair.borrow().clone()),
            Self::Optional(pair) => pair.borrow().clone(),
        }
    }

    /// Waits for a change. Returns false if the sender is gone. Cancel safe.
    pub(crate) async fn changed(&mut self) -> bool {
        match self {
            Self::Present(pair) => pair.changed().await.is_ok(),
            Self::Optional(pair) => pair.changed().await.is_ok(),
        }
    }
}
