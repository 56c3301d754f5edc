//! The options of a connection as an object of their kind (`PodExecOptions`, ...), which admission is asked about.

use portico_kinds::QueryParameter;
use portico_machinery::Object;

use crate::call::Call;
use crate::options::Query;
use crate::served::ServedResource;

/// Where what follows a proxied object in the path stands in its options.
const PATH: &str = "path";

/// The options in the query of a connection; nothing for a subresource that is read rather than connected to (`log`).
pub(super) fn of(served: &ServedResource, call: &Call, query: &Query<'_>) -> Option<Object> {
    let subresource = served.info.subresource(&call.target.subresource).filter(|known| known.connect)?;
    if subresource.kind == served.info.gvk {
        return None;
    }
    let mut options = Object::new(&subresource.kind);
    for parameter in &subresource.parameters {
        set(&mut options, parameter, query);
    }
    if subresource.below && !call.target.rest.is_empty() {
        options.set(&[PATH], format!("/{}", call.target.rest.trim_start_matches('/')));
    }
    Some(options)
}

/// What cannot be read is refused when the connection is decided on.
fn set(options: &mut Object, parameter: &QueryParameter, query: &Query<'_>) {
    let name = parameter.name.as_str();
    let Some(text) = query.first(name) else { return };
    match (parameter.ty.as_str(), name) {
        ("boolean", _) => options.set(&[name], query.flag(name).unwrap_or_default()),
        (_, "command") => options.set(&[name], query.all(name)),
        ("integer", _) => {
            let numbers: Vec<i64> = query.all(name).iter().filter_map(|text| text.parse().ok()).collect();
            options.set(&[name], numbers);
        }
        _ => options.set(&[name], text),
    }
}
