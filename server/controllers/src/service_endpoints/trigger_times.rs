//! Times of the changes that caused endpoints to be updated: the annotation `endpoints.kubernetes.io/last-change-trigger-time`
//! (`TriggerTimeTracker`).

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use parking_lot::Mutex;
use portico_machinery::time;

use super::pod::Pod;
use super::service::Service;
use crate::account::NamespacedName;

pub const ANNOTATION: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Observed times of each Service and of each of its pods. Forgotten together with the Service.
#[derive(Debug, Default)]
pub struct TriggerTimes {
    observed: Mutex<HashMap<NamespacedName, ObservedTimes>>,
}

#[derive(Debug, Default)]
struct ObservedTimes {
    service: Option<Timestamp>,
    pods: BTreeMap<String, Timestamp>,
}

impl TriggerTimes {
    /// Returns the annotation's value for the current state: the time of the earliest change since the last call, if any. For a
    /// new Service, this is the time of its creation.
    pub fn update(&self, key: &NamespacedName, service: &Service, pods: &[Pod]) -> Option<String> {
        let created = service.metadata.creation_timestamp.as_deref().and_then(time::parse);
        let pods: BTreeMap<String, Timestamp> =
            pods.iter().filter_map(|pod| Some((pod.metadata.name.clone(), pod.ready_since()?))).collect();
        let now = ObservedTimes { service: created, pods };
        let mut observed = self.observed.lock();
        let time = match observed.get(key) {
            None => created,
            Some(before) => earliest_change(before, &now),
        };
        observed.insert(key.clone(), now);
        time.map(time::rfc3339)
    }

    pub fn forget(&self, key: &NamespacedName) {
        self.observed.lock().remove(key);
    }
}

fn earliest_change(before: &ObservedTimes, now: &ObservedTimes) -> Option<Timestamp> {
    let pods = now.pods.iter().filter(|(name, at)| before.pods.get(*name).is_none_or(|then| *at > then));
    let service = now.service.filter(|at| before.service.is_none_or(|then| *at > then));
    pods.map(|(_, at)| *at).chain(service).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, ready: &str) -> Pod {
        let json = format!(
            r#"{{"metadata":{{"name":"{name}"}},
            "status":{{"conditions":[{{"type":"Ready","status":"True","lastTransitionTime":"{ready}"}}]}}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn the_earliest_change_since_the_last_call_is_returned() {
        let (times, key) = (TriggerTimes::default(), NamespacedName::new("n", "s"));
        let mut service = Service::default();
        service.metadata.creation_timestamp = Some("2026-01-01T00:00:00Z".to_owned());
        let next = |pods: &[Pod]| times.update(&key, &service, pods);
        let (one, two) = (pod("a", "2026-01-01T00:00:02Z"), pod("b", "2026-01-01T00:00:01Z"));
        assert_eq!(next(&[]).as_deref(), Some("2026-01-01T00:00:00Z"));
        assert_eq!(next(&[one.clone(), two.clone()]).as_deref(), Some("2026-01-01T00:00:01Z"));
        assert_eq!(next(&[one.clone(), two]), None);
        assert_eq!(next(&[one]), None);
        assert_eq!(next(&[pod("a", "2026-01-01T00:00:09Z")]).as_deref(), Some("2026-01-01T00:00:09Z"));
        times.forget(&key);
        assert_eq!(next(&[]).as_deref(), Some("2026-01-01T00:00:00Z"));
    }
}
