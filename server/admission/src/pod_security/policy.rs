//! Policy of a namespace: a level and a version for each of the modes enforce, audit and warn.

use std::fmt;

use portico_machinery::Object;
use portico_machinery::field::{Error, Path};

const PREFIX: &str = "pod-security.kubernetes.io/";

/// Level of a pod security standard, from the least to the most restrictive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    fn read(text: &str) -> Option<Self> {
        [Self::Privileged, Self::Baseline, Self::Restricted].into_iter().find(|level| level.name() == text)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// Level in a version of upstream; the version is a minor number, or `None` for the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standard {
    pub(super) level: Level,
    pub(super) version: Option<u32>,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(minor) => write!(f, "{}:v1.{minor}", self.level.name()),
            None => write!(f, "{}:latest", self.level.name()),
        }
    }
}

/// Standards that are enforced, noted in the audit log, and warned about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: Standard,
    pub(super) audit: Standard,
    pub(super) warn: Standard,
}

impl Default for Policy {
    fn default() -> Self {
        let privileged = Standard { level: Level::Privileged, version: None };
        Self { enforce: privileged, audit: privileged, warn: privileged }
    }
}

impl Policy {
    /// Reads the policy from labels; the default applies to missing labels. Also returns the errors of invalid labels. An invalid
    /// level counts as restricted for enforcement and as privileged otherwise (upstream's `PolicyToEvaluate`).
    pub(super) fn read(namespace: &Object, default: Self) -> (Self, Vec<Error>) {
        let mut labels = Labels { namespace, errors: Vec::new() };
        let mut policy = default;
        let enforce = labels.level("enforce");
        policy.enforce.level =
            enforce.map_or(default.enforce.level, |level| level.unwrap_or(Level::Restricted));
        labels.version("enforce", &mut policy.enforce.version);
        let or_nothing = |level: Option<Level>| level.unwrap_or(Level::Privileged);
        policy.audit.level = labels.level("audit").map_or(default.audit.level, or_nothing);
        labels.version("audit", &mut policy.audit.version);
        let warn = labels.level("warn");
        policy.warn.level = warn.map_or(default.warn.level, or_nothing);
        let has_warn_version = labels.version("warn", &mut policy.warn.version);
        // A stricter level that is enforced on pods also produces warnings about templates.
        if warn.is_none() && enforce.flatten().is_some_and(|level| level > policy.warn.level) {
            policy.warn.level = policy.enforce.level;
            if !has_warn_version {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, labels.errors)
    }

    /// True if all modes are privileged, so that the policy has no effect.
    pub(super) fn is_privileged(&self) -> bool {
        self.standards().iter().all(|standard| standard.level == Level::Privileged)
    }

    /// True if both policies have the same effect (upstream's `Equivalent`).
    pub(super) fn is_equivalent(&self, other: &Self) -> bool {
        let is_same = |(first, other): (&Standard, &Standard)| {
            first == other || first.level == Level::Privileged && other.level == Level::Privileged
        };
        self.standards().iter().zip(&other.standards()).all(is_same)
    }

    /// Lists the levels above privileged that a namespace's labels set, in upstream's format.
    pub(super) fn summary(&self, namespace: &Object) -> String {
        let is_labelled = |mode: &str| {
            let label = |suffix: &str| namespace.label(&format!("{PREFIX}{mode}{suffix}"));
            label("").or_else(|| label("-version")).is_some()
        };
        let modes = ["enforce", "audit", "warn"].into_iter().zip(self.standards());
        let set = modes.filter(|(mode, standard)| standard.level != Level::Privileged && is_labelled(mode));
        set.map(|(mode, standard)| format!("{mode}={standard}")).collect::<Vec<_>>().join(", ")
    }

    fn standards(&self) -> [Standard; 3] {
        [self.enforce, self.audit, self.warn]
    }
}

/// Parses the name of a level.
pub(super) fn parse_level(text: &str) -> Result<Level, &'static str> {
    Level::read(text).ok_or("must be one of privileged, baseline, restricted")
}

/// Parses a version; `None` for the latest.
pub(super) fn parse_version(text: &str) -> Result<Option<u32>, &'static str> {
    if text == "latest" {
        return Ok(None);
    }
    let minor = text.strip_prefix("v1.").filter(|minor| {
        minor.bytes().all(|byte| byte.is_ascii_digit()) && (*minor == "0" || !minor.starts_with('0'))
    });
    minor.and_then(|minor| minor.parse().ok()).map(Some).ok_or("must be \"latest\" or \"v1.x\"")
}

struct Labels<'a> {
    namespace: &'a Object,
    errors: Vec<Error>,
}

impl Labels<'_> {
    /// Reads the level in a label: `None` without a label, `Some(None)` if the label is invalid.
    fn level(&mut self, mode: &str) -> Option<Option<Level>> {
        let (label, text) = self.label(mode.to_owned())?;
        let read = parse_level(&text);
        Some(read.map_err(|error| self.refuse(&label, &text, error)).ok())
    }

    /// Reads the version in a label, if it exists; an invalid version counts as the latest. Returns true if the label exists.
    fn version(&mut self, mode: &str, into: &mut Option<u32>) -> bool {
        let Some((label, text)) = self.label(format!("{mode}-version")) else { return false };
        *into = parse_version(&text).map_err(|error| self.refuse(&label, &text, error)).unwrap_or(None);
        true
    }

    fn label(&self, mode: String) -> Option<(String, String)> {
        let label = format!("{PREFIX}{mode}");
        let text = self.namespace.label(&label)?.to_owned();
        Some((label, text))
    }

    fn refuse(&mut self, label: &str, text: &str, message: &str) {
        let path = Path::new("metadata.labels").key(label);
        self.errors.push(Error::invalid(&path, text, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(labels: &[(&str, &str)]) -> (String, String, usize) {
        let mut namespace = Object::default();
        for (label, value) in labels {
            namespace.set(&["metadata", "labels", &format!("{PREFIX}{label}")], value);
        }
        let (policy, errors) = Policy::read(&namespace, Policy::default());
        (policy.enforce.to_string(), policy.warn.to_string(), errors.len())
    }

    #[test]
    fn labels_are_read_as_upstream_reads_them() {
        for (labels, enforce, warn, errors) in [
            (&[][..], "privileged:latest", "privileged:latest", 0),
            (&[("enforce", "baseline")], "baseline:latest", "baseline:latest", 0),
            (&[("enforce", "baseline"), ("enforce-version", "v1.24")], "baseline:v1.24", "baseline:v1.24", 0),
            (&[("enforce", "baseline"), ("warn", "restricted")], "baseline:latest", "restricted:latest", 0),
            (&[("enforce", "baseline"), ("warn", "privileged")], "baseline:latest", "privileged:latest", 0),
            (&[("enforce", "strict")], "restricted:latest", "privileged:latest", 1),
            (&[("warn", "strict"), ("audit-version", "v1.01")], "privileged:latest", "privileged:latest", 2),
            (&[("enforce-version", "1.2")], "privileged:latest", "privileged:latest", 1),
        ] {
            assert_eq!(read(labels), (enforce.to_owned(), warn.to_owned(), errors), "{labels:?}");
        }
    }
}
