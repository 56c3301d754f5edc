//! Exchange of a request and its response: selection of target and connection, and attempts on other targets.
//!
//! Only requests of which no byte was sent are attempted again on another connection or target.

use std::time::Duration;

use http::StatusCode;
use http::response::Parts;
use portico_kit::dial::{Connection, NegotiatedAlpn};
use portico_kit::received_body::ReceivedBody;
use portico_kit::request_trace::RequestTrace;
use portico_kit::tls::Alpn;
use tokio::time::{Instant, timeout};

use super::dialing::DialDeadline;
use super::http1::{Http1, Http1Error, Http1Response};
use super::http2::{Http2, Http2Error, Http2Stream};
use super::registry::Transport;
use super::response_body::Carrier;
use super::send_error::{SendError, from_http2};
use super::target::Target;
use super::target_order::TargetOrder;
use crate::outgoing_request::OutgoingRequest;
use crate::stage::Stage;

/// A response: head, body, and the carrier of the body.
pub(crate) struct BackendResponse {
    pub(crate) head: Parts,
    pub(crate) body: ReceivedBody,
    pub(crate) carrier: Carrier,
    /// Index of the target that responded.
    pub(crate) target: usize,
}

impl BackendResponse {
    fn http1((connection, response): Http1Response, target: usize) -> Self {
        let (head, body) = response.into_parts();
        Self { head, body, carrier: Carrier::Http1(connection), target }
    }
}

enum AttemptError {
    /// The request was not sent; another target may succeed.
    Unsent(SendError),
    Failed(SendError),
}

/// Returns true for status codes after which a retry may succeed.
pub(crate) fn is_failure(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
}

impl Transport {
    /// Sends a request to one target after another until one accepts it, starting with the target of this turn, or `passed`
    /// places later; ejected targets come last.
    pub(super) async fn send_once(
        &self,
        request: &mut OutgoingRequest<'_>,
        per_try: Option<Duration>,
        (turn, passed): (usize, usize),
    ) -> Result<BackendResponse, SendError> {
        let (mut dials, mut order) = (DialDeadline::default(), TargetOrder::of(turn, passed));
        let mut failed = None;
        while let Some(index) = order.next(self) {
            if let Some(trace) = &request.trace {
                self.trace_choice(trace, index);
            }
            match self.attempt(index, request, &mut dials, per_try).await {
                Ok(answer) => return Ok(answer),
                Err(AttemptError::Failed(error)) => return Err(error),
                Err(AttemptError::Unsent(error)) => failed = Some(prefer_dial_error(failed, error)),
            }
        }
        Err(failed.unwrap_or_else(no_targets))
    }

    /// Sends a request to one target, and records the outcome.
    async fn attempt(
        &self,
        index: usize,
        request: &mut OutgoingRequest<'_>,
        dials: &mut DialDeadline,
        per_try: Option<Duration>,
    ) -> Result<BackendResponse, AttemptError> {
        let outcome = match per_try {
            None => self.exchange(index, request, dials).await,
            Some(time) => {
                let exchanged = timeout(time, Box::pin(self.exchange(index, request, dials))).await;
                exchanged.unwrap_or_else(|_| {
                    let target = &self.targets[index].address;
                    let message = format!("no answer of {target} within {time:?} (backend-per-try-timeout)");
                    Err(AttemptError::Failed(SendError::Http(message)))
                })
            }
        };
        let well = match &outcome {
            Ok(answer) => !is_failure(answer.head.status),
            // The client or a filter caused the failure.
            Err(AttemptError::Failed(SendError::Body(_)) | AttemptError::Unsent(SendError::Body(_))) => {
                return outcome;
            }
            Err(_) => false,
        };
        self.record_outcome(&self.targets[index], well);
        outcome
    }

    /// Records the outcome of a request to this target; after several consecutive failures the target is ejected.
    pub(crate) fn record_outcome(&self, target: &Target, succeeded: bool) {
        if target.record_outcome(succeeded) {
            self.shared.metrics.record_ejection();
            tracing::warn!(address = %target.address, "backend address ejected after repeated failures");
        }
    }

    async fn exchange(
        &self,
        index: usize,
        request: &mut OutgoingRequest<'_>,
        dials: &mut DialDeadline,
    ) -> Result<BackendResponse, AttemptError> {
        if self.http2() {
            // Boxed, so that it does not enlarge the future of a request over HTTP/1.1.
            Box::pin(self.send_http2(index, request, dials)).await
        } else {
            self.send_http1(index, request, dials).await
        }
    }

    /// Opens a new HTTP/1.1 connection for a request that changes the protocol. Targets rotate as for other
    /// requests, and unreachable targets are recorded as failures.
    pub(crate) async fn dedicated_connection(&self) -> Result<(Http1, &Target), SendError> {
        let (mut dials, mut order) = (DialDeadline::default(), TargetOrder::of(self.rotation.next(), 0));
        let mut failed = None;
        while let Some(index) = order.next(self) {
            let target = &self.targets[index];
            let opened = async {
                let (io, generation) = self.dial(target, Some(Alpn::Http1), &mut dials).await?;
                self.open_http1(target, io, generation).await
            };
            match opened.await {
                Ok(connection) => return Ok((connection, target)),
                Err(error) => {
                    self.record_outcome(target, false);
                    failed = Some(prefer_dial_error(failed, error));
                }
            }
        }
        Err(failed.unwrap_or_else(no_targets))
    }

    async fn send_http1(
        &self,
        index: usize,
        request: &mut OutgoingRequest<'_>,
        dials: &mut DialDeadline,
    ) -> Result<BackendResponse, AttemptError> {
        let target = &self.targets[index];
        while let Some(connection) = target.take(self.shared.generation()) {
            if let Some(trace) = &request.trace {
                trace.record_duration("connection", Duration::ZERO, "reused, HTTP/1.1");
            }
            match connection.send(request, &target.authority).await {
                Ok(answered) => return Ok(BackendResponse::http1(answered, index)),
                Err(Http1Error::Broken(error)) => return Err(AttemptError::Failed(error)),
                Err(Http1Error::Unsent(_)) => self.shared.metrics.retries.inc(),
            };
        }
        self.record_wait();
        // Boxed like all rare paths: otherwise it would enlarge the future of every request.
        let first = async {
            let (io, generation) = self
                .dial_traced(target, dials, request.trace.as_deref())
                .await
                .map_err(AttemptError::Unsent)?;
            self.send_on_new_http1(io, generation, index, request).await
        };
        Box::pin(first).await
    }

    async fn send_on_new_http1(
        &self,
        io: Connection,
        generation: u64,
        target: usize,
        request: &mut OutgoingRequest<'_>,
    ) -> Result<BackendResponse, AttemptError> {
        let opened = self.open_http1(&self.targets[target], io, generation).await;
        let connection = opened.map_err(AttemptError::Unsent)?;
        match connection.send(request, self.authority(target)).await {
            Ok(answered) => Ok(BackendResponse::http1(answered, target)),
            Err(Http1Error::Broken(error)) => Err(AttemptError::Failed(error)),
            Err(Http1Error::Unsent(error)) => Err(AttemptError::Unsent(error)),
        }
    }

    pub(super) async fn open_http1(
        &self,
        target: &Target,
        io: Connection,
        generation: u64,
    ) -> Result<Http1, SendError> {
        let opened = Http1::open(io, generation, &self.shared.tasks, target.open_connections.track()).await;
        opened.map_err(|error| from_http2(&error))
    }

    async fn send_http2(
        &self,
        index: usize,
        request: &mut OutgoingRequest<'_>,
        dials: &mut DialDeadline,
    ) -> Result<BackendResponse, AttemptError> {
        let target = &self.targets[index];
        // Two attempts: a connection that closes returns the requests that it has not started.
        for _ in 0..2 {
            let stream = match self.open_stream(target, dials, request.trace.as_deref()).await {
                Ok(NegotiatedConnection::Stream(stream)) => stream,
                Ok(NegotiatedConnection::Http1(io, generation)) => {
                    return self.send_on_new_http1(io, generation, index, request).await;
                }
                Err(error) => return Err(AttemptError::Unsent(error)),
            };
            match stream.send(request.take_http2(&target.authority)).await {
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    return Ok(BackendResponse {
                        head,
                        body,
                        carrier: Carrier::Http2(stream),
                        target: index,
                    });
                }
                Err(Http2Error::Broken(error)) => return Err(AttemptError::Failed(error)),
                Err(Http2Error::Unsent(back)) => {
                    self.shared.metrics.retries.inc();
                    request.put_back(*back);
                }
            }
        }
        let message = "the backend's HTTP/2 connections end before they take a request".to_owned();
        Err(AttemptError::Unsent(SendError::Http(message)))
    }

    /// Returns a stream on a connection with capacity, or on a new one; or a connection whose peer supports only HTTP/1.1.
    pub(super) async fn open_stream(
        &self,
        target: &Target,
        dials: &mut DialDeadline,
        trace: Option<&RequestTrace>,
    ) -> Result<NegotiatedConnection, SendError> {
        let limits = &self.shared.limits;
        let begin = Instant::now();
        let join = || {
            let stream = target.join(self.shared.generation(), limits.http2_max_streams)?;
            if let Some(trace) = trace {
                trace.record_passed("connection", begin.into_std(), "reused, HTTP/2");
            }
            Some(stream)
        };
        if let Some(stream) = join() {
            return Ok(NegotiatedConnection::Stream(stream));
        }
        self.record_wait();
        // The semaphore is never closed; if it were, dialing without it would still be correct.
        let _turn = target.dial_permit.acquire().await.ok();
        if let Some(stream) = join() {
            return Ok(NegotiatedConnection::Stream(stream));
        }
        let (io, generation) = self.dial_traced(target, dials, trace).await?;
        if io.alpn() == NegotiatedAlpn::Http1 {
            return Ok(NegotiatedConnection::Http1(io, generation));
        }
        let open = target.open_connections.track();
        let opened = Http2::open(io, generation, &self.shared.tasks, limits, open).await;
        let connection = opened.map_err(|error| from_http2(&error))?;
        let stream = connection.join(usize::MAX);
        target.add_http2(connection);
        stream
            .map(NegotiatedConnection::Stream)
            .ok_or_else(|| SendError::Http("no room on a new connection".to_owned()))
    }
}

/// Stream or connection for a request to an HTTP/2 backend.
pub(super) enum NegotiatedConnection {
    Stream(Http2Stream),
    Http1(Connection, u64),
}

pub(super) fn no_targets() -> SendError {
    SendError::Dial { stage: Stage::Resolve, message: "no targets".to_owned() }
}

/// Prefers the error of a dial to the error of the circuit that this dial opened.
pub(super) fn prefer_dial_error(old: Option<SendError>, new: SendError) -> SendError {
    match (old, new) {
        (Some(old @ (SendError::Dial { .. } | SendError::Http(_))), SendError::Open { .. }) => old,
        (_, new) => new,
    }
}
