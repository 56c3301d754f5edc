//! Flag of tracing, and its configuration file (TracingConfiguration of apiserver.config.k8s.io).

use std::path::PathBuf;

use clap::Args;
use portico_kit::spans::SpanSettings;
use serde::Deserialize;

use super::SettingError;
use super::files::read;

const SETTING: &str = "--tracing-config-file";
const GROUP: &str = "apiserver.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
/// Default endpoint of the OpenTelemetry collector.
const DEFAULT_ENDPOINT: &str = "localhost:4317";
const MILLION: i32 = 1_000_000;

/// Flags of tracing.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Logging, metrics and tracing"))]
pub(crate) struct Tracing {
    /// TracingConfiguration file (YAML or JSON) that enables tracing of requests.
    ///
    /// The file sets the OpenTelemetry collector and the sampling rate. Without this flag, no spans are exported.
    #[arg(long, value_name = "FILE")]
    pub(crate) tracing_config_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Configuration {
    api_version: String,
    kind: String,
    endpoint: Option<String>,
    sampling_rate_per_million: Option<i32>,
}

impl Tracing {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        self.spans().map(drop)
    }

    /// Returns the settings of the span exporter, or `None` if no file is configured.
    pub(crate) fn spans(&self) -> Result<Option<SpanSettings>, SettingError> {
        let Some(file) = &self.tracing_config_file else { return Ok(None) };
        let text = String::from_utf8_lossy(&read(SETTING, file)?).into_owned();
        settings(&text).map(Some).map_err(|e| SettingError::new(SETTING, format!("{}: {e}", file.display())))
    }
}

fn settings(text: &str) -> Result<SpanSettings, String> {
    let file: Configuration = serde_saphyr::from_str(text).map_err(|e| {
        format!("failed to read tracing config: unable to decode tracing configuration data: {e}")
    })?;
    let is_known = VERSIONS.iter().any(|version| file.api_version == format!("{GROUP}/{version}"));
    if !is_known || file.kind != "TracingConfiguration" {
        let (kind, version) = (file.kind, file.api_version);
        return Err(format!(
            "failed to read tracing config: unable to decode tracing configuration data: no kind {kind:?} is registered \
             for version {version:?}"
        ));
    }
    let invalid = |e: String| format!("failed to validate tracing configuration: {e}");
    let rate = file.sampling_rate_per_million.unwrap_or(0);
    let rate_is =
        |reason: &str| Err(invalid(format!("samplingRatePerMillion: Invalid value: {rate}: {reason}")));
    if rate < 0 {
        return rate_is("sampling rate must be positive");
    }
    if rate > MILLION {
        return rate_is("sampling rate per million must be less than or equal to one million");
    }
    let endpoint = file.endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT);
    Ok(SpanSettings {
        endpoint: url(endpoint).map_err(invalid)?,
        sampling_ratio: f64::from(rate) / f64::from(MILLION),
    })
}

/// Converts a gRPC target to a URL. Accepts what upstream accepts, except abstract sockets.
fn url(endpoint: &str) -> Result<String, String> {
    let invalid = |reason: String| Err(format!("endpoint: Invalid value: {endpoint:?}: {reason}"));
    let Some((scheme, rest)) = endpoint.split_once("://") else { return Ok(format!("http://{endpoint}")) };
    match scheme {
        // The name server is the part before the last slash.
        "dns" => Ok(format!("http://{}", rest.rsplit_once('/').map_or(rest, |(_, host)| host))),
        "unix" => Ok(endpoint.to_owned()),
        "unix-abstract" => {
            invalid("abstract sockets are not supported; use unix, dns or HOST:PORT".to_owned())
        }
        other => invalid(format!(
            "unsupported scheme: {other}.  Options are none, dns, unix, or unix-abstract.  See \
             https://github.com/grpc/grpc/blob/master/doc/naming.md"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &str) -> Result<SpanSettings, String> {
        settings(&format!("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n{fields}"))
    }

    #[test]
    fn endpoints_are_grpc_targets() {
        for (endpoint, url) in [
            ("collector:4317", "http://collector:4317"),
            ("dns:///collector:4317", "http://collector:4317"),
            ("dns://1.1.1.1/collector:4317", "http://collector:4317"),
            ("unix:///run/otel.sock", "unix:///run/otel.sock"),
        ] {
            assert_eq!(read(&format!("endpoint: {endpoint}")).unwrap().endpoint, url);
        }
        assert_eq!(
            read("").unwrap(),
            SpanSettings { endpoint: "http://localhost:4317".to_owned(), sampling_ratio: 0.0 }
        );
        assert_eq!(read("samplingRatePerMillion: 500000").unwrap().sampling_ratio, 0.5);
    }

    #[test]
    fn invalid_files_are_rejected_with_upstream_messages() {
        for (fields, why) in [
            ("endpoint: http://collector:4317", "unsupported scheme: http.  Options are none, dns, unix"),
            ("samplingRatePerMillion: -1", "Invalid value: -1: sampling rate must be positive"),
            ("samplingRatePerMillion: 1000001", "must be less than or equal to one million"),
            ("sampling: 1", "unable to decode tracing configuration data"),
        ] {
            let error = read(fields).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let other = settings("apiVersion: apiserver.config.k8s.io/v2\nkind: TracingConfiguration");
        assert!(other.unwrap_err().contains("no kind \"TracingConfiguration\" is registered"));
    }
}
