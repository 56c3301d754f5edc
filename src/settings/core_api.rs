//! Settings of the core API: addresses of Services, keys of tokens, what pods may be.

use clap::{ArgAction, Args};
use ipnet::IpNet;
use portico_machinery::effective_version::EffectiveVersion;
use portico_machinery::expiration::Evaluator;
use portico_machinery::features::FeatureGates;
use portico_server::RuntimeConfig;

use super::SettingError;

/// Settings of the core API.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Core API"))]
pub(crate) struct CoreApi {
    /// Ranges of Services' cluster addresses: one, or two of different families.
    #[arg(long, value_name = "CIDRS", value_delimiter = ',', default_value = "10.0.0.0/24")]
    pub(crate) service_cluster_ip_range: Vec<IpNet>,
    /// Ports on nodes that Services get theirs from, such as 30000-32767 or 30000+100.
    #[arg(long, value_name = "RANGE", value_parser = port_range, default_value = "30000-32767")]
    pub(crate) service_node_port_range: PortRange,
    /// Features to turn on or off, as Name=true or Name=false; AllAlpha and AllBeta stand for all of a stage.
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',')]
    pub(crate) feature_gates: Vec<String>,
    /// Group versions and resources to serve or not: api/all, api/ga, api/beta, api/alpha, group/version or
    /// group/version/resource, each with =true or =false.
    #[arg(long, value_name = "KEY=BOOL", value_delimiter = ',')]
    pub(crate) runtime_config: Vec<String>,
    /// The release to behave as: its APIs, its feature gates and their defaults; 1.33 to 1.36, alone or as kube=1.35.
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    emulated_version: Vec<String>,
    /// The oldest release of which other servers of the control plane may be; the one before the emulated one by default.
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    min_compatibility_version: Vec<String>,
    /// Serve APIs that are newer than the emulated release where an older version of them is served.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    emulation_forward_compatible: bool,
    /// Serve APIs that are newer than the emulated release where --runtime-config names them.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    runtime_config_emulation_forward_compatible: bool,
    /// Allow privileged containers.
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
    /// The release to behave as, and the oldest to get on with.
    pub(crate) fn version(&self) -> Result<EffectiveVersion, SettingError> {
        EffectiveVersion::parse(&self.emulated_version, &self.min_compatibility_version)
            .map_err(|e| SettingError::new("--emulated-version", e))
    }

    /// Which versions of built-in APIs are served.
    pub(crate) fn expiration(&self) -> Result<Evaluator, SettingError> {
        let on = |variable| std::env::var(variable).is_ok_and(|value| value == "true");
        Ok(Evaluator {
            strict_in_alpha: on("KUBE_APISERVER_STRICT_REMOVED_API_HANDLING_IN_ALPHA"),
            one_more_release: on("KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE"),
            forward_compatible: self.emulation_forward_compatible,
            runtime_config_forward_compatible: self.runtime_config_emulation_forward_compatible,
            ..Evaluator::new(self.version()?.emulation)
        })
    }

    fn check_version(&self) -> Result<(), SettingError> {
        let version = self.version()?;
        version.validate().map_err(|e| SettingError::new("--emulated-version", e))?;
        let switches = [
            ("--emulation-forward-compatible", self.emulation_forward_compatible),
            (
                "--runtime-config-emulation-forward-compatible",
                self.runtime_config_emulation_forward_compatible,
            ),
        ];
        match switches.into_iter().find(|(_, on)| *on && !version.emulates()) {
            Some((flag, _)) => Err(SettingError::new(
                flag,
                "cannot be set to true if the emulation version is the same as the binary version",
            )),
            None => Ok(()),
        }
    }

    /// The feature gates.
    pub(crate) fn features(&self) -> Result<FeatureGates, SettingError> {
        FeatureGates::parse_at(self.version()?, self.feature_gates.iter().map(String::as_str))
            .map_err(|e| SettingError::new("--feature-gates", e))
    }

    /// What is served beside, or less than, the default.
    pub(crate) fn served(&self) -> Result<RuntimeConfig, SettingError> {
        RuntimeConfig::parse(self.runtime_config.iter().map(String::as_str))
            .map_err(|e| SettingError::new("--runtime-config", e))
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        self.features()?;
        self.check_version()?;
        portico_server::check_introduced(&self.expiration()?, &self.served()?)
            .map_err(|e| SettingError::new("--runtime-config", e))?;
        self.check_ranges()
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
