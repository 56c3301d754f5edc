//! Flags of the API: versions, feature gates, addresses of Services.

use clap::{ArgAction, Args};
use ipnet::IpNet;
use portico_machinery::effective_version::EffectiveVersion;
use portico_machinery::expiration::ExpirationEvaluator;
use portico_machinery::features::FeatureGates;
use portico_server::RuntimeConfig;

use super::SettingError;

/// Flags of the API.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("API"))]
pub(crate) struct CoreApi {
    /// IP ranges for cluster IPs of Services: one range, or two of different families.
    #[arg(long, value_name = "CIDRS", value_delimiter = ',', default_value = "10.0.0.0/24")]
    pub(crate) service_cluster_ip_range: Vec<IpNet>,
    /// Port range for node ports of Services, such as 30000-32767 or 30000+100.
    #[arg(long, value_name = "RANGE", value_parser = port_range, default_value = "30000-32767")]
    pub(crate) service_node_port_range: PortRange,
    /// Feature gates as NAME=BOOL, separated by commas.
    ///
    /// AllAlpha and AllBeta set all gates of a stage.
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',')]
    pub(crate) feature_gates: Vec<String>,
    /// APIs to enable or disable as KEY=BOOL, separated by commas.
    ///
    /// Keys are api/all, api/ga, api/beta, api/alpha, GROUP/VERSION and GROUP/VERSION/RESOURCE.
    #[arg(long, value_name = "KEY=BOOL", value_delimiter = ',')]
    pub(crate) runtime_config: Vec<String>,
    /// Kubernetes version to emulate: its APIs, feature gates and their defaults (1.33 to 1.36).
    ///
    /// The value is a version, such as 1.35, or a version with its component, such as kube=1.35.
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    emulated_version: Vec<String>,
    /// Oldest Kubernetes version of other control plane servers with which this server stays compatible.
    ///
    /// Defaults to the version before the emulated version.
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    min_compatibility_version: Vec<String>,
    /// Serve API versions newer than the emulated version if an older version of the same API is served.
    ///
    /// Requires --emulated-version.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    emulation_forward_compatible: bool,
    /// Serve APIs newer than the emulated version if --runtime-config names them.
    ///
    /// Requires --emulated-version.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    runtime_config_emulation_forward_compatible: bool,
    /// Allow privileged containers.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) allow_privileged: bool,
}

/// Range of ports, including both ends.
pub(crate) type PortRange = std::ops::RangeInclusive<u16>;

/// Parses `FIRST-LAST`, `FIRST+COUNT` and a single port, as upstream does.
fn port_range(text: &str) -> Result<PortRange, String> {
    let number = |text: &str| text.trim().parse::<u16>().map_err(|e| format!("{text:?}: {e}"));
    let range = if let Some((first, last)) = text.split_once('-') {
        number(first)?..=number(last)?
    } else if let Some((first, count)) = text.split_once('+') {
        let first = number(first)?;
        first..=first.saturating_add(number(count)?)
    } else {
        number(text)?..=number(text)?
    };
    if range.is_empty() {
        Err(format!("{text:?}: the first port is greater than the last"))
    } else {
        Ok(range)
    }
}

impl CoreApi {
    /// Returns the emulated version and the minimum compatibility version.
    pub(crate) fn version(&self) -> Result<EffectiveVersion, SettingError> {
        EffectiveVersion::parse(&self.emulated_version, &self.min_compatibility_version)
            .map_err(|e| SettingError::new("--emulated-version", e))
    }

    /// Returns the rules that select the served versions of built-in APIs.
    pub(crate) fn api_expiration(&self) -> Result<ExpirationEvaluator, SettingError> {
        let on = |variable| std::env::var(variable).is_ok_and(|value| value == "true");
        Ok(ExpirationEvaluator {
            strict_in_alpha: on("KUBE_APISERVER_STRICT_REMOVED_API_HANDLING_IN_ALPHA"),
            one_more_release: on("KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE"),
            forward_compatible: self.emulation_forward_compatible,
            runtime_config_forward_compatible: self.runtime_config_emulation_forward_compatible,
            ..ExpirationEvaluator::new(self.version()?.emulation)
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
        match switches.into_iter().find(|(_, on)| *on && !version.is_emulating()) {
            Some((flag, _)) => Err(SettingError::new(
                flag,
                "cannot be set to true if the emulation version is the same as the binary version",
            )),
            None => Ok(()),
        }
    }

    /// Returns the feature gates.
    pub(crate) fn features(&self) -> Result<FeatureGates, SettingError> {
        FeatureGates::parse_for_version(self.version()?, self.feature_gates.iter().map(String::as_str))
            .map_err(|e| SettingError::new("--feature-gates", e))
    }

    /// Returns the APIs that are explicitly enabled or disabled.
    pub(crate) fn runtime_config(&self) -> Result<RuntimeConfig, SettingError> {
        RuntimeConfig::parse(self.runtime_config.iter().map(String::as_str))
            .map_err(|e| SettingError::new("--runtime-config", e))
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        self.features()?;
        self.check_version()?;
        portico_server::check_introduced(&self.api_expiration()?, &self.runtime_config()?)
            .map_err(|e| SettingError::new("--runtime-config", e))?;
        self.check_ranges()
    }

    fn check_ranges(&self) -> Result<(), SettingError> {
        let invalid = |message: &str| Err(SettingError::new("--service-cluster-ip-range", message));
        match self.service_cluster_ip_range.as_slice() {
            [] | [_] => Ok(()),
            [a, b] if a.addr().is_ipv4() != b.addr().is_ipv4() => Ok(()),
            [_, _] => invalid("two ranges must be of different IP families, one IPv4 and one IPv6"),
            _ => invalid("at most two ranges are allowed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_ranges_are_parsed_as_upstream_parses_them() {
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
