//! Resolution of the Services of webhooks, with the same rules as for backends.

use portico_machinery::route::{ResolveError, ServiceReference, Target};
use portico_registry::{BackendAddresses, Resolver};

use crate::Routes;

impl Resolver for Routes {
    /// Returns the addresses in the APIService of a Service if there is one (the Service need not exist),
    /// else the resolved addresses.
    fn resolve(&self, service: &ServiceReference) -> Result<Vec<Target>, ResolveError> {
        match self.backend_of(&service.namespace, &service.name, Some(service.port)) {
            Some((targets, _)) => Ok(targets),
            None => Self::resolve(self, service),
        }
    }
}
