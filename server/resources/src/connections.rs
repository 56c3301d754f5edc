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

pub(crate) use kind::Kind;

use portico_machinery::connect::Dial;
use portico_machinery::{Attributes, Object, RequestInfo, Status};
use portico_registry::{ConnectRequest, Connection, Deciding, Result, stored};

impl Connection for Kind {
    fn is_text(&self) -> bool {
        *self == Self::Log
    }

    fn decide<'a>(&'a self, request: &'a ConnectRequest<'a>) -> Deciding<'a> {
        Box::pin(async move { Resolver { request }.decide(*self).await })
    }
}

/// Determines the target of a connection request.
pub(crate) struct Resolver<'a> {
    request: &'a ConnectRequest<'a>,
}

impl Resolver<'_> {
    /// Validates the request and returns the target to dial, or `None` for the log of a pod that has no node yet.
    async fn decide(&self, connection: Kind) -> Result<Option<Dial>> {
        if connection != Kind::Log && self.request.query.first("dryRun").is_some() {
            return Err(Box::new(Status::bad_request("dryRun is not supported")));
        }
        if connection.is_stream() {
            let query = options::stream(connection, self.request.query)?;
            self.check_creation().await?;
            return self.stream(connection, query).await.map(Some);
        }
        match connection {
            Kind::Pod => self.to_pod().await.map(Some),
            Kind::Service => self.to_service().await.map(Some),
            Kind::Node => self.to_node().await.map(Some),
            _ => self.log().await,
        }
    }

    /// Checks the permission to `create`. A WebSocket connection starts with a GET and a SPDY connection with a POST: without this
    /// check, a user who is only allowed to `get` could run commands over a WebSocket.
    async fn check_creation(&self) -> Result<()> {
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
        let question = Attributes::new(self.request.call.user.clone(), request);
        let decision = self.request.objects.authorizer.decide(&question).await;
        if decision.allowed() {
            return Ok(());
        }
        // Upstream returns only the reason of the authorizer, which is usually empty.
        Err(Box::new(Status::forbidden(&self.request.served.resource, &target.name, &decision.reason)))
    }

    fn name(&self) -> &str {
        &self.request.call.target.name
    }

    /// Returns the object that has the subresource, or error 404.
    async fn parent(&self, name: &str) -> Result<Object> {
        Ok(stored::decode(
            &*self.request.objects.get(self.request.served, self.request.namespace, name).await?,
        ))
    }
}
