//! gRPC over Unix sockets, with those whom the control service asks: key services and signers of tokens.

use std::error::Error;
use std::io;

use hyper_util::rt::TokioIo;
use portico_gostd::os::error_text;
use portico_kit::dial::find_cause;
use portico_kit::platform;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

/// The name of a socket as the system has it: one that begins with `@` is no file.
pub(crate) fn socket(path: &str) -> String {
    path.strip_prefix('@').map_or_else(|| path.to_owned(), |name| format!("\0{name}"))
}

/// A channel to this socket, dialed when it is used.
pub(crate) fn channel(socket: String) -> Channel {
    let connector = tower::service_fn(move |_: http::Uri| {
        let socket = socket.clone();
        async move { platform::connect(socket).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://localhost").connect_with_connector_lazy(connector)
}

/// Returns the reason why the server at a socket was not reached, as Go prints it. `None` if the server has answered.
pub(crate) fn unreached(status: &Status, path: &str) -> Option<String> {
    let source = status.source()?;
    Some(match find_cause::<io::Error>(source) {
        Some(error) => {
            format!("transport: Error while dialing: dial unix {path}: connect: {}", error_text(error))
        }
        None => format!("transport: {source}"),
    })
}

/// A code as Go prints it.
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
