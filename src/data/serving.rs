//! Who serves what is in an etcd now: their Leases tell.

use portico_server::EtcdSettings;
use portico_server::data::{self, CopyError, EtcdKnown, EtcdSource, Server};

use super::failure::Failure;

/// Refuses to replace what a kube-apiserver serves, which nothing ends, and, unless that is wanted, what a control service serves.
pub(super) async fn refuse_into(
    settings: &EtcdSettings,
    known: &EtcdKnown,
    force: bool,
) -> Result<(), Failure> {
    match EtcdSource::open(settings, known.clone()).await {
        Ok(source) => refuse(&source, &settings.place(), |server| !force || !server.is_portico).await,
        // Whoever takes the copy says what is wrong there; what is empty is served by nobody.
        Err(_) => Ok(()),
    }
}

/// Refuses to move what a kube-apiserver writes to: it does not know that writes are stopped.
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
