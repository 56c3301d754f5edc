//! What is being asked, as authorization sees it: no HTTP, no gRPC.

use std::sync::Arc;

use crate::gvk::GroupResource;
use crate::request_info::RequestInfo;
use crate::user::UserInfo;

/// A question to an authorizer: may this user do this verb on this resource or path?
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Who asks.
    pub user: Arc<UserInfo>,
    /// What is asked.
    pub request: Arc<RequestInfo>,
}

impl Attributes {
    /// A question from what the request line says.
    #[must_use]
    pub fn new(user: impl Into<Arc<UserInfo>>, request: impl Into<Arc<RequestInfo>>) -> Self {
        Self { user: user.into(), request: request.into() }
    }

    /// A question about a resource verb outside any HTTP request (impersonation, create on update, gRPC).
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

    /// The same about a subresource.
    #[must_use]
    pub fn with_subresource(mut self, subresource: &str) -> Self {
        subresource.clone_into(&mut Arc::make_mut(&mut self.request).subresource);
        self
    }

    /// The same of one version of the group.
    #[must_use]
    pub fn with_version(mut self, version: &str) -> Self {
        version.clone_into(&mut Arc::make_mut(&mut self.request).api_version);
        self
    }

    /// A question about a path that is no resource, such as `/metrics` or `/grpc/<service>/<method>`.
    #[must_use]
    pub fn path(user: impl Into<Arc<UserInfo>>, verb: &str, path: &str) -> Self {
        let request = RequestInfo { verb: verb.to_owned(), path: path.to_owned(), ..RequestInfo::default() };
        Self::new(user, request)
    }

    /// Upstream's words after `is forbidden: `.
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
        let place = match r.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        format!(
            "User {user:?} cannot {} resource {resource:?} in API group {:?} {place}",
            r.verb, r.api_group
        )
    }
}
