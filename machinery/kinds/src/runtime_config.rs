//! `--runtime-config`: enables and disables group versions and resources, with upstream's keys.
//!
//! The keys are `api/all`, `api/ga`, `api/beta`, `api/alpha`, `group/version` and `group/version/resource`. Later ones in
//! this order take precedence. The version of the core group is `v1`, `/v1` or `api/v1`.

use std::collections::{BTreeMap, BTreeSet};

use portico_machinery::expiration::Release;
use portico_machinery::features::parse_bool;
use portico_machinery::{GroupVersion, GroupVersionResource};

use crate::error::LoadError;
use crate::kind::KindInfo;
use crate::registry::Kinds;

/// Keys for several versions, from the widest to the narrowest.
const VERSION_SETS: [&str; 4] = ["api/all", "api/ga", "api/beta", "api/alpha"];

/// Parsed runtime configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    sets: BTreeMap<&'static str, bool>,
    versions: BTreeMap<GroupVersion, bool>,
    resources: BTreeMap<(GroupVersion, String), bool>,
}

/// Error in the runtime configuration.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RuntimeConfigError {
    /// The key is neither a set nor `group/version[/resource]`.
    #[error("runtime-config invalid key {0}")]
    InvalidKey(String),
    /// The value is neither true nor false.
    #[error(
        "invalid value of {key}: {value}, err: strconv.ParseBool: parsing {}: invalid syntax",
        portico_gostd::strconv::quote(value)
    )]
    InvalidValue {
        /// Key of the setting.
        key: String,
        /// Value of the setting.
        value: String,
    },
    /// The value of a set is neither true nor false; the message differs from that of other keys.
    #[error("invalid value {key}={value}")]
    InvalidSetValue {
        /// Key of the set.
        key: String,
        /// Value of the setting.
        value: String,
    },
    /// The resource is not a lowercase plural.
    #[error(
        "invalid key {key}: group/version/resource and resource is always lowercase plural, not {}",
        portico_gostd::strconv::quote(resource)
    )]
    InvalidResource {
        /// Key of the setting.
        key: String,
        /// Last part of the key.
        resource: String,
    },
    /// The groups are unknown. Contains their versions.
    #[error("unknown api groups {0}")]
    UnknownGroup(String),
    /// The version does not exist in its group.
    #[error("group version {0} that has not been registered")]
    UnknownVersion(GroupVersion),
    /// A later release than the emulated one introduces the resource.
    #[error(
        "cannot enable resource {}/{}, Resource={} in runtime-config because it is introduced at {introduced} after the current version {current}. Consider setting --runtime-config-emulation-forward-compatible=true",
        resource.group,
        resource.version,
        resource.resource
    )]
    ResourceNotIntroduced {
        /// Name of the resource.
        resource: GroupVersionResource,
        /// Release that introduces the resource.
        introduced: Release,
        /// Emulated release.
        current: Release,
    },
    /// Later releases than the emulated one introduce all resources of the version.
    #[error(
        "cannot enable version {group_version} in runtime-config because all the resources have been introduced after the current version {current}. Consider setting --runtime-config-emulation-forward-compatible=true"
    )]
    VersionNotIntroduced {
        /// Group and version.
        group_version: GroupVersion,
        /// Emulated release.
        current: Release,
    },
    /// All group versions are disabled.
    #[error("invalid runtime-config with only api/all=false")]
    AllDisabled,
    /// The kinds cannot be loaded.
    #[error(transparent)]
    Kinds(#[from] LoadError),
}

impl RuntimeConfig {
    /// Parses `key=bool` settings. A key without a value is true.
    ///
    /// # Errors
    /// [`RuntimeConfigError`] for the first invalid setting.
    pub fn parse<'a>(settings: impl IntoIterator<Item = &'a str>) -> Result<Self, RuntimeConfigError> {
        let mut config = Self::default();
        let mut count = 0;
        for setting in settings.into_iter().map(str::trim).filter(|setting| !setting.is_empty()) {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            config.add(key.trim(), value.trim())?;
            count += 1;
        }
        if count == 1 && config.sets.get("api/all") == Some(&false) {
            return Err(RuntimeConfigError::AllDisabled);
        }
        let kinds = Kinds::all()?;
        config.check(&kinds)?;
        Ok(config)
    }

    fn add(&mut self, key: &str, value: &str) -> Result<(), RuntimeConfigError> {
        if let Some(set) = VERSION_SETS.into_iter().find(|set| *set == key) {
            let wrong =
                || RuntimeConfigError::InvalidSetValue { key: key.to_owned(), value: value.to_owned() };
            self.sets.insert(set, value.parse().map_err(|_| wrong())?);
            return Ok(());
        }
        let wrong = || RuntimeConfigError::InvalidValue { key: key.to_owned(), value: value.to_owned() };
        let on = if value.is_empty() { Some(true) } else { parse_bool(value) };
        let on = on.ok_or_else(wrong)?;
        match key.split('/').collect::<Vec<_>>().as_slice() {
            [version] if version.starts_with('v') => {
                self.versions.insert(GroupVersion::new("", *version), on);
            }
            [group, version] if !version.is_empty() => {
                self.versions.insert(GroupVersion::new(group_of_key(group), *version), on);
            }
            [group, version, resource] if !resource.is_empty() => {
                if resource.to_lowercase() != *resource {
                    let (key, resource) = (key.to_owned(), (*resource).to_owned());
                    return Err(RuntimeConfigError::InvalidResource { key, resource });
                }
                let version = GroupVersion::new(group_of_key(group), *version);
                self.resources.insert((version, (*resource).to_owned()), on);
            }
            _ => return Err(RuntimeConfigError::InvalidKey(key.to_owned())),
        }
        Ok(())
    }

    fn check(&self, kinds: &Kinds) -> Result<(), RuntimeConfigError> {
        let named = || self.versions.keys().chain(self.resources.keys().map(|(gv, _)| gv));
        let is_known_group =
            |gv: &&GroupVersion| kinds.priorities().iter().any(|g| g.group_version.group == gv.group);
        let unknown: BTreeSet<String> =
            named().filter(|gv| !is_known_group(gv)).map(ToString::to_string).collect();
        if !unknown.is_empty() {
            let unknown: Vec<String> = unknown.into_iter().collect();
            return Err(RuntimeConfigError::UnknownGroup(unknown.join(",")));
        }
        match named().find(|gv| kinds.priority(gv).is_none()) {
            Some(gv) => Err(RuntimeConfigError::UnknownVersion(gv.clone())),
            None => Ok(()),
        }
    }

    /// True if the setting of the resource itself enables it.
    pub(crate) fn enables_resource(&self, resource: &GroupVersionResource) -> bool {
        self.setting_of(resource) == Some(true)
    }

    /// True if the setting of the version itself enables it.
    pub(crate) fn enables_version(&self, version: &GroupVersion) -> bool {
        self.versions.get(version) == Some(&true)
    }

    /// True if the setting of the resource or version itself disables the resource.
    pub(crate) fn disables_resource(&self, resource: &GroupVersionResource) -> bool {
        let version = GroupVersion::new(&*resource.group, &*resource.version);
        self.setting_of(resource).or_else(|| self.versions.get(&version).copied()) == Some(false)
    }

    fn setting_of(&self, resource: &GroupVersionResource) -> Option<bool> {
        let version = GroupVersion::new(&*resource.group, &*resource.version);
        self.resources.get(&(version, resource.resource.to_string())).copied()
    }

    /// True if the kind is served.
    #[must_use]
    pub fn is_served(&self, info: &KindInfo) -> bool {
        let gv = info.group_version();
        let sets = self.set_setting(&gv.version);
        let version = self.versions.get(&gv).copied().or(sets);
        let resource = self.resources.get(&(gv, info.resource.clone())).copied();
        resource.or(version).unwrap_or(!info.off_by_default)
    }

    /// Returns the setting of the narrowest set that contains the version.
    fn set_setting(&self, version: &str) -> Option<bool> {
        let stage = match version {
            v if v.contains("alpha") => "api/alpha",
            v if v.contains("beta") => "api/beta",
            _ => "api/ga",
        };
        self.sets.get(stage).or_else(|| self.sets.get("api/all")).copied()
    }
}

/// Returns the group of a key, which names the core group `api`.
fn group_of_key(group: &str) -> &str {
    if group == "api" { "" } else { group }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(settings: &[&str]) -> Vec<String> {
        let config = RuntimeConfig::parse(settings.iter().copied()).unwrap();
        let kinds = Kinds::all().unwrap();
        kinds
            .iter()
            .filter(|k| config.is_served(k))
            .map(|k| format!("{}/{}", k.group_version(), k.resource))
            .collect()
    }

    #[test]
    fn kinds_that_are_off_by_default_can_be_enabled() {
        let usual = served(&[]);
        assert_eq!(usual.len(), Kinds::builtin().unwrap().iter().count());
        let addresses = "networking.k8s.io/v1beta1/ipaddresses".to_owned();
        let ranges = "networking.k8s.io/v1beta1/servicecidrs".to_owned();
        assert!(!usual.contains(&addresses));
        assert!(served(&["networking.k8s.io/v1beta1=true"]).contains(&ranges));
        let one = served(&["networking.k8s.io/v1beta1/ipaddresses=true"]);
        assert!(one.contains(&addresses) && !one.contains(&ranges));
        let but_one = served(&["api/beta=true", "networking.k8s.io/v1beta1/ipaddresses=false"]);
        assert!(!but_one.contains(&addresses) && but_one.contains(&ranges));
        assert_eq!(served(&["api/all=true"]).len(), Kinds::all().unwrap().iter().count());
        assert!(served(&["api/all=false", "v1=true"]).iter().all(|name| name.starts_with("v1/")));
        assert!(!served(&["batch/v1=false"]).iter().any(|name| name.starts_with("batch/")));
    }

    #[test]
    fn invalid_settings_give_the_errors_of_upstream() {
        let rows = [
            ("nothing.example.org/v1=true", "unknown api groups nothing.example.org/v1"),
            ("apps/v9=true", "group version apps/v9 that has not been registered"),
            ("apps=true", "runtime-config invalid key apps"),
            (
                "apps/v1=maybe",
                "invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax",
            ),
            ("api/all=1", "invalid value api/all=1"),
            ("api/beta", "invalid value api/beta="),
            ("a/b/c/d=true", "runtime-config invalid key a/b/c/d"),
            (
                "apps/v1/Deployments=true",
                "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not \"Deployments\"",
            ),
            ("api/all=false", "invalid runtime-config with only api/all=false"),
        ];
        for (setting, want) in rows {
            assert_eq!(RuntimeConfig::parse([setting]).unwrap_err().to_string(), want, "{setting}");
        }
    }

    #[test]
    fn a_copied_version_has_separate_types_and_shares_storage() {
        let kinds = Kinds::all().unwrap();
        let gvr =
            portico_machinery::GroupVersionResource::new("resource.k8s.io", "v1beta2", "resourceclaims");
        let claims = kinds.by_resource(&gvr).unwrap();
        assert_eq!(&*claims.schema.typed().unwrap().root().name, "io.k8s.api.resource.v1beta2.ResourceClaim");
        assert_eq!((claims.storage_version.as_str(), claims.off_by_default), ("v1", true));
        assert!(claims.list_schema.is_some());
    }
}
