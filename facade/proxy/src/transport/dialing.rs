//! Opening a connection to one target: subject to its circuit, within the dial timeout of its request.

use std::time::Duration;

use portico_kit::dial::{Connection, DialError, DialStage, NegotiatedAlpn};
use portico_kit::request_trace::RequestTrace;
use portico_kit::tls::Alpn;
use tokio::time::{Instant, timeout_at};

use super::registry::Transport;
use super::send_error::SendError;
use super::target::Target;
use crate::stage::Stage;

/// Minimum wait after which a dial that its request abandoned counts as a failure of the target.
const MIN_FAILED_WAIT: Duration = Duration::from_secs(1);

impl Transport {
    /// Dials, and records the duration of each part in the trace.
    pub(super) async fn dial_traced(
        &self,
        target: &Target,
        dials: &mut DialDeadline,
        trace: Option<&RequestTrace>,
    ) -> Result<(Connection, u64), SendError> {
        let begin = Instant::now();
        let dialled = self.dial(target, None, dials).await;
        if let Some(trace) = trace {
            trace_dial(trace, &dialled, begin);
        }
        dialled
    }

    pub(super) async fn dial(
        &self,
        target: &Target,
        alpn: Option<Alpn>,
        dials: &mut DialDeadline,
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
        let give_up = *dials.deadline.get_or_insert_with(|| Instant::now() + timeout);
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
                self.shared.metrics.record_dial(Ok(()));
                Ok((io, generation))
            }
            Ok(Err(error)) => {
                self.shared.metrics.record_certificate_refusal(&error);
                if error.is_local() {
                    return Err(self.local_failure(report, &error));
                }
                Err(self.target_failure(report, stage_of(&error), error.to_string()))
            }
            Err(_) => {
                let message = format!("cannot connect to {}: timed out after {timeout:?}", target.address);
                Err(self.target_failure(report, Stage::Dial, message))
            }
        }
    }

    /// Returns the error of a dial that failed for lack of local resources, such as file descriptors. The
    /// circuit does not count it.
    fn local_failure(&self, report: DialReport<'_>, error: &DialError) -> SendError {
        self.shared.metrics.record_dial(Err(Stage::Dial));
        tracing::warn!(address = %report.target.address, %error, "cannot dial a backend");
        report.discard();
        SendError::Dial { stage: Stage::Dial, message: error.to_string() }
    }

    fn target_failure(&self, report: DialReport<'_>, stage: Stage, message: String) -> SendError {
        self.shared.metrics.record_dial(Err(stage));
        report.failed(stage, message.clone());
        SendError::Dial { stage, message }
    }
}

/// State that the dials of one request share.
#[derive(Default)]
pub(super) struct DialDeadline {
    deadline: Option<Instant>,
}

/// Reports the outcome of a dial to the circuit, also if its request stopped waiting.
struct DialReport<'a> {
    target: &'a Target,
    started: Instant,
    reported: bool,
}

impl DialReport<'_> {
    fn reached(mut self) {
        self.reported = true;
        self.target.circuit.record_success();
    }

    fn discard(mut self) {
        self.reported = true;
    }

    fn failed(mut self, stage: Stage, message: String) {
        self.reported = true;
        if self.target.circuit.failures() == 0 {
            let (address, stage) = (&self.target.address, stage.as_str());
            tracing::warn!(%address, stage, error = message, "cannot reach a backend");
        }
        self.target.circuit.record_failure((stage, message));
    }
}

impl Drop for DialReport<'_> {
    fn drop(&mut self) {
        let waited = self.started.elapsed();
        if !self.reported && waited >= MIN_FAILED_WAIT {
            let message = format!("no connection to {} within {waited:.1?}", self.target.address);
            self.target.circuit.record_failure((Stage::Dial, message));
        }
    }
}

fn trace_dial(trace: &RequestTrace, dialled: &Result<(Connection, u64), SendError>, begin: Instant) {
    let begin = begin.into_std();
    match dialled {
        Ok((io, _)) => {
            let times = io.times();
            let address = io.remote_addr().map(|address| address.to_string()).unwrap_or_default();
            trace.record_duration("resolve", times.resolve(), address);
            trace.record_duration("dial", times.connect(), "");
            trace.record_duration("tls", times.tls(), "");
            let protocol = if io.alpn() == NegotiatedAlpn::Http2 { "HTTP/2" } else { "HTTP/1.1" };
            trace.record_passed("connection", begin, format!("new, {protocol}"));
        }
        Err(SendError::Dial { stage, message }) => trace.record_failed(stage.as_str(), begin, message),
        Err(SendError::Open { stage, message, failures }) => {
            let message = format!("{message} (next attempt deferred after {failures} failures)");
            trace.record_failed(stage.as_str(), begin, message);
        }
        Err(error) => trace.record_failed("connection", begin, error.to_string()),
    }
}

fn open_circuit(target: &Target) -> SendError {
    let (stage, message) = target
        .circuit
        .last()
        .and_then(|outcome| outcome.failure)
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
