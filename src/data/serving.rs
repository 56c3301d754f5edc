//! Detects running servers of the data in an etcd by their Leases.

use portico_server::EtcdSettings;
use portico_server::data::{self, CopyError, EtcdKnown, EtcdSource, Server};

use super::failure::Failure;

/// Refuses to replace data that a kube-apiserver or, unless `force` is set, a control service serves.
pub(super) async fn refuse_into(
    settings: &EtcdSettings,
    known: &EtcdKnown,
    force: bool,
) -> Result<(), Failure> {
    match EtcdSource::open(settings, known.clone()).await {
        Ok(source) => refuse(&source, &settings.place(), |server| !force || !server.is_portico).await,
        // An empty etcd is not served. Other errors are reported when the target is opened.
        Err(_) => Ok(()),
    }
}

/// Refuses to move data that a kube-apiserver serves, because a move cannot stop its writes.
pub(super) async fn refuse_from(source: &EtcdSource, place: &str) -> Result<(), Failure> {
    refuse(source, place, |server| !server.is_portico).await
}

async fn refuse(source: &EtcdSource, place: &str, concerns: impl Fn(&Server) -> bool) -> Result<(), Failure> {
    let servers = data::servers(source, data::now()).await?;
    let Some(server) = servers.iter().find(|server| concerns(server)) else { return Ok(()) };
    let kind = if server.is_portico { "a control service" } else { "a kube-apiserver" };
    let (place, lease) = (place.to_owned(), &server.lease);
    let by =
        format!("{kind} has renewed its Lease kube-system/{lease} less than {} s ago", data::FRESH_SECONDS);
    Err(CopyError::InUse { place, by }.into())
}
