//! Dry run for a traced request: finds or opens a connection without sending.

use std::time::Duration;

use portico_kit::walk::Walk;

use super::dialling::Dials;
use super::exchange::{Opened, no_targets, prefer};
use super::http1::Http1;
use super::order::Order;
use super::registry::Transport;
use super::send_error::SendError;

impl Transport {
    /// Takes a connection that a request could use, or opens one, and returns it to the pool.
    pub(crate) async fn reach(&self, walk: &Walk) -> Result<(), SendError> {
        let (index, connection) = self.connected(walk).await?;
        if let Some(connection) = connection {
            self.put(index, connection);
        }
        Ok(())
    }

    /// Returns the target that would accept a request, and for HTTP/1.1 a connection to it.
    async fn connected(&self, walk: &Walk) -> Result<(usize, Option<Http1>), SendError> {
        let (mut dials, mut order) = (Dials::default(), Order::of(self.turns.next(), 0));
        let mut failed = None;
        while let Some(index) = order.next(self) {
            self.note_choice(walk, index);
            let connection = self.connection(index, &mut dials, walk).await;
            self.leave_probe(index);
            match connection {
                Ok(connection) => return Ok((index, connection)),
                // Nothing was sent, so only the circuit records the dial.
                Err(error) => failed = Some(prefer(failed, error)),
            }
        }
        Err(failed.unwrap_or_else(no_targets))
    }

    /// Leaves the probe of an ejected address to a request that is sent.
    fn leave_probe(&self, index: usize) {
        if let Some(ejection) = &self.targets[index].ejection
            && ejection.is_open()
        {
            ejection.probe_soon();
        }
    }

    async fn connection(
        &self,
        index: usize,
        dials: &mut Dials,
        walk: &Walk,
    ) -> Result<Option<Http1>, SendError> {
        let target = &self.targets[index];
        if self.http2() {
            let opened = self.stream(target, dials, Some(walk)).await?;
            return match opened {
                Opened::Stream(_) => Ok(None),
                Opened::Http1(io, generation) => self.open_http1(target, io, generation).await.map(Some),
            };
        }
        if let Some(connection) = target.take(self.shared.generation()) {
            walk.took("connection", Duration::ZERO, "reused, HTTP/1.1");
            return Ok(Some(connection));
        }
        let (io, generation) = self.dial_noting(target, dials, Some(walk)).await?;
        self.open_http1(target, io, generation).await.map(Some)
    }
}
