//! What the handler chain knows about one request; every filter reads it and adds its part.
//!
//! It must not know how anything in it was found out.

use std::sync::Arc;
use std::time::Instant;

use http::header::HeaderValue;
use http::request::Parts;
use portico_machinery::{RequestInfo, UserInfo};

use crate::body::Body;
use crate::serve::{Connection, Exchange};
use crate::tail::Guards;

/// One request on its way through the chain.
#[derive(Debug)]
pub struct RequestContext {
    /// Method, URI, headers; filters remove what inner handlers must not see.
    pub parts: Parts,
    /// The body; whoever answers takes it.
    pub body: Body,
    /// The connection that it came over.
    pub connection: Arc<Connection>,
    /// Its response on the way to the client.
    pub exchange: Arc<Exchange>,
    /// When it arrived: deadlines count from here. Before the filter that says so, when its connection did.
    pub received: Instant,
    /// `Audit-ID`, the client's or a new one.
    pub audit_id: HeaderValue,
    /// It arrived before all paths were installed: an unknown path is 503 and not 404.
    pub before_mux_complete: bool,
    /// What is asked for; empty before the request-info filter.
    pub info: RequestInfo,
    /// No deadline, no wait group, no in-flight limit.
    pub long_running: bool,
    /// When the answer must have been given; none for long-running requests.
    pub deadline: Option<Instant>,
    /// Who asks, after impersonation; none before authentication.
    pub user: Option<Arc<UserInfo>>,
    /// Who really asks, when `user` is impersonated.
    pub impersonator: Option<Arc<UserInfo>>,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
    /// Tokens to give back when the last byte is out.
    pub guards: Guards,
    /// Which server of the chain answers, for metrics: `apiserver` or `aggregator`.
    pub component: &'static str,
    /// Whether the resource is one that is served: only then does its name become a metric's label.
    pub known_resource: bool,
}

impl RequestContext {
    /// A request that no filter has looked at.
    #[must_use]
    pub fn new(request: http::Request<Body>, connection: Arc<Connection>) -> Self {
        let (parts, body) = request.into_parts();
        Self {
            parts,
            body,
            received: connection.activity.begun(),
            audit_id: HeaderValue::from_static(""),
            before_mux_complete: false,
            info: RequestInfo::default(),
            long_running: false,
            deadline: None,
            user: None,
            impersonator: None,
            warnings: Vec::new(),
            guards: Guards::default(),
            component: "apiserver",
            known_resource: false,
            exchange: connection.exchange.clone(),
            connection,
        }
    }

    /// A header's text; empty when absent or not text.
    #[must_use]
    pub fn header(&self, name: impl http::header::AsHeaderName) -> &str {
        self.parts.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
    }

    /// The raw query, empty when there is none.
    #[must_use]
    pub fn query(&self) -> &str {
        self.parts.uri.query().unwrap_or_default()
    }

    /// Whether the request came over HTTP/2.
    #[must_use]
    pub fn is_http2(&self) -> bool {
        self.parts.version == http::Version::HTTP_2
    }

    /// The request as it now stands, its body taken.
    #[must_use]
    pub fn take_request(&mut self) -> http::Request<Body> {
        let empty = http::Request::new(()).into_parts().0;
        let parts = std::mem::replace(&mut self.parts, empty);
        http::Request::from_parts(parts, std::mem::take(&mut self.body))
    }
}
