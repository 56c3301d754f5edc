//! Connections to what runs elsewhere (`log`, `exec`, `attach`, `portforward`, `proxy`): a request is validated before
//! anything is dialed, and who may have the connection gets the address to dial. Whoever asked dials.
//!
//! In upstream's order: options, permission, the object, the way. Admission of connections comes between options and
//! permission, with webhooks and policies; none of the plugins that are here looks at them.

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

/// Finds out where a request for a connection leads.
pub(crate) struct Resolver<'a> {
    request: &'a ConnectRequest<'a>,
}

impl Resolver<'_> {
    /// Decides. Nothing is to be dialed for a log that nobody writes yet.
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

    /// WebSockets begin with a GET, SPDY with a POST: whoever may only `get` must not run commands that way.
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
        // Upstream gives the authorizer's reason alone, which is mostly empty.
        Err(Box::new(Status::forbidden(&self.request.served.resource, &target.name, &decision.reason)))
    }

    fn name(&self) -> &str {
        &self.request.call.target.name
    }

    /// The object whose subresource it is, or 404.
    async fn parent(&self, name: &str) -> Result<Object> {
        Ok(stored::decode(
            &*self.request.objects.get(self.request.served, self.request.namespace, name).await?,
        ))
    }
}
