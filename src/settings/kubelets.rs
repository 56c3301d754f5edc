//! Kubelets: how the facade dials them, and by which address the control service names them.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use portico_facade::KubeletSettings;

use super::SettingError;
use super::values::duration;

/// Settings of connections to nodes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Kubelets"))]
pub(crate) struct Kubelets {
    /// The client certificate that kubelets see.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubelet_client_certificate: Option<PathBuf>,
    /// The key of --kubelet-client-certificate.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubelet_client_key: Option<PathBuf>,
    /// The CA that kubelets' certificates are checked against; without, they are not checked.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubelet_certificate_authority: Option<PathBuf>,
    /// Types of node addresses, best first.
    #[arg(
        long,
        value_name = "TYPES",
        value_delimiter = ',',
        default_value = "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP"
    )]
    pub(crate) kubelet_preferred_address_types: Vec<String>,
    /// How long a connection to a kubelet may take to stand.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s")]
    pub(crate) kubelet_timeout: Duration,
    /// Bytes a second that a connection of exec, attach, port-forward or proxy carries each way, once it has changed its
    /// protocol; 0 = no limit.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) max_connection_bytes_per_sec: u32,
    /// End a WebSocket that is translated to SPDY for a kubelet when nothing was said on it for this long.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "4h")]
    pub(crate) streaming_connection_idle_timeout: Duration,
    /// Longest message of such a WebSocket; a longer one ends it.
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20)]
    pub(crate) streaming_max_message_bytes: usize,
}

impl Kubelets {
    /// What the dialling half needs.
    pub(crate) fn facade(&self) -> KubeletSettings {
        KubeletSettings {
            client_cert: self.kubelet_client_certificate.clone().zip(self.kubelet_client_key.clone()),
            certificate_authority: self.kubelet_certificate_authority.clone(),
            timeout: self.kubelet_timeout,
            max_connection_bytes: NonZeroU32::new(self.max_connection_bytes_per_sec),
            streaming_idle_timeout: self.streaming_connection_idle_timeout,
            streaming_max_message_bytes: self.streaming_max_message_bytes,
        }
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        let (missing, message) = match (&self.kubelet_client_certificate, &self.kubelet_client_key) {
            (Some(_), None) => ("--kubelet-client-key", "is needed with --kubelet-client-certificate"),
            (None, Some(_)) => ("--kubelet-client-certificate", "is needed with --kubelet-client-key"),
            _ => return Ok(()),
        };
        Err(SettingError::new(missing, message))
    }
}
