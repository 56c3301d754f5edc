//! Transport of a client: HTTPS to a facade, or gRPC to a control service. The result is a code and a body, or
//! an unknown outcome.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Method, Request};
use http_body_util::Full;
use portico_proto::client::Client as Control;
use portico_proto::objects::{Call, DoRequest, Target};
use tonic::Code;

use super::object::{COLLECTION, NAMESPACE};
use crate::https::{Client, Endpoint};

/// Time that a client waits for a response.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(8);

/// A request in either protocol.
pub(crate) struct TransportRequest<'a> {
    /// Verb in the terms of RBAC.
    pub(crate) verb: &'static str,
    /// Name of the object; empty for the collection.
    pub(crate) name: &'a str,
    pub(crate) body: String,
}

/// Outcome of a request.
pub(crate) enum Outcome {
    /// HTTP status code and body.
    Response(u16, Bytes),
    /// The request was not sent.
    NotSent(String),
    /// The request may have been executed.
    Unknown(String),
}

/// A client's connection.
pub(crate) enum Transport {
    Https(Endpoint, Option<Client>),
    Grpc(Control),
}

impl Transport {
    /// Sends a request, and waits for the outcome.
    pub(crate) async fn send(&mut self, sent: TransportRequest<'_>) -> Outcome {
        match self {
            Self::Https(endpoint, client) => {
                if client.as_ref().is_none_or(Client::is_closed) {
                    match tokio::time::timeout(RESPONSE_TIMEOUT, endpoint.client()).await {
                        Ok(Ok(connected)) => *client = Some(connected),
                        Ok(Err(failure)) => return Outcome::NotSent(failure.to_string()),
                        Err(_) => return Outcome::NotSent("no connection in time".to_owned()),
                    }
                }
                let Some(connected) = client.as_mut() else {
                    return Outcome::NotSent("no connection".to_owned());
                };
                let outcome = https(connected, endpoint.name, sent).await;
                if matches!(outcome, Outcome::Unknown(_)) {
                    // Later data on the connection would not be the response to the next request.
                    *client = None;
                }
                outcome
            }
            Self::Grpc(control) => grpc(control, sent).await,
        }
    }
}

async fn https(client: &mut Client, host: &str, sent: TransportRequest<'_>) -> Outcome {
    let (method, media) = match sent.verb {
        "create" => (Method::POST, "application/json"),
        "update" => (Method::PUT, "application/json"),
        "patch" => (Method::PATCH, "application/merge-patch+json"),
        "delete" => (Method::DELETE, "application/json"),
        _ => (Method::GET, "application/json"),
    };
    let named = !sent.name.is_empty() && sent.verb != "create";
    let path = if named { format!("{COLLECTION}/{}", sent.name) } else { COLLECTION.to_owned() };
    let request = Request::builder().method(method).uri(path).header(HOST, host).header(CONTENT_TYPE, media);
    let request = match request.body(Full::new(Bytes::from(sent.body))) {
        Ok(request) => request,
        Err(error) => return Outcome::NotSent(error.to_string()),
    };
    match tokio::time::timeout(RESPONSE_TIMEOUT, client.exchange(request)).await {
        Ok(Ok((status, body))) => Outcome::Response(status.as_u16(), body),
        Ok(Err(failure)) => Outcome::Unknown(failure.to_string()),
        Err(_) => Outcome::Unknown("no answer in time".to_owned()),
    }
}

async fn grpc(control: &Control, sent: TransportRequest<'_>) -> Outcome {
    let target = Target {
        version: "v1".to_owned(),
        resource: "configmaps".to_owned(),
        namespace: NAMESPACE.to_owned(),
        name: if sent.verb == "create" { String::new() } else { sent.name.to_owned() },
        ..Default::default()
    };
    let media = if sent.verb == "patch" { "application/merge-patch+json" } else { "application/json" };
    let call = Call {
        target: Some(target),
        verb: sent.verb.to_owned(),
        body: sent.body.into(),
        content_type: media.to_owned(),
        ..Default::default()
    };
    let mut objects = control.objects();
    let done = objects.r#do(DoRequest { call: Some(call) });
    match tokio::time::timeout(RESPONSE_TIMEOUT, done).await {
        Ok(Ok(answer)) => {
            let answer = answer.into_inner();
            Outcome::Response(u16::try_from(answer.code).unwrap_or_default(), answer.body)
        }
        Ok(Err(status)) => {
            let message = Bytes::from(status.message().to_owned());
            match status.code() {
                Code::AlreadyExists => Outcome::Response(409, Bytes::from_static(b"AlreadyExists")),
                Code::Aborted => Outcome::Response(409, message),
                Code::NotFound => Outcome::Response(404, message),
                Code::ResourceExhausted => Outcome::Response(429, message),
                Code::InvalidArgument => Outcome::Response(422, message),
                _ if never_sent(&status) => Outcome::NotSent(status.message().to_owned()),
                code => Outcome::Unknown(format!("{code:?}: {}", status.message())),
            }
        }
        Err(_) => Outcome::Unknown("no answer in time".to_owned()),
    }
}

/// Returns true if there was no connection for the request.
fn never_sent(status: &tonic::Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
