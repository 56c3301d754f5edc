//! Connections to nodes and backends (`log`, `exec`, `attach`, `portforward`, `proxy`). The registry validates a request and
//! returns the target; the caller dials it.
//!
//! The [table](crate::table::ResourceTable) assigns connections to subresources.

use std::future::Future;
use std::pin::Pin;

use portico_machinery::connect::{Dial, Security};
use portico_machinery::route::Target;

use crate::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::objects::Objects;
use crate::options::Query;
use crate::served::ServedResource;

/// Result of a connection request.
#[derive(Debug)]
pub enum Connected {
    /// Answer without a connection: a refusal, or no content.
    Answered(Answer),
    /// Target to dial, and audit annotations of admission.
    Dial(Dial, Vec<(String, String)>),
}

impl Connected {
    /// Adds audit annotations.
    pub(crate) fn noting(mut self, notes: Vec<(String, String)>) -> Self {
        match &mut self {
            Self::Answered(answer) => answer.audit.extend(notes),
            Self::Dial(_, known) => known.extend(notes),
        }
        self
    }
}

/// Lookup of backends that are registered with their own addresses instead of those of their Service.
pub trait Registered: Send + Sync {
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
    pub served: &'a ServedResource,
    /// Namespace of the path.
    pub namespace: &'a str,
    /// Backends with their own addresses.
    pub registered: &'a dyn Registered,
}

/// Future of [`Connection::decide`].
pub type Deciding<'a> = Pin<Box<dyn Future<Output = Result<Option<Dial>>> + Send + 'a>>;

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
    fn decide<'a>(&'a self, request: &'a ConnectRequest<'a>) -> Deciding<'a>;
}

/// True if a connection accepts this verb: the verbs in its data and, for proxies, HEAD and OPTIONS.
pub(crate) fn has_verb(below: bool, verbs: &[String], verb: &str) -> bool {
    let others = below && (verb.eq_ignore_ascii_case("head") || verb.eq_ignore_ascii_case("options"));
    others || verbs.iter().any(|known| known == verb)
}
