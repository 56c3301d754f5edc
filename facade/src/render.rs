//! Conversion of JSON bodies: indentation, YAML and compression.
//!
//! Only the encoding changes; the control service produces the forms of objects (table, metadata). Does not depend on the meaning
//! of the JSON.

mod indent;
mod renderer;
mod rendering;
mod yaml;

pub use indent::pretty;
pub use renderer::Renderer;
pub use rendering::{GZIP_ABOVE, Layout, RenderedBody, Rendering};
pub use yaml::yaml;

use portico_gostd::url::first_value;

/// Levels that are indented in JSON (`?pretty`) and have lines of their own in YAML.
///
/// Without a limit the output grows with the depth times the number of values.
///
/// Limit (Serving): deeper levels are written on one line.
const MAX_LEVELS: usize = 100;

/// Style of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonStyle {
    /// One line and a newline.
    Compact,
    /// Indented by two spaces, without a final newline.
    Pretty,
}

impl JsonStyle {
    /// Parses `?pretty=` as a Go bool; without a value, interactive programs get indented JSON (8.5).
    #[must_use]
    pub fn negotiate(query: &str, user_agent: &str) -> Self {
        let requested = (!query.is_empty()).then(|| first_value(query, "pretty")).flatten();
        let parameter = requested.filter(|value| !value.is_empty());
        let pretty = match parameter.as_deref() {
            None => ["curl", "Wget", "Mozilla/5.0"].iter().any(|agent| user_agent.starts_with(agent)),
            Some("1" | "t" | "T" | "true" | "TRUE" | "True") => true,
            Some(_) => false,
        };
        if pretty { Self::Pretty } else { Self::Compact }
    }
}

/// True if an element of `Accept-Encoding` is exactly `gzip` (8.4).
#[must_use]
pub fn accepts_gzip(accept_encoding: &str) -> bool {
    accept_encoding.split(',').any(|element| element.trim() == "gzip")
}

/// JSON of an object with 500 levels and about `bytes` bytes, almost all of them in the deepest level.
#[cfg(test)]
fn wide_and_deep(bytes: usize) -> String {
    let list = vec!["1"; bytes / 2].join(",");
    format!("{}[{list}]{}", "{\"a\":".repeat(499), "}".repeat(499))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pretty_is_decided_by_the_query_and_then_by_the_program() {
        for (query, agent, want) in [
            ("", "curl/8.0", JsonStyle::Pretty),
            ("", "Wget/1", JsonStyle::Pretty),
            ("", "Mozilla/5.0 (X11)", JsonStyle::Pretty),
            ("", "kubectl/v1", JsonStyle::Compact),
            ("pretty=0", "curl/8.0", JsonStyle::Compact),
            ("pretty=nope", "curl/8.0", JsonStyle::Compact),
            ("pretty", "curl/8.0", JsonStyle::Pretty),
            ("pretty=", "curl/8.0", JsonStyle::Pretty),
            ("pretty=", "kubectl/v1", JsonStyle::Compact),
            ("a=b&pretty=True", "kubectl/v1", JsonStyle::Pretty),
        ] {
            assert_eq!(JsonStyle::negotiate(query, agent), want, "{query} {agent}");
        }
    }

    #[test]
    fn only_a_bare_gzip_element_counts() {
        assert!(accepts_gzip("deflate, gzip"));
        assert!(!accepts_gzip("gzip;q=1, br"));
        assert!(!accepts_gzip(""));
    }
}
