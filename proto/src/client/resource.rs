//! Objects of any resource: get, list, apply, delete and watch.

use futures::{Stream, TryStreamExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tonic::Status;

use super::Client;
use super::query::Query;
use super::resource_watch::{WatchEvent, watch};
use crate::objects::{Call, DoRequest, DoResponse, ListRequest, Resource, ResourcesRequest, Target};

/// User agent of all calls.
const USER_AGENT: &str = concat!("portico-proto/", env!("CARGO_PKG_VERSION"));
/// Media type of a server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

/// Client for the objects of one resource, in one namespace, in all namespaces, or at cluster scope. Created by
/// [`Client::resource`]; cheap to clone.
#[derive(Clone)]
pub struct ResourceClient {
    client: Client,
    resource: Resource,
    namespace: String,
    accept: String,
}

/// Objects to list or watch, as in Kubernetes' ListOptions.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Label selector, such as `app=web,tier in (a,b)`. Empty selects all objects.
    pub label_selector: String,
    /// Field selector, such as `metadata.name=web`. Empty selects all objects.
    pub field_selector: String,
    /// Maximum number of objects in a page of a list. 0 returns all objects.
    pub limit: u64,
    /// [`List::continue_token`] of the previous page. Empty returns the first page.
    pub continue_token: String,
    /// Revision after which a watch resumes. If empty, a watch starts with the current objects as ADDED events. Lists ignore it.
    pub resource_version: String,
}

/// Page of a list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct List<T> {
    /// Objects, in the order of their namespaces and names.
    pub items: Vec<T>,
    /// Revision of the list. Pass it as [`ListOptions::resource_version`] to watch changes from here on.
    pub resource_version: String,
    /// Token for the next page; empty on the last page. Pass it as [`ListOptions::continue_token`].
    pub continue_token: String,
    /// Estimated number of objects on the remaining pages, if known.
    pub remaining_item_count: Option<u64>,
}

/// List as JSON.
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: DeserializeOwned"))]
struct ListJson<T> {
    items: Option<Vec<T>>,
    #[serde(default)]
    metadata: ListMeta,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
    r#continue: String,
    remaining_item_count: Option<u64>,
}

/// Options of a server-side apply.
#[derive(Clone, Debug, Default)]
pub struct ApplyOptions {
    /// Name of the owner of the applied fields. Required.
    pub field_manager: String,
    /// Takes over fields that other managers own, instead of failing with a conflict.
    pub force: bool,
    /// Validates and admits the object without storing it.
    pub dry_run: bool,
}

impl Client {
    /// Returns the resources with a name, the preferred one first. An empty name returns all resources.
    ///
    /// A name is a plural, singular, short name, kind or category, optionally followed by a group or by version and group:
    /// `deploy`, `deployments.apps`, `deployments.v1.apps`.
    ///
    /// # Errors
    /// The status of the failed call.
    pub async fn resources(&self, name: &str) -> Result<Vec<Resource>, Status> {
        let request = ResourcesRequest { name: name.to_owned() };
        Ok(self.objects().resources(request).await?.into_inner().resources)
    }

    /// Returns a client for the objects of a resource. Pass an empty namespace for cluster-scoped resources, and to list or
    /// watch all namespaces.
    #[must_use]
    pub fn resource(&self, resource: Resource, namespace: &str) -> ResourceClient {
        let accept = "application/json".to_owned();
        ResourceClient { client: self.clone(), resource, namespace: namespace.to_owned(), accept }
    }
}

impl ResourceClient {
    /// Requests responses in another media type, such as `application/json;as=Table;v=v1;g=meta.k8s.io`, for
    /// [`get_bytes`](Self::get_bytes), [`list_bytes`](Self::list_bytes) and the other calls that return bytes.
    #[must_use]
    pub fn accepting(mut self, accept: &str) -> Self {
        accept.clone_into(&mut self.accept);
        self
    }

    /// Returns the resource of this client.
    #[must_use]
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Reads an object. `T` is any type that deserializes from its JSON, such as a `Value` of serde_json or a type of
    /// `k8s-openapi`.
    ///
    /// # Errors
    /// `NOT_FOUND` if the object does not exist; `DATA_LOSS` if it does not deserialize as `T`; other statuses of the call.
    pub async fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, Status> {
        decode(&self.get_bytes(name).await?)
    }

    /// Reads an object as bytes: JSON, unless another media type is requested with [`accepting`](Self::accepting).
    ///
    /// # Errors
    /// `NOT_FOUND` if the object does not exist; other statuses of the call.
    pub async fn get_bytes(&self, name: &str) -> Result<Vec<u8>, Status> {
        Ok(self.run(self.call("get", name)).await?.body.into())
    }

    /// Lists objects. As in Kubernetes, items of built-in kinds lack `apiVersion` and `kind`.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` if the continue token has expired; `DATA_LOSS` if an item does not deserialize as `T`; other statuses of
    /// the call.
    pub async fn list<T: DeserializeOwned>(&self, options: &ListOptions) -> Result<List<T>, Status> {
        let ListJson { items, metadata } = decode(&self.list_bytes(options).await?)?;
        let ListMeta { resource_version, r#continue, remaining_item_count } = metadata;
        let items = items.unwrap_or_default();
        Ok(List { items, resource_version, continue_token: r#continue, remaining_item_count })
    }

    /// Lists objects as bytes: JSON, unless another media type is requested with [`accepting`](Self::accepting).
    ///
    /// # Errors
    /// `OUT_OF_RANGE` if the continue token has expired; other statuses of the call.
    pub async fn list_bytes(&self, options: &ListOptions) -> Result<Vec<u8>, Status> {
        let call = Call { query: options.query().into_string(), ..self.call("list", "") };
        let parts = self.client.objects().list(ListRequest { call: Some(call) }).await?.into_inner();
        let joined = parts.try_fold(Vec::new(), |mut body, part| async move {
            body.extend_from_slice(&part.body);
            Ok(body)
        });
        joined.await
    }

    /// Applies a manifest, YAML or JSON, on the server: creates the object, or changes the fields that the manifest contains. The
    /// body of the response is the object as JSON.
    ///
    /// # Errors
    /// `ABORTED` if another manager owns a field and `force` is not set; other statuses of the call.
    pub async fn apply(
        &self,
        name: &str,
        manifest: Vec<u8>,
        options: &ApplyOptions,
    ) -> Result<DoResponse, Status> {
        let mut query = Query::default();
        query.add("fieldManager", &options.field_manager);
        query.add("force", if options.force { "true" } else { "" });
        query.add("dryRun", if options.dry_run { "All" } else { "" });
        let call = Call {
            query: query.into_string(),
            body: manifest.into(),
            content_type: APPLY.to_owned(),
            ..self.call("patch", name)
        };
        self.run(call).await
    }

    /// Deletes an object. Returns the object, if finalizers delay the deletion, or a Status, as JSON.
    ///
    /// # Errors
    /// `NOT_FOUND` if the object does not exist; other statuses of the call.
    pub async fn delete(&self, name: &str) -> Result<Vec<u8>, Status> {
        Ok(self.run(self.call("delete", name)).await?.body.into())
    }

    /// Watches changes after `options.resource_version`. The stream does not end by itself: it resumes after lost connections,
    /// and starts again with the current objects, after a [`WatchEvent::Restarted`], if the revision has expired.
    ///
    /// The stream ends with an error that retrying does not resolve, such as `PERMISSION_DENIED`.
    pub fn watch(
        &self,
        options: &ListOptions,
    ) -> impl Stream<Item = Result<WatchEvent, Status>> + Send + use<> {
        let mut query = options.query();
        query.add("allowWatchBookmarks", "true");
        watch(self.client.clone(), self.call("watch", ""), query, &options.resource_version)
    }

    async fn run(&self, call: Call) -> Result<DoResponse, Status> {
        Ok(self.client.objects().r#do(DoRequest { call: Some(call) }).await?.into_inner())
    }

    fn call(&self, verb: &str, name: &str) -> Call {
        let target = Target {
            group: self.resource.group.clone(),
            version: self.resource.version.clone(),
            resource: self.resource.resource.clone(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
            ..Target::default()
        };
        Call {
            target: Some(target),
            verb: verb.to_owned(),
            accept: self.accept.clone(),
            user_agent: USER_AGENT.to_owned(),
            ..Call::default()
        }
    }
}

fn decode<T: DeserializeOwned>(json: &[u8]) -> Result<T, Status> {
    serde_json::from_slice(json)
        .map_err(|error| Status::data_loss(format!("cannot decode the response: {error}")))
}

impl ListOptions {
    /// Returns the query without the revision, which moves during a watch.
    fn query(&self) -> Query {
        let mut query = Query::default();
        query.add("labelSelector", &self.label_selector);
        query.add("fieldSelector", &self.field_selector);
        query.add("continue", &self.continue_token);
        if self.limit > 0 {
            query.add("limit", &self.limit.to_string());
        }
        query
    }
}
