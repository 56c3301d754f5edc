//! Flags of connections to kubelets.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use portico_facade::KubeletSettings;

use super::SettingError;
use super::values::duration;

/// Flags of connections to kubelets.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Kubelets"))]
pub(crate) struct Kubelets {
    /// Client certificate with which the facade authenticates to kubelets (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) kubelet_client_certificate: Option<PathBuf>,
    /// Private key of --kubelet-client-certificate (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) kubelet_client_key: Option<PathBuf>,
    /// CA certificates that verify the serving certificates of kubelets (PEM).
    ///
    /// Without this flag the certificates are not verified.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubelet_certificate_authority: Option<PathBuf>,
    /// Types of node addresses at which to connect to kubelets, in order of preference.
    #[arg(
        long,
        value_name = "TYPES",
        value_delimiter = ',',
        default_value = "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP"
    )]
    pub(crate) kubelet_preferred_address_types: Vec<String>,
    /// Timeout for establishing a connection to a kubelet.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s")]
    pub(crate) kubelet_timeout: Duration,
    /// Maximum bytes per second in each direction of an upgraded connection; 0 = no limit.
    ///
    /// Applies to exec, attach, port-forward and proxy.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) max_connection_bytes_per_sec: u32,
    /// Idle timeout of WebSocket connections that are translated to SPDY for a kubelet.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "4h")]
    pub(crate) streaming_connection_idle_timeout: Duration,
    /// Maximum size of a message on a WebSocket connection translated to SPDY, in bytes.
    ///
    /// A larger message closes the connection.
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20)]
    pub(crate) streaming_max_message_bytes: usize,
}

impl Kubelets {
    /// Returns the settings for the facade, which connects to kubelets.
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
            (Some(_), None) => ("--kubelet-client-key", "required by --kubelet-client-certificate"),
            (None, Some(_)) => ("--kubelet-client-certificate", "required by --kubelet-client-key"),
            _ => return Ok(()),
        };
        Err(SettingError::new(missing, message))
    }
}
