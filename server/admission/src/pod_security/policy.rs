//! What a namespace's labels say: a level and a version for each of what is enforced and what is warned of.

use std::fmt;

use portico_machinery::Object;
use portico_machinery::field::{Error, Path};

const PREFIX: &str = "pod-security.kubernetes.io/";

/// How strict, from nothing on.
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

    fn name(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// A level as a version of upstream knew it: the minor number, or nothing for the latest.
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

/// What is enforced, and what is warned of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: Standard,
    pub(super) warn: Standard,
}

impl Policy {
    /// What the labels say, and what cannot be read of them: that counts as the strictest for enforcement and as nothing
    /// for the others.
    pub(super) fn read(namespace: &Object) -> (Self, Vec<Error>) {
        let mut labels = Labels { namespace, errors: Vec::new() };
        let enforce = labels.level("enforce");
        let enforce_version = labels.version("enforce");
        labels.level("audit");
        labels.version("audit");
        let (warn, warn_version) = (labels.level("warn"), labels.version("warn"));
        let standard = |level, version| Standard { level, version };
        let enforced = match enforce {
            Some(level) => level.unwrap_or(Level::Restricted),
            None => Level::Privileged,
        };
        let warned = match (warn, enforce) {
            (Some(level), _) => standard(level.unwrap_or(Level::Privileged), warn_version.flatten()),
            // Whoever is held to something is warned of it in templates, too.
            (None, Some(Some(level))) if level > Level::Privileged => {
                standard(level, warn_version.unwrap_or_else(|| enforce_version.flatten()))
            }
            (None, _) => standard(Level::Privileged, warn_version.flatten()),
        };
        let policy = Self { enforce: standard(enforced, enforce_version.flatten()), warn: warned };
        (policy, labels.errors)
    }
}

struct Labels<'a> {
    namespace: &'a Object,
    errors: Vec<Error>,
}

impl Labels<'_> {
    /// The level under a label, nothing inside when it cannot be read.
    fn level(&mut self, mode: &str) -> Option<Option<Level>> {
        let (label, text) = self.label(mode.to_owned())?;
        let level = Level::read(&text);
        if level.is_none() {
            self.refuse(&label, &text, "must be one of privileged, baseline, restricted");
        }
        Some(level)
    }

    /// The version under a label; what cannot be read is the latest.
    fn version(&mut self, mode: &str) -> Option<Option<u32>> {
        let (label, text) = self.label(format!("{mode}-version"))?;
        if text == "latest" {
            return Some(None);
        }
        let minor = text.strip_prefix("v1.").filter(|minor| {
            minor.bytes().all(|byte| byte.is_ascii_digit()) && (*minor == "0" || !minor.starts_with('0'))
        });
        let minor = minor.and_then(|minor| minor.parse().ok());
        if minor.is_none() {
            self.refuse(&label, &text, "must be \"latest\" or \"v1.x\"");
        }
        Some(minor)
    }

    fn label(&self, mode: String) -> Option<(String, String)> {
        let label = format!("{PREFIX}{mode}");
        let text = self.namespace.label(&label)?.to_owned();
        Some((label, text))
    }

    fn refuse(&mut self, label: &str, text: &str, why: &str) {
        let path = Path::new("metadata.labels").key(label);
        self.errors.push(Error::invalid(&path, text, why));
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
        let (policy, errors) = Policy::read(&namespace);
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
