//! PriorityAndFairness: requests run on seats of their priority level, queue for one, or are rejected (upstream's
//! `WithPriorityAndFairness`). Long-running requests are exempt, except watches, which need a seat until they have started.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http::StatusCode;
use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use portico_auditor::Latency;
use portico_flow::{Asked, Decision, Dispatcher, Matched, Seat, Waker};
use portico_kit::layer::{AfterResponse, OnResponse, Step};
use portico_kit::metrics::Histogram;
use tower::Service;

use crate::handler::{Answer, Handler};
use crate::metrics::Terminated;
use crate::record::RequestRecord;
use crate::request::{Request, RequestView, Response};
use crate::respond;

const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// Settings and state of the layer.
#[derive(Clone)]
pub struct Flow {
    /// Assigns seats.
    pub dispatcher: Dispatcher,
    /// `apiserver_request_filter_duration_seconds{filter="priorityandfairness"}`
    pub duration: Histogram,
}

impl Flow {
    fn passed(&self, begin: Instant) {
        self.duration.observe(begin.elapsed().as_secs_f64());
    }
}

/// Service of the priority and fairness layer.
#[derive(Clone)]
pub struct PriorityAndFairness<S> {
    flow: Flow,
    inner: S,
}

impl<S> PriorityAndFairness<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, flow: Flow) -> Self {
        Self { flow, inner }
    }
}

impl<S: Handler> Service<Request> for PriorityAndFairness<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = Step<OnResponse<S::Future, Option<Classified>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let begin = Instant::now();
        let (target, rules) = (request.target(), request.in_force().flow.clone());
        let watches = target.info.verb == "watch";
        let limited = !target.long_running || watches;
        let matched = limited.then(|| rules.classify(&request.user(), &target.info)).flatten();
        let Some(matched) = matched else {
            self.flow.passed(begin);
            return Step::passed(OnResponse::new(self.inner.call(request), None));
        };
        let marks = Classified::new(matched, watches.then(|| request.record()));
        let asked = Asked {
            user: &request.user(),
            info: &target.info,
            query: request.query(),
            received: request.received(),
            deadline: request.record().deadline(),
        };
        match self.flow.dispatcher.admit(asked, matched) {
            Decision::Run(seat) => {
                self.sit(&request, seat, watches);
                if let Some(walk) = request.walk() {
                    walk.passed("flow", begin, described(matched, "a seat at once"));
                }
                self.flow.passed(begin);
                Step::passed(OnResponse::new(self.inner.call(request), Some(marks)))
            }
            Decision::Reject(retry_after) => {
                if let Some(walk) = request.walk() {
                    walk.failed("flow", begin, described(matched, "no seat, and no place in a queue"));
                }
                Step::answered(marks.rejected(retry_after))
            }
            Decision::Wait(wait) => {
                let (mut this, queued) = (self.clone(), Instant::now());
                let walked = request.walk().map(|_| described(matched, ""));
                Step::waiting(async move {
                    let seat = wait.seat().await;
                    request.record().took(Latency::QueueWait, queued.elapsed());
                    match seat {
                        Ok(seat) => {
                            this.sit(&request, seat, watches);
                            if let Some(walk) = request.walk() {
                                walk.passed(
                                    "flow",
                                    begin,
                                    walked.unwrap_or_default() + "a seat after waiting",
                                );
                            }
                            this.flow.passed(begin);
                            OnResponse::new(this.inner.call(request), Some(marks)).await
                        }
                        Err(retry_after) => {
                            if let Some(walk) = request.walk() {
                                walk.failed("flow", begin, walked.unwrap_or_default() + "no seat in time");
                            }
                            marks.rejected(retry_after)
                        }
                    }
                })
            }
        }
    }
}

impl<S> PriorityAndFairness<S> {
    /// Holds the seat of a request until its response is sent, and registers watches.
    fn sit(&self, request: &Request, seat: Seat, watches: bool) {
        let record = request.record();
        record.take_seat(seat);
        if watches {
            let _ = record.watch.set(self.flow.dispatcher.register_watch(request.info()));
        }
    }
}

/// Describes the schema, the level and the result for a trace.
fn described(matched: &Matched<Waker>, how: &str) -> String {
    format!("FlowSchema {:?}, PriorityLevel {:?}: {how}", matched.schema.name, matched.spec.name)
}

/// Classification of a request, for the headers of its response.
pub struct Classified {
    schema: HeaderValue,
    level: HeaderValue,
    /// Set for a watch, which releases its seat when its response starts unless a handler has taken the seat.
    watch: Option<Arc<RequestRecord>>,
}

impl Classified {
    fn new(matched: &Matched<Waker>, watch: Option<Arc<RequestRecord>>) -> Self {
        // A UID is a valid header value; any other value is omitted.
        let value = |uid: &str| HeaderValue::from_str(uid).unwrap_or(HeaderValue::from_static(""));
        Self { schema: value(&matched.schema.uid), level: value(&matched.spec.uid), watch }
    }

    /// Upstream's response; `retry_after` is in seconds.
    fn rejected(self, retry_after: u64) -> Answer {
        let message = "Too many requests, please try again later.";
        let mut response = respond::text(StatusCode::TOO_MANY_REQUESTS, message);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after));
        response.extensions_mut().insert(Terminated);
        Ok(self.after(response))
    }
}

impl AfterResponse<Response> for Classified {
    fn after(self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(PRIORITY_LEVEL, self.level);
        headers.insert(FLOW_SCHEMA, self.schema);
        if let Some(record) = self.watch {
            // For a watch of the control service, the local handler holds the seat until the initial events are sent.
            drop(record.leave_seat());
        }
        response
    }
}
