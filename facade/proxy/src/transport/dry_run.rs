//! Dry run for a traced request: finds or opens a connection without sending.

use std::time::Duration;

use portico_kit::request_trace::RequestTrace;

use super::dialing::DialDeadline;
use super::exchange::{NegotiatedConnection, no_targets, prefer_dial_error};
use super::http1::Http1;
use super::registry::Transport;
use super::send_error::SendError;
use super::target_order::TargetOrder;

impl Transport {
    /// Takes a connection that a request could use, or opens one, and returns it to the pool.
    pub(crate) async fn connect_only(&self, trace: &RequestTrace) -> Result<(), SendError> {
        let (index, connection) = self.find_connection(trace).await?;
        if let Some(connection) = connection {
            self.put_back(index, connection);
        }
        Ok(())
    }

    /// Returns the target that would accept a request, and for HTTP/1.1 a connection to it.
    async fn find_connection(&self, trace: &RequestTrace) -> Result<(usize, Option<Http1>), SendError> {
        let (mut dials, mut order) = (DialDeadline::default(), TargetOrder::of(self.rotation.next(), 0));
        let mut failed = None;
        while let Some(index) = order.next(self) {
            self.trace_choice(trace, index);
            let connection = self.connection(index, &mut dials, trace).await;
            self.keep_probe(index);
            match connection {
                Ok(connection) => return Ok((index, connection)),
                // Nothing was sent, so only the circuit records the dial.
                Err(error) => failed = Some(prefer_dial_error(failed, error)),
            }
        }
        Err(failed.unwrap_or_else(no_targets))
    }

    /// Leaves the probe of an ejected address to a request that is sent.
    fn keep_probe(&self, index: usize) {
        if let Some(ejection) = &self.targets[index].ejection
            && ejection.is_open()
        {
            ejection.probe_soon();
        }
    }

    async fn connection(
        &self,
        index: usize,
        dials: &mut DialDeadline,
        trace: &RequestTrace,
    ) -> Result<Option<Http1>, SendError> {
        let target = &self.targets[index];
        if self.http2() {
            let opened = self.open_stream(target, dials, Some(trace)).await?;
            return match opened {
                NegotiatedConnection::Stream(_) => Ok(None),
                NegotiatedConnection::Http1(io, generation) => {
                    self.open_http1(target, io, generation).await.map(Some)
                }
            };
        }
        if let Some(connection) = target.take(self.shared.generation()) {
            trace.record_duration("connection", Duration::ZERO, "reused, HTTP/1.1");
            return Ok(Some(connection));
        }
        let (io, generation) = self.dial_traced(target, dials, Some(trace)).await?;
        self.open_http1(target, io, generation).await.map(Some)
    }
}
