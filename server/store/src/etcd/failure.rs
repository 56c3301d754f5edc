//! What an error of etcd is to whoever asked: a sentence of ours, by its code and its words.

use std::error::Error;

use portico_kit::dial::source_reason;
use tonic::{Code, ConnectError, Status};

use super::settings::EtcdSettings;
use crate::error::StoreError;
use crate::key::Key;
use crate::txn::TxnError;

/// What this process holds is not what etcd does: it must end, and start again from there.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Fatal {
    #[error("etcd contains a different store than before")]
    Replaced,
    #[error("the store was restored: a new epoch has begun")]
    NewEpoch,
    #[error("a restore of the store has begun")]
    Restoring,
    #[error("etcd has lost published commits: a new epoch begins")]
    Lost,
    #[error("commits of other processes were compacted before this process read them")]
    Behind,
}

/// Why a step was not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// etcd reported it, or the connection to it was lost.
    Etcd(Box<Status>),
    /// It did not answer in time.
    Late,
    /// It cannot be reached now: it was not asked.
    Away,
    /// It could not be asked.
    Unsent(String),
    /// It can never be asked with these settings.
    Settings(String),
    /// What a value is sealed with is not known now, and may be later.
    Sealed {
        key: Key,
        reason: String,
    },
    Fatal(Fatal),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Etcd(Box::new(status))
    }
}

impl Failure {
    /// The failure of a request for which there was no connection.
    pub(super) fn unsent(error: &(dyn Error + 'static)) -> Self {
        Self::Unsent(cause(error))
    }

    /// For messages.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Etcd(status) => reason(status),
            Self::Late => "request timed out".to_owned(),
            Self::Away | Self::Unsent(_) => "unreachable".to_owned(),
            Self::Sealed { reason, .. } | Self::Settings(reason) => reason.clone(),
            Self::Fatal(fatal) => fatal.to_string(),
        }
    }

    /// The text for the log.
    pub(super) fn logged(&self) -> String {
        match self {
            Self::Etcd(status) => {
                let cause = status.source().map_or_else(|| status.message().to_owned(), cause);
                format!("{}: {cause}", reason(status))
            }
            Self::Unsent(error) => format!("{}: {error}", self.reason()),
            other => other.reason(),
        }
    }

    /// The same, of the first request to an etcd.
    pub(super) fn of_first(&self, settings: &EtcdSettings) -> String {
        let (logged, is_cut) = (self.logged(), self.is_of_member() && !self.is_untaken());
        if is_cut && settings.shows_nothing() {
            return format!(
                "{logged} (etcd may require a client certificate: --etcd-certfile, --etcd-keyfile)"
            );
        }
        logged
    }

    /// What it is to whoever reads.
    pub(super) fn of_read(self) -> StoreError {
        match self {
            Self::Sealed { key, reason } => StoreError::Sealed { key, reason },
            Self::Fatal(_) => StoreError::Closed,
            failure => {
                tracing::error!(error = failure.logged(), "cannot read from etcd");
                StoreError::Unavailable(failure.reason())
            }
        }
    }

    /// What it is to whoever has asked for a write.
    pub(super) fn of_write(&self) -> TxnError {
        let reason = self.reason();
        let status = match self {
            Self::Etcd(status) => status,
            Self::Sealed { .. } => return TxnError::Sealed(reason),
            Self::Late => return TxnError::Unknown(reason),
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
            Code::Unavailable if self.is_untaken() => TxnError::Unavailable(reason),
            _ => TxnError::Unknown(reason),
        }
    }

    /// Whether what was asked for is older than what is kept.
    pub(super) fn is_compacted(&self) -> bool {
        matches!(self, Self::Etcd(status) if mentions(status, "required revision has been compacted"))
    }

    /// Whether another member may do better.
    pub(super) fn is_of_member(&self) -> bool {
        match self {
            Self::Etcd(status) => match status.code() {
                Code::Unavailable => true,
                Code::Unknown | Code::Cancelled | Code::Internal => causes(status).next().is_some(),
                _ => false,
            },
            Self::Late | Self::Unsent(_) => true,
            _ => false,
        }
    }

    /// Whether members choose a leader, or have just chosen one.
    pub(super) fn is_of_election(&self) -> bool {
        self.is_of_change() || matches!(self, Self::Etcd(status) if mentions(status, "no leader"))
    }

    /// Whether the leader was lost while this was asked, which is no fault of the member that reports it.
    pub(super) fn is_of_change(&self) -> bool {
        let words = ["leader changed", "previous leader failure"];
        matches!(self, Self::Etcd(status) if words.iter().any(|words| mentions(status, words)))
    }

    /// Whether a write was surely not taken: it was refused before it was proposed, or never sent.
    pub(super) fn is_untaken(&self) -> bool {
        match self {
            Self::Etcd(status) => {
                status.code() == Code::Unavailable
                    && (mentions(status, "no leader") || is_unconnected(status))
            }
            Self::Unsent(_) | Self::Away => true,
            _ => false,
        }
    }

    /// Whether an answer was larger than this process takes.
    pub(super) fn is_too_long(&self) -> bool {
        matches!(self, Self::Etcd(status) if mentions(status, "message length too large"))
    }

    /// Whether another try cannot do better.
    pub(super) fn is_lasting(&self) -> bool {
        match self {
            Self::Etcd(status) => {
                matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated | Code::Unimplemented)
            }
            Self::Settings(_) | Self::Fatal(_) => true,
            _ => false,
        }
    }
}

fn mentions(status: &Status, words: &str) -> bool {
    status.message().contains(words)
}

fn lacks_space(status: &Status) -> bool {
    mentions(status, "space exceeded")
}

/// What is behind it, the deepest last.
fn causes(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(status.source(), |cause| (*cause).source())
}

/// Returns the reason of a failure of HTTP or of the socket, or else the text of the deepest cause.
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

/// A sentence.
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
    fn what_is_logged_has_no_words_of_a_library() {
        let of =
            |error: io::Error| Failure::from(Status::from_error(Box::new(ConnectError(Box::new(error)))));
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(of(refused).logged(), "unreachable: connection refused");
        let unresolved = io::Error::other("failed to lookup address information: Name or service not known");
        assert_eq!(of(unresolved).logged(), "unreachable: no such host");
        let unsent = Failure::unsent(&io::Error::from_raw_os_error(104));
        assert_eq!(unsent.logged(), "unreachable: the connection was reset");
        let reported = Failure::from(Status::unavailable("etcdserver: no leader"));
        assert_eq!(reported.logged(), "no leader: etcdserver: no leader");
    }
}
