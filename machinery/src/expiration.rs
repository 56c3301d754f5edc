//! Resource expiration: decides which API versions a release serves (upstream's `resourceExpirationEvaluator`).

use std::str::FromStr;

use serde::Deserialize;

/// Release of Kubernetes, such as `1.36`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Release {
    /// Major version (1).
    pub major: u32,
    /// Minor version (36).
    pub minor: u32,
}

/// Text that is not `major.minor`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a release such as 1.36", portico_gostd::strconv::quote(.0))]
pub struct InvalidRelease(String);

impl FromStr for Release {
    type Err = InvalidRelease;

    fn from_str(text: &str) -> Result<Self, InvalidRelease> {
        let invalid = || InvalidRelease(text.to_owned());
        let (major, minor) = text.split_once('.').ok_or_else(invalid)?;
        let number = |n: &str| n.parse().map_err(|_| invalid());
        Ok(Self { major: number(major)?, minor: number(minor)? })
    }
}

impl TryFrom<String> for Release {
    type Error = InvalidRelease;

    fn try_from(text: String) -> Result<Self, InvalidRelease> {
        text.parse()
    }
}

/// Releases that introduce and remove an API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// First release with the API; `None` if all releases have it.
    pub introduced: Option<Release>,
    /// First release without the API; `None` if it is not removed.
    pub removed: Option<Release>,
}

/// Decides which APIs a release serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpirationEvaluator {
    /// Release of this build, or the emulated release.
    pub current: Release,
    /// Number of the alpha if this build is one: `1.37.0-alpha.2` has 2.
    pub alpha: Option<u32>,
    /// `KUBE_APISERVER_STRICT_REMOVED_API_HANDLING_IN_ALPHA`: alphas from 1 on do not serve APIs that their release removes.
    pub strict_in_alpha: bool,
    /// `KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE`: APIs that this release removes are served for one more release.
    pub one_more_release: bool,
    /// `--emulation-forward-compatible`: APIs newer than the emulated release are served if an older version of them is.
    pub forward_compatible: bool,
    /// `--runtime-config-emulation-forward-compatible`: newer APIs are served if `--runtime-config` names them.
    pub runtime_config_forward_compatible: bool,
}

impl ExpirationEvaluator {
    /// Creates the evaluator of a release without exceptions.
    #[must_use]
    pub fn new(current: Release) -> Self {
        Self {
            current,
            alpha: None,
            strict_in_alpha: false,
            one_more_release: false,
            forward_compatible: false,
            runtime_config_forward_compatible: false,
        }
    }

    /// True if an API has not been removed.
    #[must_use]
    pub fn is_not_removed(&self, api: &Lifecycle) -> bool {
        api.removed.is_none_or(|release| self.still_serves(release))
    }

    /// True if an API has been introduced.
    #[must_use]
    pub fn is_introduced(&self, api: &Lifecycle) -> bool {
        api.introduced.is_none_or(|release| release <= self.current)
    }

    fn still_serves(&self, removed: Release) -> bool {
        if removed != self.current {
            return removed > self.current;
        }
        let lenient_alpha = self.alpha.is_some_and(|n| n == 0 || !self.strict_in_alpha);
        lenient_alpha || self.one_more_release
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(text: &str) -> Release {
        text.parse().unwrap()
    }

    #[test]
    fn removed_apis_are_served_as_upstream_does() {
        let plain = ExpirationEvaluator::new(release("1.36"));
        let alpha = |n, strict_in_alpha| ExpirationEvaluator { alpha: Some(n), strict_in_alpha, ..plain };
        let rows = [
            (plain, "1.37", true),
            (plain, "1.35", false),
            (plain, "1.36", false),
            (ExpirationEvaluator { one_more_release: true, ..plain }, "1.36", true),
            (ExpirationEvaluator { one_more_release: true, ..plain }, "1.35", false),
            (alpha(2, false), "1.36", true),
            (alpha(0, true), "1.36", true),
            (alpha(2, true), "1.36", false),
            (alpha(2, false), "1.35", false),
        ];
        for (evaluator, removed, want) in rows {
            let api = Lifecycle { removed: Some(release(removed)), ..Lifecycle::default() };
            assert_eq!(evaluator.is_not_removed(&api), want, "{evaluator:?} {removed}");
        }
    }

    #[test]
    fn future_apis_are_not_served() {
        let plain = ExpirationEvaluator::new(release("1.36"));
        let api = |at| Lifecycle { introduced: Some(release(at)), ..Lifecycle::default() };
        assert!(plain.is_introduced(&api("1.36")) && plain.is_introduced(&Lifecycle::default()));
        assert!(!plain.is_introduced(&api("1.37")));
        assert!("1".parse::<Release>().is_err() && "1.x".parse::<Release>().is_err());
    }
}
