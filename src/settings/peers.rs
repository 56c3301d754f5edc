//! Other servers behind the same address, which may serve what this one does not.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use portico_machinery::features::FeatureGates;
use portico_machinery::peer_addresses::GATE;

use super::SettingError;

/// Settings of peers.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Servers behind the same address"))]
pub(crate) struct Peers {
    /// The CAs of other servers' certificates (which are for kubernetes.default.svc): what only they serve is answered by them, and
    /// discovery shows it. Needs --proxy-client-cert-file.
    #[arg(long, value_name = "FILE")]
    pub(crate) peer_ca_file: Option<PathBuf>,
    /// The IP under which other servers reach this one's facade; by default what workloads reach it under.
    #[arg(long, value_name = "IP")]
    pub(crate) peer_advertise_ip: Option<IpAddr>,
    /// The port under which other servers reach this one's facade.
    #[arg(long, value_name = "PORT")]
    pub(crate) peer_advertise_port: Option<u16>,
}

impl Peers {
    /// Where other servers reach this one, when that is said.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.peer_advertise_ip?, self.peer_advertise_port?))
    }

    /// Upstream's `validateUnknownVersionInteroperabilityProxyFlags`.
    pub(super) fn check(&self, features: &FeatureGates, has_identity: bool) -> Result<(), SettingError> {
        let given = [
            ("--peer-ca-file", self.peer_ca_file.is_some()),
            ("--peer-advertise-ip", self.peer_advertise_ip.is_some()),
            ("--peer-advertise-port", self.peer_advertise_port.is_some()),
        ];
        if let Some((flag, _)) = given.iter().find(|(_, given)| *given && !features.enabled(GATE)) {
            return Err(SettingError::new(flag, format!("requires the feature gate {GATE} to be turned on")));
        }
        if self.peer_advertise_ip.is_some() != self.peer_advertise_port.is_some() {
            let both = "--peer-advertise-ip and --peer-advertise-port go together";
            return Err(SettingError::new("--peer-advertise-ip", both));
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
