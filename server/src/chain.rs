//! The layers around the gRPC services: who calls, and what no message needs to be read for.
//!
//! For sockets and for the in-process facade alike. What depends on a message (the object asked for) is authorized by the
//! service itself, through the [`Caller`] left in extensions.

mod audit;
mod authentication;
mod authorization;
mod caller;
mod identities;
pub(crate) mod methods;
mod recorded_body;
mod recording;
mod trace;

use std::sync::Arc;

use portico_auditor::Auditor;
use tower::Layer;

use audit::Audit;
use authentication::Authentication;
use authorization::MethodAuthorization;
pub use caller::Caller;
pub use identities::Identities;
use trace::Trace;

/// The services behind the layers, outermost first.
pub type Chain<S> = Authentication<Trace<Audit<MethodAuthorization<S>>>>;

/// Puts the layers around the services.
#[derive(Clone)]
pub struct ChainLayer {
    identities: Arc<Identities>,
    auditor: Option<Arc<Auditor>>,
}

impl ChainLayer {
    /// Layers that trust these identities, and let this one record calls.
    #[must_use]
    pub fn new(identities: Arc<Identities>, auditor: Option<Arc<Auditor>>) -> Self {
        Self { identities, auditor }
    }
}

impl<S> Layer<S> for ChainLayer {
    type Service = Chain<S>;

    fn layer(&self, inner: S) -> Chain<S> {
        let audit = Audit::new(MethodAuthorization::new(inner), self.auditor.clone());
        Authentication::new(Trace::new(audit), Arc::clone(&self.identities), self.auditor.clone())
    }
}
