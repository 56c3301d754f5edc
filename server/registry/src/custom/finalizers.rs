//! Warnings about the names of finalizers (upstream's `rest.validateFinalizerName` and the warnings of its strategies).

use std::collections::HashSet;

use portico_machinery::Object;

/// Finalizers that the server itself handles.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// Returns warnings about the names of new finalizers.
pub fn warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    let old_names: HashSet<&str> = old.map(Object::finalizers).unwrap_or_default().into_iter().collect();
    let mut added: Vec<&str> =
        new.finalizers().into_iter().filter(|name| !old_names.contains(name)).collect();
    added.sort_unstable();
    added.dedup();
    added.into_iter().flat_map(finalizer_warnings).collect()
}

fn finalizer_warnings(name: &str) -> Vec<String> {
    let warning = |text: &str| format!("metadata.finalizers: {name:?}: {text}");
    let mut warnings: Vec<String> =
        portico_machinery::names::qualified_name(name).iter().map(|text| warning(text)).collect();
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        let path_hint = if name.contains('.') { " including a path (/)" } else { "" };
        warnings.push(warning(&format!(
            "prefer a domain-qualified finalizer name{path_hint} to avoid accidental conflicts with other finalizer writers"
        )));
    }
    warnings
}
