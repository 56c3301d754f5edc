//! A log: the proxy sends a GET request and streams the text as it arrives; an error of the kubelet becomes a Status.

use http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use http::uri::PathAndQuery;
use http::{Method, Response, StatusCode};
use portico_kit::header_text::text;
use portico_machinery::status::Details;
use portico_machinery::{Reason, RequestInfo, Status};
use tokio::time::Instant;

use super::{ConnectResult, ConnectionRequest, failure, internal_headers};
use crate::Proxy;
use crate::body::ProxyBody;
use crate::outgoing_request::OutgoingRequest;
use crate::refusal_text::read_text;
use crate::transport::{BackendResponse, Permit, ResponseBody};

impl Proxy {
    pub(super) async fn log(
        &self,
        connecting: ConnectionRequest<'_>,
        permit: Permit,
        target: PathAndQuery,
    ) -> ConnectResult {
        let transport = permit.transport().clone();
        let mut request = OutgoingRequest::internal(
            Method::GET,
            target.clone(),
            transport.authority(0).clone(),
            internal_headers(),
        );
        let url = || format!("https://{}{target}", text(transport.authority(0)));
        let answer = transport.send(&mut request).await.map_err(|error| failure::of_log(&url(), error))?;
        let BackendResponse { head, body, carrier, target: index } = answer;
        let body = ProxyBody::from(ResponseBody::new(body, carrier, permit, Some(index)));
        if let Some(location) = head.headers.get(LOCATION).filter(|_| head.status.is_redirection()) {
            let location = String::from_utf8_lossy(location.as_bytes());
            return Err(failure::unknown(format!("Get {location:?}: redirects forbidden")));
        }
        if !(200..=206).contains(&head.status.as_u16()) {
            let limits = &self.shared.limits;
            let body = body.with_deadline(Instant::now() + limits.refused_upgrade_deadline);
            return Err(refusal(head.status, &read_text(body, limits.refusal_bytes).await, connecting.info));
        }
        let mut response = Response::new(body);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        Ok(response)
    }
}

/// Converts the kubelet's status code and text to the Status that upstream returns for them.
fn refusal(code: StatusCode, text: &str, info: &RequestInfo) -> Box<Status> {
    match code {
        StatusCode::INTERNAL_SERVER_ERROR => return Box::new(Status::internal(text)),
        StatusCode::BAD_REQUEST => return Box::new(Status::bad_request(text)),
        _ => {}
    }
    let (reason, message) = reason_and_message(code, text);
    let (kind, name) = (info.resource_path(), &info.name);
    let mut status = Status::failure(reason, format!("{message} ( {kind} {name})"));
    status.code = code.as_u16();
    let (group, name) = (info.api_group.clone(), name.clone());
    Box::new(status.with_details(Details { name, group, kind, ..Details::default() }))
}

fn reason_and_message(code: StatusCode, text: &str) -> (Reason, String) {
    let (reason, message) = match code.as_u16() {
        401 => (Reason::Unauthorized, "the server has asked for the client to provide credentials"),
        403 => (Reason::Forbidden, text),
        404 => (Reason::NotFound, "the server could not find the requested resource"),
        405 => (Reason::MethodNotAllowed, "the server does not allow this method on the requested resource"),
        409 => (Reason::Conflict, "the server reported a conflict"),
        422 => (Reason::Invalid, "the server rejected our request due to an error in our request"),
        429 => (
            Reason::TooManyRequests,
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => (Reason::ServiceUnavailable, "the server is currently unable to handle the request"),
        504 => (
            Reason::Timeout,
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        501.. => {
            let message =
                format!("an error on the server ({text:?}) has prevented the request from succeeding");
            return (Reason::InternalError, message);
        }
        code => {
            let message = format!(
                "the server responded with the status code {code} but did not return more information"
            );
            return (Reason::Unknown, message);
        }
    };
    (reason, message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelet_errors_have_upstreams_messages() {
        let info = RequestInfo::parse("GET", "/api/v1/namespaces/x/pods/p/log", "").unwrap();
        for (code, reason, message) in [
            (400, "BadRequest", "no such container"),
            (500, "InternalError", "Internal error occurred: no such container"),
            (404, "NotFound", "the server could not find the requested resource ( pods/log p)"),
            (403, "Forbidden", "no such container ( pods/log p)"),
            (
                502,
                "InternalError",
                "an error on the server (\"no such container\") has prevented the request from succeeding ( pods/log p)",
            ),
        ] {
            let status = refusal(StatusCode::from_u16(code).unwrap(), "no such container", &info);
            assert_eq!((status.code, &*status.reason, &*status.message), (code, reason, message));
        }
    }
}
