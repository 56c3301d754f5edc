//! Connections to kubelets, pods, Services and nodes (`log`, `exec`, `attach`, `portforward`, `proxy`).
//!
//! The control service validates and authorizes the request and returns the address to dial; the facade dials it. The steps
//! have the order of upstream: options, permission, object, target. Admission of connections by webhooks and policies runs
//! between options and permission; none of the built-in plugins handles connections.

mod kind;
mod kubelet;
mod log;
mod options;
mod proxy;
mod service;

pub(crate) use kind::ConnectionKind;

use portico_machinery::connect::DialTarget;
use portico_machinery::{Attributes, Object, RequestInfo, Status};
use portico_registry::{ConnectRequest, Connection, DialFuture, Result, stored_object};

impl Connection for ConnectionKind {
    fn is_text(&self) -> bool {
        *self == Self::Log
    }

    fn decide<'a>(&'a self, request: &'a ConnectRequest<'a>) -> DialFuture<'a> {
        Box::pin(async move { ConnectionResolver { request }.decide(*self).await })
    }
}

/// Determines the target of a connection request.
pub(crate) struct ConnectionResolver<'a> {
    request: &'a ConnectRequest<'a>,
}

impl ConnectionResolver<'_> {
    /// Validates the request and returns the target to dial, or `None` for the log of a pod that has no node yet.
    async fn decide(&self, connection: ConnectionKind) -> Result<Option<DialTarget>> {
        if connection != ConnectionKind::Log && self.request.query.first("dryRun").is_some() {
            return Err(Box::new(Status::bad_request("dryRun is not supported")));
        }
        if connection.is_stream() {
            let query = options::stream_query(connection, self.request.query)?;
            self.check_create_permission().await?;
            return self.stream_target(connection, query).await.map(Some);
        }
        match connection {
            ConnectionKind::PodProxy => self.pod_proxy_target().await.map(Some),
            ConnectionKind::ServiceProxy => self.service_proxy_target().await.map(Some),
            ConnectionKind::NodeProxy => self.node_proxy_target().await.map(Some),
            _ => self.log_target().await,
        }
    }

    /// Checks the permission to `create`. A WebSocket connection starts with a GET and a SPDY connection with a POST: without
    /// this check, the permission to `get` would be sufficient to run commands over a WebSocket.
    async fn check_create_permission(&self) -> Result<()> {
        if self.request.call.verb == "create" || !self.request.objects.settings.connections.check_creation {
            return Ok(());
        }
        let target = &self.request.call.target;
        let request = RequestInfo {
            is_resource_request: true,
            verb: "create".to_owned(),
            api_prefix: "api".to_owned(),
            api_group: target.group.clone(),
            api_version: target.version.clone(),
            namespace: target.namespace.clone(),
            resource: target.resource.clone(),
            subresource: target.subresource.clone(),
            name: target.name.clone(),
            ..RequestInfo::default()
        };
        let attributes = Attributes::new(self.request.call.user.clone(), request);
        let decision = self.request.objects.authorizer.decide(&attributes).await;
        if decision.is_allowed() {
            return Ok(());
        }
        // Upstream returns only the reason of the authorizer, which is usually empty.
        Err(Box::new(Status::forbidden(
            &self.request.served_resource.resource,
            &target.name,
            &decision.reason,
        )))
    }

    fn name(&self) -> &str {
        &self.request.call.target.name
    }

    /// Returns the object that has the subresource, or error 404.
    async fn parent(&self, name: &str) -> Result<Object> {
        Ok(stored_object::decode(
            &*self.request.objects.get(self.request.served_resource, self.request.namespace, name).await?,
        ))
    }
}
