//! Connections to what runs elsewhere (`log`, `exec`, `attach`, `portforward`, `proxy`): what is wrong with a request is
//! answered before anything is dialed, and the caller is given where to dial. The caller dials.
//!
//! Which connection stands behind a subresource is a row of the [table](crate::table::ResourceTable).

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

/// What is decided on a connection.
#[derive(Debug)]
pub enum Connected {
    /// There is nothing to dial: a refusal, or an answer without content.
    Answered(Answer),
    /// Where to dial, and what admission notes for the audit log.
    Dial(Dial, Vec<(String, String)>),
}

impl Connected {
    /// The same with annotations for the audit log.
    pub(crate) fn noting(mut self, notes: Vec<(String, String)>) -> Self {
        match &mut self {
            Self::Answered(answer) => answer.audit.extend(notes),
            Self::Dial(_, known) => known.extend(notes),
        }
        self
    }
}

/// Backends that have addresses of their own, in place of their Service's.
pub trait Registered: Send + Sync {
    /// Where the backend behind this Service is and how it is spoken to; a port that is not given is any of its ports.
    fn backend_of(
        &self,
        namespace: &str,
        service: &str,
        port: Option<u16>,
    ) -> Option<(Vec<Target>, Security)>;
}

/// A request for a connection.
pub struct ConnectRequest<'a> {
    /// The verbs, for whatever the decision reads.
    pub objects: &'a Objects,
    /// The call as it came.
    pub call: &'a Call,
    /// Its query.
    pub query: &'a Query<'a>,
    /// The kind whose subresource it is.
    pub served: &'a ServedResource,
    /// The namespace of the path.
    pub namespace: &'a str,
    /// Backends with addresses of their own.
    pub registered: &'a dyn Registered,
}

/// A decision under way.
pub type Deciding<'a> = Pin<Box<dyn Future<Output = Result<Option<Dial>>> + Send + 'a>>;

/// A subresource that connects.
pub trait Connection: Send + Sync {
    /// Whether it answers with text, in a media type that is negotiated like that of an object.
    fn is_text(&self) -> bool {
        false
    }

    /// Decides where to dial. Nothing is to be dialed for a log that nobody writes yet.
    ///
    /// # Errors
    /// 400, 403, 404 as upstream's `rest.Connecter` of the kind.
    fn decide<'a>(&'a self, request: &'a ConnectRequest<'a>) -> Deciding<'a>;
}

/// Whether a connection may be asked for by this verb: the verbs of its data and, for proxies, methods that are no verb.
pub(crate) fn has_verb(below: bool, verbs: &[String], verb: &str) -> bool {
    let others = below && (verb.eq_ignore_ascii_case("head") || verb.eq_ignore_ascii_case("options"));
    others || verbs.iter().any(|known| known == verb)
}
