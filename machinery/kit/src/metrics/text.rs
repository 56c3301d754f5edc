//! Text formats of a scrape, and their negotiation.

use std::collections::HashSet;

/// Format of a scrape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus's text format 0.0.4, the default.
    Text,
    /// OpenMetrics 1.0, if the client requests it.
    OpenMetrics,
}

impl Format {
    /// Returns the format for an `Accept` header: OpenMetrics only if the header names it.
    pub fn from_accept(accept: Option<&str>) -> Self {
        let named = |range: &str| {
            let media = range.split(';').next().unwrap_or_default().trim();
            media.eq_ignore_ascii_case("application/openmetrics-text")
        };
        if accept.is_some_and(|accept| accept.split(',').any(named)) { Self::OpenMetrics } else { Self::Text }
    }

    /// Returns the `Content-Type` of the response.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Sets the type of summaries in the text.
pub(super) fn set_summary_types(text: &mut String, names: &HashSet<String>) {
    for name in names {
        let (prefix, unknown) = (format!("# TYPE {name} "), "unknown");
        if let Some(at) = text.find(&format!("{prefix}{unknown}\n")) {
            let at = at + prefix.len();
            text.replace_range(at..at + unknown.len(), "summary");
        }
    }
}

/// Converts OpenMetrics text to the Prometheus format: counters are described under the name of their samples, the names in
/// `bare_counters` lose the `_total` that OpenMetrics requires, and the end mark is removed.
pub(super) fn from_open_metrics(text: &str, bare_counters: &HashSet<String>) -> String {
    let mut out = String::with_capacity(text.len() + 1024);
    let mut lines = text.lines().peekable();
    let mut bare_now: Option<&str> = None;
    while let Some(line) = lines.next() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or((rest, ""));
            let kind = lines.next_if(|next| next.starts_with("# TYPE "));
            let kind = kind.and_then(|line| line.rsplit(' ').next()).unwrap_or("untyped");
            let kind = if kind == "unknown" { "untyped" } else { kind };
            let suffix = if kind == "counter" && !bare_counters.contains(name) { "_total" } else { "" };
            bare_now = (kind == "counter" && suffix.is_empty()).then_some(name);
            out.push_str(&format!("# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n"));
            continue;
        }
        match bare_now.and_then(|name| Some((name, line.strip_prefix(name)?.strip_prefix("_total")?))) {
            Some((name, sample)) => out.extend([name, sample, "\n"]),
            None => out.extend([line, "\n"]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_is_returned_only_if_named() {
        let prometheus = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
        assert_eq!(Format::from_accept(Some(prometheus)), Format::OpenMetrics);
        for accept in [None, Some("*/*"), Some("text/plain"), Some("application/json")] {
            assert_eq!(Format::from_accept(accept), Format::Text);
        }
    }
}
