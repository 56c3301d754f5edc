//! ProbabilisticGoaway (`--goaway-chance`): occasionally asks an HTTP/2 client to reconnect, so that load spreads over facades.
//! The request itself is served.

use crate::request::{Request, RequestView};

/// Maximum probability that can be configured.
pub const MAX_CHANCE: f64 = 0.02;

/// Sends GOAWAY with this probability, at most [`MAX_CHANCE`].
pub fn goaway(chance: f64) -> impl FnMut(Request) -> Request + Clone {
    let chance = chance.min(MAX_CHANCE);
    move |request| {
        if request.is_http2() && rand::random::<f64>() < chance {
            request.connection().go_away();
        }
        request
    }
}
