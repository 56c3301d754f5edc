//! What other API servers hold in a namespace, for the controller that empties namespaces: asked live, as upstream does.

mod owned;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, header};
use portico_controllers::namespace::Elsewhere;
use portico_controllers::namespace::conditions::Remaining;
use portico_kit::fetch::{FetchRequest, Fetched};
use portico_machinery::object::OwnerReference;
use portico_machinery::route::{Backend, Route};
use portico_machinery::{GroupResource, GroupVersion};
use portico_routes::Routes;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::to_backends::ToBackends;

/// A backend that takes longer holds the namespace for another round.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longer lists are a failure; metadata alone is asked for.
const MAX_BODY: usize = 16 << 20;
const USER: &str = "system:serviceaccount:kube-system:namespace-controller";
const GROUPS: [&str; 3] =
    ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"];
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Backends by the routes to them.
pub(super) struct Aggregated {
    pub(super) routes: Routes,
    pub(super) backends: Arc<ToBackends>,
}

/// `/apis/G/V`, as far as it matters here.
#[derive(Deserialize)]
struct ResourceList {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

impl Resource {
    fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    /// Whether objects of it live in namespaces and can be found and deleted.
    fn is_content(&self) -> bool {
        self.namespaced && self.is_deletable()
    }

    /// Whether objects of it can be found and deleted.
    fn is_deletable(&self) -> bool {
        !self.name.contains('/') && self.can("list") && self.can("delete")
    }
}

/// A list of objects, metadata alone.
#[derive(Deserialize)]
struct Objects {
    #[serde(default)]
    metadata: ListMetadata,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Default, Deserialize)]
struct ListMetadata {
    #[serde(default)]
    r#continue: String,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    deletion_timestamp: Option<String>,
    finalizers: Vec<String>,
    owner_references: Vec<OwnerReference>,
}

/// One request in a controller's name.
struct Asked<'a> {
    user: &'static str,
    method: Method,
    path: &'a str,
    content_type: &'static str,
    body: Bytes,
}

impl<'a> Asked<'a> {
    fn get(user: &'static str, path: &'a str) -> Self {
        Self { user, method: Method::GET, path, content_type: "", body: Bytes::new() }
    }

    /// What names one resource, or the objects of one, as metadata.
    fn request(&self) -> FetchRequest {
        let mut headers = HeaderMap::new();
        headers.insert("x-remote-user", HeaderValue::from_static(self.user));
        for group in GROUPS {
            headers.append("x-remote-group", HeaderValue::from_static(group));
        }
        headers.insert(header::ACCEPT, HeaderValue::from_static(METADATA));
        if !self.content_type.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        }
        let (method, path, body) = (self.method.clone(), self.path.to_owned(), self.body.clone());
        FetchRequest { method, path, headers, timeout: TIMEOUT, body, max_body: MAX_BODY }
    }
}

impl Aggregated {
    async fn exchange(&self, backend: &Backend, asked: &Asked<'_>) -> Result<Fetched, String> {
        self.backends.send(backend, &asked.request()).await.map_err(|error| error.to_string())
    }

    async fn ask(&self, backend: &Backend, asked: &Asked<'_>) -> Result<Bytes, String> {
        let answer = self.exchange(backend, asked).await?;
        match answer.status.as_u16() {
            200..=299 | 404 => Ok(answer.body),
            code => Err(format!("the backend answered {code}")),
        }
    }

    async fn read<T: DeserializeOwned>(
        &self,
        backend: &Backend,
        user: &'static str,
        path: &str,
    ) -> Result<T, String> {
        let body = self.ask(backend, &Asked::get(user, path)).await?;
        serde_json::from_slice(&body).map_err(|error| format!("{path}: {error}"))
    }

    async fn delete(&self, backend: &Backend, path: &str) -> Result<(), String> {
        let asked = Asked { method: Method::DELETE, ..Asked::get(USER, path) };
        self.ask(backend, &asked).await.map(drop)
    }

    /// Deletes what is there, and what is left then, of one resource.
    async fn empty_resource(
        &self,
        backend: &Backend,
        collection: &str,
        resource: &Resource,
    ) -> Result<Objects, String> {
        if resource.can("deletecollection") {
            let path = format!("{collection}?propagationPolicy=Background");
            self.delete(backend, &path).await?;
        } else {
            for item in self.read::<Objects>(backend, USER, collection).await?.items {
                self.delete(backend, &format!("{collection}/{}", item.metadata.name)).await?;
            }
        }
        self.read(backend, USER, collection).await
    }

    /// One group version. Resources that another version of the group has shown already are left alone.
    async fn empty_group(
        &self,
        route: &Route,
        backend: &Backend,
        namespace: &str,
        seen: &mut BTreeSet<GroupResource>,
        remaining: &mut Remaining,
    ) {
        let gv: &GroupVersion = &route.group_version;
        let served = match self.read::<ResourceList>(backend, USER, &format!("/apis/{gv}")).await {
            Ok(served) => served,
            Err(reason) => return remaining.unreachable.push(format!("{gv}: {reason}")),
        };
        for resource in served.resources.iter().filter(|resource| resource.is_content()) {
            let id = GroupResource::new(&gv.group, &resource.name);
            if !seen.insert(id.clone()) {
                continue;
            }
            let collection = format!("/apis/{gv}/namespaces/{namespace}/{}", resource.name);
            match self.empty_resource(backend, &collection, resource).await {
                Ok(left) if left.items.is_empty() => {}
                Ok(left) => {
                    let finalizers = left.items.iter().flat_map(|item| item.metadata.finalizers.clone());
                    remaining.add(id, left.items.len(), finalizers);
                }
                Err(reason) => remaining.failures.push(format!("{id}: {reason}")),
            }
        }
    }
}

impl Elsewhere for Aggregated {
    fn empty<'a>(&'a self, namespace: &'a str, remaining: &'a mut Remaining) -> BoxFuture<'a, ()> {
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
