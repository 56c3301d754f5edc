//! Tests of server-side apply and ownership with random objects of every kind.

use std::sync::Arc;

use portico_machinery::Object;
use portico_schema::apply::{ConversionError, FieldFilter, FieldOwners, Versions, apply};
use portico_schema::fields::FieldSet;
use portico_schema::{Format, Schema, same_content};
use proptest::prelude::*;

use crate::KindInfo;
use crate::recorded_tests::any_object;

struct OneVersion<'a>(&'a KindInfo, String);

impl Versions for OneVersion<'_> {
    fn schema(&self, version: &str) -> Option<&Schema> {
        (version == self.1).then_some(&self.0.schema)
    }

    fn convert(&self, _object: &Object, _from: &str, _to: &str) -> Result<Object, ConversionError> {
        Err(ConversionError::VersionRemoved)
    }

    fn filter(&self, _version: &str) -> &FieldFilter {
        self.0.ownership.filter("unfiltered")
    }
}

/// Returns an object as a write stores it.
fn stored_form(info: &KindInfo, merged: &Object) -> Option<Object> {
    let mut object = info.schema.decode(&merged.to_json(), Format::Json, &info.gvk).ok()?.object;
    info.schema.normalize(&mut object);
    Some(object)
}

fn apply_config(
    info: &Arc<KindInfo>,
    live: &Object,
    config: &Object,
    owners: &mut FieldOwners<&'static str>,
) -> Option<Object> {
    let versions = OneVersion(info, info.group_version().to_string());
    let new = apply(&versions, &versions.1, (live, config), owners, &"me", false).unwrap();
    stored_form(info, &new.unwrap_or_else(|| live.clone()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn repeated_apply_changes_nothing_and_omitted_fields_are_removed((info, body) in any_object()) {
        let mut config = Object::from_json(body.as_bytes()).unwrap();
        let head = Object::new(&info.gvk);
        config.copy_from(&head, &["kind"]);
        config.copy_from(&head, &["apiVersion"]);
        prop_assume!(info.schema.check_applied(&config).is_ok());
        // An empty key is not encoded. The stored element then lacks its key, and the object cannot be applied.
        prop_assume!(stored_form(&info, &config).is_some_and(|stored| info.schema.check_applied(&stored).is_ok()));
        // An empty value is replaced by a non-empty default, if there is one.
        prop_assume!(!body.contains(r#""protocol":"""#));
        let set = info.schema.fields_of(&config);
        prop_assert_eq!(FieldSet::from_json(&set.to_json()).unwrap(), set.clone());

        let mut empty = head.clone();
        info.schema.normalize(&mut empty);
        let mut owners = FieldOwners::new();
        let Some(first) = apply_config(&info, &empty, &config, &mut owners) else { return Ok(()) };
        prop_assert_eq!(&owners["me"].set, &set);
        let before = owners.clone();
        let Some(second) = apply_config(&info, &first, &config, &mut owners) else { return Ok(()) };
        prop_assert_eq!(second.to_json(), first.to_json());
        prop_assert_eq!(&owners, &before);
        let Some(removed) = apply_config(&info, &second, &head, &mut owners) else { return Ok(()) };
        prop_assert!(same_content(&removed, &empty), "{:?}", String::from_utf8(removed.to_json()));
    }

    #[test]
    fn comparing_an_object_with_itself_is_empty_and_with_an_empty_one_lists_all_fields((info, body) in any_object()) {
        let decoded = info.schema.decode(body.as_bytes(), Format::Json, &info.gvk).unwrap().object;
        let Some(object) = stored_form(&info, &decoded) else { return Ok(()) };
        // Elements without keys cannot be identified. Such objects are not tracked.
        let Ok(same) = info.schema.compare(&object, &decoded) else { return Ok(()) };
        let always = info.schema.compare(&object, &object).unwrap();
        prop_assert!(always.is_empty());
        let emptied = !same.modified.is_empty();
        prop_assert!(same.added.is_empty() && same.removed.is_empty(), "{same:?}");
        prop_assert!(!emptied || decoded.to_json().windows(2).any(|w| w == b"[]" || w == b"{}"), "{same:?}");
        let all = info.schema.compare(&Object::default(), &object).unwrap();
        prop_assert!(all.removed.is_empty());
        prop_assert_eq!(FieldSet::from_json(&all.added.to_json()).unwrap(), all.added);
    }
}
