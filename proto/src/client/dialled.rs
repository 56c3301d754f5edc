//! A channel whose errors name the control service and the cause.

use std::error::Error;
use std::io;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use portico_gostd::os::error_text;
use tonic::body::Body;
use tonic::codegen::http::header::CONTENT_TYPE;
use tonic::codegen::http::{Request, Response, StatusCode};
use tonic::codegen::{Service, StdError};
use tonic::transport::Channel;
use tonic::{ConnectError, Status};

/// A channel of [`Client`](super::Client), whose errors name the control service and the cause.
#[derive(Clone)]
pub struct Dialled {
    channel: Channel,
    /// `host:port`, for messages.
    address: String,
}

impl Dialled {
    /// Returns the channel of a URL.
    pub(super) fn new(channel: Channel, server: &str) -> Self {
        let address = server.split_once("://").map_or(server, |(_, rest)| rest);
        Self { channel, address: address.trim_end_matches('/').to_owned() }
    }
}

impl Service<Request<Body>> for Dialled {
    type Response = Response<Body>;
    type Error = StdError;
    type Future = BoxFuture<'static, Result<Response<Body>, StdError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StdError>> {
        self.channel.poll_ready(context).map_err(|error| unreached(&self.address, error.into()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (answer, address) = (self.channel.call(request), self.address.clone());
        async move {
            let answer = answer.await.map_err(|error| unreached(&address, error.into()))?;
            let media_type = answer.headers().get(CONTENT_TYPE);
            match media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"application/grpc"))
            {
                true => Ok(answer),
                false => Err(foreign(&address, answer.status()).into()),
            }
        }
        .boxed()
    }
}

/// Returns the cause of a failed connection as a status. Other errors are unchanged.
fn unreached(address: &str, error: StdError) -> StdError {
    let (mut cause, mut is_of_connecting): (&(dyn Error + 'static), _) = (&*error, false);
    while let Some(deeper) = cause.source() {
        is_of_connecting |= cause.is::<ConnectError>();
        cause = deeper;
    }
    if !is_of_connecting {
        return error;
    }
    // Those of the system are worded as everywhere.
    let why = cause.downcast_ref::<io::Error>().map_or_else(|| cause.to_string(), error_text);
    Status::unavailable(format!("the control service at {address} cannot be reached: {why}")).into()
}

/// Returns the status of a response that is not gRPC, for example from a load balancer without backends.
fn foreign(address: &str, status: StatusCode) -> Status {
    let what = format!("the server at {address} is not a control service (HTTP {status})");
    match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Status::unavailable(what),
        _ => Status::failed_precondition(format!(
            "{what}: use context control of the kubeconfig that a server writes"
        )),
    }
}
