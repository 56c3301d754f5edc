//! `--history-retention`: retention of past states for all resources, and longer retention for named resources.

use std::collections::HashSet;
use std::str::FromStr;
use std::time::Duration;

use portico_machinery::GroupResource;
use portico_server::ArchiveRules;

use super::values::duration;

/// Default retention for watches and reads at an exact resourceVersion.
const DEFAULT: Duration = Duration::from_secs(300);

/// Value of `--history-retention`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HistoryRetention {
    /// Retention for watches and reads at an exact resourceVersion, of all resources.
    pub(crate) of_all: Duration,
    /// Retention for `portico history`.
    pub(crate) archive: ArchiveRules,
}

impl FromStr for HistoryRetention {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut retention = Self { of_all: DEFAULT, archive: ArchiveRules::default() };
        let mut targets = HashSet::new();
        for part in text.split(',').map(str::trim) {
            let target = match part.split_once('=') {
                None => {
                    retention.of_all = duration(part)?;
                    "all resources".to_owned()
                }
                Some(("*", period)) => {
                    retention.archive.set_default_retention(duration(period)?);
                    "*".to_owned()
                }
                Some((resource, period)) => {
                    let storage = storage(resource)?;
                    let name = storage.to_string();
                    retention.archive.set_retention(storage, duration(period)?);
                    name
                }
            };
            if let Some(target) = targets.replace(target) {
                return Err(format!("duplicate retention for {target}"));
            }
        }
        Ok(retention)
    }
}

/// Returns the group and resource under which objects of `resource` (PLURAL or PLURAL.GROUP) are stored.
fn storage(resource: &str) -> Result<GroupResource, String> {
    let (name, group) = resource.split_once('.').unwrap_or((resource, ""));
    if name.is_empty() || name.contains('/') {
        return Err(format!(
            "{resource:?} is not a resource; use PLURAL.GROUP, for example deployments.apps"
        ));
    }
    let storage = portico_server::storage_of(&GroupResource::new(group, name));
    storage.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_durations_apply_to_all_resources_and_named_ones_to_one() {
        let parsed: HistoryRetention =
            "10m, configmaps=720h,deployments.apps=1h,*=2h,events=0s".parse().unwrap();
        let retention_hours = |group: &str, name: &str| {
            parsed
                .archive
                .retention(&GroupResource::new(group, name))
                .map(|retention| retention.as_secs() / 3_600)
        };
        assert_eq!(parsed.of_all, Duration::from_secs(600));
        let hours = [
            retention_hours("", "configmaps"),
            retention_hours("apps", "deployments"),
            retention_hours("", "pods"),
            retention_hours("", "events"),
        ];
        assert_eq!(hours, [Some(720), Some(1), Some(2), None]);
        let alone: HistoryRetention = "secrets=1h".parse().unwrap();
        assert_eq!((alone.of_all, alone.archive.is_empty()), (DEFAULT, false));
        for invalid in ["", "x", "pods=", "=1h", "1h,a/b=1h"] {
            assert!(invalid.parse::<HistoryRetention>().is_err(), "{invalid:?}");
        }
    }

    #[test]
    fn unknown_resources_and_duplicates_are_rejected() {
        let parsed: HistoryRetention = "events.events.k8s.io=1h,widgets.example.com=1h".parse().unwrap();
        assert!(parsed.archive.retention(&GroupResource::new("", "events")).is_some());
        for (wrong, why) in [
            ("deployments=1h", "unknown resource deployments: did you mean deployments.apps?"),
            ("cm=1h", "unknown resource cm: did you mean configmaps?"),
            ("widgets=1h", "unknown resource widgets; "),
            ("pods=1h,pods=2h", "duplicate retention for pods"),
            ("events=1h,events.events.k8s.io=2h", "duplicate retention for events"),
            ("5m,*=1h,10m", "duplicate retention for all resources"),
            ("*=1h,*=2h", "duplicate retention for *"),
        ] {
            let error = wrong.parse::<HistoryRetention>().unwrap_err();
            assert!(error.starts_with(why), "{wrong}: {error}");
        }
    }
}
