//! Fields of pods for field selectors.

use std::borrow::Cow;

use portico_machinery::Object;

pub(super) fn field<'o>(object: &'o Object, field: &str) -> Cow<'o, str> {
    match field {
        "spec.hostNetwork" => {
            Cow::Borrowed(if object.at(&["spec", "hostNetwork"]).bool() { "true" } else { "false" })
        }
        // Former name of the field.
        "spec.host" => Cow::Borrowed(object.str_at("spec.nodeName")),
        // Accepted, but empty for every pod, as in upstream.
        "status.podIPs" => Cow::Borrowed(""),
        _ => Cow::Borrowed(object.str_at(field)),
    }
}
