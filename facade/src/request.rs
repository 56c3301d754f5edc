//! Typed values that layers attach to a request as extensions, and accessors for them.
//!
//! Each value is attached once, by the layer of its name, and never removed. Does not depend on how values are determined.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use http::header::{AsHeaderName, HeaderMap, HeaderValue};
use http::{Extensions, Uri, Version};
use portico_kit::header_text;
use portico_kit::lifecycle::Signal;
use portico_kit::request_trace::RequestTrace;
use portico_machinery::{RequestInfo, UserInfo};

use crate::active_config::ActiveConfig;
use crate::body::Body;
use crate::connection::Connection;
use crate::record::RequestRecord;

/// A request with the facade's body type.
pub type Request = http::Request<Body>;
/// A response with the facade's body type.
pub type Response = http::Response<Body>;

/// Arrival time of a request, from which deadlines count.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedAt(pub Instant);

/// `Audit-ID`: the client's or a new one.
#[derive(Clone, Debug)]
pub struct AuditId(pub HeaderValue);

/// Marks a request that arrived before all paths were registered: an unknown path is 503, not 404.
#[derive(Clone, Copy, Debug)]
pub struct BeforeMuxComplete;

/// Parsed request line.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// Verb, group, resource, name and so on.
    pub info: Arc<RequestInfo>,
    /// True for requests without deadline, wait group and in-flight limit.
    pub long_running: bool,
}

/// Signal for a watch to end.
#[derive(Clone, Debug)]
pub struct WatchShutdown(pub Signal);

/// Authenticated user; after impersonation, the impersonated user.
#[derive(Clone, Debug)]
pub struct Caller(pub Arc<UserInfo>);

static EMPTY_CONFIG: LazyLock<Arc<ActiveConfig>> = LazyLock::new(Arc::default);
static NO_TARGET: LazyLock<Target> = LazyLock::new(Target::default);
static NO_CONNECTION: LazyLock<Arc<Connection>> =
    LazyLock::new(|| Arc::new(Connection::plain(([0, 0, 0, 0], 0).into())));
static NO_AUDIT_ID: AuditId = AuditId(HeaderValue::from_static(""));

/// Accessors of a request, with or without its body. Values that no layer has attached are empty.
pub trait RequestView {
    /// Returns the parts of the head.
    fn head(&self) -> (&Uri, Version, &HeaderMap, &Extensions);

    /// Text of a header; empty if absent.
    fn header(&self, name: impl AsHeaderName) -> &str {
        header_text::first(self.head().2, name)
    }

    /// Raw query; empty if absent.
    fn query(&self) -> &str {
        self.head().0.query().unwrap_or_default()
    }

    /// True if the request uses HTTP/2.
    fn is_http2(&self) -> bool {
        self.head().1 == Version::HTTP_2
    }

    /// Value that a layer has attached.
    fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<&T> {
        self.head().3.get()
    }

    /// Connection of the request.
    fn connection(&self) -> &Arc<Connection> {
        self.extension().unwrap_or(&NO_CONNECTION)
    }

    /// Active configuration at the arrival of the request.
    fn active_config(&self) -> &Arc<ActiveConfig> {
        self.extension().unwrap_or(&EMPTY_CONFIG)
    }

    /// Parsed request line.
    fn target(&self) -> &Target {
        self.extension().unwrap_or(&NO_TARGET)
    }

    /// Parsed request info.
    fn info(&self) -> &Arc<RequestInfo> {
        &self.target().info
    }

    /// Authenticated user; before authentication, a user without name and permissions.
    fn user(&self) -> Arc<UserInfo> {
        self.extension::<Caller>().map(|caller| caller.0.clone()).unwrap_or_default()
    }

    /// Record of the request.
    fn record(&self) -> Arc<RequestRecord> {
        self.extension().cloned().unwrap_or_default()
    }

    /// Trace of the request, if requested.
    fn trace(&self) -> Option<&Arc<RequestTrace>> {
        self.extension::<Arc<RequestRecord>>()?.trace()
    }

    /// Value of [`AuditId`].
    fn audit_id(&self) -> &HeaderValue {
        &self.extension().unwrap_or(&NO_AUDIT_ID).0
    }

    /// Value of [`ReceivedAt`]; the current time if it is not attached yet.
    fn received(&self) -> Instant {
        self.extension().map_or_else(Instant::now, |ReceivedAt(at)| *at)
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
