//! Names of the two resources that are compared.

use portico_machinery::GroupResource;

pub fn services() -> GroupResource {
    GroupResource::new("", "services")
}

pub fn addresses() -> GroupResource {
    GroupResource::new("networking.k8s.io", "ipaddresses")
}
