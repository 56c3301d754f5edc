//! Attaches the active configuration to a request, which uses this version until its end.

use crate::in_force::Current;
use crate::request::Request;

/// Attaches the active configuration.
pub fn in_force(current: Current) -> impl Fn(Request) -> Request + Clone {
    move |mut request| {
        request.extensions_mut().insert(current.load_full());
        request
    }
}
