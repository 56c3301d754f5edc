//! MuxAndDiscoveryComplete: records on each request whether all paths were registered when it arrived.
//!
//! The mark stays even if they are registered while the request runs, because garbage collectors interpret a 404 as deletion.

use portico_kit::lifecycle::Signal;

use crate::request::{BeforeMuxComplete, Request};

/// Marks requests that arrive before `complete` is signaled.
pub fn mux_complete(complete: Signal) -> impl FnMut(Request) -> Request + Clone {
    move |mut request| {
        if !complete.is_signaled() {
            request.extensions_mut().insert(BeforeMuxComplete);
        }
        request
    }
}
