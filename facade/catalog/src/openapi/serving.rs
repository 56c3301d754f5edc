//! Serving of OpenAPI documents: entity tags, conditional requests, compression.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use portico_machinery::Status;

use super::form::Form;
use super::gzip::{compress, decompress};
use super::protobuf;
use crate::catalog_state::CatalogState;
use crate::document::load_one;
use crate::request::{Reply, Request, value};

/// Location of a body.
pub(super) enum Body<'a> {
    /// JSON in memory.
    Json(Bytes, Form),
    /// Compressed bytes in memory.
    Compressed(Bytes),
    /// JSON with this hash in the document source.
    Source(&'a str, Form),
}

/// Serves a document with its tag: 304 if the client has it (`*`, lists and weak tags match), compressed if accepted.
pub(super) async fn conditional(
    shared: &CatalogState,
    body: Body<'_>,
    etag: &str,
    mut headers: HeaderMap,
    request: &Request<'_>,
) -> Reply {
    headers.insert(header::ETAG, value(etag));
    let gzip = accepts_gzip(request.header(header::ACCEPT_ENCODING));
    // Upstream compresses only version 2, but caches must know that the encoding depends on the request.
    if gzip || matches!(body, Body::Compressed(_)) {
        headers.append(header::VARY, value("Accept-Encoding"));
    }
    headers.append(header::VARY, value("Accept"));
    if matches_tag(request.header(header::IF_NONE_MATCH), etag) {
        headers.remove(header::CONTENT_TYPE);
        return Reply::empty(StatusCode::NOT_MODIFIED, headers);
    }
    let bytes = match body {
        Body::Json(json, form) => {
            let write =
                move || encode_v3(json, form).map(|bytes| if gzip { compress(&bytes) } else { bytes });
            shared.workers.compute(usize::MAX, write).await.flatten()
        }
        Body::Compressed(packed) if gzip => Ok(packed),
        Body::Compressed(packed) => decompress_offloaded(shared, packed).await,
        Body::Source(hash, form) => load_converted(shared, hash, form, gzip).await,
    };
    match bytes {
        Ok(bytes) => ok_reply(bytes, headers, gzip),
        Err(status) => Reply::Refused(status),
    }
}

/// Serves a body without a tag and without compression.
pub(super) fn plain(json: Bytes, headers: HeaderMap, _: &Request<'_>) -> Reply {
    ok_reply(json, headers, false)
}

fn ok_reply(bytes: Bytes, mut headers: HeaderMap, gzip: bool) -> Reply {
    if gzip {
        headers.insert(header::CONTENT_ENCODING, value("gzip"));
    }
    let mut response = Response::new(bytes);
    *response.headers_mut() = headers;
    Reply::Ready(response)
}

/// Loads a document and converts it; conversions are cached.
async fn load_converted(
    shared: &CatalogState,
    hash: &str,
    form: Form,
    gzip: bool,
) -> Result<Bytes, Box<Status>> {
    if form == Form::Json && !gzip {
        return load_source(shared, hash).await;
    }
    let key = match form {
        Form::Json => Cow::Borrowed(hash),
        Form::Protobuf => Cow::Owned(format!("{hash} as protobuf")),
    };
    if let Some(packed) = shared.compressed.get(&key) {
        return if gzip { Ok(packed) } else { decompress_offloaded(shared, packed).await };
    }
    let json = load_source(shared, hash).await?;
    let write = move || encode_v3(json, form).map(|bytes| (compress(&bytes), bytes));
    let (packed, bytes) = shared.workers.compute(usize::MAX, write).await.flatten()?;
    shared.compressed.put(&key, &packed);
    Ok(if gzip { packed } else { bytes })
}

async fn decompress_offloaded(shared: &CatalogState, packed: Bytes) -> Result<Bytes, Box<Status>> {
    shared.workers.compute(usize::MAX, move || decompress(&packed)).await.flatten()
}

async fn load_source(shared: &CatalogState, hash: &str) -> Result<Bytes, Box<Status>> {
    let unavailable = |reason: String| Box::new(Status::unavailable(reason));
    match load_one(&*shared.documents, hash).await {
        Some(Ok(json)) => Ok(json),
        Some(Err(error)) => Err(unavailable(error.to_string())),
        None => Err(unavailable("the document does not exist".to_owned())),
    }
}

/// Encodes a version 3 document in a form.
fn encode_v3(json: Bytes, form: Form) -> Result<Bytes, Box<Status>> {
    match form {
        Form::Json => Ok(json),
        Form::Protobuf => match protobuf::encode_v3(&json) {
            Ok(bytes) => Ok(bytes.into()),
            Err(error) => Err(Box::new(Status::internal(error))),
        },
    }
}

/// True if `Accept-Encoding` accepts gzip with a quality above 0.
fn accepts_gzip(accept_encoding: &str) -> bool {
    accept_encoding.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_zero = |quality: &str| quality.trim().parse::<f32>().is_ok_and(|quality| quality <= 0.0);
        parts.next() == Some("gzip") && !parts.any(|p| p.strip_prefix("q=").is_some_and(is_zero))
    })
}

fn matches_tag(header: &str, etag: &str) -> bool {
    let plain = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    header.trim() == "*" || header.split(',').any(|tag| plain(tag) == etag)
}

/// Returns the date one year from now in the format of HTTP.
pub(super) fn in_a_year() -> String {
    httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(365 * 24 * 3600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_match_as_conditional_requests_compare_them() {
        let etag = "\"A\"";
        for (header, want) in [
            ("\"A\"", true),
            ("W/\"A\"", true),
            ("\"B\", \"A\"", true),
            ("*", true),
            ("", false),
            ("A", false),
            ("\"B\"", false),
        ] {
            assert_eq!(matches_tag(header, etag), want, "{header}");
        }
    }

    #[test]
    fn gzip_is_accepted_unless_its_quality_is_zero() {
        for (header, want) in [
            ("gzip", true),
            ("deflate, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0", false),
            ("gzip;q=0.001", true),
            ("br", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(header), want, "{header}");
        }
    }
}
