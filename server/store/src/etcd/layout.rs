//! How objects stand in etcd, as far as kinds decide it: the registry, which knows kinds, implements this.

use std::time::Duration;

use portico_machinery::GroupResource;

use crate::key::Resource;

/// Where objects of each resource stand, and in which bytes: those of kube-apiserver.
pub trait Layout: Send + Sync + 'static {
    /// The path of a resource below the prefix, without slashes at its ends: `services/specs`.
    fn path(&self, resource: &GroupResource) -> String;

    /// Which resource a path below the prefix is one of, and the rest of it: `kube-system/dns` of `services/specs/kube-system/dns`.
    /// Nothing for what is no object of the API.
    fn locate<'p>(&self, path: &'p str) -> Option<(Resource, &'p str)>;

    /// The bytes that kube-apiserver would store for an object, before they are encrypted.
    ///
    /// # Errors
    /// Why there are none.
    fn to_stored(&self, resource: &GroupResource, json: &[u8]) -> Result<Vec<u8>, String>;

    /// The canonical JSON, without a resource version, of stored bytes that were decrypted.
    ///
    /// # Errors
    /// What is wrong with them.
    fn to_json(&self, resource: &GroupResource, stored: &[u8]) -> Result<Vec<u8>, String>;

    /// How long objects of this resource are kept after their last write; nothing for those that stay.
    fn time_to_live(&self, resource: &GroupResource) -> Option<Duration>;
}
