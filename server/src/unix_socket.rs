//! Client connections for gRPC over Unix sockets, for key services and external signers.

use std::error::Error;
use std::io;

use hyper_util::rt::TokioIo;
use portico_gostd::os::error_text;
use portico_kit::dial::find_cause;
use portico_kit::platform;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

/// Converts a path to the name of a socket in the operating system. A path with a leading `@` is an abstract socket.
pub(crate) fn socket_name(path: &str) -> String {
    path.strip_prefix('@').map_or_else(|| path.to_owned(), |name| format!("\0{name}"))
}

/// Creates a channel to a socket, which connects at the first call.
pub(crate) fn channel(socket: String) -> Channel {
    let connector = tower::service_fn(move |_: http::Uri| {
        let socket = socket.clone();
        async move { platform::connect(socket).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://localhost").connect_with_connector_lazy(connector)
}

/// Returns the reason why the server at a socket could not be reached, as Go prints it. `None` if the server has answered.
pub(crate) fn connection_error(status: &Status, path: &str) -> Option<String> {
    let source = status.source()?;
    Some(match find_cause::<io::Error>(source) {
        Some(error) => {
            format!("transport: Error while dialing: dial unix {path}: connect: {}", error_text(error))
        }
        None => format!("transport: {source}"),
    })
}

/// Returns the name of a code as Go prints it.
pub(crate) fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}
