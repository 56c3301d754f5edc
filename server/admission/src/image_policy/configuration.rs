//! Configuration of ImagePolicyWebhook (upstream's `AdmissionConfig`, a file without a kind).

use std::path::{Path, PathBuf};
use std::time::Duration;

use portico_gostd::time::GoDuration;
use portico_machinery::Cursor;
use portico_schema::Format;

use super::backend::ImageBackend;
use crate::configuration_kinds::{PluginConfigurationError, decode_untagged, must_exist};

const TYPES: &str = r#"{
    "AdmissionConfig": {"fields": {"imagePolicy": {"type": "imagePolicyWebhookConfig"}}},
    "imagePolicyWebhookConfig": {"fields": {
        "kubeConfigFile": {"type": "string"}, "allowTTL": {"type": "int64"}, "denyTTL": {"type": "int64"},
        "retryBackoff": {"type": "int64"}, "defaultAllow": {"type": "boolean"}
    }}
}"#;

/// Value that disables a duration.
const DISABLED: i64 = -1;
const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MILLISECOND;
const MINUTE: i64 = 60 * SECOND;

/// Valid range and default of a configured duration, in nanoseconds as in Go.
struct DurationField {
    /// Nanoseconds in one unit of the configured value.
    unit: i64,
    min: i64,
    max: i64,
    default: i64,
}

const RETRY_BACKOFF: DurationField =
    DurationField { unit: MILLISECOND, min: 1, max: 5 * MINUTE, default: 500 * MILLISECOND };
const ALLOW_TTL: DurationField =
    DurationField { unit: SECOND, min: SECOND, max: 30 * MINUTE, default: 5 * MINUTE };
const DENY_TTL: DurationField = DurationField { default: 30 * SECOND, ..ALLOW_TTL };

/// Configuration of ImagePolicyWebhook.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImagePolicyConfiguration {
    /// Kubeconfig whose current context names the backend.
    pub(crate) kube_config_file: Option<PathBuf>,
    /// Backend of that context.
    pub(crate) backend: ImageBackend,
    /// Time for which the verdict that images are allowed is cached.
    pub(super) allow_ttl: Duration,
    /// Time for which the verdict that images are denied is cached.
    pub(super) deny_ttl: Duration,
    /// Delay before the first retry.
    pub(super) retry_backoff: Duration,
    /// True if images are allowed when the backend cannot be called.
    pub(super) default_allow: bool,
}

impl ImagePolicyConfiguration {
    /// Reads a configuration; the plugin cannot be enabled without one.
    pub(crate) fn read(bytes: Option<&[u8]>) -> Result<Self, PluginConfigurationError> {
        let error = |message: &str| PluginConfigurationError::Message(message.to_owned());
        let bytes = bytes.ok_or_else(|| error("no config specified"))?;
        let object = decode_untagged(TYPES, "AdmissionConfig", bytes, Format::Yaml)?;
        let section = object.at(&["imagePolicy"]);
        let retry_backoff = RETRY_BACKOFF.read(&section.field("retryBackoff"))?;
        let allow_ttl = ALLOW_TTL.read(&section.field("allowTTL"))?;
        let deny_ttl = DENY_TTL.read(&section.field("denyTTL"))?;
        let file = section.field("kubeConfigFile").str();
        if file.is_empty() {
            return Err(error("invalid configuration: no configuration has been provided"));
        }
        must_exist(Path::new(file))?;
        Ok(Self {
            kube_config_file: Some(PathBuf::from(file)),
            backend: ImageBackend::default(),
            allow_ttl,
            deny_ttl,
            retry_backoff,
            default_allow: section.field("defaultAllow").bool(),
        })
    }
}

impl DurationField {
    /// Reads a duration (upstream's `normalizeConfigDuration`).
    fn read(&self, at: &Cursor<'_>) -> Result<Duration, PluginConfigurationError> {
        let nanos = match at.i64().unwrap_or_default() {
            DISABLED => return Ok(Duration::ZERO),
            0 => self.default,
            value => value.saturating_mul(self.unit),
        };
        if (self.min..=self.max).contains(&nanos) {
            return Ok(GoDuration(nanos).to_std());
        }
        let [min, max, got] = [self.min, self.max, nanos].map(GoDuration);
        let message = format!("valid value is between {min} and {max}, got {got}");
        Err(PluginConfigurationError::Message(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(section: &str) -> Result<ImagePolicyConfiguration, String> {
        let text = format!("imagePolicy: {{{section}}}");
        ImagePolicyConfiguration::read(Some(text.as_bytes())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_duration_is_the_default_or_disabled_or_the_configured_value() {
        let times = |section: &str| {
            let read = read(&format!("kubeConfigFile: /dev/null, {section}")).unwrap();
            [read.retry_backoff, read.allow_ttl, read.deny_ttl]
                .map(|time| GoDuration::from_std(time).to_string())
        };
        for (section, expected) in [
            ("retryBackoff: 0", ["500ms", "5m0s", "30s"]),
            ("retryBackoff: -1, allowTTL: -1, denyTTL: -1", ["0s", "0s", "0s"]),
            ("retryBackoff: 1, allowTTL: 1, denyTTL: 1", ["1ms", "1s", "1s"]),
            ("retryBackoff: 300000, allowTTL: 1800, denyTTL: 1800", ["5m0s", "30m0s", "30m0s"]),
        ] {
            assert_eq!(times(section), expected, "{section}");
        }
        assert!(!read("kubeConfigFile: /dev/null").unwrap().default_allow);
        assert!(read("kubeConfigFile: /dev/null, defaultAllow: true").unwrap().default_allow);
    }

    #[test]
    fn invalid_values_are_refused_with_upstreams_messages() {
        for (section, error) in [
            ("retryBackoff: 300001", "valid value is between 1ns and 5m0s, got 5m0.001s"),
            ("retryBackoff: -2", "valid value is between 1ns and 5m0s, got -2ms"),
            ("allowTTL: 1801", "valid value is between 1s and 30m0s, got 30m1s"),
            ("denyTTL: -2", "valid value is between 1s and 30m0s, got -2s"),
            ("", "invalid configuration: no configuration has been provided"),
            ("kubeConfigFile: /nosuch", "stat /nosuch: no such file or directory"),
        ] {
            assert_eq!(read(section).err().as_deref(), Some(error), "{section}");
        }
        let none = ImagePolicyConfiguration::read(None);
        assert_eq!(none.unwrap_err().to_string(), "no config specified");
        let huge = read(&format!("denyTTL: {}", i64::MAX)).unwrap_err();
        assert!(huge.starts_with("valid value is between 1s and 30m0s, got "), "{huge}");
        let text = read("retryBackoff: soon").unwrap_err();
        assert!(text.starts_with("json: cannot unmarshal string into Go struct field"), "{text}");
    }
}
