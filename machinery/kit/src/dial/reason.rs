//! Reasons for failed connections and HTTP exchanges, as our messages instead of those of libraries.
//!
//! Users read these in conditions, Status messages and logs. A library's message may contain URLs of its
//! documentation, Rust type names or error numbers of the operating system, and changes with its version.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError};

use crate::tls::CertFault;

/// Returns the reason of an IO error on a socket, without a full stop, for use after a colon.
pub fn io_reason(error: &io::Error) -> &'static str {
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return tls_reason(tls);
    }
    if let Some(reason) = text_reason(error) {
        return reason;
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused",
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => "the connection was reset",
        io::ErrorKind::BrokenPipe | io::ErrorKind::NotConnected | io::ErrorKind::WriteZero => {
            "the connection was closed"
        }
        io::ErrorKind::UnexpectedEof => "the connection was closed without notice",
        io::ErrorKind::TimedOut => "the connection timed out",
        io::ErrorKind::HostUnreachable => "no route to host",
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => "the network is unreachable",
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => "no local address is available",
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::NotFound => "not found",
        io::ErrorKind::OutOfMemory => "out of memory",
        _ if is_out_of_files(error) => "too many open files",
        _ => "the connection failed",
    }
}

/// Returns the reason of an error whose type is lost: of the resolver, or of a TLS alert that h2 stores as text.
fn text_reason(error: &io::Error) -> Option<&'static str> {
    let text = error.get_ref()?.to_string();
    if text.starts_with("failed to lookup address information") {
        return Some(match text.as_str() {
            text if text.contains("not known") || text.contains("No address associated") => "no such host",
            text if text.contains("Temporary failure") => "temporary failure in name resolution",
            _ => "the host name cannot be resolved",
        });
    }
    if error.kind() != io::ErrorKind::InvalidData {
        return None;
    }
    let mut alerts = (0..=u8::MAX).map(AlertDescription::from);
    alerts.find(|alert| text == rustls::Error::AlertReceived(*alert).to_string()).map(alert_reason)
}

/// Returns the reason of a TLS error.
fn tls_reason(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidMessage(_) => "the server does not speak TLS",
        rustls::Error::AlertReceived(alert) => alert_reason(*alert),
        rustls::Error::PeerIncompatible(_) => {
            "the server offers no TLS version, cipher suite or key that is accepted"
        }
        rustls::Error::NoCertificatesPresented => "the server shows no certificate",
        rustls::Error::InvalidCertificate(error) => certificate_reason(error),
        rustls::Error::NoApplicationProtocol => "the server speaks none of the offered protocols",
        rustls::Error::DecryptError => "the server's TLS records cannot be decrypted",
        rustls::Error::PeerSentOversizedRecord => "the server sent a TLS record that is too large",
        rustls::Error::InappropriateMessage { .. }
        | rustls::Error::InappropriateHandshakeMessage { .. }
        | rustls::Error::PeerMisbehaved(_) => "the server violated the TLS protocol",
        _ => "TLS failed",
    }
}

/// Returns the reason why a certificate verifier other than [`crate::tls`]'s rejected a certificate.
fn certificate_reason(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::UnknownIssuer => "the server's certificate is signed by an unknown authority",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the server's certificate is not valid for the host name"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not yet valid"
        }
        CertificateError::Revoked => "the server's certificate is revoked",
        _ => "the server's certificate is refused",
    }
}

fn alert_reason(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::CertificateRequired => "the server requires a client certificate",
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown => "the server refused the client certificate",
        AlertDescription::CertificateExpired => "the server refused the client certificate: it has expired",
        AlertDescription::CertificateRevoked => "the server refused the client certificate: it is revoked",
        AlertDescription::UnknownCA => {
            "the server refused the client certificate: it does not know the authority"
        }
        AlertDescription::AccessDenied => "the server refused access",
        AlertDescription::ProtocolVersion => "the server refused the TLS version",
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
            "the server accepts none of the offered TLS parameters"
        }
        AlertDescription::UnrecognisedName => "the server does not know the server name",
        AlertDescription::NoApplicationProtocol => "the server speaks none of the offered protocols",
        AlertDescription::InternalError => "the server reported an internal error in the TLS handshake",
        _ => "the server ended the TLS connection with an alert",
    }
}

/// Failure of a TLS handshake.
pub(crate) enum HandshakeFailure<'a> {
    /// The certificate of the peer was rejected.
    Certificate(&'a CertFault),
    /// Any other reason.
    Other(&'static str),
}

/// Classifies an error of a handshake.
pub(crate) fn handshake_failure(error: &io::Error) -> HandshakeFailure<'_> {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls.and_then(CertFault::from_error) {
        Some(fault) => HandshakeFailure::Certificate(fault),
        None if tls.is_none() && error.kind() == io::ErrorKind::UnexpectedEof => {
            HandshakeFailure::Other("the server closed the connection during the handshake")
        }
        None => HandshakeFailure::Other(io_reason(error)),
    }
}

/// Returns the reason of a failed handshake with a client.
pub fn client_handshake_reason(error: &io::Error) -> String {
    match handshake_failure(error) {
        HandshakeFailure::Certificate(fault) => fault.to_string(),
        HandshakeFailure::Other(reason) => reword_for_client(reason),
    }
}

/// Returns the reason why the connection of a client ended.
pub fn client_http_reason(error: &hyper::Error) -> String {
    reword_for_client(&http_reason(error))
}

/// Rewords a reason about a server for a client.
fn reword_for_client(reason: &str) -> String {
    reason.replace("the server", "the client").replace("response", "request")
}

/// Returns the reason of an error of a library that uses HTTP, or `None` if neither HTTP nor the socket failed.
pub fn source_reason(error: &(dyn Error + 'static)) -> Option<String> {
    let of_socket = || find_cause::<io::Error>(error).map(|io| io_reason(io).to_owned());
    find_cause::<hyper::Error>(error).map(http_reason).or_else(of_socket)
}

/// Returns the reason of a failed HTTP exchange.
pub fn http_reason(error: &hyper::Error) -> String {
    if let Some(reset) = find_cause::<h2::Error>(error) {
        return http2_reason(reset);
    }
    if let Some(io) = find_cause::<io::Error>(error) {
        return io_reason(io).to_owned();
    }
    let reason = match error {
        error if error.is_parse_too_large() => "the head of the response is too large",
        error if error.is_parse() => "the response is not HTTP",
        error if error.is_incomplete_message() => {
            "the connection was closed before the response was complete"
        }
        error if error.is_canceled() || error.is_closed() => "the connection was closed",
        error if error.is_timeout() => "the connection did not answer in time",
        error if error.is_user() => "the request could not be sent",
        _ => "the exchange failed",
    };
    reason.to_owned()
}

/// Returns the reason of an HTTP/2 error, such as `the HTTP/2 stream was reset: CANCEL` with the protocol's name of the code.
fn http2_reason(error: &h2::Error) -> String {
    if let Some(io) = error.get_io() {
        return io_reason(io).to_owned();
    }
    let side = if error.is_remote() { " by the server" } else { "" };
    let code = error.reason().map(code_name).unwrap_or_default();
    let event = if error.is_go_away() { "connection was ended" } else { "stream was reset" };
    format!("the HTTP/2 {event}{side}{code}")
}

/// Returns the name of an error code (RFC 9113, 7).
fn code_name(code: h2::Reason) -> String {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    let number = u32::from(code);
    let name = usize::try_from(number).ok().and_then(|at| NAMES.get(at));
    name.map_or_else(|| format!(": code {number}"), |name| format!(": {name}"))
}

/// Returns the first error of a type among an error and its causes.
pub fn find_cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// True if descriptors, local ports or memory for sockets ran out.
pub(super) fn is_exhausted(error: &io::Error) -> bool {
    const ENOBUFS: i32 = 105;
    is_out_of_files(error)
        || error.raw_os_error() == Some(ENOBUFS)
        || matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::OutOfMemory)
}

/// True for EMFILE or ENFILE, for which `io::ErrorKind` has no variant.
fn is_out_of_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that a message contains no URLs, type names or error numbers of the operating system.
    fn assert_no_library_text(text: &str) {
        let type_markers = ["://", "::", "Some(", "Err(", "Error", "{", "os error", "Kind"];
        for mark in type_markers {
            assert!(!text.contains(mark), "{mark:?} in {text:?}");
        }
    }

    #[test]
    fn no_reason_contains_library_text() {
        let kinds = [
            io::ErrorKind::ConnectionRefused,
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::BrokenPipe,
            io::ErrorKind::UnexpectedEof,
            io::ErrorKind::TimedOut,
            io::ErrorKind::HostUnreachable,
            io::ErrorKind::NetworkUnreachable,
            io::ErrorKind::AddrNotAvailable,
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::InvalidData,
            io::ErrorKind::Other,
        ];
        for kind in kinds {
            assert_no_library_text(io_reason(&io::Error::new(kind, "see https://docs.rs: Some(Err(x::Y))")));
        }
        for number in 1..140 {
            assert_no_library_text(io_reason(&io::Error::from_raw_os_error(number)));
        }
        for alert in 0..=255 {
            let error = rustls::Error::AlertReceived(AlertDescription::from(alert));
            assert_no_library_text(tls_reason(&error));
            assert!(!reword_for_client(tls_reason(&error)).contains("server"));
            assert_no_library_text(io_reason(&io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        for code in (0..20).chain([u32::MAX]) {
            assert_no_library_text(&http2_reason(&h2::Reason::from(code).into()));
        }
    }

    #[test]
    fn the_reason_of_an_untyped_error_is_preserved() {
        let text = "failed to lookup address information: Name or service not known";
        assert_eq!(io_reason(&io::Error::other(text)), "no such host");
        for alert in (0..=u8::MAX).map(AlertDescription::from) {
            let text = rustls::Error::AlertReceived(alert).to_string();
            let error = io::Error::new(io::ErrorKind::InvalidData, text);
            assert_eq!(io_reason(&error), alert_reason(alert));
        }
    }

    #[test]
    fn the_reason_why_a_certificate_is_refused_is_named() {
        for (error, reason) in [
            (CertificateError::UnknownIssuer, "the server's certificate is signed by an unknown authority"),
            (CertificateError::NotValidForName, "the server's certificate is not valid for the host name"),
            (CertificateError::Expired, "the server's certificate has expired"),
            (CertificateError::NotValidYet, "the server's certificate is not yet valid"),
            (CertificateError::BadEncoding, "the server's certificate is refused"),
        ] {
            let error = rustls::Error::InvalidCertificate(error);
            assert_eq!(io_reason(&io::Error::new(io::ErrorKind::InvalidData, error)), reason);
        }
    }

    #[test]
    fn files_that_ran_out_are_named() {
        assert_eq!(io_reason(&io::Error::from_raw_os_error(24)), "too many open files");
        for (number, exhausted) in [(24, true), (23, true), (99, true), (105, true), (12, true), (111, false)]
        {
            assert_eq!(is_exhausted(&io::Error::from_raw_os_error(number)), exhausted, "{number}");
        }
    }
}
