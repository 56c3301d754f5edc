//! What other API servers hold in a namespace, for the controller that empties namespaces: asked live, as upstream does.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, header};
use portico_controllers::namespace::Elsewhere;
use portico_controllers::namespace::conditions::Remaining;
use portico_kit::fetch::FetchRequest;
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
        self.namespaced && !self.name.contains('/') && self.can("list") && self.can("delete")
    }
}

/// A list of objects, metadata alone.
#[derive(Deserialize)]
struct Objects {
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    finalizers: Vec<String>,
}

impl Aggregated {
    async fn ask(&self, backend: &Backend, method: Method, path: &str) -> Result<Bytes, String> {
        let mut headers = HeaderMap::new();
        headers.insert("x-remote-user", HeaderValue::from_static(USER));
        for group in GROUPS {
            headers.append("x-remote-group", HeaderValue::from_static(group));
        }
        headers.insert(header::ACCEPT, HeaderValue::from_static(METADATA));
        let request =
            FetchRequest { method, path: path.to_owned(), headers, timeout: TIMEOUT, max_body: MAX_BODY };
        let answer = self.backends.send(backend, &request).await.map_err(|error| error.to_string())?;
        match answer.status.as_u16() {
            200..=299 | 404 => Ok(answer.body),
            code => Err(format!("the backend answered {code}")),
        }
    }

    async fn read<T: DeserializeOwned>(&self, backend: &Backend, path: &str) -> Result<T, String> {
        let body = self.ask(backend, Method::GET, path).await?;
        serde_json::from_slice(&body).map_err(|error| format!("{path}: {error}"))
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
            self.ask(backend, Method::DELETE, &path).await?;
        } else {
            for item in self.read::<Objects>(backend, collection).await?.items {
                self.ask(backend, Method::DELETE, &format!("{collection}/{}", item.metadata.name)).await?;
            }
        }
        self.read(backend, collection).await
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
        let served = match self.read::<ResourceList>(backend, &format!("/apis/{gv}")).await {
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
