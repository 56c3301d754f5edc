//! What field selectors see of a pod.

use std::borrow::Cow;

use portico_machinery::Object;

pub(super) fn field<'o>(object: &'o Object, field: &str) -> Cow<'o, str> {
    match field {
        "spec.hostNetwork" => {
            Cow::Borrowed(if object.at(&["spec", "hostNetwork"]).bool() { "true" } else { "false" })
        }
        // An older name of the field.
        "spec.host" => Cow::Borrowed(object.str_at("spec.nodeName")),
        // Accepted, and empty for every pod.
        "status.podIPs" => Cow::Borrowed(""),
        _ => Cow::Borrowed(object.str_at(field)),
    }
}
