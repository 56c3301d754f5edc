//! gRPC over Unix sockets, with those whom the control service asks: key services and signers of tokens.

use hyper_util::rt::TokioIo;
use portico_kit::platform;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

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
