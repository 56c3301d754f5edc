//! What the layers find out about a request: typed values in its extensions, and how they are read.
//!
//! A value is put there once, by the layer of its name, and never taken out. It must not know how anything in it was
//! found out.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use http::header::{AsHeaderName, HeaderMap, HeaderValue};
use http::{Extensions, Uri, Version};
use portico_kit::header_text;
use portico_kit::lifecycle::Signal;
use portico_kit::walk::Walk;
use portico_machinery::{RequestInfo, UserInfo};

use crate::body::Body;
use crate::connection::Connection;
use crate::in_force::InForce;
use crate::record::RequestRecord;

/// A request on its way through the layers.
pub type Request = http::Request<Body>;
/// An answer on its way back.
pub type Response = http::Response<Body>;

/// When the request arrived: deadlines count from here.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedAt(pub Instant);

/// `Audit-ID`, the client's or a new one.
#[derive(Clone, Debug)]
pub struct AuditId(pub HeaderValue);

/// The request arrived before all paths were installed: an unknown path is 503 and not 404.
#[derive(Clone, Copy, Debug)]
pub struct BeforeMuxComplete;

/// What the request line asks for.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// Verb, group, resource, name, and so on.
    pub info: Arc<RequestInfo>,
    /// No deadline, no wait group, no in-flight limit.
    pub long_running: bool,
}

/// What a watch must know to end in time.
#[derive(Clone, Debug)]
pub struct WatchShutdown(pub Signal);

/// The user that everything behind authentication goes by; after impersonation the one that is impersonated.
#[derive(Clone, Debug)]
pub struct Caller(pub Arc<UserInfo>);

static NOTHING_IN_FORCE: LazyLock<Arc<InForce>> = LazyLock::new(Arc::default);
static NO_TARGET: LazyLock<Target> = LazyLock::new(Target::default);
static NO_CONNECTION: LazyLock<Arc<Connection>> =
    LazyLock::new(|| Arc::new(Connection::plain(([0, 0, 0, 0], 0).into())));
static NO_AUDIT_ID: AuditId = AuditId(HeaderValue::from_static(""));

/// Reads a request, whole or without its body. What no layer has found out is empty.
pub trait RequestView {
    /// Of the head.
    fn head(&self) -> (&Uri, Version, &HeaderMap, &Extensions);

    /// A header's text; empty if absent.
    fn header(&self, name: impl AsHeaderName) -> &str {
        header_text::first(self.head().2, name)
    }

    /// The raw query, empty when there is none.
    fn query(&self) -> &str {
        self.head().0.query().unwrap_or_default()
    }

    /// Whether the request came over HTTP/2.
    fn is_http2(&self) -> bool {
        self.head().1 == Version::HTTP_2
    }

    /// A value that a layer has put there.
    fn found<T: Clone + Send + Sync + 'static>(&self) -> Option<&T> {
        self.head().3.get()
    }

    /// The connection that it came over.
    fn connection(&self) -> &Arc<Connection> {
        self.found().unwrap_or(&NO_CONNECTION)
    }

    /// What it goes by.
    fn in_force(&self) -> &Arc<InForce> {
        self.found().unwrap_or(&NOTHING_IN_FORCE)
    }

    /// What it asks for, and whether that may take long.
    fn target(&self) -> &Target {
        self.found().unwrap_or(&NO_TARGET)
    }

    /// What it asks for.
    fn info(&self) -> &Arc<RequestInfo> {
        &self.target().info
    }

    /// Who asks; the nameless user, who may nothing, before authentication.
    fn user(&self) -> Arc<UserInfo> {
        self.found::<Caller>().map(|caller| caller.0.clone()).unwrap_or_default()
    }

    /// What inner layers report to outer ones.
    fn record(&self) -> Arc<RequestRecord> {
        self.found().cloned().unwrap_or_default()
    }

    /// Where its stages are noted, if somebody asked for that.
    fn walk(&self) -> Option<&Arc<Walk>> {
        self.found::<Arc<RequestRecord>>()?.walk()
    }

    /// See [`AuditId`].
    fn audit_id(&self) -> &HeaderValue {
        &self.found().unwrap_or(&NO_AUDIT_ID).0
    }

    /// See [`ReceivedAt`]; now, before anybody has looked.
    fn received(&self) -> Instant {
        self.found().map_or_else(Instant::now, |ReceivedAt(at)| *at)
    }
}

impl<B> RequestView for http::Request<B> {
    fn head(&self) -> (&Uri, Version, &HeaderMap, &Extensions) {
        (self.uri(), self.version(), self.headers(), self.extensions())
    }
}

impl RequestView for http::request::Parts {
    fn head(&self) -> (&Uri, Version, &HeaderMap, &Extensions) {
        (&self.uri, self.version, &self.headers, &self.extensions)
    }
}
