//! Services of webhooks are found as those of backends are.

use portico_machinery::route::{ResolveError, ServiceReference, Target};
use portico_registry::Resolver;

use crate::Routes;

impl Resolver for Routes {
    fn resolve(&self, service: &ServiceReference) -> Result<Vec<Target>, ResolveError> {
        Self::resolve(self, service)
    }
}
