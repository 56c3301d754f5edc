//! `--history-retention`: how long past states are kept, of all resources and of some of them longer.

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
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                None => retention.of_all = duration(part)?,
                Some(("*", kept)) => retention.archive.keep_others(duration(kept)?),
                Some((resource, kept)) => {
                    let (name, group) = resource.split_once('.').unwrap_or((resource, ""));
                    if name.is_empty() || name.contains('/') {
                        return Err(format!(
                            "{resource:?} is no resource: say its plural, a dot and its group"
                        ));
                    }
                    retention.archive.keep(GroupResource::new(group, name), duration(kept)?);
                }
            }
        }
        Ok(retention)
    }
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
        for wrong in ["", "x", "a=", "=1h", "1h,a/b=1h"] {
            assert!(wrong.parse::<HistoryRetention>().is_err(), "{wrong:?}");
        }
    }
}
