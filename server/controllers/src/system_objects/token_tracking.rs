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
pub fn place() -> ObjectRef {
    let resource = GroupResource::new("", "configmaps");
    ObjectRef { resource, namespace: NAMESPACE.to_owned(), name: NAME.to_owned() }
}

/// Returns the maintained object; `today` returns the date in UTC.
#[must_use]
pub fn object(today: impl Fn() -> Date + Send + Sync + 'static) -> SystemObject {
    let ObjectRef { resource, .. } = place();
    SystemObject::new(resource, NAMESPACE, NAME, move |current| since(current, today()))
}

/// Sets the date to today if it is missing or in the future.
fn since(current: Option<&Object>, today: Date) -> Option<Object> {
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
    fn the_first_day_stands_and_a_day_to_come_or_none_becomes_today() {
        let today = date(2026, 11, 22);
        let day = |object: &Object| object.at(&["data", "since"]).str().to_owned();
        let mut object = since(None, today).unwrap();
        assert_eq!(day(&object), "2026-11-22");
        assert_eq!(since(Some(&object), today), None);
        assert_eq!(since(Some(&object), date(2027, 1, 1)), None);
        for wrong in ["2026-11-23", "yesterday"] {
            object.set(&["data", "since"], wrong);
            assert_eq!(day(&since(Some(&object), today).unwrap()), "2026-11-22");
        }
    }
}
