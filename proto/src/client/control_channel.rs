//! Channel with errors that contain the address of the control service and the cause.

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

/// Channel of [`Client`](super::Client) with errors that contain the address of the control service and the cause.
#[derive(Clone)]
pub struct ControlChannel {
    channel: Channel,
    /// `host:port`, for error messages.
    address: String,
}

impl ControlChannel {
    /// Returns the channel of a URL.
    pub(super) fn new(channel: Channel, server: &str) -> Self {
        let address = server.split_once("://").map_or(server, |(_, rest)| rest);
        Self { channel, address: address.trim_end_matches('/').to_owned() }
    }
}

impl Service<Request<Body>> for ControlChannel {
    type Response = Response<Body>;
    type Error = StdError;
    type Future = BoxFuture<'static, Result<Response<Body>, StdError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StdError>> {
        self.channel.poll_ready(context).map_err(|error| connection_error(&self.address, error.into()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (response, address) = (self.channel.call(request), self.address.clone());
        async move {
            let response = response.await.map_err(|error| connection_error(&address, error.into()))?;
            let media_type = response.headers().get(CONTENT_TYPE);
            match media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"application/grpc"))
            {
                true => Ok(response),
                false => Err(not_grpc_status(&address, response.status()).into()),
            }
        }
        .boxed()
    }
}

/// Returns the cause of a failed connection as a status. Returns other errors unchanged.
fn connection_error(address: &str, error: StdError) -> StdError {
    let (mut cause, mut is_connect_error): (&(dyn Error + 'static), _) = (&*error, false);
    while let Some(deeper) = cause.source() {
        is_connect_error |= cause.is::<ConnectError>();
        cause = deeper;
    }
    if !is_connect_error {
        return error;
    }
    // Errors of the operating system get the same text as in other messages.
    let reason = cause.downcast_ref::<io::Error>().map_or_else(|| cause.to_string(), error_text);
    Status::unavailable(format!("the control service at {address} cannot be reached: {reason}")).into()
}

/// Returns the status of a response that is not gRPC, for example from a load balancer without backends.
fn not_grpc_status(address: &str, status: StatusCode) -> Status {
    let message = format!("the server at {address} is not a control service (HTTP {status})");
    match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Status::unavailable(message),
        _ => Status::failed_precondition(format!(
            "{message}: use context control of the kubeconfig that a server writes"
        )),
    }
}
