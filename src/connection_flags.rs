//! Flags that select the server of a client command: `--kubeconfig`, `--data-dir` and `--server`, and the variable `KUBECONFIG`.

use std::path::{Path, PathBuf};

use portico_proto::client::{Connection, Kubeconfig, KubeconfigError};

/// Name of the kubeconfig that a control service writes into its data folder.
pub(crate) const ADMIN_KUBECONFIG: &str = "admin.kubeconfig";
/// Kubeconfig if neither a flag nor `KUBECONFIG` names a file.
const DEFAULT: &str = "portico-data/admin.kubeconfig";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ConnectionFlags {
    /// Kubeconfig of the server [default: the files in KUBECONFIG, or else portico-data/admin.kubeconfig]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Data folder of the server: uses its kubeconfig DIR/admin.kubeconfig
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    data_dir: Option<PathBuf>,
    /// Address to connect to instead of the address in the kubeconfig
    #[arg(long, value_name = "HOST:PORT")]
    server: Option<String>,
}

impl ConnectionFlags {
    /// Reads the kubeconfig that the flags select.
    ///
    /// # Errors
    /// Returns a [`KubeconfigError`] that names the file.
    pub(crate) fn read(&self) -> Result<Kubeconfig, KubeconfigError> {
        match (&self.kubeconfig, &self.data_dir) {
            (Some(file), _) => Kubeconfig::read(file),
            (None, Some(folder)) => Kubeconfig::read(&folder.join(ADMIN_KUBECONFIG)),
            (None, None) => Kubeconfig::from_env()?.map_or_else(|| Kubeconfig::read(Path::new(DEFAULT)), Ok),
        }
    }

    /// Returns the connection of a context (by default the current context) of the kubeconfig, with the address of `--server` if given.
    ///
    /// # Errors
    /// Returns a [`KubeconfigError`] that names the context.
    pub(crate) fn connection(
        &self,
        file: &Kubeconfig,
        context: Option<&str>,
    ) -> Result<Connection, KubeconfigError> {
        Ok(at_address(file.connection(context)?, self.server.as_deref()))
    }
}

/// Replaces the address of a connection by the value of `--server`, if given.
pub(crate) fn at_address(mut connection: Connection, server: Option<&str>) -> Connection {
    if let Some(server) = server {
        let has_scheme = server.contains("://");
        connection.server = if has_scheme { server.to_owned() } else { format!("https://{server}") };
    }
    connection
}
