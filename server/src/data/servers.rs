//! Who has renewed the Lease of an API server lately: whoever serves a store in etcd, of whatever kind.

use jiff::Timestamp;
use portico_controllers::identity::RENEWED_ANNOTATION;
use portico_machinery::Object;
use portico_store::{CopyError, EtcdSource, Resource, StoredState};

/// How long after its last renewal a server counts as there: three times the period.
pub const FRESH_SECONDS: i64 = 30;
/// Where these Leases are, and what their names begin with.
const NAMESPACE: &str = "kube-system";
const NAMES: &str = "apiserver-";

/// A server that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The name of its Lease.
    pub lease: String,
    /// Whether a control service has renewed it last, or another server.
    pub is_portico: bool,
}

/// The servers that have renewed their Leases about this time (in Unix seconds).
///
/// # Errors
/// [`CopyError`].
pub async fn servers(source: &EtcdSource, now: i64) -> Result<Vec<Server>, CopyError> {
    let leases = source.objects(&Resource::new("coordination.k8s.io", "leases"), NAMESPACE).await?;
    let of_servers = leases.iter().filter(|state| state.key.name().starts_with(NAMES));
    Ok(of_servers.filter_map(|state| fresh(state, now)).collect())
}

/// The server of a Lease, if it is there.
fn fresh(state: &StoredState, now: i64) -> Option<Server> {
    let lease = Object::from_json(state.json()?).ok()?;
    let renewed = lease.at(&["spec", "renewTime"]).str().to_owned();
    let at: Timestamp = renewed.parse().ok()?;
    if (now - at.as_second()).abs() > FRESH_SECONDS {
        return None;
    }
    let is_portico = lease.at(&["metadata", "annotations", RENEWED_ANNOTATION]).str() == renewed;
    Some(Server { lease: state.key.name().to_owned(), is_portico })
}
