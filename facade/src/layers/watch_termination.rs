//! WatchTermination (`--shutdown-watch-termination-grace-period`): counts watches and ends them when the drain begins, at a
//! limited rate, so that clients do not reconnect all at once.

use portico_kit::lifecycle::Signal;
use tower_http::validate_request::ValidateRequest;

use super::wait_group::shutting_down;
use crate::body::Body;
use crate::request::{Request, RequestView, Response, WatchShutdown};
use crate::wait_group::WaitGroup;

/// Layer that counts watches.
#[derive(Clone, Debug)]
pub struct WatchTermination {
    /// The group of watches.
    pub group: WaitGroup,
    /// Signals the end of watches.
    pub shutdown: Signal,
}

impl ValidateRequest<Body> for WatchTermination {
    type ResponseBody = Body;

    fn validate(&mut self, request: &mut Request) -> Result<(), Response> {
        let info = request.info();
        if info.verb != "watch" || !info.is_resource_request {
            return Ok(());
        }
        let Some(token) = self.group.enter() else { return Err(shutting_down(request)) };
        let _ = request.record().wait_group.set(token);
        request.extensions_mut().insert(WatchShutdown(self.shutdown.clone()));
        Ok(())
    }
}
