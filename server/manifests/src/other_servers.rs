//! Other API servers, which keep the objects of APIServices with a backend: what the folder asks of them, and which documents
//! are theirs.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::BoxFuture;
use portico_machinery::{GroupResource, GroupVersion, Object, Reason};
use portico_registry::Registry;

use crate::document::Document;
use crate::requests::Requests;

/// The group that no backend ever serves.
const REGISTRATION: &str = "apiregistration.k8s.io";

/// A resource, as the server that keeps its objects names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherResource {
    /// The plural.
    pub name: String,
    /// The kind.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
}

/// Reaches other API servers, each request within a bound: a call's group version says which. A call that got no answer is
/// answered with 503.
pub trait OtherServers: Requests {
    /// Whether requests for a group version reach a server now.
    ///
    /// # Errors
    /// Why not, for people.
    fn reachable(&self, group_version: &GroupVersion) -> Result<(), String>;

    /// The resources of a group version, as its server says.
    ///
    /// # Errors
    /// For people.
    fn resources<'a>(
        &'a self,
        group_version: &'a GroupVersion,
    ) -> BoxFuture<'a, Result<Vec<OtherResource>, String>>;
}

/// Documents by who keeps their objects.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// This server.
    pub(crate) own: Vec<Document>,
    /// Others.
    pub(crate) aggregated: Vec<Document>,
}

/// Sorts documents: others keep what an APIService with a backend serves, in the folder or of somebody else.
pub(crate) async fn sort(registry: &Registry, documents: &[Document]) -> Sorted {
    let in_folder: BTreeSet<GroupVersion> = documents.iter().filter_map(with_backend).collect();
    let (mut sorted, mut known) = (Sorted::default(), BTreeMap::new());
    for document in documents {
        let group_version = document.kind.group_version();
        let is_aggregated = match known.get(&group_version) {
            Some(known) => *known,
            None => {
                let found =
                    in_folder.contains(&group_version) || is_registered(registry, &group_version).await;
                *known.entry(group_version).or_insert(found)
            }
        };
        let side = if is_aggregated { &mut sorted.aggregated } else { &mut sorted.own };
        side.push(document.clone());
    }
    sorted
}

/// The group version that an APIService with a backend stands for.
fn with_backend(document: &Document) -> Option<GroupVersion> {
    is_api_service(document).then_some(())?;
    let text = |field| document.object.at(&["spec", field]).str().to_owned();
    let group_version = GroupVersion::new(text("group"), text("version"));
    (has_backend(&document.object) && may_be_aggregated(&group_version)).then_some(group_version)
}

/// Whether it is an APIService.
pub(crate) fn is_api_service(document: &Document) -> bool {
    document.kind.kind == "APIService" && document.kind.group == REGISTRATION
}

fn has_backend(api_service: &Object) -> bool {
    api_service.at(&["spec", "service"]).field("name").opt_str().is_some()
}

fn may_be_aggregated(group_version: &GroupVersion) -> bool {
    !group_version.group.is_empty() && group_version.group != REGISTRATION
}

async fn is_registered(registry: &Registry, group_version: &GroupVersion) -> bool {
    if !may_be_aggregated(group_version) {
        return false;
    }
    let api_services = GroupResource::new(REGISTRATION, "apiservices");
    match registry.get(&api_services, "", &group_version.api_service_name()).await {
        Ok(stored) => has_backend(stored.object()),
        Err(status) if status.reason() == Reason::NotFound => false,
        Err(status) => {
            // The next pass asks again; until then its documents are faults.
            tracing::warn!(
                %group_version,
                error = %status,
                "cannot determine the API server of a manifest, retrying"
            );
            false
        }
    }
}
