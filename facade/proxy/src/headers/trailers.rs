//! Trailers that are forwarded.
//!
//! Servers may merge trailers into headers, so trailers must not frame a message, name its target, identify the caller or
//! control caches. hyper's encoder has the same rule.

use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HOST,
    HeaderMap, HeaderName, MAX_FORWARDS, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING,
};
use portico_kit::header_text::tokens;

use super::response::is_reserved;
use super::strip::is_stripped;

/// Maximum number of trailers that a request may announce; further ones are not forwarded.
const MAX_ANNOUNCED: usize = 32;

/// Returns the names in `Trailer` that may be forwarded.
pub(crate) fn announced_trailers(headers: &HeaderMap) -> Box<[HeaderName]> {
    if !headers.contains_key(TRAILER) {
        return Box::default();
    }
    let names = tokens(headers, TRAILER).filter_map(|name| HeaderName::from_bytes(name).ok());
    names.filter(may_pass).take(MAX_ANNOUNCED).collect()
}

/// Removes trailers of a request that its head did not announce.
pub(crate) fn keep_announced(trailers: &mut HeaderMap, announced: &[HeaderName]) {
    retain(trailers, |name| announced.contains(name));
}

/// Removes trailers of a response that only the head may contain.
pub(crate) fn clean_trailers(trailers: &mut HeaderMap) {
    retain(trailers, |name| may_pass(name) && !is_reserved(name));
}

fn retain(trailers: &mut HeaderMap, keep: impl Fn(&HeaderName) -> bool) {
    let removed: Vec<HeaderName> = trailers.keys().filter(|name| !keep(name)).cloned().collect();
    for name in removed {
        trailers.remove(name);
    }
}

fn may_pass(name: &HeaderName) -> bool {
    const FORBIDDEN: [HeaderName; 12] = [
        AUTHORIZATION,
        CACHE_CONTROL,
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        CONTENT_RANGE,
        CONTENT_TYPE,
        HOST,
        MAX_FORWARDS,
        SET_COOKIE,
        TRAILER,
        TRANSFER_ENCODING,
        TE,
    ];
    !FORBIDDEN.contains(name) && !is_stripped(name) && !name.as_str().starts_with("x-forwarded-")
}
