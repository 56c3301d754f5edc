//! `--history-retention`: how long past states are kept, of all resources and of some of them longer.

use std::collections::HashSet;
use std::str::FromStr;
use std::time::Duration;

use portico_machinery::GroupResource;
use portico_server::ArchiveRules;

use super::values::duration;

/// How long past states are kept for watches where nothing is said.
const DEFAULT: Duration = Duration::from_secs(300);

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HistoryRetention {
    /// For watches and exact reads.
    pub(crate) of_all: Duration,
    /// For those who ask for the past.
    pub(crate) archive: ArchiveRules,
}

impl FromStr for HistoryRetention {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut retention = Self { of_all: DEFAULT, archive: ArchiveRules::default() };
        let mut named = HashSet::new();
        for part in text.split(',').map(str::trim) {
            let given = match part.split_once('=') {
                None => {
                    retention.of_all = duration(part)?;
                    "a duration of all resources".to_owned()
                }
                Some(("*", kept)) => {
                    retention.archive.keep_others(duration(kept)?);
                    "*".to_owned()
                }
                Some((resource, kept)) => {
                    let storage = storage(resource)?;
                    let name = storage.to_string();
                    retention.archive.keep(storage, duration(kept)?);
                    name
                }
            };
            if let Some(twice) = named.replace(given) {
                return Err(format!("{twice} is given twice"));
            }
        }
        Ok(retention)
    }
}

/// Where objects of a resource are stored, named by its plural, and its group behind a dot.
fn storage(resource: &str) -> Result<GroupResource, String> {
    let (name, group) = resource.split_once('.').unwrap_or((resource, ""));
    if name.is_empty() || name.contains('/') {
        return Err(format!("{resource:?} is no resource: say its plural, a dot and its group"));
    }
    let storage = portico_server::storage_of(&GroupResource::new(group, name));
    storage.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_for_all_and_one_behind_a_resource_for_that() {
        let parsed: HistoryRetention =
            "10m, configmaps=720h,deployments.apps=1h,*=2h,events=0s".parse().unwrap();
        let of = |group: &str, name: &str| {
            parsed.archive.of(&GroupResource::new(group, name)).map(|kept| kept.as_secs() / 3_600)
        };
        assert_eq!(parsed.of_all, Duration::from_secs(600));
        let kept = [of("", "configmaps"), of("apps", "deployments"), of("", "pods"), of("", "events")];
        assert_eq!(kept, [Some(720), Some(1), Some(2), None]);
        let alone: HistoryRetention = "secrets=1h".parse().unwrap();
        assert_eq!((alone.of_all, alone.archive.is_empty()), (DEFAULT, false));
        for wrong in ["", "x", "pods=", "=1h", "1h,a/b=1h"] {
            assert!(wrong.parse::<HistoryRetention>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_would_keep_nothing_or_is_said_twice_is_refused() {
        let kept: HistoryRetention = "events.events.k8s.io=1h,widgets.example.com=1h".parse().unwrap();
        assert!(kept.archive.of(&GroupResource::new("", "events")).is_some());
        for (wrong, why) in [
            ("deployments=1h", "there is no resource deployments: do you mean deployments.apps?"),
            ("cm=1h", "there is no resource cm: do you mean configmaps?"),
            ("widgets=1h", "there is no resource widgets; "),
            ("pods=1h,pods=2h", "pods is given twice"),
            ("events=1h,events.events.k8s.io=2h", "events is given twice"),
            ("5m,*=1h,10m", "a duration of all resources is given twice"),
            ("*=1h,*=2h", "* is given twice"),
        ] {
            let error = wrong.parse::<HistoryRetention>().unwrap_err();
            assert!(error.starts_with(why), "{wrong}: {error}");
        }
    }
}
