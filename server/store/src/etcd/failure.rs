//! Descriptions of etcd errors for callers, by gRPC code and message.

use std::error::Error;

use portico_kit::dial::source_reason;
use tonic::{Code, ConnectError, Status};

use super::settings::EtcdSettings;
use crate::error::StoreError;
use crate::key::Key;
use crate::txn::TxnError;

/// The state of this process differs from etcd: the process must end and restart from etcd.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum FatalError {
    #[error("etcd contains a different store than before")]
    Replaced,
    #[error("the store was restored: a new epoch has begun")]
    NewEpoch,
    #[error("a restore of the store has begun")]
    Restoring,
    #[error("etcd has lost published commits: a new epoch begins")]
    CommitsLost,
    #[error("commits of other processes were compacted before this process read them")]
    CommitsMissed,
}

/// Reason why a step failed.
#[derive(Debug)]
pub(super) enum EtcdFailure {
    /// etcd returned an error, or the connection was lost.
    Etcd(Box<Status>),
    /// The request timed out.
    TimedOut,
    /// etcd is known to be unreachable; the request was not sent.
    Unreachable,
    /// The request could not be sent.
    Unsent(String),
    /// The settings are invalid.
    Settings(String),
    /// The key of a value is not available now, but may be later.
    Sealed {
        key: Key,
        reason: String,
    },
    Fatal(FatalError),
}

impl From<Status> for EtcdFailure {
    fn from(status: Status) -> Self {
        Self::Etcd(Box::new(status))
    }
}

impl EtcdFailure {
    /// Creates the failure of a request for which there was no connection.
    pub(super) fn unsent(error: &(dyn Error + 'static)) -> Self {
        Self::Unsent(cause(error))
    }

    /// Returns the reason for messages.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Etcd(status) => reason(status),
            Self::TimedOut => "request timed out".to_owned(),
            Self::Unreachable | Self::Unsent(_) => "unreachable".to_owned(),
            Self::Sealed { reason, .. } | Self::Settings(reason) => reason.clone(),
            Self::Fatal(fatal) => fatal.to_string(),
        }
    }

    /// Returns the text for the log.
    pub(super) fn log_text(&self) -> String {
        match self {
            Self::Etcd(status) => {
                let cause = status.source().map_or_else(|| status.message().to_owned(), cause);
                format!("{}: {cause}", reason(status))
            }
            Self::Unsent(error) => format!("{}: {error}", self.reason()),
            other => other.reason(),
        }
    }

    /// Returns the text for the failure of the first request to an etcd.
    pub(super) fn first_request_text(&self, settings: &EtcdSettings) -> String {
        let (logged, is_cut) = (self.log_text(), self.is_member_failure() && !self.is_not_executed());
        if is_cut && settings.lacks_client_certificate() {
            return format!(
                "{logged} (etcd may require a client certificate: --etcd-certfile, --etcd-keyfile)"
            );
        }
        logged
    }

    /// Converts to the error of a read.
    pub(super) fn into_store_error(self) -> StoreError {
        match self {
            Self::Sealed { key, reason } => StoreError::Sealed { key, reason },
            Self::Fatal(_) => StoreError::Closed,
            failure => {
                tracing::error!(error = failure.log_text(), "cannot read from etcd");
                StoreError::Unavailable(failure.reason())
            }
        }
    }

    /// Converts to the error of a write.
    pub(super) fn to_txn_error(&self) -> TxnError {
        let reason = self.reason();
        let status = match self {
            Self::Etcd(status) => status,
            Self::Sealed { .. } => return TxnError::Sealed(reason),
            Self::TimedOut => return TxnError::InDoubt(reason),
            _ => return TxnError::Unavailable(reason),
        };
        match status.code() {
            Code::ResourceExhausted if lacks_space(status) => TxnError::Full(reason),
            Code::InvalidArgument | Code::OutOfRange => TxnError::TooLarge(reason),
            Code::ResourceExhausted
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::FailedPrecondition
            | Code::Unimplemented => TxnError::Unavailable(reason),
            Code::Unavailable if self.is_not_executed() => TxnError::Unavailable(reason),
            _ => TxnError::InDoubt(reason),
        }
    }

    /// True if the requested revision is compacted.
    pub(super) fn is_compacted(&self) -> bool {
        matches!(self, Self::Etcd(status) if mentions(status, "required revision has been compacted"))
    }

    /// True if another member may succeed.
    pub(super) fn is_member_failure(&self) -> bool {
        match self {
            Self::Etcd(status) => match status.code() {
                Code::Unavailable => true,
                Code::Unknown | Code::Cancelled | Code::Internal => causes(status).next().is_some(),
                _ => false,
            },
            Self::TimedOut | Self::Unsent(_) => true,
            _ => false,
        }
    }

    /// True if the members are electing a leader, or have just elected one.
    pub(super) fn is_election(&self) -> bool {
        self.is_leader_change() || matches!(self, Self::Etcd(status) if mentions(status, "no leader"))
    }

    /// True if the leader was lost during the request, which is not a failure of the member that reports it.
    pub(super) fn is_leader_change(&self) -> bool {
        let messages = ["leader changed", "previous leader failure"];
        matches!(self, Self::Etcd(status) if messages.iter().any(|message| mentions(status, message)))
    }

    /// True if a write was certainly not executed: it was rejected before it was proposed, or never sent.
    pub(super) fn is_not_executed(&self) -> bool {
        match self {
            Self::Etcd(status) => {
                status.code() == Code::Unavailable
                    && (mentions(status, "no leader") || is_unconnected(status))
            }
            Self::Unsent(_) | Self::Unreachable => true,
            _ => false,
        }
    }

    /// True if a response exceeded the message size limit of this process.
    pub(super) fn is_response_too_large(&self) -> bool {
        matches!(self, Self::Etcd(status) if mentions(status, "message length too large"))
    }

    /// True if a retry cannot succeed.
    pub(super) fn is_permanent(&self) -> bool {
        match self {
            Self::Etcd(status) => {
                matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated | Code::Unimplemented)
            }
            Self::Settings(_) | Self::Fatal(_) => true,
            _ => false,
        }
    }
}

fn mentions(status: &Status, text: &str) -> bool {
    status.message().contains(text)
}

fn lacks_space(status: &Status) -> bool {
    mentions(status, "space exceeded")
}

/// Iterates over the causes of a status, the root cause last.
fn causes(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(status.source(), |cause| (*cause).source())
}

/// Returns the reason of a failure of HTTP or of the socket, or otherwise the text of the root cause.
fn cause(error: &(dyn Error + 'static)) -> String {
    let deepest = || std::iter::successors(Some(error), |error| (*error).source()).last();
    source_reason(error).or_else(|| deepest().map(ToString::to_string)).unwrap_or_default()
}

/// True if there was no connection to send on.
fn is_unconnected(status: &Status) -> bool {
    let refused = |cause: &(dyn Error + 'static)| {
        let error = cause.downcast_ref::<std::io::Error>();
        error.is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    };
    mentions(status, "connect error")
        || causes(status).any(|cause| cause.is::<ConnectError>() || refused(cause))
}

/// Returns the reason for messages.
fn reason(status: &Status) -> String {
    let message = status.message().trim_start_matches("etcdserver: ");
    match status.code() {
        Code::ResourceExhausted if lacks_space(status) => "etcd has no space left (alarm NOSPACE)".to_owned(),
        Code::InvalidArgument if mentions(status, "too many operations") => {
            "more operations than etcd accepts in a transaction (--max-txn-ops of etcd)".to_owned()
        }
        Code::InvalidArgument if mentions(status, "too large") => {
            "more bytes than etcd accepts in a request (--max-request-bytes of etcd)".to_owned()
        }
        Code::PermissionDenied | Code::Unauthenticated => {
            format!("access denied: {message}")
        }
        Code::Unavailable if mentions(status, "no leader") => "no leader".to_owned(),
        Code::Unavailable if is_unconnected(status) => "unreachable".to_owned(),
        Code::Unavailable | Code::Cancelled => "connection lost".to_owned(),
        Code::Unknown if causes(status).next().is_some() => "connection lost".to_owned(),
        Code::Unknown if mentions(status, "timed out") => "request timed out".to_owned(),
        _ => format!("request rejected: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn log_texts_contain_no_library_messages() {
        let failure_of =
            |error: io::Error| EtcdFailure::from(Status::from_error(Box::new(ConnectError(Box::new(error)))));
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(failure_of(refused).log_text(), "unreachable: connection refused");
        let unresolved = io::Error::other("failed to lookup address information: Name or service not known");
        assert_eq!(failure_of(unresolved).log_text(), "unreachable: no such host");
        let unsent = EtcdFailure::unsent(&io::Error::from_raw_os_error(104));
        assert_eq!(unsent.log_text(), "unreachable: the connection was reset");
        let reported = EtcdFailure::from(Status::unavailable("etcdserver: no leader"));
        assert_eq!(reported.log_text(), "no leader: etcdserver: no leader");
    }
}
