//! Attaches the active configuration to a request, which uses this version until its end.

use crate::active_config::ActiveConfigCell;
use crate::request::Request;

/// Attaches the active configuration.
pub fn attach_active_config(current: ActiveConfigCell) -> impl Fn(Request) -> Request + Clone {
    move |mut request| {
        request.extensions_mut().insert(current.load_full());
        request
    }
}
