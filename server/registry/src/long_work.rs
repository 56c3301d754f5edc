//! Which calls take long, so that their work leaves the thread that serves their connection.

use portico_store::Key;

use crate::call::Call;
use crate::objects::Objects;
use crate::served::ServedResource;

/// The most bytes of a body, of the object that it changes, or of a definition that is not compiled yet, that are looked at on a
/// serving thread: about a millisecond of work. Everybody else on that thread waits meanwhile.
pub const MAX_INLINE_BYTES: usize = 64 * 1024;

/// Whether a call may keep a processor busy for long.
pub(crate) fn is_long(inner: &Objects, served: Option<&ServedResource>, call: &Call) -> bool {
    let changes = matches!(call.verb.as_str(), "update" | "patch");
    let writes = changes || call.verb == "create";
    if writes && call.body.len() > MAX_INLINE_BYTES {
        return true;
    }
    let Some(served) = served else { return false };
    let compiles = |custom: &crate::custom::Custom| custom.bytes_to_compile(writes) > MAX_INLINE_BYTES;
    served.custom.as_ref().is_some_and(compiles) || (changes && is_stored_large(inner, served, call))
}

/// Whether the object that a call changes is large, as far as that is known without reading the database: what is read there takes
/// its time anyway.
fn is_stored_large(inner: &Objects, served: &ServedResource, call: &Call) -> bool {
    let Some(snapshot) = inner.store.cached(&served.storage) else { return true };
    let namespace = if served.info.namespaced { &*call.target.namespace } else { "" };
    let record = snapshot.get(&Key::new(&served.storage, namespace, &call.target.name));
    record.is_some_and(|record| record.value.json().len() > MAX_INLINE_BYTES)
}
