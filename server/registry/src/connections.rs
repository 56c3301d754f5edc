//! Connections to what runs elsewhere (`log`, `exec`, `attach`, `portforward`, `proxy`): what is wrong with a request is
//! said before anything is dialled, and who may have the connection is told where to dial. Whoever asked dials.
//!
//! In upstream's order: options, permission, the object, the way. Admission of connections comes between options and
//! permission, with webhooks and policies; none of the plugins that are here looks at them.

mod kubelet;
mod log;
mod options;
mod proxy;
mod service;

use portico_machinery::connect::{Dial, Security};
use portico_machinery::route::Target;
use portico_machinery::{Attributes, Object, RequestInfo, Status};

use crate::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::options::Query;
use crate::registry::Inner;
use crate::served::Served;
use crate::stored;

pub(crate) use options::methods;

/// What is decided on a connection.
#[derive(Debug)]
pub enum Connected {
    /// There is nothing to dial: a refusal, or an answer without content.
    Answered(Answer),
    /// Where to dial.
    Dial(Dial),
}

/// Somebody who knows backends that have addresses of their own, in place of their Service's.
pub trait Registered: Send + Sync {
    /// Where the backend behind this Service is and how it is spoken to; a port that is not given is any of its ports.
    fn backend_of(
        &self,
        namespace: &str,
        service: &str,
        port: Option<u16>,
    ) -> Option<(Vec<Target>, Security)>;
}

/// A subresource that connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// What a container wrote.
    Log,
    /// A command in a container.
    Exec,
    /// A container's own streams.
    Attach,
    /// Ports of a pod.
    Ports,
    /// HTTP to a pod.
    Pod,
    /// HTTP to one of the pods behind a Service.
    Service,
    /// HTTP to a node: to its kubelet, mostly.
    Node,
}

/// The connection behind a subresource.
pub(crate) fn of(group: &str, resource: &str, subresource: &str) -> Option<Connection> {
    match (group, resource, subresource) {
        ("", "pods", "log") => Some(Connection::Log),
        ("", "pods", "exec") => Some(Connection::Exec),
        ("", "pods", "attach") => Some(Connection::Attach),
        ("", "pods", "portforward") => Some(Connection::Ports),
        ("", "pods", "proxy") => Some(Connection::Pod),
        ("", "services", "proxy") => Some(Connection::Service),
        ("", "nodes", "proxy") => Some(Connection::Node),
        _ => None,
    }
}

impl Connection {
    /// Whether a GET of it does what a `create` does: it changes the protocol.
    fn is_stream(self) -> bool {
        matches!(self, Self::Exec | Self::Attach | Self::Ports)
    }
}

/// A connection that is asked for.
pub(crate) struct Asked<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) call: &'a Call,
    pub(crate) query: &'a Query<'a>,
    /// The kind whose subresource it is.
    pub(crate) served: &'a Served,
    pub(crate) namespace: &'a str,
}

impl Asked<'_> {
    /// Decides. Nothing is to be dialled for a log that nobody writes yet.
    pub(crate) async fn decide(
        &self,
        connection: Connection,
        registered: &dyn Registered,
    ) -> Result<Option<Dial>> {
        if connection != Connection::Log && self.query.first("dryRun").is_some() {
            return Err(Box::new(Status::bad_request("dryRun is not supported")));
        }
        if connection.is_stream() {
            let query = options::stream(connection, self.query)?;
            self.check_creation()?;
            return self.stream(connection, query).await.map(Some);
        }
        match connection {
            Connection::Pod => self.to_pod().await.map(Some),
            Connection::Service => self.to_service(registered).await.map(Some),
            Connection::Node => self.to_node().await.map(Some),
            _ => self.log().await,
        }
    }

    /// WebSockets begin with a GET, SPDY with a POST: whoever may only `get` must not run commands that way.
    fn check_creation(&self) -> Result<()> {
        if self.call.verb == "create" || !self.inner.settings.connections.check_creation {
            return Ok(());
        }
        let target = &self.call.target;
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
        let decision = self.inner.authorizer.authorize(&Attributes::new(self.call.user.clone(), request));
        if decision.allowed() {
            return Ok(());
        }
        // Upstream gives the authorizer's reason alone, which is mostly empty.
        Err(Box::new(Status::forbidden(&self.served.resource, &target.name, &decision.reason)))
    }

    fn name(&self) -> &str {
        &self.call.target.name
    }

    /// The object whose subresource it is, or 404.
    async fn parent(&self, name: &str) -> Result<Object> {
        Ok(stored::decode(&*self.inner.get(self.served, self.namespace, name).await?))
    }
}
