//! Services of webhooks are found as those of backends are.

use portico_machinery::route::{ResolveError, ServiceReference, Target};
use portico_registry::{Registered, Resolver};

use crate::Routes;

impl Resolver for Routes {
    /// Where an APIService says that its Service is, no Service is needed; otherwise as the Service's backends.
    fn resolve(&self, service: &ServiceReference) -> Result<Vec<Target>, ResolveError> {
        match self.backend_of(&service.namespace, &service.name, Some(service.port)) {
            Some((targets, _)) => Ok(targets),
            None => Self::resolve(self, service),
        }
    }
}
