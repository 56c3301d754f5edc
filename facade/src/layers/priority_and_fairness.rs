//! PriorityAndFairness: requests run on seats of their priority level, queue for one, or are rejected (upstream's
//! `WithPriorityAndFairness`). Long-running requests are exempt, except watches, which need a seat until they have started.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http::StatusCode;
use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use portico_auditor::Latency;
use portico_flow::{Dispatcher, FlowRequest, MatchedSchema, Seat, SeatDecision, SeatWaker};
use portico_kit::layer::{LayerFuture, ResponseTransform, TransformFuture};
use portico_kit::metrics::Histogram;
use tower::Service;

use crate::handler::{Handler, HandlerResult};
use crate::metrics::Terminated;
use crate::record::RequestRecord;
use crate::request::{Request, RequestView, Response};
use crate::respond;

const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// Settings and state of the layer.
#[derive(Clone)]
pub struct FlowControl {
    /// Assigns seats.
    pub dispatcher: Dispatcher,
    /// `apiserver_request_filter_duration_seconds{filter="priorityandfairness"}`
    pub duration: Histogram,
}

impl FlowControl {
    fn observe_duration(&self, begin: Instant) {
        self.duration.observe(begin.elapsed().as_secs_f64());
    }
}

/// Service of the priority and fairness layer.
#[derive(Clone)]
pub struct PriorityAndFairness<S> {
    flow: FlowControl,
    inner: S,
}

impl<S> PriorityAndFairness<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, flow: FlowControl) -> Self {
        Self { flow, inner }
    }
}

impl<S: Handler> Service<Request> for PriorityAndFairness<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = LayerFuture<TransformFuture<S::Future, Option<Classification>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let begin = Instant::now();
        let (target, rules) = (request.target(), request.active_config().flow.clone());
        let is_watch = target.info.verb == "watch";
        let needs_seat = !target.long_running || is_watch;
        let matched = needs_seat.then(|| rules.classify(&request.user(), &target.info)).flatten();
        let Some(matched) = matched else {
            self.flow.observe_duration(begin);
            return LayerFuture::from_inner(TransformFuture::new(self.inner.call(request), None));
        };
        let classification = Classification::new(matched, is_watch.then(|| request.record()));
        let flow_request = FlowRequest {
            user: &request.user(),
            info: &target.info,
            query: request.query(),
            received: request.received(),
            deadline: request.record().deadline(),
        };
        match self.flow.dispatcher.request_seat(flow_request, matched) {
            SeatDecision::Run(seat) => {
                self.hold_seat(&request, seat, is_watch);
                if let Some(trace) = request.trace() {
                    trace.record_passed("flow", begin, describe_match(matched, "seat assigned immediately"));
                }
                self.flow.observe_duration(begin);
                LayerFuture::from_inner(TransformFuture::new(self.inner.call(request), Some(classification)))
            }
            SeatDecision::Reject(retry_after) => {
                if let Some(trace) = request.trace() {
                    trace.record_failed(
                        "flow",
                        begin,
                        describe_match(matched, "rejected: no free seat, and no room in a queue"),
                    );
                }
                LayerFuture::from_response(classification.reject(retry_after))
            }
            SeatDecision::Wait(wait) => {
                let (mut this, queued) = (self.clone(), Instant::now());
                let description = request.trace().map(|_| describe_match(matched, ""));
                LayerFuture::from_boxed(async move {
                    let seat = wait.seat().await;
                    request.record().record_latency(Latency::QueueWait, queued.elapsed());
                    match seat {
                        Ok(seat) => {
                            this.hold_seat(&request, seat, is_watch);
                            if let Some(trace) = request.trace() {
                                trace.record_passed(
                                    "flow",
                                    begin,
                                    description.unwrap_or_default() + "seat assigned after queueing",
                                );
                            }
                            this.flow.observe_duration(begin);
                            TransformFuture::new(this.inner.call(request), Some(classification)).await
                        }
                        Err(retry_after) => {
                            if let Some(trace) = request.trace() {
                                trace.record_failed(
                                    "flow",
                                    begin,
                                    description.unwrap_or_default()
                                        + "rejected: no seat within the time limit",
                                );
                            }
                            classification.reject(retry_after)
                        }
                    }
                })
            }
        }
    }
}

impl<S> PriorityAndFairness<S> {
    /// Holds the seat of a request until its response is sent, and registers watches.
    fn hold_seat(&self, request: &Request, seat: Seat, is_watch: bool) {
        let record = request.record();
        record.set_seat(seat);
        if is_watch {
            let _ = record.watch.set(self.flow.dispatcher.register_watch(request.info()));
        }
    }
}

/// Describes the schema, the level and the result for a trace.
fn describe_match(matched: &MatchedSchema<SeatWaker>, outcome: &str) -> String {
    format!("FlowSchema {:?}, PriorityLevel {:?}: {outcome}", matched.schema.name, matched.spec.name)
}

/// Classification of a request, for the headers of its response.
pub struct Classification {
    schema: HeaderValue,
    level: HeaderValue,
    /// Set for a watch, which releases its seat when its response starts unless a handler has taken the seat.
    watch: Option<Arc<RequestRecord>>,
}

impl Classification {
    fn new(matched: &MatchedSchema<SeatWaker>, watch: Option<Arc<RequestRecord>>) -> Self {
        // A UID is a valid header value; any other value is omitted.
        let value = |uid: &str| HeaderValue::from_str(uid).unwrap_or(HeaderValue::from_static(""));
        Self { schema: value(&matched.schema.uid), level: value(&matched.spec.uid), watch }
    }

    /// Upstream's response; `retry_after` is in seconds.
    fn reject(self, retry_after: u64) -> HandlerResult {
        let message = "Too many requests, please try again later.";
        let mut response = respond::text(StatusCode::TOO_MANY_REQUESTS, message);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after));
        response.extensions_mut().insert(Terminated);
        Ok(self.apply(response))
    }
}

impl ResponseTransform<Response> for Classification {
    fn apply(self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(PRIORITY_LEVEL, self.level);
        headers.insert(FLOW_SCHEMA, self.schema);
        if let Some(record) = self.watch {
            // For a watch of the control service, the local handler holds the seat until the initial events are sent.
            drop(record.release_seat());
        }
        response
    }
}
