//! Flags of the control service and of a facade's connection to it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{duration, positive_duration};
use super::{Role, SettingError};

/// Flags of the control service and of connections to it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Control service"))]
pub(crate) struct Control {
    /// Address on which the control service serves gRPC over TLS; port 0 = any free port.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:6444")]
    pub(crate) control_address: SocketAddr,
    /// HOST:PORT at which facades and gRPC clients reach the control service.
    ///
    /// The address is included in the certificate of the control service and in generated kubeconfig files.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) control_external_address: Option<String>,
    /// Kubeconfig files with which a facade connects to its control services, separated by commas.
    ///
    /// Use the facade.kubeconfig that each control service writes. The current context of each file is used, and all other
    /// contexts whose cluster names the same store. All control services must use one database. Required by
    /// `portico facade`.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    pub(crate) control_kubeconfig: Vec<PathBuf>,
    /// Time without a response from a control service after which a facade switches to another control service.
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "500ms")]
    pub(crate) control_failover_timeout: Duration,
    /// Time that a facade serves its last good state while no control service is reachable.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "24h")]
    pub(crate) fail_static_max_age: Duration,
    /// Time that a request for a local API waits for an unresponsive control service before it fails with 503.
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "10s")]
    pub(crate) control_request_timeout: Duration,
    /// Maximum number of open gRPC connections to the control service.
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub(crate) control_max_connections: usize,
    /// Maximum number of concurrent gRPC calls per connection.
    ///
    /// A facade opens another connection for every 500 watches.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) control_max_streams_per_connection: u32,
}

impl Control {
    pub(super) fn check(&self, role: Role) -> Result<(), SettingError> {
        if let Some(address) = &self.control_external_address
            && address.parse::<http::uri::Authority>().ok().and_then(|a| a.port_u16()).is_none()
        {
            return Err(SettingError::new(
                "--control-external-address",
                format!("{address:?} is not HOST:PORT"),
            ));
        }
        match (role, &self.control_kubeconfig[..]) {
            (Role::Facade, []) => Err(SettingError::new(
                "--control-kubeconfig",
                "required; pass the facade.kubeconfig from the data directory of the control service",
            )),
            _ => Ok(()),
        }
    }
}
