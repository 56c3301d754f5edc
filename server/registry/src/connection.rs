//! Connections to nodes and backends (`log`, `exec`, `attach`, `portforward`, `proxy`). The registry validates a request and
//! returns the target; the caller dials it.
//!
//! The [table](crate::table::ResourceTable) assigns connections to subresources.

use std::future::Future;
use std::pin::Pin;

use portico_machinery::connect::{DialTarget, Security};
use portico_machinery::route::Target;

use crate::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::objects::Objects;
use crate::options::Query;
use crate::served_resource::ServedResource;

/// Result of a connection request.
#[derive(Debug)]
pub enum ConnectOutcome {
    /// Answer without a connection: a refusal, or no content.
    Answer(Answer),
    /// Target to dial, and audit annotations of admission.
    Dial(DialTarget, Vec<(String, String)>),
}

impl ConnectOutcome {
    /// Adds audit annotations.
    pub(crate) fn with_audit(mut self, annotations: Vec<(String, String)>) -> Self {
        match &mut self {
            Self::Answer(answer) => answer.audit.extend(annotations),
            Self::Dial(_, existing) => existing.extend(annotations),
        }
        self
    }
}

/// Lookup of backends that are registered with their own addresses instead of those of their Service.
pub trait BackendAddresses: Send + Sync {
    /// Addresses of the backend behind a Service, and its connection security. `None` as the port matches any port.
    fn backend_of(
        &self,
        namespace: &str,
        service: &str,
        port: Option<u16>,
    ) -> Option<(Vec<Target>, Security)>;
}

/// Request for a connection.
pub struct ConnectRequest<'a> {
    /// Objects that the decision reads.
    pub objects: &'a Objects,
    /// Call as received.
    pub call: &'a Call,
    /// Parsed query of the call.
    pub query: &'a Query<'a>,
    /// Kind of the object with the subresource.
    pub served_resource: &'a ServedResource,
    /// Namespace of the path.
    pub namespace: &'a str,
    /// Backends with their own addresses.
    pub backends: &'a dyn BackendAddresses,
}

/// Future of [`Connection::decide`].
pub type DialFuture<'a> = Pin<Box<dyn Future<Output = Result<Option<DialTarget>>> + Send + 'a>>;

/// Subresource that connects to a node or backend.
pub trait Connection: Send + Sync {
    /// True if the response is text, in a media type that is negotiated like that of an object.
    fn is_text(&self) -> bool {
        false
    }

    /// Selects the target; `None` for the log of a pod that is not assigned to a node, which is empty.
    ///
    /// # Errors
    /// Status 400, 403 or 404 as in upstream's `rest.Connecter` of the kind.
    fn decide<'a>(&'a self, request: &'a ConnectRequest<'a>) -> DialFuture<'a>;
}

/// True if a connection accepts this verb: the verbs in its data and, for proxies, HEAD and OPTIONS.
pub(crate) fn has_verb(has_subpaths: bool, verbs: &[String], verb: &str) -> bool {
    let is_method_without_verb =
        has_subpaths && (verb.eq_ignore_ascii_case("head") || verb.eq_ignore_ascii_case("options"));
    is_method_without_verb || verbs.iter().any(|allowed| allowed == verb)
}
