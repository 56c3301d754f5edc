//! A request and its answer: which target, which connection, what may be tried again.
//!
//! Tried again, on another connection or target, is only what has not left this process.

use std::time::Duration;

use http::StatusCode;
use http::response::Parts;
use portico_kit::dial::{Connection, DialError, NegotiatedAlpn, Stage as DialStage};
use portico_kit::received::Received;
use portico_kit::tls::Alpn;
use tokio::time::{Instant, timeout, timeout_at};

use super::answer_body::Carrier;
use super::http1::{Answered, Http1, Http1Error};
use super::http2::{Http2, Http2Error, Stream};
use super::registry::Transport;
use super::send_error::{SendError, http_error};
use super::target::Target;
use crate::outgoing::Outgoing;
use crate::stage::Stage;

/// A dial that its request abandoned after this long counts as a failure of the target.
const MIN_WAIT_OF_FAILURE: Duration = Duration::from_secs(1);

/// An answer's head, its body, and what carries it.
pub(crate) struct Answer {
    pub(crate) head: Parts,
    pub(crate) body: Received,
    pub(crate) carrier: Carrier,
    /// The number of the target that gave it.
    pub(crate) target: usize,
}

impl Answer {
    fn http1((connection, response): Answered, target: usize) -> Self {
        let (head, body) = response.into_parts();
        Self { head, body, carrier: Carrier::Http1(connection), target }
    }
}

enum Attempt {
    /// Nothing has left; another target may be better.
    Unsent(SendError),
    Failed(SendError),
}

/// Whether an answer says that another try may be better.
pub(super) fn is_failure(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
}

impl Transport {
    /// Sends a request to one target after another until one takes it, beginning with that of this turn or so many after it; those
    /// that are left out come last.
    pub(super) async fn send_once(
        &self,
        request: &mut Outgoing<'_>,
        per_try: Option<Duration>,
        (turn, passed): (usize, usize),
    ) -> Result<Answer, SendError> {
        let (mut dials, count) = (Dials::default(), self.targets.len());
        let (mut failed, mut last) = (None, Vec::new());
        for step in 0..count {
            let index = self.turns.target(turn, step + passed, count);
            if self.turns.is_last_resort(index) || !self.targets[index].is_in() {
                last.push(index);
                continue;
            }
            match self.attempt(index, request, &mut dials, per_try).await {
                Ok(answer) => return Ok(answer),
                Err(Attempt::Failed(error)) => return Err(error),
                Err(Attempt::Unsent(error)) => failed = Some(prefer(failed, error)),
            }
        }
        for index in last {
            match self.attempt(index, request, &mut dials, per_try).await {
                Ok(answer) => return Ok(answer),
                Err(Attempt::Failed(error)) => return Err(error),
                Err(Attempt::Unsent(error)) => failed = Some(prefer(failed, error)),
            }
        }
        Err(failed
            .unwrap_or_else(|| SendError::Dial { stage: Stage::Resolve, message: "no targets".to_owned() }))
    }

    /// Sends a request to one target, and notes how it ended.
    async fn attempt(
        &self,
        index: usize,
        request: &mut Outgoing<'_>,
        dials: &mut Dials,
        per_try: Option<Duration>,
    ) -> Result<Answer, Attempt> {
        let outcome = match per_try {
            None => self.exchange(index, request, dials).await,
            Some(time) => {
                let exchanged = timeout(time, Box::pin(self.exchange(index, request, dials))).await;
                exchanged.unwrap_or_else(|_| {
                    let target = &self.targets[index].address;
                    let message = format!("no answer of {target} within {time:?} (backend-per-try-timeout)");
                    Err(Attempt::Failed(SendError::Http(message)))
                })
            }
        };
        let well = match &outcome {
            Ok(answer) => !is_failure(answer.head.status),
            // The client's, or ours.
            Err(Attempt::Failed(SendError::Body(_)) | Attempt::Unsent(SendError::Body(_))) => return outcome,
            Err(_) => false,
        };
        if self.targets[index].ended(well) {
            self.shared.metrics.ejected();
            tracing::warn!(target = %self.targets[index].address, "an address of a backend is left out for a while");
        }
        outcome
    }

    async fn exchange(
        &self,
        index: usize,
        request: &mut Outgoing<'_>,
        dials: &mut Dials,
    ) -> Result<Answer, Attempt> {
        if self.http2() {
            // Boxed, so that it does not enlarge the future of a request over HTTP/1.1.
            Box::pin(self.over_http2(index, request, dials)).await
        } else {
            self.over_http1(index, request, dials).await
        }
    }

    /// A connection of its own, HTTP/1.1, for a request that wants to change the protocol.
    pub(crate) async fn dedicated(&self) -> Result<(Http1, &Target), SendError> {
        let mut dials = Dials::default();
        let (turn, count) = (self.turns.next(), self.targets.len());
        let mut failed = None;
        for step in 0..count {
            let target = &self.targets[self.turns.target(turn, step, count)];
            match self.dial(target, Some(Alpn::Http1), &mut dials).await {
                Ok((io, generation)) => return Ok((self.open_http1(io, generation).await?, target)),
                Err(error) => failed = Some(prefer(failed, error)),
            }
        }
        Err(failed
            .unwrap_or_else(|| SendError::Dial { stage: Stage::Resolve, message: "no targets".to_owned() }))
    }

    async fn over_http1(
        &self,
        index: usize,
        request: &mut Outgoing<'_>,
        dials: &mut Dials,
    ) -> Result<Answer, Attempt> {
        let target = &self.targets[index];
        while let Some(connection) = target.take(self.shared.generation()) {
            match connection.send(request, &target.authority).await {
                Ok(answered) => return Ok(Answer::http1(answered, index)),
                Err(Http1Error::Broken(error)) => return Err(Attempt::Failed(error)),
                Err(Http1Error::Unsent(_)) => self.shared.metrics.retries.inc(),
            };
        }
        // Boxed, as everything rare: otherwise it would enlarge every request's future.
        let first = async {
            let (io, generation) = self.dial(target, None, dials).await.map_err(Attempt::Unsent)?;
            self.first_on_http1(io, generation, index, request).await
        };
        Box::pin(first).await
    }

    async fn first_on_http1(
        &self,
        io: Connection,
        generation: u64,
        target: usize,
        request: &mut Outgoing<'_>,
    ) -> Result<Answer, Attempt> {
        let connection = self.open_http1(io, generation).await.map_err(Attempt::Unsent)?;
        match connection.send(request, self.authority(target)).await {
            Ok(answered) => Ok(Answer::http1(answered, target)),
            Err(Http1Error::Broken(error)) => Err(Attempt::Failed(error)),
            Err(Http1Error::Unsent(error)) => Err(Attempt::Unsent(error)),
        }
    }

    async fn open_http1(&self, io: Connection, generation: u64) -> Result<Http1, SendError> {
        let opened = Http1::open(io, generation, &self.shared.tasks).await;
        opened.map_err(|error| http_error(&error))
    }

    async fn over_http2(
        &self,
        index: usize,
        request: &mut Outgoing<'_>,
        dials: &mut Dials,
    ) -> Result<Answer, Attempt> {
        let target = &self.targets[index];
        // Twice: a connection that goes away hands back what it has not begun.
        for _ in 0..2 {
            let stream = match self.stream(target, dials).await {
                Ok(Opened::Stream(stream)) => stream,
                Ok(Opened::Http1(io, generation)) => {
                    return self.first_on_http1(io, generation, index, request).await;
                }
                Err(error) => return Err(Attempt::Unsent(error)),
            };
            match stream.send(request.take_http2(&target.authority)).await {
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    return Ok(Answer { head, body, carrier: Carrier::Http2(stream), target: index });
                }
                Err(Http2Error::Broken(error)) => return Err(Attempt::Failed(error)),
                Err(Http2Error::Unsent(back)) => {
                    self.shared.metrics.retries.inc();
                    request.take_back(*back);
                }
            }
        }
        let message = "the backend's HTTP/2 connections end before they take a request".to_owned();
        Err(Attempt::Unsent(SendError::Http(message)))
    }

    /// A stream on a connection that takes one more, or on a new one; or a connection whose peer speaks HTTP/1.1 after all.
    async fn stream(&self, target: &Target, dials: &mut Dials) -> Result<Opened, SendError> {
        let limits = &self.shared.limits;
        let join = || target.join(self.shared.generation(), limits.http2_max_streams);
        if let Some(stream) = join() {
            return Ok(Opened::Stream(stream));
        }
        // The semaphore is never closed; were it, dialling without it would still be right.
        let _turn = target.opening.acquire().await.ok();
        if let Some(stream) = join() {
            return Ok(Opened::Stream(stream));
        }
        let (io, generation) = self.dial(target, None, dials).await?;
        if io.alpn() == NegotiatedAlpn::Http1 {
            return Ok(Opened::Http1(io, generation));
        }
        let opened = Http2::open(io, generation, &self.shared.tasks, limits).await;
        let connection = opened.map_err(|error| http_error(&error))?;
        let stream = connection.join(usize::MAX);
        target.share(connection);
        stream.map(Opened::Stream).ok_or_else(|| SendError::Http("no room on a new connection".to_owned()))
    }

    async fn dial(
        &self,
        target: &Target,
        alpn: Option<Alpn>,
        dials: &mut Dials,
    ) -> Result<(Connection, u64), SendError> {
        if !target.circuit.allows() {
            return Err(open_circuit(target));
        }
        let (generation, tls) =
            self.tls().map_err(|error| SendError::Dial { stage: Stage::Tls, message: error.to_string() })?;
        let tls = match alpn {
            Some(alpn) if self.http2() => tls.map(|tls| tls.with_alpn(alpn)),
            _ => tls,
        };
        let timeout = self.key.dial_timeout;
        let give_up = *dials.give_up.get_or_insert_with(|| Instant::now() + timeout);
        let report = DialReport { target, started: Instant::now(), reported: false };
        let connecting = async {
            match &tls {
                Some(tls) => self.shared.connector.connect_tls(&target.address, tls).await,
                None => self.shared.connector.connect_plain(&target.address).await,
            }
        };
        match timeout_at(give_up, connecting).await {
            Ok(Ok(io)) => {
                report.reached();
                self.shared.metrics.dialled(Ok(()));
                Ok((io, generation))
            }
            Ok(Err(error)) => {
                self.shared.metrics.certificate_refused(&error);
                if error.is_local() {
                    return Err(self.not_dialled(report, &error));
                }
                Err(self.not_reached(report, stage_of(&error), error.to_string()))
            }
            Err(_) => {
                let message = format!("cannot connect to {}: timed out after {timeout:?}", target.address);
                Err(self.not_reached(report, Stage::Dial, message))
            }
        }
    }

    /// Nothing was left to dial with here: the next request may find the backend as it was.
    fn not_dialled(&self, report: DialReport<'_>, error: &DialError) -> SendError {
        self.shared.metrics.dialled(Err(Stage::Dial));
        tracing::warn!(target = %report.target.address, %error, "a backend is not dialled");
        report.not_the_targets_fault();
        SendError::Dial { stage: Stage::Dial, message: error.to_string() }
    }

    fn not_reached(&self, report: DialReport<'_>, stage: Stage, message: String) -> SendError {
        self.shared.metrics.dialled(Err(stage));
        report.failed(stage, message.clone());
        SendError::Dial { stage, message }
    }
}

enum Opened {
    Stream(Stream),
    Http1(Connection, u64),
}

/// What the dials of one request share.
#[derive(Default)]
struct Dials {
    give_up: Option<Instant>,
}

/// Reports to the circuit how a dial ended, also when its request gave up waiting.
struct DialReport<'a> {
    target: &'a Target,
    started: Instant,
    reported: bool,
}

impl DialReport<'_> {
    fn reached(mut self) {
        self.reported = true;
        self.target.circuit.reached();
    }

    fn not_the_targets_fault(mut self) {
        self.reported = true;
    }

    fn failed(mut self, stage: Stage, message: String) {
        self.reported = true;
        if self.target.circuit.failures() == 0 {
            tracing::warn!(target = %self.target.address, stage = stage.as_str(), %message, "a backend is not reached");
        }
        self.target.circuit.failed((stage, message));
    }
}

impl Drop for DialReport<'_> {
    fn drop(&mut self) {
        let waited = self.started.elapsed();
        if !self.reported && waited >= MIN_WAIT_OF_FAILURE {
            let message = format!("no connection to {} within {waited:.1?}", self.target.address);
            self.target.circuit.failed((Stage::Dial, message));
        }
    }
}

/// A dial's own failure is a better message than a circuit that was open because of it.
fn prefer(old: Option<SendError>, new: SendError) -> SendError {
    match (old, new) {
        (Some(old @ (SendError::Dial { .. } | SendError::Http(_))), SendError::Open { .. }) => old,
        (_, new) => new,
    }
}

fn open_circuit(target: &Target) -> SendError {
    let (stage, message) = target
        .circuit
        .last()
        .and_then(|outcome| outcome.failed)
        .unwrap_or_else(|| (Stage::Dial, format!("cannot connect to {}", target.address)));
    SendError::Open { stage, message, failures: target.circuit.failures() }
}

fn stage_of(error: &DialError) -> Stage {
    match error.stage() {
        DialStage::Resolve => Stage::Resolve,
        DialStage::Dial | DialStage::Egress => Stage::Dial,
        DialStage::Tls => Stage::Tls,
    }
}
