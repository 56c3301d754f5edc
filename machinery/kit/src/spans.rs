//! Spans of traced requests, and how they pass from process to process (W3C `traceparent`).
//!
//! A span is current while its future is polled, and a new one is its child. While no exporter is started there are none, which
//! costs a look at one flag; and nothing but a request begins a trace. It must not know what is traced.

mod exporter;
mod headers;

pub use exporter::{Exporting, SpanExportError, SpanSettings, start};

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context as TaskContext, Poll};
use std::time::SystemTime;

use http::HeaderMap;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Link, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use pin_project_lite::pin_project;

/// There while spans are exported.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// A span, or nothing where nobody traces.
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct Span(Option<Context>);

/// Whether an exporter was started.
#[must_use]
pub fn are_exported() -> bool {
    TRACER.get().is_some()
}

/// The first span of this process for a request that came with these headers. Where the caller is trusted it goes on with the
/// caller's trace and its sampling; else it begins a trace that links to the caller's (`WithPublicEndpointFn`).
pub fn request(
    name: impl Into<Cow<'static, str>>,
    headers: &HeaderMap,
    is_trusted: bool,
    since: SystemTime,
) -> Span {
    let Some(tracer) = TRACER.get() else { return Span::default() };
    let sent = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers::Sent(headers));
    let mut builder = tracer.span_builder(name).with_kind(SpanKind::Server).with_start_time(since);
    let theirs = sent.span().span_context().clone();
    let parent = if is_trusted { sent } else { Context::new() };
    if !is_trusted && theirs.is_valid() {
        builder = builder.with_links(vec![Link::with_context(theirs)]);
    }
    let span = tracer.build_with_context(builder, &parent);
    Span(Some(parent.with_span(span)))
}

/// A part of what the current span is about; nothing where there is none, or it is not sampled.
pub fn child(name: impl Into<Cow<'static, str>>) -> Span {
    begin(name, SpanKind::Internal, None)
}

/// A [`child`] that waits for another server.
pub fn client(name: impl Into<Cow<'static, str>>) -> Span {
    begin(name, SpanKind::Client, None)
}

/// A [`child`] that began earlier.
pub fn child_since(name: impl Into<Cow<'static, str>>, since: SystemTime) -> Span {
    begin(name, SpanKind::Internal, Some(since))
}

fn begin(name: impl Into<Cow<'static, str>>, kind: SpanKind, since: Option<SystemTime>) -> Span {
    let Some(tracer) = TRACER.get() else { return Span::default() };
    let parent = Context::current();
    if !parent.span().span_context().is_sampled() {
        return Span::default();
    }
    let mut builder = tracer.span_builder(name).with_kind(kind);
    builder.start_time = since;
    let span = tracer.build_with_context(builder, &parent);
    Span(Some(parent.with_span(span)))
}

/// The current span.
pub fn current() -> Span {
    Span(are_exported().then(Context::current))
}

/// Names the current span to whoever gets these headers, in place of what they say.
pub fn insert_into(headers: &mut HeaderMap) {
    if are_exported() {
        let propagator = TraceContextPropagator::new();
        Context::map_current(|cx| propagator.inject_context(cx, &mut headers::Sending(headers)));
    }
}

impl Span {
    /// Whether its attributes are of use.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.0.as_ref().is_some_and(|cx| cx.span().is_recording())
    }

    /// Says something of it.
    pub fn set(&self, key: &'static str, value: impl Into<Value>) {
        if let Some(cx) = &self.0 {
            cx.span().set_attribute(KeyValue::new(key, value));
        }
    }

    /// Says that it failed, and why.
    pub fn fail(&self, why: impl Into<Cow<'static, str>>) {
        if let Some(cx) = &self.0 {
            cx.span().set_status(Status::error(why));
        }
    }

    /// The span lasts until the future ends, and is current while it is polled.
    pub fn within<F: Future>(self, work: F) -> Within<F> {
        Within { work, span: self, ends: true }
    }

    /// The span is current while the future is polled, and somebody else's.
    pub fn around<F: Future>(self, work: F) -> Within<F> {
        Within { work, span: self, ends: false }
    }

    /// The span ends.
    pub fn end(self) {
        if let Some(cx) = self.0 {
            cx.span().end();
        }
    }
}

pin_project! {
    /// See [`Span::within`].
    pub struct Within<F> {
        #[pin]
        work: F,
        span: Span,
        ends: bool,
    }
}

impl<F: Future> Future for Within<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(current) = &this.span.0 else { return this.work.poll(cx) };
        let _current = current.clone().attach();
        let polled = this.work.poll(cx);
        if polled.is_ready() && *this.ends {
            current.span().end();
        }
        polled
    }
}
