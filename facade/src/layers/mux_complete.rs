//! MuxAndDiscoveryComplete: remembers whether all paths were installed when the request arrived.
//!
//! The stamp stays even if they are installed while the request runs: garbage collectors take a 404 as "gone".

use portico_kit::lifecycle::Signal;

use crate::request::{BeforeMuxComplete, Request};

/// Stamps requests that come before `complete` is given.
pub fn mux_complete(complete: Signal) -> impl FnMut(Request) -> Request + Clone {
    move |mut request| {
        if !complete.is_signaled() {
            request.extensions_mut().insert(BeforeMuxComplete);
        }
        request
    }
}
