//! ConfigMap `kube-system/kube-apiserver-legacy-service-account-token-tracking`, which contains the date since which uses of
//! legacy tokens are recorded on their Secrets. Cleaners consider a Secret unused only after that date.

use jiff::civil::Date;
use portico_machinery::{GroupResource, GroupVersion, Object};
use portico_registry::ObjectRef;

use super::SystemObject;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";

/// Returns the reference to the ConfigMap.
#[must_use]
pub fn config_map() -> ObjectRef {
    let resource = GroupResource::new("", "configmaps");
    ObjectRef { resource, namespace: NAMESPACE.to_owned(), name: NAME.to_owned() }
}

/// Returns the maintained object; `today` returns the date in UTC.
#[must_use]
pub fn system_object(today: impl Fn() -> Date + Send + Sync + 'static) -> SystemObject {
    let ObjectRef { resource, .. } = config_map();
    SystemObject::new(resource, NAMESPACE, NAME, move |current| with_start_date(current, today()))
}

/// Sets the date to today if it is missing or in the future.
fn with_start_date(current: Option<&Object>, today: Date) -> Option<Object> {
    let stored = current.and_then(|object| object.at(&["data"]).entry_str("since")?.parse::<Date>().ok());
    if stored.is_some_and(|since| since <= today) {
        return None;
    }
    let new = || Object::new(&GroupVersion::new("", "v1").kind("ConfigMap"));
    let mut reported = current.cloned().unwrap_or_else(new);
    reported.set(&["data", "since"], today.to_string());
    Some(reported)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn the_start_date_is_kept_unless_it_is_missing_or_in_the_future() {
        let today = date(2026, 11, 22);
        let start = |object: &Object| object.at(&["data", "since"]).str().to_owned();
        let mut object = with_start_date(None, today).unwrap();
        assert_eq!(start(&object), "2026-11-22");
        assert_eq!(with_start_date(Some(&object), today), None);
        assert_eq!(with_start_date(Some(&object), date(2027, 1, 1)), None);
        for wrong in ["2026-11-23", "yesterday"] {
            object.set(&["data", "since"], wrong);
            assert_eq!(start(&with_start_date(Some(&object), today).unwrap()), "2026-11-22");
        }
    }
}
