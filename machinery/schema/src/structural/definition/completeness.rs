//! What the root's junctors judge must be part of the skeleton, too (2.3). Junctors further down are not looked at, as
//! upstream does not.

use serde_json::Value;

use super::errors::Errors;
use super::props::Props;
use crate::structural::at::At;

/// Two places at once: in the skeleton, and in what judges it.
#[derive(Clone, Copy)]
struct Places<'a> {
    skeleton: &'a At<'a>,
    judged: &'a At<'a>,
}

pub(super) fn validate(schema: &Value, at: &At<'_>, errors: &mut Errors) {
    junctors(&Props::of(schema), Some(schema), Places { skeleton: at, judged: at }, errors);
}

fn junctors(judge: &Props<'_>, skeleton: Option<&Value>, places: Places<'_>, errors: &mut Errors) {
    let at = |judged: &At<'_>, schema: &Value, errors: &mut Errors| {
        nested(schema, skeleton, Places { skeleton: places.skeleton, judged }, errors);
    };
    if let Some(schema) = judge.not {
        at(&places.judged.field("not"), schema, errors);
    }
    for (name, schemas) in [("allOf", judge.all_of), ("anyOf", judge.any_of), ("oneOf", judge.one_of)] {
        let here = places.judged.field(name);
        for (index, schema) in schemas.iter().enumerate() {
            at(&here.index(index), schema, errors);
        }
    }
}

fn nested(judge: &Value, skeleton: Option<&Value>, places: Places<'_>, errors: &mut Errors) {
    let Some(structure) = skeleton.map(Props::of) else { return missing(places, errors) };
    let judge = Props::of(judge);
    junctors(&judge, skeleton, places, errors);
    if let Some(item) = judge.item() {
        let (skeleton, judged) = (places.skeleton.field("items"), places.judged.field("items"));
        nested(item, structure.item(), Places { skeleton: &skeleton, judged: &judged }, errors);
    }
    let (skeleton, judged) = (places.skeleton.field("properties"), places.judged.field("properties"));
    for (name, schema) in judge.properties() {
        let places = Places { skeleton: &skeleton.key(name), judged: &judged.key(name) };
        nested(schema, structure.property(name), places, errors);
    }
}

fn missing(places: Places<'_>, errors: &mut Errors) {
    let text = format!("because it is defined in {}", places.judged.path());
    places.skeleton.required(&text, errors);
}
