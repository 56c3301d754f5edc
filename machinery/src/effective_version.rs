//! Emulated release of a server, and the oldest release with which it is compatible (upstream's `EffectiveVersion`).

use std::fmt;

use crate::expiration::Release;

/// Kubernetes release that this build follows.
pub const KUBERNETES: Release = Release { major: 1, minor: 36 };
/// Kubernetes release with its patch version.
pub const KUBERNETES_PATCH: &str = "1.36.3";
/// Number of earlier releases that a server can emulate (`kubeEffectiveVersionFloors`).
const EMULATED_RELEASES: u32 = 3;
/// Upstream's component name for versions of Kubernetes itself.
const COMPONENT: &str = "kube";

/// Emulated release and minimum compatible release of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectiveVersion {
    /// Release whose behavior is emulated (`--emulated-version`).
    pub emulation: Release,
    /// Oldest release that other servers may have (`--min-compatibility-version`).
    pub min_compatibility: Release,
}

/// Invalid version setting, with upstream's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// Text that is not a number.
    #[error("could not parse {} as version", portico_gostd::strconv::quote(.0))]
    Unreadable(String),
    /// Missing minor version.
    #[error("illegal version string {}", portico_gostd::strconv::quote(.0))]
    Illegal(String),
    /// Patch version, which a release does not have.
    #[error("patch version not allowed, got: {0}={1}")]
    Patch(String, String),
    /// Two versions of one component.
    #[error("duplicate version flag, {component}={first} and {component}={second}")]
    Duplicate {
        /// Name of the component.
        component: String,
        /// First value of the flag.
        first: Release,
        /// Second value of the flag.
        second: Release,
    },
    /// Version of another component.
    #[error("component not registered: {0}")]
    Component(String),
    /// Emulated release that is too old or too new.
    #[error("emulation version {requested} is not between [{floor}, {binary}.0]")]
    Emulation {
        /// Requested release.
        requested: Release,
        /// Oldest release that can be emulated.
        floor: Release,
        /// Release of this build.
        binary: Release,
    },
    /// Minimum compatible release that is too old, or newer than the emulated one.
    #[error("minCompatibilityVersion version {requested} is not between [{floor}, {emulation}]")]
    MinCompatibility {
        /// Requested release.
        requested: Release,
        /// Oldest allowed release.
        floor: Release,
        /// Emulated release, which is the newest allowed one.
        emulation: Release,
    },
    /// Several errors.
    #[error("{}", crate::aggregate(_0))]
    Several(Vec<Self>),
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Default for EffectiveVersion {
    fn default() -> Self {
        Self { emulation: KUBERNETES, min_compatibility: releases_before(KUBERNETES, 1) }
    }
}

fn releases_before(release: Release, releases: u32) -> Release {
    Release { minor: release.minor.saturating_sub(releases), ..release }
}

impl EffectiveVersion {
    /// Parses `--emulated-version` and `--min-compatibility-version`: `1.35` or `kube=1.35`. The range is checked by
    /// [`EffectiveVersion::validate`] after feature gates are parsed, as upstream does.
    ///
    /// # Errors
    /// [`VersionError`] for the first setting that cannot be parsed.
    pub fn parse(emulated: &[String], min_compatibility: &[String]) -> Result<Self, VersionError> {
        let emulation = release_in(emulated)?.unwrap_or(KUBERNETES);
        let usual = releases_before(emulation, 1).max(floor());
        let min_compatibility = release_in(min_compatibility)?.unwrap_or(usual);
        Ok(Self { emulation, min_compatibility })
    }

    /// Checks that this build can emulate the release.
    ///
    /// # Errors
    /// [`VersionError`] with all releases out of range.
    pub fn validate(&self) -> Result<(), VersionError> {
        let (requested, floor, mut errors) = (self.emulation, floor(), Vec::new());
        if requested > KUBERNETES || requested < floor {
            errors.push(VersionError::Emulation { requested, floor, binary: KUBERNETES });
        }
        let requested = self.min_compatibility;
        if requested > self.emulation || requested < floor {
            errors.push(VersionError::MinCompatibility { requested, floor, emulation: self.emulation });
        }
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => Err(VersionError::Several(errors)),
        }
    }

    /// True if an older release than that of the build is emulated.
    #[must_use]
    pub fn is_emulating(&self) -> bool {
        self.emulation != KUBERNETES
    }
}

/// Returns the oldest release that can be emulated.
fn floor() -> Release {
    releases_before(KUBERNETES, EMULATED_RELEASES)
}

fn release_in(settings: &[String]) -> Result<Option<Release>, VersionError> {
    let mut found: Option<Release> = None;
    let mut foreign = None;
    for setting in settings {
        let (component, text) = setting.split_once('=').unwrap_or((COMPONENT, setting));
        let (component, text) = (component.trim(), text.trim());
        let release = parse_release(component, text)?;
        if component != COMPONENT {
            foreign = foreign.or_else(|| Some(component.to_owned()));
        } else if let Some(first) = found.replace(release) {
            return Err(VersionError::Duplicate { component: component.to_owned(), first, second: release });
        }
    }
    foreign.map_or(Ok(found), |component| Err(VersionError::Component(component)))
}

/// Parses a version like upstream's `version.Parse`.
fn parse_release(component: &str, text: &str) -> Result<Release, VersionError> {
    let bare = text.strip_prefix('v').unwrap_or(text);
    let parts: Option<Vec<u32>> = bare.split('.').map(|part| part.parse().ok()).collect();
    let parts = parts.ok_or_else(|| VersionError::Unreadable(text.to_owned()))?;
    match parts.as_slice() {
        [_] => Err(VersionError::Illegal(text.to_owned())),
        [major, minor] | [major, minor, 0] => Ok(Release { major: *major, minor: *minor }),
        _ => Err(VersionError::Patch(component.to_owned(), bare.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(emulated: &[&str], min: &[&str]) -> Result<(String, String), String> {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let version = EffectiveVersion::parse(&owned(emulated), &owned(min)).map_err(|e| e.to_string())?;
        version.validate().map_err(|e| e.to_string())?;
        Ok((version.emulation.to_string(), version.min_compatibility.to_string()))
    }

    /// Values of both flags, and the resulting releases.
    type Row = (&'static [&'static str], &'static [&'static str], (&'static str, &'static str));

    #[test]
    fn a_server_emulates_one_of_four_releases_and_is_compatible_with_the_previous_one() {
        let rows: [Row; 8] = [
            (&[], &[], ("1.36", "1.35")),
            (&["1.36"], &["1.36"], ("1.36", "1.36")),
            (&["kube=1.35"], &[], ("1.35", "1.34")),
            (&["1.34"], &["kube=1.34"], ("1.34", "1.34")),
            (&["v1.34"], &[], ("1.34", "1.33")),
            (&["1.33"], &[], ("1.33", "1.33")),
            (&["1.34.0"], &[], ("1.34", "1.33")),
            (&[], &["1.33"], ("1.36", "1.33")),
        ];
        for (emulated, min, (want, wanted)) in rows {
            assert_eq!(read(emulated, min), Ok((want.to_owned(), wanted.to_owned())), "{emulated:?} {min:?}");
        }
        assert_eq!(EffectiveVersion::parse(&[], &[]), Ok(EffectiveVersion::default()));
    }

    #[test]
    fn invalid_versions_are_rejected_with_upstream_messages() {
        let rows: [(&[&str], &[&str], &str); 10] = [
            (
                &["1.32"],
                &[],
                "[emulation version 1.32 is not between [1.33, 1.36.0], minCompatibilityVersion version 1.33 is not between [1.33, 1.32]]",
            ),
            (&["1.37"], &[], "emulation version 1.37 is not between [1.33, 1.36.0]"),
            (&["kube=1.34.1"], &[], "patch version not allowed, got: kube=1.34.1"),
            (&["1.34", "kube=1.35"], &[], "duplicate version flag, kube=1.34 and kube=1.35"),
            (&["wardle=1.2"], &[], "component not registered: wardle"),
            (&["x"], &[], "could not parse \"x\" as version"),
            (&["1"], &[], "illegal version string \"1\""),
            (&[], &["1.32"], "minCompatibilityVersion version 1.32 is not between [1.33, 1.36]"),
            (&["1.34"], &["1.35"], "minCompatibilityVersion version 1.35 is not between [1.33, 1.34]"),
            (&[""], &[], "could not parse \"\" as version"),
        ];
        for (emulated, min, want) in rows {
            assert_eq!(read(emulated, min), Err(want.to_owned()), "{emulated:?} {min:?}");
        }
    }
}
