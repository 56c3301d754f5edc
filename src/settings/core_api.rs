//! Settings that are parsed and checked now and used by the core API server.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use ipnet::IpNet;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};

use super::SettingError;
use super::files::read;

/// Settings of the core API server, which comes later: checked here, used there.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Core API (parsed and checked; used by the core API server)"))]
pub(crate) struct CoreApi {
    /// Ranges of Services' cluster addresses: one, or two of different families.
    #[arg(long, value_name = "CIDRS", value_delimiter = ',', default_value = "10.0.0.0/24")]
    pub(crate) service_cluster_ip_range: Vec<IpNet>,
    /// Ports on nodes that Services get theirs from, such as 30000-32767 or 30000+100.
    #[arg(long, value_name = "RANGE", value_parser = port_range, default_value = "30000-32767")]
    pub(crate) service_node_port_range: PortRange,
    /// The issuer of service-account tokens, first the one that signs. Checked; used by the core API server.
    #[arg(long, value_name = "URL")]
    pub(crate) service_account_issuer: Vec<String>,
    /// Keys that service-account tokens are checked with (PEM). Checked; used by the core API server.
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_key_file: Vec<PathBuf>,
    /// The key that signs service-account tokens (PEM). Checked; used by the core API server.
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_signing_key_file: Option<PathBuf>,
    /// Allow privileged containers. Checked; used by the core API server.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) allow_privileged: bool,
}

/// Ports from one to another, both included.
pub(crate) type PortRange = std::ops::RangeInclusive<u16>;

/// Upstream's spellings: `first-last`, `first+more`, and a single port.
fn port_range(text: &str) -> Result<PortRange, String> {
    let number = |text: &str| text.trim().parse::<u16>().map_err(|e| format!("{text:?}: {e}"));
    let range = if let Some((first, last)) = text.split_once('-') {
        number(first)?..=number(last)?
    } else if let Some((first, more)) = text.split_once('+') {
        let first = number(first)?;
        first..=first.saturating_add(number(more)?)
    } else {
        number(text)?..=number(text)?
    };
    if range.is_empty() { Err(format!("{text:?}: the first port comes after the last")) } else { Ok(range) }
}

impl CoreApi {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        self.check_ranges()?;
        for issuer in &self.service_account_issuer {
            let absolute = issuer.contains(':');
            if issuer.is_empty() || (absolute && url::Url::parse(issuer).is_err()) {
                return Err(SettingError::new("--service-account-issuer", format!("{issuer:?} is no URL")));
            }
        }
        for file in &self.service_account_key_file {
            let pem = read("--service-account-key-file", file)?;
            let public = SubjectPublicKeyInfoDer::from_pem_slice(&pem).is_ok();
            if !public && PrivateKeyDer::from_pem_slice(&pem).is_err() {
                let message = format!("{}: no PEM key in it", file.display());
                return Err(SettingError::new("--service-account-key-file", message));
            }
        }
        let Some(file) = &self.service_account_signing_key_file else { return Ok(()) };
        let setting = "--service-account-signing-key-file";
        PrivateKeyDer::from_pem_slice(&read(setting, file)?)
            .map(drop)
            .map_err(|e| SettingError::new(setting, format!("{}: {e}", file.display())))
    }

    fn check_ranges(&self) -> Result<(), SettingError> {
        let wrong = |message: &str| Err(SettingError::new("--service-cluster-ip-range", message));
        match self.service_cluster_ip_range.as_slice() {
            [] | [_] => Ok(()),
            [a, b] if a.addr().is_ipv4() != b.addr().is_ipv4() => Ok(()),
            [_, _] => wrong("two ranges must be of different families"),
            _ => wrong("at most two ranges"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_ports_are_read_as_upstream_reads_them() {
        for (text, range) in
            [("30000-32767", 30_000..=32_767), ("30000+100", 30_000..=30_100), ("30000", 30_000..=30_000)]
        {
            assert_eq!(port_range(text), Ok(range));
        }
        for text in ["", "2-1", "a-b", "1-70000"] {
            assert!(port_range(text).is_err(), "{text}");
        }
    }
}
