//! API servers that use a store in etcd, control services and others, found by their recently renewed Leases.

use jiff::Timestamp;
use portico_controllers::identity::RENEWED_ANNOTATION;
use portico_machinery::Object;
use portico_store::{CopyError, EtcdSource, Resource, StoredState};

/// Time after its last renewal for which a server counts as running, in seconds: three times the renewal interval.
pub const FRESH_SECONDS: i64 = 30;
/// Namespace of the Leases, and prefix of their names.
const NAMESPACE: &str = "kube-system";
const NAME_PREFIX: &str = "apiserver-";

/// Running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Name of its Lease.
    pub lease: String,
    /// True if a control service renewed the Lease last, false for any other server.
    pub is_portico: bool,
}

/// Returns the servers whose Leases were renewed close to a time (in Unix seconds).
///
/// # Errors
/// [`CopyError`].
pub async fn servers(source: &EtcdSource, now: i64) -> Result<Vec<Server>, CopyError> {
    let leases = source.objects(&Resource::new("coordination.k8s.io", "leases"), NAMESPACE).await?;
    let of_servers = leases.iter().filter(|state| state.key.name().starts_with(NAME_PREFIX));
    Ok(of_servers.filter_map(|state| running_server(state, now)).collect())
}

/// Returns the server of a Lease; `None` if it is not running.
fn running_server(state: &StoredState, now: i64) -> Option<Server> {
    let lease = Object::from_json(state.json()?).ok()?;
    let renewed = lease.at(&["spec", "renewTime"]).str().to_owned();
    let at: Timestamp = renewed.parse().ok()?;
    if (now - at.as_second()).abs() > FRESH_SECONDS {
        return None;
    }
    let is_portico = lease.at(&["metadata", "annotations", RENEWED_ANNOTATION]).str() == renewed;
    Some(Server { lease: state.key.name().to_owned(), is_portico })
}
