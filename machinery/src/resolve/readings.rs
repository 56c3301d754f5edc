//! What is read off APIServices, read once: all who keep facts of the same objects hold the same ones.
//!
//! It keeps nothing alive: facts go with the last who holds them.

use std::sync::{Arc, Mutex, PoisonError};

use super::api_service::{Alike, ApiServiceFacts, revision};
use crate::object::Object;
use crate::weak_map::WeakMap;

/// See the module. Clones share what they read.
#[derive(Clone, Debug, Default)]
pub struct Readings(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The newest facts that were read, by name.
    newest: WeakMap<Arc<str>, ApiServiceFacts>,
    alike: Alike,
}

impl Readings {
    /// The facts of an APIService, read now if nobody has. A revision is one state of one object.
    #[must_use]
    pub fn api_service(&self, object: &Object) -> Arc<ApiServiceFacts> {
        // Whoever panicked left at worst an entry out.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = known.newest.get(object.name());
        let revision = revision(object);
        if let Some(newest) = newest.as_ref().filter(|newest| revision > 0 && newest.revision == revision) {
            return newest.clone();
        }
        let facts = Arc::new(ApiServiceFacts::of(object, &mut known.alike));
        // Who is behind others reads for itself.
        if newest.is_none_or(|newest| newest.revision < revision) {
            known.newest.insert(facts.name.clone(), &facts);
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(revision: i64) -> Object {
        let json = format!(
            r#"{{"metadata":{{"name":"v1.g","resourceVersion":"{revision}"}},"spec":{{"versionPriority":{revision}}}}}"#
        );
        Object::from_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_state_is_read_once_and_who_is_behind_takes_nothing_from_who_is_ahead() {
        let (first, second) = (Readings::default(), Readings::default());
        let ahead = first.clone();
        let one = first.api_service(&object(7));
        assert!(Arc::ptr_eq(&one, &ahead.api_service(&object(7))));
        assert!(!Arc::ptr_eq(&one, &second.api_service(&object(7))));
        let newer = ahead.api_service(&object(8));
        assert_eq!(first.api_service(&object(7)).version_priority, 7);
        assert!(Arc::ptr_eq(&newer, &first.api_service(&object(8))));
    }

    #[test]
    fn an_object_without_a_revision_may_be_any_state_and_is_read_each_time() {
        let readings = Readings::default();
        assert!(!Arc::ptr_eq(&readings.api_service(&object(0)), &readings.api_service(&object(0))));
    }
}
