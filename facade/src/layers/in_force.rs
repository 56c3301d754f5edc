//! What the whole request goes by: the configuration that is in force when it arrives.

use crate::in_force::Current;
use crate::request::Request;

/// See the module.
pub fn in_force(current: Current) -> impl Fn(Request) -> Request + Clone {
    move |mut request| {
        request.extensions_mut().insert(current.load_full());
        request
    }
}
