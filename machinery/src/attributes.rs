//! Attributes of a request for authorization, independent of HTTP and gRPC.

use std::sync::Arc;

use crate::gvk::GroupResource;
use crate::request_info::RequestInfo;
use crate::user::UserInfo;

/// Input of an authorizer: a user, and the verb and resource or path of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// User who sends the request.
    pub user: Arc<UserInfo>,
    /// Parsed request.
    pub request: Arc<RequestInfo>,
}

impl Attributes {
    /// Creates the attributes of a parsed request.
    #[must_use]
    pub fn new(user: impl Into<Arc<UserInfo>>, request: impl Into<Arc<RequestInfo>>) -> Self {
        Self { user: user.into(), request: request.into() }
    }

    /// Creates the attributes of a verb on a resource without an HTTP request (impersonation, create on update, gRPC).
    #[must_use]
    pub fn resource(
        user: impl Into<Arc<UserInfo>>,
        verb: &str,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
    ) -> Self {
        let request = RequestInfo {
            is_resource_request: true,
            verb: verb.to_owned(),
            api_group: resource.group.clone(),
            resource: resource.resource.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..RequestInfo::default()
        };
        Self::new(user, request)
    }

    /// Sets the subresource.
    #[must_use]
    pub fn with_subresource(mut self, subresource: &str) -> Self {
        subresource.clone_into(&mut Arc::make_mut(&mut self.request).subresource);
        self
    }

    /// Sets the version of the group.
    #[must_use]
    pub fn with_version(mut self, version: &str) -> Self {
        version.clone_into(&mut Arc::make_mut(&mut self.request).api_version);
        self
    }

    /// Creates the attributes of a non-resource path such as `/metrics` or `/grpc/<service>/<method>`.
    #[must_use]
    pub fn path(user: impl Into<Arc<UserInfo>>, verb: &str, path: &str) -> Self {
        let request = RequestInfo { verb: verb.to_owned(), path: path.to_owned(), ..RequestInfo::default() };
        Self::new(user, request)
    }

    /// Returns upstream's text after `is forbidden: `.
    #[must_use]
    pub fn describe(&self) -> String {
        let (user, r) = (&self.user.name, &self.request);
        if !r.is_resource_request {
            return format!("User {user:?} cannot {} path {:?}", r.verb, r.path);
        }
        let resource = match r.subresource.as_str() {
            "" => r.resource.clone(),
            sub => format!("{}/{sub}", r.resource),
        };
        let scope = match r.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        format!(
            "User {user:?} cannot {} resource {resource:?} in API group {:?} {scope}",
            r.verb, r.api_group
        )
    }
}
