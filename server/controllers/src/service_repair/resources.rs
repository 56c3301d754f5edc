//! The two resources that are held against each other.

use portico_machinery::GroupResource;

/// Services.
pub fn services() -> GroupResource {
    GroupResource::new("", "services")
}

/// IPAddresses.
pub fn addresses() -> GroupResource {
    GroupResource::new("networking.k8s.io", "ipaddresses")
}
