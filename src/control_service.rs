//! The control service that a client command calls.

use std::cell::OnceCell;
use std::time::Duration;

use portico_proto::client::{Client, ConnectError, Kubeconfig, KubeconfigError};
use tonic::{Code, Status};

use crate::connection_flags::ConnectionFlags;

/// Context of the control service in the kubeconfigs that it writes.
pub(crate) const CONTROL_CONTEXT: &str = "control";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ControlService {
    #[command(flatten)]
    flags: ConnectionFlags,
    /// Context of the kubeconfig [default: control]
    #[arg(long)]
    context: Option<String>,
    /// The kubeconfig once it was read: it may be a pipe.
    #[arg(skip)]
    read: OnceCell<Kubeconfig>,
}

/// Error of creating a client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoClient {
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl NoClient {
    /// Hint for a server that does not answer.
    pub(crate) const OTHER_SERVER: &str =
        "start it (`portico`), or name another one with --kubeconfig, --data-dir or --server";

    /// Advice to the user, if any.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Kubeconfig(_) => Some(
                "a running server writes admin.kubeconfig into its data folder: name it with --kubeconfig FILE or --data-dir DIR",
            ),
            Self::Connect(_) => None,
        }
    }
}

impl ControlService {
    /// Returns a client whose calls have this deadline.
    ///
    /// # Errors
    /// [`NoClient`].
    pub(crate) fn client(&self, deadline: Duration) -> Result<Client, NoClient> {
        let context = self.context.as_deref().unwrap_or(CONTROL_CONTEXT);
        let connection = self.flags.connection(self.file()?, Some(context))?;
        Ok(Client::connect(&connection.with_deadline(deadline))?)
    }

    /// Returns the namespace of the context. Without `--context` it is the namespace of `control`, or else of the current context of the
    /// same user: the facade's, where `kubectl config set-context --current` writes it.
    ///
    /// # Errors
    /// [`NoClient::Kubeconfig`].
    pub(crate) fn namespace(&self) -> Result<Option<&str>, NoClient> {
        let file = self.file()?;
        Ok(match &self.context {
            Some(context) => file.namespace(context),
            None => {
                file.namespace(CONTROL_CONTEXT).or_else(|| file.current_namespace_beside(CONTROL_CONTEXT))
            }
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

/// True if no server answered the call.
pub(crate) fn is_unreachable(status: &Status) -> bool {
    status.code() == Code::Unavailable && status.details().is_empty()
}

/// Describes why a call failed. A control service of an earlier release does not implement new calls; one that implements a call and
/// refuses it sends details.
pub(crate) fn describe(status: &Status) -> String {
    if status.code() == Code::Unimplemented && status.details().is_empty() {
        return "the control service is of an earlier release than this portico and does not support this call"
            .to_owned();
    }
    status.message().to_owned()
}
