//! Detects running servers of the data in an etcd by their Leases.

use portico_server::EtcdSettings;
use portico_server::data::{self, CopyError, EtcdKnown, EtcdSource, Server};

use super::failure::Failure;

/// Refuses to replace data that a kube-apiserver or, unless `force` is set, a control service serves.
pub(super) async fn refuse_served_target(
    settings: &EtcdSettings,
    format: &EtcdKnown,
    force: bool,
) -> Result<(), Failure> {
    match EtcdSource::open(settings, format.clone()).await {
        Ok(source) => {
            refuse_if_served(&source, &settings.place(), |server| !force || !server.is_portico).await
        }
        // An empty etcd is not served. Other errors are reported when the target is opened.
        Err(_) => Ok(()),
    }
}

/// Refuses to move data that a kube-apiserver serves, because a move cannot stop its writes.
pub(super) async fn refuse_served_source(source: &EtcdSource, place: &str) -> Result<(), Failure> {
    refuse_if_served(source, place, |server| !server.is_portico).await
}

async fn refuse_if_served(
    source: &EtcdSource,
    place: &str,
    matches: impl Fn(&Server) -> bool,
) -> Result<(), Failure> {
    let servers = data::servers(source, data::unix_now()).await?;
    let Some(server) = servers.iter().find(|server| matches(server)) else { return Ok(()) };
    let kind = if server.is_portico { "a control service" } else { "a kube-apiserver" };
    let (place, lease) = (place.to_owned(), &server.lease);
    let by =
        format!("{kind} has renewed its Lease kube-system/{lease} less than {} s ago", data::FRESH_SECONDS);
    Err(CopyError::InUse { place, by }.into())
}
