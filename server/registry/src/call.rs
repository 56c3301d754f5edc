//! Call: one request to the registry, received over HTTP or gRPC.
//!
//! Independent of both protocols; the two servers fill in the same fields.

use bytes::Bytes;
use portico_gostd::url::first_value;
use portico_machinery::request_info::RequestInfo;
use portico_machinery::{GroupResource, GroupVersion, UserInfo};

use crate::audit_record::AuditDetail;

/// Size of a request body, and of a document in the manifests folder.
///
/// Limit (Requests, bytes): 413; for a document, the document is a fault.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// Resource, subresource, namespace and name of a call, parsed from the path as in request info.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// API group, empty for core.
    pub group: String,
    pub version: String,
    /// Plural name of the resource.
    pub resource: String,
    /// Subresource, empty for the object itself.
    pub subresource: String,
    /// Namespace, empty at cluster scope and for all namespaces.
    pub namespace: String,
    /// Name, empty for the collection.
    pub name: String,
    /// Path after the subresource, as in [`RequestInfo::path_after_subresource`]; only proxies serve such paths.
    pub subpath: String,
}

impl Target {
    /// Target of a resource request.
    #[must_use]
    pub fn from_request_info(info: &RequestInfo) -> Self {
        Self {
            group: info.api_group.clone(),
            version: info.api_version.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            namespace: info.namespace.clone(),
            // Request info may take the name from a field selector; only the path counts here.
            name: info.parts.get(1).cloned().unwrap_or_default(),
            subpath: info.path_after_subresource(),
        }
    }

    /// Request info of the equivalent HTTP request, for authorizers and audit policies.
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
            // Namespace objects are authorized in the namespace with their own name.
            namespace: if is_of_namespaces { self.name.clone() } else { self.namespace.clone() },
            label_selector: selector("labelSelector"),
            field_selector: selector("fieldSelector"),
            ..RequestInfo::default()
        }
    }

    /// Path of the equivalent HTTP request.
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
        parts.flat_map(|part| ["/", part]).chain([&*self.subpath]).collect()
    }

    fn prefix(&self) -> &'static str {
        if self.group.is_empty() { "api" } else { "apis" }
    }

    #[must_use]
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&self.group, &self.version)
    }

    /// Group and resource without the version.
    #[must_use]
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.resource)
    }
}

/// One request, authenticated and authorized. The registry itself authorizes only a create that results from an update.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Authenticated caller.
    pub user: UserInfo,
    /// Requested resource.
    pub target: Target,
    /// Verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, else the lower-case HTTP method
    /// (`head`, `options`, ...), which gets 405 if the path exists.
    pub verb: String,
    /// Raw query string, without `?`.
    pub query: String,
    /// True for the deprecated path prefix `/watch/`.
    pub watch_prefix: bool,
    /// Body, at most [`BODY_LIMIT`] bytes.
    pub body: Bytes,
    /// Content-Type header of the body, empty if absent.
    pub content_type: String,
    /// Accept header, empty if absent.
    pub accept: String,
    /// User-Agent header.
    pub user_agent: String,
    /// Amount of request data to record for the audit event.
    pub audit_detail: AuditDetail,
    /// True if the call is a review that a facade sends for itself instead of for a client. Admission does not see such a review.
    pub own_account: bool,
}
