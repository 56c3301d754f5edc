//! Flags of metrics (component-base's `metrics.Options`).

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use clap::Args;
use portico_gostd::os::error_text;
use portico_kit::metrics::MetricChoice;
use regex::Regex;

use super::SettingError;

const NAME: &str = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const LABEL: &str = "[a-zA-Z_][a-zA-Z0-9_]*";
/// Previous minor version of Kubernetes.
const PREVIOUS: &str = "1.35";

/// Flags of metrics.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Logging, metrics and tracing"))]
pub(crate) struct Metrics {
    /// Allowed values of a metric label, as METRIC,LABEL=VALUE,VALUE (repeatable).
    ///
    /// Other values are reported as "unexpected". To give several pairs in one flag, put each in double quotes and
    /// separate them with commas.
    #[arg(long, value_name = "METRIC,LABEL=VALUES", value_parser = pairs)]
    pub(crate) allow_metric_labels: Vec<Pairs>,
    /// YAML file with the content of --allow-metric-labels.
    ///
    /// Each entry has the form "metric,label": "value,value". Cannot be combined with --allow-metric-labels.
    #[arg(long, value_name = "FILE")]
    pub(crate) allow_metric_labels_manifest: Option<PathBuf>,
    /// Full names of metrics that are not exposed, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) disabled_metrics: Vec<String>,
    /// Kubernetes version whose hidden metrics are exposed; only the previous minor version, 1.35, is allowed.
    #[arg(long, value_name = "VERSION")]
    pub(crate) show_hidden_metrics_for_version: Option<String>,
}

/// Allowed label values, separated by commas, by `METRIC,LABEL`.
pub(crate) type Pairs = BTreeMap<String, String>;

impl Metrics {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        self.choice().map(drop)
    }

    /// Returns the metrics and label values to expose.
    pub(crate) fn choice(&self) -> Result<MetricChoice, SettingError> {
        self.check_version()?;
        self.check_names()?;
        let mut choice = MetricChoice {
            show_hidden: self.show_hidden_metrics_for_version.as_deref().is_some_and(|v| !v.is_empty()),
            disabled: self.disabled_metrics.iter().cloned().collect(),
            ..MetricChoice::default()
        };
        for (key, values) in self.allowed_label_values()? {
            // `check_keys` ensures that the key contains a comma.
            let Some((metric, label)) = key.split_once(',') else { continue };
            let values: HashSet<String> = values.split(',').map(str::to_owned).collect();
            choice.allowed_values.entry(metric.to_owned()).or_default().insert(label.to_owned(), values);
        }
        Ok(choice)
    }

    fn allowed_label_values(&self) -> Result<Pairs, SettingError> {
        let flag: Pairs =
            self.allow_metric_labels.iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
        check_keys(&flag).map_err(|e| SettingError::new("--allow-metric-labels", e))?;
        let Some(file) = &self.allow_metric_labels_manifest else { return Ok(flag) };
        let invalid = |e: String| SettingError::new("--allow-metric-labels-manifest", e);
        if !flag.is_empty() {
            return Err(invalid(
                "cannot specify both allowListMapping and allowListMappingManifest".to_owned(),
            ));
        }
        manifest(file).map_err(invalid)
    }

    fn check_version(&self) -> Result<(), SettingError> {
        match self.show_hidden_metrics_for_version.as_deref() {
            None | Some("" | PREVIOUS) => Ok(()),
            Some(other) => Err(SettingError::new(
                "--show-hidden-metrics-for-version",
                format!(
                    "invalid value {other:?}: must be omitted or have the value '{PREVIOUS}'; only the previous minor \
                     version is allowed"
                ),
            )),
        }
    }

    fn check_names(&self) -> Result<(), SettingError> {
        let Some(invalid_name) = self.disabled_metrics.iter().find(|name| !matches(NAME, name)) else {
            return Ok(());
        };
        let names =
            format!("must be fully qualified metric names matching \"^{NAME}$\", got {invalid_name:?}");
        Err(SettingError::new("--disabled-metrics", names))
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(&format!("^{pattern}$")).is_ok_and(|pattern| pattern.is_match(text))
}

fn check_keys(pairs: &Pairs) -> Result<(), String> {
    match pairs.keys().all(|key| matches(&format!("{NAME},{LABEL}"), key)) {
        true => Ok(()),
        false => Err(format!(
            "must have keys with format `metricName,labelName` where metricName matches {NAME:?} and labelName matches \
             {LABEL:?}"
        )),
    }
}

fn manifest(file: &Path) -> Result<Pairs, String> {
    let path = file.display();
    let text = portico_kit::config_file::read_text(file)
        .map_err(|e| format!("failed to read allow list manifest: {path}: {}", error_text(&e)))?;
    let pairs: Pairs = serde_saphyr::from_str(&text)
        .map_err(|e| format!("failed to parse allow list manifest: {path}: {e}"))?;
    check_keys(&pairs).map_err(|e| format!("invalid allow list mapping in manifest: {path}: {e}"))?;
    Ok(pairs)
}

/// Parses a value of `--allow-metric-labels` as pflag's `stringToString` does: a single pair, or a CSV line of several pairs.
fn pairs(text: &str) -> Result<Pairs, String> {
    let fields = match text.matches('=').count() {
        0 => return Err(format!("{text} must be formatted as key=value")),
        1 => vec![text.trim_matches('"').to_owned()],
        _ => fields(text)?,
    };
    let pair = |field: &String| {
        let (key, value) =
            field.split_once('=').ok_or_else(|| format!("{field} must be formatted as key=value"))?;
        Ok((key.to_owned(), value.to_owned()))
    };
    fields.iter().map(pair).collect()
}

/// Returns the fields of a CSV line.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let (mut fields, mut remaining) = (Vec::new(), line);
    loop {
        let (field, after) = match remaining.strip_prefix('"') {
            None => {
                let end = remaining.find(',').unwrap_or(remaining.len());
                if remaining[..end].contains('"') {
                    return Err("bare \" in non-quoted field".to_owned());
                }
                (remaining[..end].to_owned(), &remaining[end..])
            }
            Some(quoted) => quoted_field(quoted)?,
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(after_comma) => remaining = after_comma,
            None if after.is_empty() => return Ok(fields),
            None => return Err("extraneous or missing \" in quoted field".to_owned()),
        }
    }
}

/// Returns the content of a quoted field, in which a doubled quote is an escaped quote, and the text after the field.
fn quoted_field(mut rest: &str) -> Result<(String, &str), String> {
    let mut field = String::new();
    loop {
        let Some((before, after)) = rest.split_once('"') else {
            return Err("extraneous or missing \" in quoted field".to_owned());
        };
        field.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return Ok((field, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        pairs(text).unwrap().into_iter().collect()
    }

    #[test]
    fn pairs_are_parsed_as_pflag_parses_them() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(read("m,l=a,b"), [pair("m,l", "a,b")]);
        assert_eq!(read("\"m,l=a,b\""), [pair("m,l", "a,b")]);
        assert_eq!(read("\"m,l=a,b\",\"n,l=c\""), [pair("m,l", "a,b"), pair("n,l", "c")]);
        assert_eq!(read("\"m,l=a\"\"b\",\"n,l=\""), [pair("m,l", "a\"b"), pair("n,l", "")]);
        for text in ["m,l", "m,l=a,n,l=b", "\"m=a\"x,\"n=b\"", "\"m=a,n=b"] {
            assert!(pairs(text).is_err(), "{text}");
        }
    }
}
