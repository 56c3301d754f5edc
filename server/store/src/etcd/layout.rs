//! Layout of objects in etcd, implemented by the registry, which knows the kinds.

use std::time::Duration;

use portico_machinery::GroupResource;

use crate::key::Resource;

/// Keys and encoding of the objects of each resource, as in kube-apiserver.
pub trait Layout: Send + Sync + 'static {
    /// Returns the path of a resource below the prefix, without slashes at its ends: `services/specs`.
    fn path(&self, resource: &GroupResource) -> String;

    /// Returns the resource of a path below the prefix, and the rest of the path: `kube-system/dns` for
    /// `services/specs/kube-system/dns`. `None` for paths that are not of API objects.
    fn locate<'p>(&self, path: &'p str) -> Option<(Resource, &'p str)>;

    /// Encodes an object as kube-apiserver would store it, before encryption.
    ///
    /// # Errors
    /// The reason why it cannot be encoded.
    fn to_stored(&self, resource: &GroupResource, json: &[u8]) -> Result<Vec<u8>, String>;

    /// Decodes decrypted stored bytes to canonical JSON without a resource version.
    ///
    /// # Errors
    /// The reason why they cannot be decoded.
    fn to_json(&self, resource: &GroupResource, stored: &[u8]) -> Result<Vec<u8>, String>;

    /// Returns the time after the last write at which objects of this resource expire; `None` if they do not expire.
    fn time_to_live(&self, resource: &GroupResource) -> Option<Duration>;
}
