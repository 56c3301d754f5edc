//! Flags that select the server of a client command: `--kubeconfig`, `--data-dir` and `--server`, and the variable `KUBECONFIG`.

use std::path::{Path, PathBuf};

use portico_proto::client::{Connection, Kubeconfig, KubeconfigError};

/// Name of the kubeconfig that a control service writes into its data folder.
pub(crate) const ADMIN_KUBECONFIG: &str = "admin.kubeconfig";
/// Kubeconfig if no flag or variable names one.
const DEFAULT: &str = "portico-data/admin.kubeconfig";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ConnectionFlags {
    /// Kubeconfig of the server [default: files of KUBECONFIG, else portico-data/admin.kubeconfig]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Data folder of the server, whose DIR/admin.kubeconfig is used
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    data_dir: Option<PathBuf>,
    /// Address to connect to instead of the one in the kubeconfig
    #[arg(long, value_name = "HOST:PORT")]
    server: Option<String>,
}

impl ConnectionFlags {
    /// Reads the kubeconfig.
    ///
    /// # Errors
    /// [`KubeconfigError`] names the file.
    pub(crate) fn read(&self) -> Result<Kubeconfig, KubeconfigError> {
        match (&self.kubeconfig, &self.data_dir) {
            (Some(file), _) => Kubeconfig::read(file),
            (None, Some(folder)) => Kubeconfig::read(&folder.join(ADMIN_KUBECONFIG)),
            (None, None) => Kubeconfig::from_env()?.map_or_else(|| Kubeconfig::read(Path::new(DEFAULT)), Ok),
        }
    }

    /// The connection of a context of the kubeconfig, by default its current one, with the address of `--server`.
    ///
    /// # Errors
    /// [`KubeconfigError`] names the context.
    pub(crate) fn connection(
        &self,
        file: &Kubeconfig,
        context: Option<&str>,
    ) -> Result<Connection, KubeconfigError> {
        Ok(at_address(file.connection(context)?, self.server.as_deref()))
    }
}

/// The connection with the address of `--server`, if given.
pub(crate) fn at_address(mut connection: Connection, server: Option<&str>) -> Connection {
    if let Some(server) = server {
        let has_scheme = server.contains("://");
        connection.server = if has_scheme { server.to_owned() } else { format!("https://{server}") };
    }
    connection
}
