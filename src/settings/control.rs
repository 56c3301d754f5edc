//! The control service's address, and how a facade finds and outlives it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{duration, positive_duration};
use super::{Role, SettingError};

/// Settings of the control service and of the way to it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Control service (gRPC)"))]
pub(crate) struct Control {
    /// The address on which the control service serves gRPC over TLS; port 0 = any free one.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:6444")]
    pub(crate) control_address: SocketAddr,
    /// HOST:PORT under which others reach the control service; goes into its certificate and kubeconfigs.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) control_external_address: Option<String>,
    /// The kubeconfigs with which a facade reaches its control services (facade.kubeconfig of each server): the current context
    /// of each, and other contexts whose clusters name the same store. All must serve one database.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    pub(crate) control_kubeconfig: Vec<PathBuf>,
    /// How long a control service may be silent before a facade that knows another one moves to it.
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "500ms")]
    pub(crate) control_failover_timeout: Duration,
    /// How long a facade serves from its last good state while the control service is away.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "24h")]
    pub(crate) fail_static_max_age: Duration,
    /// How long a request for a local API waits for a control service that gives no sign of life; then it is answered with 503.
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "10s")]
    pub(crate) control_request_timeout: Duration,
    /// gRPC connections at a time.
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub(crate) control_max_connections: usize,
    /// gRPC calls at a time in one connection.
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
                "a facade needs it: the server writes facade.kubeconfig",
            )),
            _ => Ok(()),
        }
    }
}
