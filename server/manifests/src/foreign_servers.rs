//! Other API servers, which store the objects of APIServices with a backend: requests to them, and selection of the documents
//! for them.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::BoxFuture;
use portico_machinery::{GroupResource, GroupVersion, Object, Reason};
use portico_registry::Registry;

use crate::document::Document;
use crate::requests::Requests;

/// Group that a backend never serves.
const REGISTRATION_GROUP: &str = "apiregistration.k8s.io";

/// A resource of another server, from its discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignResource {
    /// Plural name.
    pub name: String,
    /// Kind of the objects.
    pub kind: String,
    /// True if the resource is namespaced.
    pub is_namespaced: bool,
}

/// Access to other API servers, with a time limit per request. The group version of a call selects the server. A call without a
/// response returns 503.
pub trait ForeignApiClient: Requests {
    /// Checks that requests for a group version currently reach a server.
    ///
    /// # Errors
    /// Returns a human-readable reason if they do not.
    fn check_reachable(&self, group_version: &GroupVersion) -> Result<(), String>;

    /// Returns the resources of a group version from its server.
    ///
    /// # Errors
    /// Returns a human-readable message.
    fn resources<'a>(
        &'a self,
        group_version: &'a GroupVersion,
    ) -> BoxFuture<'a, Result<Vec<ForeignResource>, String>>;
}

/// Documents by the server that stores their objects.
#[derive(Debug, Default)]
pub(crate) struct DocumentsByServer {
    /// Documents for this server.
    pub(crate) own: Vec<Document>,
    /// Documents for other servers.
    pub(crate) aggregated: Vec<Document>,
}

/// Assigns documents to servers: other servers store the objects of an APIService with a backend, in the folder or registered.
pub(crate) async fn sort_by_server(registry: &Registry, documents: &[Document]) -> DocumentsByServer {
    let in_folder: BTreeSet<GroupVersion> = documents.iter().filter_map(backend_group_version).collect();
    let (mut sorted, mut cache) = (DocumentsByServer::default(), BTreeMap::new());
    for document in documents {
        let group_version = document.kind.group_version();
        let is_aggregated = match cache.get(&group_version) {
            Some(cached) => *cached,
            None => {
                let found =
                    in_folder.contains(&group_version) || is_registered(registry, &group_version).await;
                *cache.entry(group_version).or_insert(found)
            }
        };
        let bucket = if is_aggregated { &mut sorted.aggregated } else { &mut sorted.own };
        bucket.push(document.clone());
    }
    sorted
}

/// Returns the group version that an APIService with a backend registers.
fn backend_group_version(document: &Document) -> Option<GroupVersion> {
    is_api_service(document).then_some(())?;
    let text = |field| document.object.at(&["spec", field]).str().to_owned();
    let group_version = GroupVersion::new(text("group"), text("version"));
    (has_backend(&document.object) && may_be_aggregated(&group_version)).then_some(group_version)
}

/// Returns true if the document is an APIService.
pub(crate) fn is_api_service(document: &Document) -> bool {
    document.kind.kind == "APIService" && document.kind.group == REGISTRATION_GROUP
}

fn has_backend(api_service: &Object) -> bool {
    api_service.at(&["spec", "service"]).field("name").opt_str().is_some()
}

fn may_be_aggregated(group_version: &GroupVersion) -> bool {
    !group_version.group.is_empty() && group_version.group != REGISTRATION_GROUP
}

async fn is_registered(registry: &Registry, group_version: &GroupVersion) -> bool {
    if !may_be_aggregated(group_version) {
        return false;
    }
    let api_services = GroupResource::new(REGISTRATION_GROUP, "apiservices");
    match registry.get(&api_services, "", &group_version.api_service_name()).await {
        Ok(stored) => has_backend(stored.object()),
        Err(status) if status.reason() == Reason::NotFound => false,
        Err(status) => {
            // The next pass retries; until then the documents fail.
            tracing::warn!(
                %group_version,
                error = %status,
                "cannot determine the API server of a manifest, retrying"
            );
            false
        }
    }
}
