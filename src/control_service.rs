//! Connection to the control service that a client command calls.

use std::cell::OnceCell;
use std::time::Duration;

use portico_proto::client::{Client, ConnectError, Kubeconfig, KubeconfigError};
use tonic::{Code, Status};

use crate::connection_flags::ConnectionFlags;

/// Name of the context for the control service in kubeconfigs that control services write.
pub(crate) const CONTROL_CONTEXT: &str = "control";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ControlService {
    #[command(flatten)]
    flags: ConnectionFlags,
    /// Context of the kubeconfig [default: control]
    #[arg(long)]
    context: Option<String>,
    /// Kubeconfig, which is read only once because the file may be a pipe.
    #[arg(skip)]
    read: OnceCell<Kubeconfig>,
}

/// Error of creating a client for the control service.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoClient {
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl NoClient {
    /// Hint to print if the server does not answer.
    pub(crate) const OTHER_SERVER: &str =
        "start it (`portico`), or name another one with --kubeconfig, --data-dir or --server";

    /// Returns the hint to print below the message, if the error has one.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Kubeconfig(KubeconfigError::Read { .. }) => Some(
                "a running server writes admin.kubeconfig into its data folder: name it with --kubeconfig FILE or --data-dir DIR",
            ),
            Self::Kubeconfig(KubeconfigError::Missing { kind: "context", .. }) => {
                Some("`kubectl config get-contexts --kubeconfig FILE` lists the contexts of a file")
            }
            Self::Kubeconfig(_) | Self::Connect(_) => None,
        }
    }
}

impl ControlService {
    /// Returns a client whose calls end after `deadline`.
    ///
    /// # Errors
    /// Returns [`NoClient`] if the kubeconfig cannot be read or the connection in it is invalid.
    pub(crate) fn client(&self, deadline: Duration) -> Result<Client, NoClient> {
        let context = self.context.as_deref().unwrap_or(CONTROL_CONTEXT);
        let connection = self.flags.connection(self.file()?, Some(context))?;
        Ok(Client::connect(&connection.with_deadline(deadline))?)
    }

    /// Returns the namespace of the context. Without `--context`, this is the namespace of the context `control`, or else of the current
    /// context if both have the same user: `kubectl config set-context --current` stores the namespace there.
    ///
    /// # Errors
    /// Returns [`NoClient::Kubeconfig`] if the kubeconfig cannot be read.
    pub(crate) fn namespace(&self) -> Result<Option<&str>, NoClient> {
        let file = self.file()?;
        Ok(match &self.context {
            Some(context) => file.namespace(context),
            None => file
                .namespace(CONTROL_CONTEXT)
                .or_else(|| file.current_namespace_for_same_user(CONTROL_CONTEXT)),
        })
    }

    fn file(&self) -> Result<&Kubeconfig, KubeconfigError> {
        if let Some(file) = self.read.get() {
            return Ok(file);
        }
        let file = self.flags.read()?;
        Ok(self.read.get_or_init(|| file))
    }
}

/// Returns true if no server answered the call.
pub(crate) fn is_unreachable(status: &Status) -> bool {
    status.code() == Code::Unavailable && status.details().is_empty()
}

/// Returns the reason why a call failed. The code `Unimplemented` without details means that the control service is of an earlier release
/// that does not have the call.
pub(crate) fn describe(status: &Status) -> String {
    if status.code() == Code::Unimplemented && status.details().is_empty() {
        return "the control service is of an earlier release than this portico and does not support this call"
            .to_owned();
    }
    status.message().to_owned()
}
