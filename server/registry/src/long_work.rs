//! Selection of the calls that may take long and therefore run on other threads than their connection.

use portico_schema::structural::CustomResource;
use portico_store::Key;

use crate::call::Call;
use crate::objects::Objects;
use crate::served_resource::ServedResource;

/// Size of a body, of the changed object, or of a definition to compile, that a serving thread works on.
///
/// One or two milliseconds of work, for which all other connections of the thread wait.
///
/// Limit (Requests, bytes): the request runs on the threads for long work.
pub const MAX_INLINE_BYTES: usize = 8 * 1024;
/// Size of a request that runs on the threads for long work without waiting for a slot.
///
/// Limit (Requests, bytes): larger requests wait for a slot.
const MAX_LIGHT_BYTES: usize = 64 * 1024;

/// Threads that execute a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Thread that serves the connection.
    Inline,
    /// Threads for long work, without a slot, as the call uses little memory.
    Light,
    /// Threads for long work, with a slot until the call is answered, as it may use much memory.
    Heavy,
}

/// Selects the threads for a call by its possible cost.
pub(crate) fn select_placement(
    objects: &Objects,
    served_resource: Option<&ServedResource>,
    call: &Call,
) -> Placement {
    let changes = matches!(call.verb.as_str(), "update" | "patch");
    let writes = changes || call.verb == "create";
    let custom = served_resource.and_then(|served_resource| served_resource.custom.as_ref());
    let to_compile = custom.map_or(0, |custom| custom.bytes_to_compile(writes));
    let stored = served_resource
        .filter(|_| changes)
        .map_or(0, |served_resource| stored_bytes(objects, served_resource, call));
    match call.body.len().max(to_compile).max(stored) {
        bytes if bytes > MAX_LIGHT_BYTES || expands(call) => Placement::Heavy,
        bytes if bytes > MAX_INLINE_BYTES => Placement::Light,
        // Validation rules may take up to a second even for a small object.
        _ if writes && custom.is_some() && served_resource.is_some_and(has_rules) => Placement::Light,
        _ => Placement::Inline,
    }
}

fn has_rules(served_resource: &ServedResource) -> bool {
    served_resource.info.schema.custom().is_some_and(CustomResource::has_rules)
}

/// True if the body may expand to a much larger object: YAML by aliases, a JSON patch by copies.
fn expands(call: &Call) -> bool {
    let has = |text: &[u8]| memchr::memmem::find(&call.body, text).is_some();
    match call.content_type.to_ascii_lowercase() {
        content if content.contains("yaml") => has(b"*") && has(b"&"),
        // The name of the operation may contain escapes.
        content if content.contains("json-patch") => has(b"copy") || has(b"\\u"),
        _ => false,
    }
}

/// Size of the object that a call changes, as far as it is known without reading the database. A read from the database is slow
/// in any case.
fn stored_bytes(objects: &Objects, served_resource: &ServedResource, call: &Call) -> usize {
    let Some(snapshot) = objects.store.cached_snapshot(&served_resource.storage) else {
        return MAX_LIGHT_BYTES;
    };
    let namespace = if served_resource.info.namespaced { &*call.target.namespace } else { "" };
    let record = snapshot.get(&Key::new(&served_resource.storage, namespace, &call.target.name));
    record.map_or(0, |record| record.value.json().len())
}
