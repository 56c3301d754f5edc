//! Requests to aggregated API servers by controllers (namespaces, garbage collection and quotas, as in upstream) and by the
//! folder of manifests.

mod dependents;
mod manifests_folder;
mod object_counts;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, header};
use portico_controllers::namespace::ForeignContent;
use portico_controllers::namespace::conditions::RemainingContent;
use portico_gostd::json::{self, Readable};
use portico_kit::fetch::{FetchRequest, FetchResponse};
use portico_machinery::object::OwnerReference;
use portico_machinery::route::{Backend, Route};
use portico_machinery::{GroupResource, GroupVersion, Reason, Status};
use portico_routes::Routes;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::backend_client::BackendClient;
pub(super) use manifests_folder::ManifestsFolderServers;

/// Time for a request of a controller or of the manifests folder to an aggregated API server.
///
/// Limit (Manifests): the request fails and is retried.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Size of a list that a controller reads from an aggregated API server.
///
/// Limit (Manifests, bytes): the request fails.
const MAX_BODY: usize = 16 << 20;
const USER: &str = "system:serviceaccount:kube-system:namespace-controller";
const GROUPS: [&str; 3] =
    ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"];
/// User for requests of the manifests folder.
const FOLDER_USER: &str = "system:portico:manifests";
const FOLDER_GROUPS: [&str; 2] = ["system:masters", "system:authenticated"];
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Maximum number of objects on a page of a list.
const PAGE: usize = 500;

/// Returns the query for a page of a list.
fn page_query(limit: usize, continue_token: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("limit", &limit.to_string());
    if !continue_token.is_empty() {
        query.append_pair("continue", continue_token);
    }
    query.finish()
}

/// Aggregated API servers by their routes.
pub(super) struct AggregatedServers {
    pub(super) routes: Routes,
    pub(super) backends: Arc<BackendClient>,
}

/// Resource list at `/apis/G/V`, with the fields that are used here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourceList {
    kind: String,
    resources: Readable<Resource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resource {
    name: String,
    kind: String,
    namespaced: bool,
    verbs: Vec<String>,
}

impl Resource {
    fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    /// True if objects of the resource are namespaced and can be listed and deleted.
    fn is_namespace_content(&self) -> bool {
        self.namespaced && self.is_deletable()
    }

    /// True if objects of the resource can be listed and deleted.
    fn is_deletable(&self) -> bool {
        !self.name.contains('/') && self.supports("list") && self.supports("delete")
    }
}

/// List of objects with their metadata.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectList {
    kind: String,
    metadata: ListMetadata,
    items: Vec<Item>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMetadata {
    r#continue: String,
    remaining_item_count: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    deletion_timestamp: Option<String>,
    finalizers: Vec<String>,
    owner_references: Vec<OwnerReference>,
}

/// Returns the groups of a controller's service account, or of the user of the manifests folder.
fn groups_of(user: &str) -> &'static [&'static str] {
    if user == FOLDER_USER { &FOLDER_GROUPS } else { &GROUPS }
}

/// Request on behalf of a controller.
struct ControllerRequest<'a> {
    user: &'static str,
    method: Method,
    path: &'a str,
    content_type: &'static str,
    body: Bytes,
}

impl<'a> ControllerRequest<'a> {
    fn get(user: &'static str, path: &'a str) -> Self {
        Self { user, method: Method::GET, path, content_type: "", body: Bytes::new() }
    }

    /// Returns the request for one resource or for a list of objects, as metadata.
    fn request(&self) -> FetchRequest {
        let mut headers = HeaderMap::new();
        headers.insert("x-remote-user", HeaderValue::from_static(self.user));
        for group in groups_of(self.user) {
            headers.append("x-remote-group", HeaderValue::from_static(group));
        }
        headers.insert(header::ACCEPT, HeaderValue::from_static(METADATA));
        if !self.content_type.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        }
        let (method, path, body) = (self.method.clone(), self.path.to_owned(), self.body.clone());
        FetchRequest { method, path, headers, timeout: TIMEOUT, body, max_body_bytes: MAX_BODY }
    }
}

/// Decodes JSON of a backend as Go would.
fn read<T: Default + DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    json::from_slice(body).map_err(|error| error.to_string())
}

/// True if a 404 was sent by an API server. Other servers may respond with 404 to requests that they do not understand.
fn is_not_found_status(body: &[u8]) -> bool {
    Status::from_json(body).is_some_and(|status| status.reason() == Reason::NotFound)
}

/// Checks the kind of a response. A missing kind counts as the requested one, as for Go clients.
fn check_kind(kind: &str, is_wanted: impl Fn(&str) -> bool) -> Result<(), String> {
    if kind.is_empty() || is_wanted(kind) {
        return Ok(());
    }
    Err(format!("the backend returned a {kind}"))
}

impl AggregatedServers {
    async fn exchange(
        &self,
        backend: &Backend,
        request: &ControllerRequest<'_>,
    ) -> Result<FetchResponse, String> {
        self.backends.send(backend, &request.request()).await.map_err(|error| error.to_string())
    }

    /// Returns the response to a GET; `None` if an API server reports that the object does not exist.
    async fn get<T: Default + DeserializeOwned>(
        &self,
        backend: &Backend,
        user: &'static str,
        path: &str,
    ) -> Result<Option<T>, String> {
        let answer = self.exchange(backend, &ControllerRequest::get(user, path)).await?;
        match answer.status.as_u16() {
            200..=299 => read(&answer.body).map(Some).map_err(|error| format!("{path}: {error}")),
            404 if is_not_found_status(&answer.body) => Ok(None),
            code => Err(format!("{path}: the backend returned {code}")),
        }
    }

    /// Returns the resources of a group version. A backend that does not serve the routed group version is an error, because its
    /// resources are unknown.
    async fn resources(
        &self,
        backend: &Backend,
        user: &'static str,
        gv: &GroupVersion,
    ) -> Result<Vec<Resource>, String> {
        let path = gv.root();
        let list: Option<ResourceList> = self.get(backend, user, &path).await?;
        let list = list.ok_or_else(|| format!("{path}: the backend returned 404"))?;
        check_kind(&list.kind, |kind| kind == "APIResourceList")
            .map_err(|error| format!("{path}: {error}"))?;
        if !list.resources.unreadable.is_empty() {
            tracing::warn!(
                path,
                entries = list.resources.unreadable.join(", "),
                "discovery document has unreadable resources, resources skipped"
            );
        }
        Ok(list.resources.items)
    }

    /// Returns the metadata of the objects in a collection; empty if the resource no longer exists, as in upstream.
    async fn objects(&self, backend: &Backend, user: &'static str, path: &str) -> Result<ObjectList, String> {
        let objects: ObjectList = self.get(backend, user, path).await?.unwrap_or_default();
        let is_list = |kind: &str| kind.ends_with("List");
        check_kind(&objects.kind, is_list).map_err(|error| format!("{path}: {error}"))?;
        Ok(objects)
    }

    async fn delete(&self, backend: &Backend, path: &str) -> Result<(), String> {
        let request = ControllerRequest { method: Method::DELETE, ..ControllerRequest::get(USER, path) };
        let answer = self.exchange(backend, &request).await?;
        match answer.status.as_u16() {
            200..=299 => Ok(()),
            404 if is_not_found_status(&answer.body) => Ok(()),
            code => Err(format!("{path}: the backend returned {code}")),
        }
    }

    /// Deletes the objects of a resource, and records the remaining ones.
    async fn empty_resource(
        &self,
        backend: &Backend,
        collection: &str,
        resource: &Resource,
    ) -> Result<ObjectList, String> {
        if resource.supports("deletecollection") {
            let path = format!("{collection}?propagationPolicy=Background");
            self.delete(backend, &path).await?;
        } else {
            for item in self.objects(backend, USER, collection).await?.items {
                self.delete(backend, &format!("{collection}/{}", item.metadata.name)).await?;
            }
        }
        self.objects(backend, USER, collection).await
    }

    /// Deletes the objects of a group version. Resources in `seen` are skipped, because another version of the group served them.
    async fn empty_group(
        &self,
        route: &Route,
        backend: &Backend,
        namespace: &str,
        seen: &mut BTreeSet<GroupResource>,
        remaining: &mut RemainingContent,
    ) {
        let gv: &GroupVersion = &route.group_version;
        let served = match self.resources(backend, USER, gv).await {
            Ok(served) => served,
            Err(reason) => return remaining.unreachable.push(format!("{gv}: {reason}")),
        };
        for resource in served.iter().filter(|resource| resource.is_namespace_content()) {
            let id = GroupResource::new(&gv.group, &resource.name);
            if !seen.insert(id.clone()) {
                continue;
            }
            let collection = format!("/apis/{gv}/namespaces/{namespace}/{}", resource.name);
            match self.empty_resource(backend, &collection, resource).await {
                Ok(content) if content.items.is_empty() => {}
                Ok(content) => {
                    let finalizers = content.items.iter().flat_map(|item| item.metadata.finalizers.clone());
                    remaining.add(id, content.items.len(), finalizers);
                }
                Err(reason) => remaining.failures.push(format!("{id}: {reason}")),
            }
        }
    }
}

impl ForeignContent for AggregatedServers {
    fn delete_content<'a>(
        &'a self,
        namespace: &'a str,
        remaining: &'a mut RemainingContent,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut seen = BTreeSet::new();
            let mut routes = self.routes.published();
            routes.sort_by_key(|route| std::cmp::Reverse(route.version_priority));
            for route in &routes {
                if let Some(backend) = &route.backend {
                    self.empty_group(route, backend, namespace, &mut seen, remaining).await;
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_go_reads_them() {
        let nulls = [
            &br#"{"kind":"PartialObjectMetadataList","metadata":{"continue":null},"items":null}"#[..],
            br#"{"kind":"PartialObjectMetadataList","metadata":null}"#,
            b"null",
        ];
        for json in nulls {
            let objects: ObjectList = read(json).unwrap();
            assert!(objects.items.is_empty() && objects.metadata.r#continue.is_empty());
        }
        let json =
            br#"{"items":[{"metadata":{"name":"a","finalizers":null,"ownerReferences":null,"labels":null}},
            {"metadata":{"name":"b","ownerReferences":[{"uid":"u","controller":null}]},"spec":{}}]}"#;
        let objects: ObjectList = read(json).unwrap();
        let names: Vec<&str> = objects.items.iter().map(|item| item.metadata.name.as_str()).collect();
        assert_eq!(
            (names, objects.items[1].metadata.owner_references[0].uid.as_str()),
            (vec!["a", "b"], "u")
        );
        let unreadable = read::<ObjectList>(br#"{"items":[{"metadata":7}]}"#);
        assert!(unreadable.is_err(), "an invalid list must not be read as an empty one");
        for (json, found) in [
            (r#"{"resources":null}"#, 0),
            (
                r#"{"resources":[{"name":"a","verbs":null},{"name":7},{"name":"b","verbs":["list","delete"]}]}"#,
                2,
            ),
        ] {
            let list: ResourceList = read(json.as_bytes()).unwrap();
            assert_eq!(list.resources.items.len(), found, "{json}");
        }
    }

    #[test]
    fn only_a_status_proves_that_an_object_does_not_exist() {
        let status = Status::not_found(&GroupResource::new("g", "things"), "a");
        assert!(is_not_found_status(&serde_json::to_vec(&status).unwrap()));
        let foreign = [
            &b"{}"[..],
            b"404 page not found",
            br#"{"error":"not found"}"#,
            br#"{"kind":"Status","code":404}"#,
        ];
        assert!(foreign.iter().all(|body| !is_not_found_status(body)));
    }
}
