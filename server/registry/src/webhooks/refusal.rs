//! Messages for responses with error codes, as upstream's client creates them.

use http::header;
use portico_kit::fetch::FetchResponse;
use portico_kit::header_text::first;
use portico_machinery::Status;

/// Bytes of the response of a webhook that an error message shows.
///
/// Limit (Webhooks, bytes): the rest is omitted.
const MAX_LENGTH: usize = 1024;

/// Message of a Status, or a description of the code.
pub(super) fn error_message(response: &FetchResponse) -> String {
    let reported = Status::from_json(&response.body);
    if let Some(status) = reported.filter(|status| status.is_failure() && !status.message.is_empty()) {
        return status.message;
    }
    let reason = match response.status.as_u16() {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        403 | 406 | 415 => return text(response),
        500.. => {
            return format!(
                "an error on the server ({:?}) has prevented the request from succeeding",
                text(response)
            );
        }
        code => {
            return format!(
                "the server responded with the status code {code} but did not return more information"
            );
        }
    };
    reason.to_owned()
}

/// Message for a response without a body.
pub(super) fn empty_body_message(response: &FetchResponse) -> String {
    format!(
        "0-length response with status code: {} and content type: {}",
        response.status.as_u16(),
        content_type(response)
    )
}

/// True if `Retry-After` contains a number of seconds.
pub(super) fn has_retry_after(response: &FetchResponse) -> bool {
    first(&response.headers, header::RETRY_AFTER).parse::<u32>().is_ok()
}

fn content_type(response: &FetchResponse) -> &str {
    first(&response.headers, header::CONTENT_TYPE)
}

/// Body, if it is plain text.
fn text(response: &FetchResponse) -> String {
    let content_type = content_type(response);
    if !content_type.is_empty() && !content_type.starts_with("text/") {
        return "unknown".to_owned();
    }
    let text = String::from_utf8_lossy(&response.body);
    text.trim().chars().take(MAX_LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    #[test]
    fn only_seconds_in_retry_after_request_a_retry() {
        for (value, asks) in
            [("1", true), ("0", true), ("-1", false), ("Tue, 24 Nov 2026 15:00:00 GMT", false)]
        {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(value))]);
            let status = StatusCode::SERVICE_UNAVAILABLE;
            assert_eq!(
                has_retry_after(&FetchResponse { status, headers, body: "".into(), reused: false }),
                asks,
                "{value}"
            );
        }
    }

    #[test]
    fn a_refusal_contains_the_webhooks_message_if_there_is_one() {
        let response = |code: u16, content_type: &'static str, body: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
            let status = StatusCode::from_u16(code).unwrap();
            error_message(&FetchResponse { status, headers, body: body.into(), reused: false })
        };
        let failure = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not today"}"#;
        let table = [
            (500, "application/json", failure, "not today"),
            (404, "text/plain", "404 page not found", "the server could not find the requested resource"),
            (403, "text/plain", "go away\n", "go away"),
            (
                500,
                "text/plain",
                "panic\n",
                "an error on the server (\"panic\") has prevented the request from succeeding",
            ),
            (
                502,
                "application/json",
                "{}",
                "an error on the server (\"unknown\") has prevented the request from succeeding",
            ),
            (
                302,
                "text/html",
                "",
                "the server responded with the status code 302 but did not return more information",
            ),
        ];
        for (code, content_type, body, expected) in table {
            assert_eq!(response(code, content_type, body), expected);
        }
    }
}
