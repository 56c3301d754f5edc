//! `/.well-known/openid-configuration` and `/openid/v1/jwks`: the issuer of service account tokens, for relying parties.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Request, State};
use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderValue};

use super::state::{Shared, refusal};
use crate::request::{RequestView, Response};
use crate::respond;

const JWKS: &str = "application/jwk-set+json";

/// Serves the issuer's metadata, if it publishes any.
pub(super) async fn configuration(State(endpoints): Shared, request: Request) -> Response {
    published(
        &request,
        "application/json",
        request.in_force().issuer.configuration(&endpoints.server_address),
    )
}

/// Serves the issuer's keys, if it publishes any.
pub(super) async fn keys(request: Request) -> Response {
    published(&request, JWKS, request.in_force().issuer.key_set())
}

fn published(request: &Request, media_type: &'static str, json: Option<Vec<u8>>) -> Response {
    match json {
        Some(json) => refusal(request, media_type).unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let kept = request.in_force().issuer.kept(i64::try_from(now).unwrap_or(i64::MAX));
            public(media_type, json, kept)
        }),
        None => respond::not_found(request),
    }
}

fn public(media_type: &'static str, json: Vec<u8>, kept: u64) -> Response {
    let mut response = respond::whole(StatusCode::OK, media_type, json);
    if let Ok(cached) = HeaderValue::try_from(format!("public, max-age={kept}")) {
        response.headers_mut().insert(CACHE_CONTROL, cached);
    }
    response
}
