//! Messages for responses with error codes, as upstream's client creates them.

use http::header;
use portico_kit::fetch::Fetched;
use portico_kit::header_text::first;
use portico_machinery::Status;

/// Bytes of the response of a webhook that an error message shows.
///
/// Limit (Webhooks, bytes): the rest is omitted.
const MAX_LENGTH: usize = 1024;

/// Message of a Status, or a description of the code.
pub(super) fn words(answer: &Fetched) -> String {
    let reported = Status::from_json(&answer.body);
    if let Some(status) = reported.filter(|status| status.is_failure() && !status.message.is_empty()) {
        return status.message;
    }
    let reason = match answer.status.as_u16() {
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
        403 | 406 | 415 => return text(answer),
        500.. => {
            return format!(
                "an error on the server ({:?}) has prevented the request from succeeding",
                text(answer)
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
pub(super) fn empty(answer: &Fetched) -> String {
    format!(
        "0-length response with status code: {} and content type: {}",
        answer.status.as_u16(),
        content_type(answer)
    )
}

/// True if `Retry-After` contains a number of seconds.
pub(super) fn retry_after(answer: &Fetched) -> bool {
    first(&answer.headers, header::RETRY_AFTER).parse::<u32>().is_ok()
}

fn content_type(answer: &Fetched) -> &str {
    first(&answer.headers, header::CONTENT_TYPE)
}

/// Body, if it is plain text.
fn text(answer: &Fetched) -> String {
    let content_type = content_type(answer);
    if !content_type.is_empty() && !content_type.starts_with("text/") {
        return "unknown".to_owned();
    }
    let text = String::from_utf8_lossy(&answer.body);
    text.trim().chars().take(MAX_LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    #[test]
    fn only_seconds_ask_for_another_call() {
        for (value, asks) in
            [("1", true), ("0", true), ("-1", false), ("Tue, 24 Nov 2026 15:00:00 GMT", false)]
        {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(value))]);
            let status = StatusCode::SERVICE_UNAVAILABLE;
            assert_eq!(
                retry_after(&Fetched { status, headers, body: "".into(), reused: false }),
                asks,
                "{value}"
            );
        }
    }

    #[test]
    fn a_refusal_has_the_webhooks_message_where_there_is_one() {
        let answer = |code: u16, content_type: &'static str, body: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
            let status = StatusCode::from_u16(code).unwrap();
            words(&Fetched { status, headers, body: body.into(), reused: false })
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
            assert_eq!(answer(code, content_type, body), expected);
        }
    }
}
