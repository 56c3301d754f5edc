//! Layers around the gRPC services: authentication, tracing, audit, and authorization that does not depend on a message.
//!
//! The layers apply to sockets and to the in-process facade alike. Services authorize requests that depend on a message (the
//! requested object) themselves, with the [`Caller`] in the extensions of the request.

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

/// Services behind the layers, outermost first.
pub type Chain<S> = Authentication<Trace<Audit<MethodAuthorization<S>>>>;

/// Layer that adds the chain to the services.
#[derive(Clone)]
pub struct ChainLayer {
    identities: Arc<Identities>,
    auditor: Option<Arc<Auditor>>,
}

impl ChainLayer {
    /// Creates layers that trust these identities. Calls are recorded if there is an auditor.
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
