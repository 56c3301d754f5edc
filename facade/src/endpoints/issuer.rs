//! `/.well-known/openid-configuration` and `/openid/v1/jwks`: who signs service accounts' tokens, for relying parties.

use http::header::{CACHE_CONTROL, HeaderValue};
use http::{Response, StatusCode};

use crate::body::Body;
use crate::context::RequestContext;
use crate::issuer::Issuer;
use crate::respond;

const JWKS: &str = "application/jwk-set+json";

/// The issuer's metadata; nothing when it publishes none.
pub(super) fn configuration(issuer: &Issuer, x: &RequestContext) -> Option<Response<Body>> {
    let json = issuer.configuration()?;
    Some(super::refusal(x, "application/json").unwrap_or_else(|| public("application/json", json)))
}

/// The issuer's keys; nothing when it publishes none.
pub(super) fn keys(issuer: &Issuer, x: &RequestContext) -> Option<Response<Body>> {
    let json = issuer.key_set()?;
    Some(super::refusal(x, JWKS).unwrap_or_else(|| public(JWKS, json)))
}

fn public(media_type: &'static str, json: Vec<u8>) -> Response<Body> {
    let mut response = respond::whole(StatusCode::OK, media_type, json);
    let cached = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(CACHE_CONTROL, cached);
    response
}
