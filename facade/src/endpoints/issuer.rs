//! `/.well-known/openid-configuration` and `/openid/v1/jwks`: the issuer of service account tokens, for relying parties.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Request, State};
use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderValue};

use super::state::{SharedEndpoints, refusal};
use crate::request::{RequestView, Response};
use crate::respond;

const JWKS: &str = "application/jwk-set+json";

/// Serves the issuer's metadata, if it publishes any.
pub(super) async fn configuration(State(endpoints): SharedEndpoints, request: Request) -> Response {
    serve_document(
        &request,
        "application/json",
        request.active_config().issuer.configuration(&endpoints.server_address),
    )
}

/// Serves the issuer's keys, if it publishes any.
pub(super) async fn keys(request: Request) -> Response {
    serve_document(&request, JWKS, request.active_config().issuer.key_set())
}

fn serve_document(request: &Request, media_type: &'static str, json: Option<Vec<u8>>) -> Response {
    match json {
        Some(json) => refusal(request, media_type).unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let max_age = request.active_config().issuer.max_age(i64::try_from(now).unwrap_or(i64::MAX));
            document_response(media_type, json, max_age)
        }),
        None => respond::not_found(request),
    }
}

fn document_response(media_type: &'static str, json: Vec<u8>, max_age: u64) -> Response {
    let mut response = respond::with_body(StatusCode::OK, media_type, json);
    if let Ok(cached) = HeaderValue::try_from(format!("public, max-age={max_age}")) {
        response.headers_mut().insert(CACHE_CONTROL, cached);
    }
    response
}
