//! WatchTermination (`--shutdown-watch-termination-grace-period`): watches are counted, told to end when the drain
//! begins, and end at a limited rate so that clients do not all come back at once.

use http::Response;
use portico_kit::lifecycle::Signal;

use super::wait_group::{WaitGroup, shutting_down};
use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;

/// What a watch must know to end in time; stands in the request's extensions.
#[derive(Clone, Debug)]
pub struct WatchShutdown(pub Signal);

/// See the module.
#[derive(Debug)]
pub struct WatchTermination {
    /// The group of watches.
    pub group: WaitGroup,
    /// Watches end when it is given.
    pub shutdown: Signal,
}

impl Filter for WatchTermination {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        if x.info.verb == "watch" && x.info.is_resource_request {
            match self.group.enter() {
                Some(token) => x.guards.watch = Some(token),
                None => return shutting_down(x),
            }
            x.parts.extensions.insert(WatchShutdown(self.shutdown.clone()));
        }
        next.handle(x).await
    }
}
