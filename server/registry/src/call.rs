//! A call: what one request asks of the registry, over HTTP or gRPC.
//!
//! Knows no HTTP and no gRPC; both servers fill in the same fields.

use bytes::Bytes;
use portico_gostd::url::first_value;
use portico_machinery::request_info::RequestInfo;
use portico_machinery::{GroupResource, GroupVersion, UserInfo};

use crate::recorded::Recorded;

/// Size of a request body, and of a document in the manifests folder.
///
/// Limit (Requests, bytes): 413; for a document, the document is a fault.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// What a call is about, taken from the path as request info reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The group, empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural resource.
    pub resource: String,
    /// The subresource, empty for the object itself.
    pub subresource: String,
    /// The namespace, empty at cluster scope and for all namespaces.
    pub namespace: String,
    /// The name, empty for the collection.
    pub name: String,
    /// What follows the subresource, as [`RequestInfo::rest`] has it; only proxies serve anything there.
    pub rest: String,
}

impl Target {
    /// The target of a resource request.
    #[must_use]
    pub fn of(info: &RequestInfo) -> Self {
        Self {
            group: info.api_group.clone(),
            version: info.api_version.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            namespace: info.namespace.clone(),
            // Request info also takes a name out of a field selector: the path alone counts here.
            name: info.parts.get(1).cloned().unwrap_or_default(),
            rest: info.rest(),
        }
    }

    /// The question for the authorizer, and what an audit policy goes by: what the same request would be over HTTP.
    #[must_use]
    pub fn request_info(&self, verb: &str, query: &str) -> RequestInfo {
        let is_of_collection = matches!(verb, "list" | "watch" | "deletecollection");
        let selector = |key| match is_of_collection {
            true => first_value(query, key).unwrap_or_default().into_owned(),
            false => String::new(),
        };
        let is_of_namespaces = self.group.is_empty() && self.resource == "namespaces";
        RequestInfo {
            is_resource_request: true,
            verb: verb.to_owned(),
            api_prefix: self.prefix().to_owned(),
            api_group: self.group.clone(),
            api_version: self.version.clone(),
            resource: self.resource.clone(),
            subresource: self.subresource.clone(),
            name: self.name.clone(),
            // Namespace objects authorize in the namespace of their own name.
            namespace: if is_of_namespaces { self.name.clone() } else { self.namespace.clone() },
            label_selector: selector("labelSelector"),
            field_selector: selector("fieldSelector"),
            ..RequestInfo::default()
        }
    }

    /// Its path over HTTP.
    #[must_use]
    pub fn path(&self) -> String {
        let namespaces = if self.namespace.is_empty() { "" } else { "namespaces" };
        let parts = [
            self.prefix(),
            &self.group,
            &self.version,
            namespaces,
            &self.namespace,
            &self.resource,
            &self.name,
            &self.subresource,
        ];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.flat_map(|part| ["/", part]).chain([&*self.rest]).collect()
    }

    fn prefix(&self) -> &'static str {
        if self.group.is_empty() { "api" } else { "apis" }
    }

    /// Its group version.
    #[must_use]
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&self.group, &self.version)
    }

    /// Its resource, whatever the version.
    #[must_use]
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.resource)
    }
}

/// One request. Authentication and authorization are done; what only the registry can know (create on update) it
/// authorizes itself.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Who asks.
    pub user: UserInfo,
    /// What about.
    pub target: Target,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; for requests that are none
    /// of these the lower-case HTTP method (`head`, `options`, ...), answered with 405 where the path exists.
    pub verb: String,
    /// The raw query string, without `?`.
    pub query: String,
    /// Whether the deprecated `/watch/` path prefix was used.
    pub watch_prefix: bool,
    /// The body, at most [`BODY_LIMIT`] bytes.
    pub body: Bytes,
    /// The body's Content-Type, empty when there was none.
    pub content_type: String,
    /// The Accept header, empty when there was none.
    pub accept: String,
    /// The User-Agent header.
    pub user_agent: String,
    /// The annotations of its audit event.
    pub recorded: Recorded,
    /// True if a facade asks on its own account, not for a client. Admission does not see such a review.
    pub own_account: bool,
}
