//! HTTP responses from messages of the control service: the head, and the body, encoded as negotiated.
//!
//! Compact JSON is passed on unchanged. Indentation and compression are streamed; YAML, whose keys are sorted, is the only
//! conversion that needs the complete document.

use std::future::ready;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, stream};
use http::StatusCode;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT, VARY,
};
use http::request::Parts;
use http_body::Frame;
use http_body_util::StreamBody;
use portico_machinery::Status;
use portico_machinery::accept::{Encoding, Form, Offer, negotiate};
use portico_machinery::status::Reason;

use crate::body::{Body, BoxError};
use crate::render::{GZIP_ABOVE, JsonStyle, Layout, RenderedBody, Renderer, Rendering, accepts_gzip};
use crate::request::{RequestView, Response};
use crate::respond;
use crate::unavailable::unavailable;

/// Status and headers of a response.
#[derive(Debug)]
pub(super) struct ResponseHead {
    pub code: StatusCode,
    pub media_type: String,
    pub retry_after: u32,
    /// True if the control service requires indentation, even if the client does not request it.
    pub pretty: bool,
}

const JSON: &str = "application/json";
/// JSON of a list that is converted to YAML.
///
/// Limit (Serving, bytes): 406; JSON is streamed and has no limit.
const MAX_YAML: usize = 64 << 20;

/// Creates a response whose body is not converted.
pub(super) fn unconverted_response(head: ResponseHead, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = head.code;
    let headers = response.headers_mut();
    if let Ok(media_type) = HeaderValue::from_str(&head.media_type)
        && !media_type.is_empty()
    {
        headers.insert(CONTENT_TYPE, media_type);
    }
    if head.retry_after > 0 {
        headers.insert(RETRY_AFTER, head.retry_after.into());
    }
    response
}

/// Creates a response from a complete body.
pub(super) async fn complete(
    renderer: &Renderer,
    request: &Parts,
    mut head: ResponseHead,
    body: Bytes,
) -> Response {
    let rendering = rendering(request, &head);
    let RenderedBody { body, is_yaml, is_gzip } = match renderer.render(rendering, body).await {
        Ok(rendered) => rendered,
        Err(error) => return respond::status(request, &Status::internal(error)),
    };
    if is_yaml {
        head.media_type = Encoding::Yaml.media_type().to_owned();
    }
    let mut response = unconverted_response(head, Body::full(body));
    if is_gzip {
        set_gzip_headers(&mut response);
    }
    response
}

/// Creates a response from a stream whose first part has arrived. Small bodies are collected, large ones streamed.
pub(super) async fn streamed_response<S>(
    renderer: &Renderer,
    request: &Parts,
    head: ResponseHead,
    first: Bytes,
    later_parts: S,
) -> Response
where
    S: Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
{
    let mut later_parts = Box::pin(later_parts);
    let rendering = rendering(request, &head);
    let mut buffered = BytesMut::from(first);
    let is_yaml = rendering.layout == Layout::Yaml;
    // Compression is decided once the size exceeds the threshold; YAML needs the complete body.
    while buffered.len() <= GZIP_ABOVE || is_yaml {
        if buffered.len() > MAX_YAML {
            return respond::status(request, &too_large_for_yaml());
        }
        match later_parts.next().await {
            None => return complete(renderer, request, head, buffered.freeze()).await,
            Some(Ok(part)) => buffered.extend_from_slice(&part),
            Some(Err(error)) => {
                tracing::debug!(%error, "list failed before its response began");
                return respond::status(
                    request,
                    &unavailable(
                        true,
                        "the connection to the control service was lost in the middle of a list",
                    ),
                );
            }
        }
    }
    let parts = stream::once(ready(Ok(buffered.freeze()))).chain(later_parts);
    if rendering.is_identity(usize::MAX) {
        return unconverted_response(head, stream_body(parts));
    }
    let mut response = unconverted_response(head, stream_body(renderer.render_parts(rendering, parts)));
    if rendering.gzip {
        set_gzip_headers(&mut response);
    }
    response
}

/// Refusal of a list that is too large to be collected for YAML.
fn too_large_for_yaml() -> Status {
    let limit = MAX_YAML >> 20;
    let message = format!(
        "the list is larger than {limit} MiB, which is too large for YAML: use limit, or accept JSON"
    );
    Status::failure(Reason::NotAcceptable, message)
}

fn stream_body(parts: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static) -> Body {
    Body::streamed(StreamBody::new(parts.map(|part| part.map(Frame::data))))
}

fn rendering(request: &Parts, head: &ResponseHead) -> Rendering {
    Rendering { layout: layout(request, head), gzip: accepts_gzip(request.header(ACCEPT_ENCODING)) }
}

fn layout(request: &Parts, head: &ResponseHead) -> Layout {
    // The control service reports YAML by its media type, and sends JSON for it; protobuf is passed on unchanged.
    if head.media_type == Encoding::Yaml.media_type() {
        return Layout::Yaml;
    }
    if head.media_type != JSON {
        return Layout::AsIs;
    }
    // A Status has only one form.
    let forms: &[Form] = if head.code.as_u16() < 400 { &Form::SHAPES } else { &[] };
    let choice = negotiate(
        request.header(ACCEPT),
        Offer { encodings: &Encoding::ALL, forms, object_as_protobuf: true },
    );
    if choice.is_some_and(|c| c.encoding == Encoding::Yaml) {
        return Layout::Yaml;
    }
    let is_pretty_requested = head.pretty || choice.is_some_and(|c| c.pretty);
    if is_pretty_requested
        || JsonStyle::negotiate(request.query(), request.header(USER_AGENT)) == JsonStyle::Pretty
    {
        Layout::Indented
    } else {
        Layout::AsIs
    }
}

fn set_gzip_headers(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use portico_kit::offload::Offload;
    use portico_kit::tasks::TaskSet;
    use std::io::Read;
    use std::sync::Arc;

    fn request(accept: &'static str, encoding: &'static str, query: &str) -> Parts {
        let request = http::Request::get(format!("/?{query}"))
            .header(ACCEPT, accept)
            .header(ACCEPT_ENCODING, encoding)
            .body(())
            .unwrap();
        request.into_parts().0
    }

    fn renderer() -> Renderer {
        Renderer::new(Arc::new(Offload::with_threads("render", 1, &TaskSet::new()).unwrap()))
    }

    async fn json(request: &Parts, head: ResponseHead) -> Response {
        complete(&renderer(), request, head, Bytes::from_static(b"{\"a\":1}\n")).await
    }

    fn head() -> ResponseHead {
        ResponseHead { code: StatusCode::OK, media_type: JSON.to_owned(), retry_after: 0, pretty: false }
    }

    async fn bytes(response: Response) -> (http::HeaderMap, Bytes) {
        let (parts, body) = response.into_parts();
        (parts.headers, body.collect().await.unwrap().to_bytes())
    }

    fn big() -> String {
        serde_json::to_string(&vec!["0123456789"; 30_000]).unwrap()
    }

    fn in_parts(text: &str) -> (Bytes, impl Stream<Item = Result<Bytes, BoxError>> + Send + use<>) {
        let mut parts: Vec<Bytes> = text.as_bytes().chunks(1000).map(Bytes::copy_from_slice).collect();
        let first = parts.remove(0);
        (first, stream::iter(parts.into_iter().map(Ok)))
    }

    #[tokio::test]
    async fn small_responses_are_complete_and_formatted_as_requested() {
        let gzip = request("application/json", "gzip", "");
        let (first, rest) = in_parts("{\"a\":1}\n");
        let response = streamed_response(&renderer(), &gzip, head(), first, rest).await;
        assert_eq!(response.body().as_full(), Some(b"{\"a\":1}\n".as_slice()));
        let pretty = json(&request("", "", "pretty=1"), head()).await;
        assert_eq!(pretty.body().as_full(), Some(b"{\n  \"a\": 1\n}".as_slice()));
        let yaml = json(&request("application/yaml", "", ""), head()).await;
        assert_eq!(yaml.headers()[CONTENT_TYPE], "application/yaml");
        assert_eq!(yaml.body().as_full(), Some(b"a: 1\n".as_slice()));
        let yaml_head = ResponseHead { media_type: "application/yaml".to_owned(), ..head() };
        let yaml = json(&request("application/yaml", "", ""), yaml_head).await;
        assert_eq!(yaml.body().as_full(), Some(b"a: 1\n".as_slice()));
    }

    #[tokio::test]
    async fn a_list_that_fails_before_its_response_starts_is_a_status() {
        for (accept, sent) in [("application/json", GZIP_ABOVE), ("application/yaml", 4 * GZIP_ABOVE)] {
            let asked = request(accept, "", "");
            let broken = stream::iter([Ok(Bytes::from(vec![b' '; sent - 1])), Err(BoxError::from("gone"))]);
            let response =
                streamed_response(&renderer(), &asked, head(), Bytes::from_static(b"{"), broken).await;
            assert_eq!(response.status(), 503);
            assert_eq!(response.headers()[CONTENT_TYPE], accept);
            let body = response.body().as_full().unwrap();
            assert!(body.windows(7).any(|word| word == b"Failure"), "{accept}");
        }
    }

    #[tokio::test]
    async fn a_list_that_is_too_large_for_yaml_is_refused_before_its_end() {
        let piece = Bytes::from(vec![b' '; 1 << 20]);
        let endless = stream::repeat_with(move || Ok(piece.clone()));
        let yaml = request("application/yaml", "", "");
        let response = streamed_response(&renderer(), &yaml, head(), Bytes::from_static(b"{"), endless).await;
        assert_eq!(response.status(), 406);
    }

    #[tokio::test]
    async fn large_responses_are_streamed_and_compressed_if_accepted() {
        let text = big();
        for (encoding, query) in [("", ""), ("gzip", ""), ("gzip", "pretty=1")] {
            let (first, rest) = in_parts(&text);
            let response =
                streamed_response(&renderer(), &request("", encoding, query), head(), first, rest).await;
            assert!(!response.body().is_full());
            let (headers, body) = bytes(response).await;
            let mut read = Vec::new();
            if encoding == "gzip" {
                assert_eq!(
                    (&headers[CONTENT_ENCODING], &headers[VARY]),
                    (&"gzip".parse().unwrap(), &"Accept-Encoding".parse().unwrap())
                );
                flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut read).unwrap();
            } else {
                read.extend_from_slice(&body);
            }
            let want = if query.is_empty() {
                text.clone().into_bytes()
            } else {
                crate::render::pretty(text.as_bytes())
            };
            assert!(read == want, "{encoding} {query}");
        }
    }
}
