//! Reasons of failed calls, with the messages of Go's HTTP client where it has equivalent ones.

use portico_kit::dial::DialError;
use portico_kit::fetch::{ConnectionEnd, FetchError, Progress};
use portico_kit::tls::{CertFault, FaultKind};

/// Reason of a failed exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FailureReason {
    /// No response was received.
    Unanswered(String),
    /// No response was received: the peer reset the connection.
    Reset(String),
    /// The response ended prematurely.
    Broken(String),
}

/// Reason of a failed exchange.
pub(super) fn from_fetch_error(error: &FetchError) -> FailureReason {
    match error {
        FetchError::Timeout { progress, .. } => reason_at(*progress, "context deadline exceeded"),
        FetchError::Dial(error) => FailureReason::Unanswered(of_dial(error)),
        FetchError::Http { target, end: ConnectionEnd::Reset, progress, .. } => {
            match reason_at(*progress, &format!("read tcp {target}: read: connection reset by peer")) {
                FailureReason::Unanswered(reason) => FailureReason::Reset(reason),
                other => other,
            }
        }
        FetchError::Http { end: ConnectionEnd::Closed, progress: Progress::Reading, .. } => {
            FailureReason::Broken("unexpected EOF".to_owned())
        }
        FetchError::Http { end: ConnectionEnd::Closed, .. } => FailureReason::Unanswered("EOF".to_owned()),
        FetchError::Http { reason, progress, .. } => reason_at(*progress, reason),
        FetchError::TooLong { limit, .. } => {
            FailureReason::Broken(format!("the response is longer than {limit} bytes"))
        }
        FetchError::Request { .. } => FailureReason::Unanswered(error.to_string()),
    }
}

fn reason_at(progress: Progress, reason: &str) -> FailureReason {
    match progress {
        Progress::Dialing | Progress::Waiting => FailureReason::Unanswered(reason.to_owned()),
        Progress::Reading => FailureReason::Broken(reason.to_owned()),
    }
}

fn of_dial(error: &DialError) -> String {
    match error {
        DialError::Resolve { host, reason } => format!("dial tcp: lookup {host}: {reason}"),
        DialError::Dial { addr, source } => {
            format!("dial tcp {addr}: connect: {}", portico_gostd::os::error_text(source))
        }
        DialError::DialTimeout { target, .. } => format!("dial tcp {target}: i/o timeout"),
        DialError::TlsTimeout { .. } => "net/http: TLS handshake timeout".to_owned(),
        DialError::Certificate { fault, .. } => {
            format!("tls: failed to verify certificate: x509: {}", of_certificate(fault))
        }
        DialError::Refused { .. } | DialError::Egress { .. } | DialError::Tls { .. } => error.to_string(),
    }
}

fn of_certificate(fault: &CertFault) -> String {
    let CertFault { expected, presented, subject, detail, .. } = fault;
    let by_address = expected.parse::<std::net::IpAddr>().is_ok();
    // Go lists only the names of the requested type (DNS or IP).
    let is_same_type = |name: &&String| name.parse::<std::net::IpAddr>().is_ok() == by_address;
    let names: Vec<&str> = presented.iter().filter(is_same_type).map(String::as_str).collect();
    match fault.kind {
        FaultKind::UnknownAuthority => "certificate signed by unknown authority".to_owned(),
        FaultKind::NameMismatch | FaultKind::MissingSan if names.is_empty() && by_address => {
            format!("cannot validate certificate for {expected} because it doesn't contain any IP SANs")
        }
        FaultKind::NameMismatch | FaultKind::MissingSan if names.is_empty() => {
            format!("certificate is not valid for any names, but wanted to match {expected}")
        }
        FaultKind::NameMismatch | FaultKind::MissingSan => {
            format!("certificate is valid for {}, not {expected}", names.join(", "))
        }
        FaultKind::Expired | FaultKind::NotYetValid => {
            format!("certificate has expired or is not yet valid: {detail}")
        }
        FaultKind::Unusable => format!("certificate {subject:?} is not usable: {detail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: FaultKind, expected: &str, presented: &[&str]) -> CertFault {
        let presented = presented.iter().map(|name| (*name).to_owned()).collect();
        let (subject, issuer, detail) =
            ("s".to_owned(), "i".to_owned(), "it was valid until then".to_owned());
        CertFault { kind, expected: expected.to_owned(), presented, subject, issuer, detail }
    }

    #[test]
    fn errors_of_certificates_have_the_messages_of_go() {
        let both = ["other.example.com", "10.1.2.3"];
        for (fault, words) in [
            (
                fault(FaultKind::NameMismatch, "127.0.0.1", &both),
                "certificate is valid for 10.1.2.3, not 127.0.0.1",
            ),
            (
                fault(FaultKind::NameMismatch, "a.n.svc", &both),
                "certificate is valid for other.example.com, not a.n.svc",
            ),
            (
                fault(FaultKind::NameMismatch, "127.0.0.1", &both[..1]),
                "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
            ),
            (
                fault(FaultKind::MissingSan, "a.n.svc", &[]),
                "certificate is not valid for any names, but wanted to match a.n.svc",
            ),
            (fault(FaultKind::UnknownAuthority, "a", &[]), "certificate signed by unknown authority"),
            (
                fault(FaultKind::Expired, "a", &["a"]),
                "certificate has expired or is not yet valid: it was valid until then",
            ),
        ] {
            assert_eq!(of_certificate(&fault), words);
        }
    }
}
