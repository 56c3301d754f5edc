//! The layers around the gRPC services: who calls, and what no message needs to be read for.
//!
//! For sockets and for the in-process facade alike. What depends on a message (the object asked for) is authorized by the
//! service itself, through the [`Caller`] left in extensions.

mod authentication;
mod authorization;
mod caller;
mod identities;
pub(crate) mod methods;
mod trace;

use std::sync::Arc;

use tower::Layer;

use authentication::Authentication;
use authorization::MethodAuthorization;
pub use caller::Caller;
pub use identities::Identities;
use trace::Trace;

/// The services behind the layers, outermost first.
pub type Chain<S> = Authentication<Trace<MethodAuthorization<S>>>;

/// Puts the layers around the services.
#[derive(Clone)]
pub struct ChainLayer {
    identities: Arc<Identities>,
}

impl ChainLayer {
    /// Layers that trust these identities.
    #[must_use]
    pub fn new(identities: Arc<Identities>) -> Self {
        Self { identities }
    }
}

impl<S> Layer<S> for ChainLayer {
    type Service = Chain<S>;

    fn layer(&self, inner: S) -> Chain<S> {
        Authentication::new(Trace::new(MethodAuthorization::new(inner)), Arc::clone(&self.identities))
    }
}
