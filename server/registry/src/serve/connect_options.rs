//! Options of a connection as an object of their kind (`PodExecOptions`, ...), for admission.

use portico_kinds::QueryParameter;
use portico_machinery::Object;
use url::form_urlencoded::{Serializer, parse};

use crate::call::Call;
use crate::options::Query;
use crate::served_resource::ServedResource;

/// Field of the options with the path after a proxied object.
const PATH_FIELD: &str = "path";

/// Options in the query of a connection; `None` for subresources that are read instead of connected to (`log`).
pub(super) fn options_of(served_resource: &ServedResource, call: &Call, query: &Query<'_>) -> Option<Object> {
    let subresource =
        served_resource.info.subresource(&call.target.subresource).filter(|known| known.is_connect)?;
    if subresource.kind == served_resource.info.gvk {
        return None;
    }
    let mut options = Object::new(&subresource.kind);
    for parameter in &subresource.parameters {
        set_option(&mut options, parameter, query);
    }
    if subresource.has_subpaths && !call.target.subpath.is_empty() {
        options.set(&[PATH_FIELD], format!("/{}", call.target.subpath.trim_start_matches('/')));
    }
    Some(options)
}

/// Call with changed options. The only option of a proxied request is the path.
pub(super) fn with_options(served_resource: &ServedResource, call: &Call, options: &Object) -> Call {
    let mut call = call.clone();
    let Some(subresource) = served_resource.info.subresource(&call.target.subresource) else { return call };
    if subresource.has_subpaths {
        options.str_at(PATH_FIELD).clone_into(&mut call.target.subpath);
        return call;
    }
    let is_option = |name: &str| subresource.parameters.iter().any(|parameter| parameter.name == name);
    let mut query = Serializer::new(String::new());
    query.extend_pairs(parse(call.query.as_bytes()).filter(|(name, _)| !is_option(name)));
    for parameter in &subresource.parameters {
        let (name, value) = (parameter.name.as_str(), options.at(&[&parameter.name]));
        let values: Vec<String> = match (parameter.ty.as_str(), name) {
            ("boolean", _) => value.is_present().then(|| value.bool().to_string()).into_iter().collect(),
            ("integer", _) => value.items().filter_map(|one| one.i64()).map(|one| one.to_string()).collect(),
            (_, "command") => value.items().map(|word| word.str().to_owned()).collect(),
            _ => Some(value.str().to_owned()).filter(|text| !text.is_empty()).into_iter().collect(),
        };
        query.extend_pairs(values.into_iter().map(|value| (name, value)));
    }
    call.query = query.finish();
    call
}

/// Sets an option from the query. Invalid values are refused later, when the target is selected.
fn set_option(options: &mut Object, parameter: &QueryParameter, query: &Query<'_>) {
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
