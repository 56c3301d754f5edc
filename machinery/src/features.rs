//! Feature gates: upstream's names, their state, and the settings of a command line.
//!
//! Most gates belong to components that Portico does not have (kubelet, scheduler). They are known, so that command lines of
//! kube-apiserver are accepted, and have no effect.

use std::collections::{BTreeMap, BTreeSet};

use crate::effective_version::EffectiveVersion;
use crate::expiration::Release;

/// Upstream's gates.
const TABLE: &str = include_str!("features/gates.txt");
/// Differences of earlier releases, newest first.
const EARLIER_RELEASES: [(Release, &str); 3] = [
    (Release { major: 1, minor: 35 }, include_str!("features/gates-1.35.txt")),
    (Release { major: 1, minor: 34 }, include_str!("features/gates-1.34.txt")),
    (Release { major: 1, minor: 33 }, include_str!("features/gates-1.33.txt")),
];
/// Dependencies between gates.
const DEPENDENCIES: &str = include_str!("features/dependencies.txt");
/// Upstream's component name for the gates of Kubernetes itself.
const COMPONENT: &str = "kube";
/// Heading of gates that a release does not have.
const ABSENT: &str = "absent";
const ALL_ALPHA: &str = "AllAlpha";
const ALL_BETA: &str = "AllBeta";

/// Maturity of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Disabled by default.
    Alpha,
    /// Mostly enabled by default.
    Beta,
    /// Always enabled.
    Ga,
    /// Will be removed.
    Deprecated,
}

impl Stage {
    /// Returns the label value of the metric.
    fn metric_label(self) -> &'static str {
        match self {
            Self::Alpha => "ALPHA",
            Self::Beta => "BETA",
            Self::Ga => "",
            Self::Deprecated => "DEPRECATED",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gate {
    stage: Stage,
    enabled: bool,
    locked: bool,
}

/// Feature gates of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    gates: BTreeMap<&'static str, Gate>,
    /// Gates that the emulated release does not have yet.
    future_gates: BTreeSet<&'static str>,
    version: EffectiveVersion,
}

/// Invalid feature gate setting, with upstream's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeatureError {
    /// Unknown gate.
    #[error("unrecognized feature gate: {0}")]
    Unknown(String),
    /// Setting that is not `Name=value`.
    #[error("missing bool value for {0}")]
    Missing(String),
    /// Value that is neither true nor false.
    #[error(
        "invalid value of {name}={value}, err: strconv.ParseBool: parsing {}: invalid syntax",
        portico_gostd::strconv::quote(value)
    )]
    InvalidBool {
        /// Name of the gate.
        name: String,
        /// Value of the setting.
        value: String,
    },
    /// Gate whose value is locked.
    #[error("cannot set feature gate {name} to {requested}, feature is locked to {locked}")]
    Locked {
        /// Name of the gate.
        name: String,
        /// Requested value.
        requested: bool,
        /// Locked value.
        locked: bool,
    },
    /// Gate of a later release than the emulated one.
    #[error(
        "cannot set feature gate {name} to {requested}, feature is PreAlpha at emulated version {}, min compatibility version {}",
        version.emulation,
        version.min_compatibility
    )]
    PreAlpha {
        /// Name of the gate.
        name: String,
        /// Requested value.
        requested: bool,
        /// Emulated and minimum compatible release.
        version: EffectiveVersion,
    },
    /// Gate of another component.
    #[error("component not registered: {0}")]
    Component(String),
    /// Enabled gate with disabled dependencies.
    #[error("{name} is enabled, but depends on features that are disabled: [{}]", missing.join(" "))]
    Depends {
        /// Name of the gate.
        name: &'static str,
        /// Dependencies that are disabled.
        missing: Vec<&'static str>,
    },
    /// Several errors.
    #[error("{}", crate::aggregate(_0))]
    Several(Vec<Self>),
}

impl FeatureError {
    fn into_result(mut errors: Vec<Self>) -> Result<(), Self> {
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => Err(Self::Several(errors)),
        }
    }
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self::for_version(EffectiveVersion::default())
    }
}

impl FeatureGates {
    /// Returns the default gates of a release.
    #[must_use]
    pub fn for_version(version: EffectiveVersion) -> Self {
        let (mut gates, _) = parse_table(TABLE);
        let mut future_gates = BTreeSet::new();
        // Other code rejects releases that cannot be emulated; here the oldest supported release replaces older ones.
        let oldest = EARLIER_RELEASES.last().map_or(version.emulation, |(release, _)| *release);
        let emulated = version.emulation.max(oldest);
        if let Some((_, text)) = EARLIER_RELEASES.iter().find(|(release, _)| *release == emulated) {
            let (otherwise, absent) = parse_table(text);
            gates.extend(otherwise);
            future_gates = absent;
            gates.retain(|name, _| !future_gates.contains(name));
        }
        Self { gates, future_gates, version }
    }

    /// Parses the gates of this build's release, see [`FeatureGates::parse_for_version`].
    ///
    /// # Errors
    /// [`FeatureError`], as in [`FeatureGates::parse_for_version`].
    pub fn parse<'a>(settings: impl IntoIterator<Item = &'a str>) -> Result<Self, FeatureError> {
        Self::parse_for_version(EffectiveVersion::default(), settings)
    }

    /// Applies the `Name=bool` settings of a command line, in order, to the gates of a release. `AllAlpha` and `AllBeta` apply to
    /// gates that are not named.
    ///
    /// A gate may be named `kube:Name`, because upstream supports the gates of several components.
    ///
    /// # Errors
    /// [`FeatureError`] for the first setting that cannot be parsed, or for all invalid settings.
    pub fn parse_for_version<'a>(
        version: EffectiveVersion,
        settings: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, FeatureError> {
        let mut values: BTreeMap<&str, bool> = BTreeMap::new();
        for setting in settings.into_iter().map(str::trim).filter(|setting| !setting.is_empty()) {
            let missing = || FeatureError::Missing(setting.to_owned());
            let (name, value) = setting.split_once('=').ok_or_else(missing)?;
            let name = match name.split_once(':') {
                Some((COMPONENT, name)) => name,
                Some((other, _)) => return Err(FeatureError::Component(other.to_owned())),
                None => name,
            };
            let wrong = || FeatureError::InvalidBool { name: name.to_owned(), value: value.to_owned() };
            values.insert(name.trim(), parse_bool(value.trim()).ok_or_else(wrong)?);
        }
        let mut gates = Self::for_version(version);
        for (all, stage) in [(ALL_ALPHA, Stage::Alpha), (ALL_BETA, Stage::Beta)] {
            if let Some(on) = values.remove(all) {
                gates
                    .gates
                    .values_mut()
                    .filter(|gate| gate.stage == stage && !gate.locked)
                    .for_each(|g| g.enabled = on);
            }
        }
        FeatureError::into_result(
            values.into_iter().filter_map(|(name, on)| gates.set(name, on).err()).collect(),
        )?;
        gates.check()?;
        Ok(gates)
    }

    /// Checks that the dependencies of enabled gates are enabled.
    fn check(&self) -> Result<(), FeatureError> {
        let lines = DEPENDENCIES.lines().filter(|line| !line.starts_with('#'));
        let on = lines.filter_map(|line| line.split_once(": ")).filter(|(name, _)| self.enabled(name));
        let broken = on.filter_map(|(name, needs)| {
            let missing: Vec<_> = needs.split_whitespace().filter(|need| !self.enabled(need)).collect();
            (!missing.is_empty()).then_some(FeatureError::Depends { name, missing })
        });
        FeatureError::into_result(broken.collect())
    }

    fn set(&mut self, name: &str, requested: bool) -> Result<(), FeatureError> {
        if self.future_gates.contains(name) {
            return Err(FeatureError::PreAlpha { name: name.to_owned(), requested, version: self.version });
        }
        let gate = self.gates.get_mut(name).ok_or_else(|| FeatureError::Unknown(name.to_owned()))?;
        if gate.locked && gate.enabled != requested {
            return Err(FeatureError::Locked { name: name.to_owned(), requested, locked: gate.enabled });
        }
        gate.enabled = requested;
        Ok(())
    }

    /// True if a feature is enabled. False for unknown features.
    #[must_use]
    pub fn enabled(&self, name: &str) -> bool {
        self.gates.get(name).is_some_and(|gate| gate.enabled)
    }

    /// Returns all gates as rows of upstream's metric `kubernetes_feature_enabled`: name and stage, and 1 if enabled.
    #[must_use]
    pub fn rows(&self) -> Vec<([&'static str; 2], i64)> {
        self.iter().map(|(name, stage, on)| ([name, stage.metric_label()], i64::from(on))).collect()
    }

    /// Returns all gates by name, with their stage and true if they are enabled.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Stage, bool)> {
        self.gates.iter().map(|(name, gate)| (*name, gate.stage, gate.enabled))
    }
}

/// Parses a Boolean like Go's `strconv.ParseBool`.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Parses a table. Returns its gates, and the names of absent gates.
fn parse_table(text: &'static str) -> (BTreeMap<&'static str, Gate>, BTreeSet<&'static str>) {
    let (mut gates, mut absent) = (BTreeMap::new(), BTreeSet::new());
    let (mut stage, mut enabled, mut is_there) = (Stage::Alpha, false, true);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let names = match line.split_once(": ") {
            None => line,
            Some((head, names)) => {
                (stage, enabled) = parse_heading(head);
                is_there = head != ABSENT;
                names
            }
        };
        for word in names.split_whitespace() {
            let name = word.trim_end_matches('!');
            if is_there {
                gates.insert(name, Gate { stage, enabled, locked: name != word });
            } else {
                absent.insert(name);
            }
        }
    }
    (gates, absent)
}

fn parse_heading(text: &str) -> (Stage, bool) {
    let stage = match text.split(' ').next() {
        Some("beta") => Stage::Beta,
        Some("ga") => Stage::Ga,
        Some("deprecated") => Stage::Deprecated,
        _ => Stage::Alpha,
    };
    (stage, text.ends_with("on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_have_defaults_and_accept_settings() {
        let gates = FeatureGates::default();
        assert!(gates.enabled("WatchList") && gates.enabled("RetryGenerateName"));
        assert!(!gates.enabled("StorageVersionAPI") && !gates.enabled("Nothing"));
        assert_eq!(gates.iter().count(), 242);
        assert_eq!(gates.check(), Ok(()));
        let gates = FeatureGates::parse(["StorageVersionAPI=true", " WatchList=false "]).unwrap();
        assert!(gates.enabled("StorageVersionAPI") && !gates.enabled("WatchList"));
    }

    #[test]
    fn an_earlier_release_has_its_own_gates_and_defaults() {
        let at = |minor| EffectiveVersion {
            emulation: Release { major: 1, minor },
            min_compatibility: Release { major: 1, minor: 33 },
        };
        for (minor, count) in [(33, 172), (34, 191), (35, 212), (36, 242)] {
            let gates = FeatureGates::for_version(at(minor));
            assert_eq!(gates.iter().count(), count, "1.{minor}");
            assert_eq!(gates.check(), Ok(()));
        }
        let gates = FeatureGates::for_version(at(34));
        assert!(gates.enabled("WatchList") && !gates.enabled("ImageVolume") && !gates.enabled("AtomicFIFO"));
        assert!(!FeatureGates::for_version(at(33)).enabled("WatchList"));
        assert!(
            FeatureGates::parse_for_version(at(34), ["ImageVolume=true"]).unwrap().enabled("ImageVolume")
        );
        let parsed = FeatureGates::parse_for_version(at(34), ["AtomicFIFO=true"]);
        assert_eq!(
            parsed.unwrap_err().to_string(),
            "cannot set feature gate AtomicFIFO to true, feature is PreAlpha at emulated version 1.34, min compatibility version 1.33"
        );
        let all = FeatureGates::parse_for_version(at(34), ["AllAlpha=true", "AllBeta=true"]).unwrap();
        assert!(!all.enabled("AtomicFIFO") && all.enabled("ImageVolume"));
    }

    #[test]
    fn stage_settings_apply_to_gates_that_are_not_named() {
        let gates = FeatureGates::parse(["AllAlpha=true", "EventedPLEG=false"]).unwrap();
        assert!(gates.enabled("StorageVersionAPI") && !gates.enabled("EventedPLEG"));
        let gates = FeatureGates::parse(["AllBeta=true", "WatchList=false"]).unwrap();
        assert!(!gates.enabled("WatchList") && gates.enabled("SidecarContainers"));
    }

    #[test]
    fn invalid_settings_are_rejected_with_upstream_messages() {
        let rows = [
            ("Foo=true", "unrecognized feature gate: Foo"),
            ("wardle:Foo=true", "component not registered: wardle"),
            ("WatchList", "missing bool value for WatchList"),
            (
                "WatchList=maybe",
                "invalid value of WatchList=maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax",
            ),
            (
                "SidecarContainers=false",
                "cannot set feature gate SidecarContainers to false, feature is locked to true",
            ),
        ];
        for (setting, want) in rows {
            assert_eq!(FeatureGates::parse([setting]).unwrap_err().to_string(), want);
        }
        let several = FeatureGates::parse(["SidecarContainers=false", "kube:Unknown=true"]).unwrap_err();
        assert_eq!(
            several.to_string(),
            "[cannot set feature gate SidecarContainers to false, feature is locked to true, unrecognized feature gate: Unknown]"
        );
        let error = FeatureGates::parse(["StorageVersionAPI=true", "APIServerIdentity=false"]).unwrap_err();
        assert!(error.to_string().contains(
            "StorageVersionAPI is enabled, but depends on features that are disabled: [APIServerIdentity]"
        ));
        assert!(FeatureGates::parse(["SidecarContainers=true", ""]).is_ok());
    }
}
