//! Objects of any kind: found by the names that people use, read, listed, applied and watched as JSON.

use futures::{Stream, TryStreamExt};
use tonic::Status;

use super::Client;
use super::query::Query;
use super::resource_watch::{WatchEvent, watch};
use crate::objects::{Call, DoRequest, DoResponse, ListRequest, Resource, ResourcesRequest, Target};

/// What a caller names itself.
const USER_AGENT: &str = concat!("portico-proto/", env!("CARGO_PKG_VERSION"));
/// The media type of a server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

/// Objects of one resource, in one namespace, in all, or at cluster scope.
#[derive(Clone)]
pub struct ResourceClient {
    client: Client,
    resource: Resource,
    namespace: String,
    accept: String,
}

/// Which objects are listed or watched. The fields are those of Kubernetes' ListOptions.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// As Kubernetes spells it; empty: all.
    pub label_selector: String,
    /// As Kubernetes spells it; empty: all.
    pub field_selector: String,
    /// At most so many in an answer; 0: all.
    pub limit: u64,
    /// The token of the page before; empty: the first page.
    pub continue_token: String,
    /// Of lists: as in Kubernetes. Of watches: resume after this revision; empty begins with the current state as ADDED events.
    pub resource_version: String,
}

/// How an object is applied.
#[derive(Clone, Debug, Default)]
pub struct ApplyOptions {
    /// Who owns the fields that are set. Required.
    pub field_manager: String,
    /// Take over fields that others own.
    pub force: bool,
    /// Check everything, write nothing.
    pub dry_run: bool,
}

impl Client {
    /// The resources that are served here and have this name, the preferred one first: plural, singular, short name, kind or category,
    /// alone or followed by the group or by version and group (`deploy`, `deployments.v1.apps`). All of them for an empty name.
    ///
    /// # Errors
    /// What the control service refuses, or that it cannot be reached.
    pub async fn resources(&self, name: &str) -> Result<Vec<Resource>, Status> {
        let request = ResourcesRequest { name: name.to_owned() };
        Ok(self.objects().resources(request).await?.into_inner().resources)
    }

    /// Objects of a resource. An empty namespace means all of them for lists and watches, and is right for what has none.
    #[must_use]
    pub fn resource(&self, resource: Resource, namespace: &str) -> ResourceClient {
        let accept = "application/json".to_owned();
        ResourceClient { client: self.clone(), resource, namespace: namespace.to_owned(), accept }
    }
}

impl ResourceClient {
    /// The same, with answers in another form: `application/json;as=Table;v=v1;g=meta.k8s.io`, for example.
    #[must_use]
    pub fn accepting(mut self, accept: &str) -> Self {
        accept.clone_into(&mut self.accept);
        self
    }

    /// What it is about.
    #[must_use]
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// One object, as JSON.
    ///
    /// # Errors
    /// `NOT_FOUND`; what else the control service refuses.
    pub async fn get(&self, name: &str) -> Result<Vec<u8>, Status> {
        Ok(self.run(self.call("get", name)).await?.body.into())
    }

    /// A list, as JSON.
    ///
    /// # Errors
    /// What the control service refuses.
    pub async fn list(&self, options: &ListOptions) -> Result<Vec<u8>, Status> {
        let call = Call { query: options.query().text(), ..self.call("list", "") };
        let parts = self.client.objects().list(ListRequest { call: Some(call) }).await?.into_inner();
        let joined = parts.try_fold(Vec::new(), |mut body, part| async move {
            body.extend_from_slice(&part.body);
            Ok(body)
        });
        joined.await
    }

    /// Server-side apply of a manifest, YAML or JSON: creates the object, or changes just the fields that the manifest names.
    ///
    /// # Errors
    /// `ABORTED` when others own a field and `force` is not set; what else the control service refuses.
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
            query: query.text(),
            body: manifest.into(),
            content_type: APPLY.to_owned(),
            ..self.call("patch", name)
        };
        self.run(call).await
    }

    /// Deletes an object; the last state, or a Status, as JSON.
    ///
    /// # Errors
    /// `NOT_FOUND`; what else the control service refuses.
    pub async fn delete(&self, name: &str) -> Result<Vec<u8>, Status> {
        Ok(self.run(self.call("delete", name)).await?.body.into())
    }

    /// Changes from `options.resource_version` on, for ever: it resumes after lost connections, and begins anew with the current state
    /// ([`WatchEvent::Restarted`]) when history does not reach back any longer.
    ///
    /// Ends with an error only when another try would not help (refused, say).
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

impl ListOptions {
    /// All of it but the revision of a watch, which moves.
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
