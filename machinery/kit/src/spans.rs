//! Spans of traced requests, and their propagation between processes (W3C `traceparent`).
//!
//! A span is current while its future is polled, and new spans are its children. Without an exporter there are no spans, which
//! costs one check of a flag; only requests begin a trace. Does not depend on the work that is traced.

mod exporter;
mod headers;

pub use exporter::{SpanExport, SpanExportError, SpanSettings, start};

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

/// Tracer, set once an exporter is started.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Span, or a placeholder if tracing is disabled.
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct Span(Option<Context>);

/// True if an exporter was started.
#[must_use]
pub fn are_exported() -> bool {
    TRACER.get().is_some()
}

/// Returns the first span of this process for a request with these headers. For a trusted caller it continues the caller's trace
/// with its sampling decision; otherwise it begins a trace that links to the caller's (`WithPublicEndpointFn`).
pub fn request(
    name: impl Into<Cow<'static, str>>,
    headers: &HeaderMap,
    is_trusted: bool,
    since: SystemTime,
) -> Span {
    let Some(tracer) = TRACER.get() else { return Span::default() };
    let remote_context = TraceContextPropagator::new()
        .extract_with_context(&Context::new(), &headers::HeaderExtractor(headers));
    let mut builder = tracer.span_builder(name).with_kind(SpanKind::Server).with_start_time(since);
    let remote_span = remote_context.span().span_context().clone();
    let parent = if is_trusted { remote_context } else { Context::new() };
    if !is_trusted && remote_span.is_valid() {
        builder = builder.with_links(vec![Link::with_context(remote_span)]);
    }
    let span = tracer.build_with_context(builder, &parent);
    Span(Some(parent.with_span(span)))
}

/// Returns a child of the current span, or a placeholder if there is no current span or it is not sampled.
pub fn child(name: impl Into<Cow<'static, str>>) -> Span {
    begin(name, SpanKind::Internal, None)
}

/// Returns a [`child`] for a call to another server.
pub fn client(name: impl Into<Cow<'static, str>>) -> Span {
    begin(name, SpanKind::Client, None)
}

/// Returns a [`child`] with an earlier start time.
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

/// Returns the current span.
pub fn current() -> Span {
    Span(are_exported().then(Context::current))
}

/// Writes the current span into these headers, in place of existing values.
pub fn inject(headers: &mut HeaderMap) {
    if are_exported() {
        let propagator = TraceContextPropagator::new();
        Context::map_current(|cx| propagator.inject_context(cx, &mut headers::HeaderInjector(headers)));
    }
}

impl Span {
    /// True if attributes are recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.0.as_ref().is_some_and(|cx| cx.span().is_recording())
    }

    /// Sets an attribute.
    pub fn set_attribute(&self, key: &'static str, value: impl Into<Value>) {
        if let Some(cx) = &self.0 {
            cx.span().set_attribute(KeyValue::new(key, value));
        }
    }

    /// Sets the status to an error with this description.
    pub fn set_error(&self, description: impl Into<Cow<'static, str>>) {
        if let Some(cx) = &self.0 {
            cx.span().set_status(Status::error(description));
        }
    }

    /// Makes the span current while the future is polled, and ends the span with the future.
    pub fn instrument<F: Future>(self, future: F) -> InstrumentedFuture<F> {
        InstrumentedFuture { future, span: self, end_on_completion: true }
    }

    /// Makes the span current while the future is polled, without ending it.
    pub fn instrument_part<F: Future>(self, future: F) -> InstrumentedFuture<F> {
        InstrumentedFuture { future, span: self, end_on_completion: false }
    }

    /// Ends the span.
    pub fn end(self) {
        if let Some(cx) = self.0 {
            cx.span().end();
        }
    }
}

pin_project! {
    /// Future returned by [`Span::instrument`].
    pub struct InstrumentedFuture<F> {
        #[pin]
        future: F,
        span: Span,
        end_on_completion: bool,
    }
}

impl<F: Future> Future for InstrumentedFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(current) = &this.span.0 else { return this.future.poll(cx) };
        let _current = current.clone().attach();
        let polled = this.future.poll(cx);
        if polled.is_ready() && *this.end_on_completion {
            current.span().end();
        }
        polled
    }
}
