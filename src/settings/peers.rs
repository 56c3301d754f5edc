//! Flags of peers: other servers behind the same address.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use portico_machinery::features::FeatureGates;
use portico_machinery::peer_addresses::GATE;

use super::SettingError;

/// Flags of peers.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Peers"))]
pub(crate) struct Peers {
    /// CA certificates of other servers behind the same address (PEM).
    ///
    /// Requests for APIs that only a peer serves are proxied to that peer, and discovery includes them. Certificates of
    /// peers must be valid for kubernetes.default.svc. Requires --proxy-client-cert-file and the feature gate
    /// UnknownVersionInteroperabilityProxy, which is on by default.
    #[arg(long, value_name = "FILE")]
    pub(crate) peer_ca_file: Option<PathBuf>,
    /// IP address at which peers reach this server's facade.
    ///
    /// Defaults to the advertised address. Requires --peer-advertise-port.
    #[arg(long, value_name = "IP")]
    pub(crate) peer_advertise_ip: Option<IpAddr>,
    /// Port at which peers reach this server's facade.
    ///
    /// Requires --peer-advertise-ip.
    #[arg(long, value_name = "PORT")]
    pub(crate) peer_advertise_port: Option<u16>,
}

impl Peers {
    /// Returns the address at which peers reach this server, if configured.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.peer_advertise_ip?, self.peer_advertise_port?))
    }

    /// Checks the flags like upstream's `validateUnknownVersionInteroperabilityProxyFlags`.
    pub(super) fn check(&self, features: &FeatureGates, has_identity: bool) -> Result<(), SettingError> {
        let flags_set = [
            ("--peer-ca-file", self.peer_ca_file.is_some()),
            ("--peer-advertise-ip", self.peer_advertise_ip.is_some()),
            ("--peer-advertise-port", self.peer_advertise_port.is_some()),
        ];
        if let Some((flag, _)) =
            flags_set.iter().find(|(_, is_flag_set)| *is_flag_set && !features.enabled(GATE))
        {
            return Err(SettingError::new(
                flag,
                format!("requires the feature gate {GATE}; pass --feature-gates={GATE}=true"),
            ));
        }
        if self.peer_advertise_ip.is_some() != self.peer_advertise_port.is_some() {
            let message = "--peer-advertise-ip and --peer-advertise-port must be set together";
            return Err(SettingError::new("--peer-advertise-ip", message));
        }
        if self.peer_ca_file.is_some() && !has_identity {
            return Err(SettingError::new(
                "--peer-ca-file",
                "requires --proxy-client-cert-file and --proxy-client-key-file",
            ));
        }
        Ok(())
    }
}
