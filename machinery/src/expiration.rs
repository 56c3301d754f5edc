//! Resource expiration: which versions of an API a release still serves, and which it serves yet (upstream's `resourceExpirationEvaluator`).

use std::str::FromStr;

use serde::Deserialize;

/// A release of Kubernetes: `1.36`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Release {
    /// 1
    pub major: u32,
    /// 36
    pub minor: u32,
}

/// A text that is no `major.minor`.
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

/// When an API came and when it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// The first release that has it; nothing: always.
    pub introduced: Option<Release>,
    /// The first release without it; nothing: never.
    pub removed: Option<Release>,
}

/// Decides what a release serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evaluator {
    /// The release that this build is, or emulates.
    pub current: Release,
    /// The number of the alpha, when the build is one: `1.37.0-alpha.2` has 2.
    pub alpha: Option<u32>,
    /// `KUBE_APISERVER_STRICT_REMOVED_API_HANDLING_IN_ALPHA`: alphas from 1 on no longer serve what their release drops.
    pub strict_in_alpha: bool,
    /// `KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE`: what this release drops is served once more.
    pub one_more_release: bool,
    /// `--emulation-forward-compatible`: what is newer than the emulated release is served where an older version of it is.
    pub forward_compatible: bool,
    /// `--runtime-config-emulation-forward-compatible`: what is newer is served where it is asked for by name.
    pub runtime_config_forward_compatible: bool,
}

impl Evaluator {
    /// The rules of a release without any exception.
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

    /// Whether an API has not gone.
    #[must_use]
    pub fn keeps(&self, api: &Lifecycle) -> bool {
        api.removed.is_none_or(|at| self.still_serves(at))
    }

    /// Whether an API has come.
    #[must_use]
    pub fn has(&self, api: &Lifecycle) -> bool {
        api.introduced.is_none_or(|at| at <= self.current)
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
    fn what_a_release_drops_is_served_as_upstream_serves_it() {
        let plain = Evaluator::new(release("1.36"));
        let alpha = |n, strict_in_alpha| Evaluator { alpha: Some(n), strict_in_alpha, ..plain };
        let rows = [
            (plain, "1.37", true),
            (plain, "1.35", false),
            (plain, "1.36", false),
            (Evaluator { one_more_release: true, ..plain }, "1.36", true),
            (Evaluator { one_more_release: true, ..plain }, "1.35", false),
            (alpha(2, false), "1.36", true),
            (alpha(0, true), "1.36", true),
            (alpha(2, true), "1.36", false),
            (alpha(2, false), "1.35", false),
        ];
        for (evaluator, removed, want) in rows {
            let api = Lifecycle { removed: Some(release(removed)), ..Lifecycle::default() };
            assert_eq!(evaluator.keeps(&api), want, "{evaluator:?} {removed}");
        }
    }

    #[test]
    fn what_is_yet_to_come_is_not_there() {
        let plain = Evaluator::new(release("1.36"));
        let api = |at| Lifecycle { introduced: Some(release(at)), ..Lifecycle::default() };
        assert!(plain.has(&api("1.36")) && plain.has(&Lifecycle::default()));
        assert!(!plain.has(&api("1.37")));
        assert!("1".parse::<Release>().is_err() && "1.x".parse::<Release>().is_err());
    }
}
