//! A client certificate as it stands. Whoever makes or reads it replaces it; connections that are made afterwards show the new one.

use std::sync::Arc;

use portico_kit::tls::CertPair;
use tokio::sync::watch;

/// See the module.
#[derive(Clone)]
pub enum ClientCert {
    /// There is one, as that of files (`FileWatch::pair(..).subscribe()`).
    Present(watch::Receiver<Arc<CertPair>>),
    /// None is shown until there is one.
    Awaited(watch::Receiver<Option<Arc<CertPair>>>),
}

impl ClientCert {
    /// What is shown now.
    #[must_use]
    pub fn current(&self) -> Option<Arc<CertPair>> {
        match self {
            Self::Present(pair) => Some(pair.borrow().clone()),
            Self::Awaited(pair) => pair.borrow().clone(),
        }
    }

    /// Waits for a change; false when nobody can change it any more. Cancel safe.
    pub(crate) async fn changed(&mut self) -> bool {
        match self {
            Self::Present(pair) => pair.changed().await.is_ok(),
            Self::Awaited(pair) => pair.changed().await.is_ok(),
        }
    }
}
