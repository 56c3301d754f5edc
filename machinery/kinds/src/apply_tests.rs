//! Apply and ownership with random objects of every kind.

use std::sync::Arc;

use portico_machinery::Object;
use portico_schema::apply::{Filter, Owners, Unconverted, Versions, apply};
use portico_schema::fields::Set;
use portico_schema::{Format, Schema, same_content};
use proptest::prelude::*;

use crate::KindInfo;
use crate::recorded_tests::any_object;

struct Only<'a>(&'a KindInfo, String);

impl Versions for Only<'_> {
    fn schema(&self, version: &str) -> Option<&Schema> {
        (version == self.1).then_some(&self.0.schema)
    }

    fn convert(&self, _object: &Object, _from: &str, _to: &str) -> Result<Object, Unconverted> {
        Err(Unconverted::Gone)
    }

    fn filter(&self, _version: &str) -> &Filter {
        self.0.ownership.filter("unfiltered")
    }
}

/// As a write leaves it.
fn stored(info: &KindInfo, merged: &Object) -> Option<Object> {
    let mut object = info.schema.decode(&merged.to_json(), Format::Json, &info.gvk).ok()?.object;
    info.schema.normalise(&mut object);
    Some(object)
}

fn applied(
    info: &Arc<KindInfo>,
    live: &Object,
    config: &Object,
    owners: &mut Owners<&'static str>,
) -> Option<Object> {
    let versions = Only(info, info.group_version().to_string());
    let new = apply(&versions, &versions.1, (live, config), owners, &"me", false).unwrap();
    stored(info, &new.unwrap_or_else(|| live.clone()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn what_is_applied_twice_stays_and_what_is_no_longer_applied_goes((info, body) in any_object()) {
        let mut config = Object::from_json(body.as_bytes()).unwrap();
        let head = Object::new(&info.gvk);
        config.copy_from(&head, &["kind"]);
        config.copy_from(&head, &["apiVersion"]);
        prop_assume!(info.schema.check_applied(&config).is_ok());
        // An empty key is not written: what is stored has an element without key then, which nothing can be applied to.
        prop_assume!(stored(&info, &config).is_some_and(|stored| info.schema.check_applied(&stored).is_ok()));
        // Nor is an empty one whose default is another: what is stored has that then.
        prop_assume!(!body.contains(r#""protocol":"""#));
        let set = info.schema.fields_of(&config);
        prop_assert_eq!(Set::from_json(&set.to_json()).unwrap(), set.clone());

        let mut nothing = head.clone();
        info.schema.normalise(&mut nothing);
        let mut owners = Owners::new();
        let Some(once) = applied(&info, &nothing, &config, &mut owners) else { return Ok(()) };
        prop_assert_eq!(&owners["me"].set, &set);
        let before = owners.clone();
        let Some(twice) = applied(&info, &once, &config, &mut owners) else { return Ok(()) };
        prop_assert_eq!(twice.to_json(), once.to_json());
        prop_assert_eq!(&owners, &before);
        let Some(gone) = applied(&info, &twice, &head, &mut owners) else { return Ok(()) };
        prop_assert!(same_content(&gone, &nothing), "{:?}", String::from_utf8(gone.to_json()));
    }

    #[test]
    fn an_object_differs_from_itself_in_nothing_and_from_nothing_in_what_it_prints((info, body) in any_object()) {
        let decoded = info.schema.decode(body.as_bytes(), Format::Json, &info.gvk).unwrap().object;
        let Some(object) = stored(&info, &decoded) else { return Ok(()) };
        // Elements without keys cannot be identified: such objects are not tracked.
        let Ok(same) = info.schema.compare(&object, &decoded) else { return Ok(()) };
        let always = info.schema.compare(&object, &object).unwrap();
        prop_assert!(always.is_empty());
        let emptied = !same.modified.is_empty();
        prop_assert!(same.added.is_empty() && same.removed.is_empty(), "{same:?}");
        prop_assert!(!emptied || decoded.to_json().windows(2).any(|w| w == b"[]" || w == b"{}"), "{same:?}");
        let all = info.schema.compare(&Object::default(), &object).unwrap();
        prop_assert!(all.removed.is_empty());
        prop_assert_eq!(Set::from_json(&all.added.to_json()).unwrap(), all.added);
    }
}
