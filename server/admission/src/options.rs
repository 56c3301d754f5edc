//! The options of a request as an object of their kind, for webhooks and policies.

use portico_machinery::{GroupVersion, Object};
use portico_registry::{CreateOptions, DeleteOptions, FieldValidation, Options, Preconditions, Propagation};

/// `CreateOptions`, `UpdateOptions` or `DeleteOptions` of `meta.k8s.io/v1`; connections have none. A patch is an update to those
/// who are asked about it (upstream's `patchToUpdateOptions`).
pub(crate) fn object(options: Options<'_>) -> Option<Object> {
    let kind = |kind: &str| Object::new(&GroupVersion::new("meta.k8s.io", "v1").kind(kind));
    Some(match options {
        Options::Create(options) => write(kind("CreateOptions"), options),
        Options::Update(options) => write(kind("UpdateOptions"), options),
        Options::Patch(options) => write(kind("UpdateOptions"), &options.write),
        Options::Delete(options) => delete(kind("DeleteOptions"), options),
        Options::Connect => return None,
    })
}

fn write(mut object: Object, options: &CreateOptions) -> Object {
    dry_run(&mut object, options.dry_run);
    if !options.field_manager.is_empty() {
        object.set(&["fieldManager"], &options.field_manager);
    }
    match options.field_validation {
        // What is not said means this.
        FieldValidation::Warn => {}
        FieldValidation::Ignore => object.set(&["fieldValidation"], "Ignore"),
        FieldValidation::Strict => object.set(&["fieldValidation"], "Strict"),
    }
    object
}

fn delete(mut object: Object, options: &DeleteOptions) -> Object {
    dry_run(&mut object, options.dry_run);
    if let Some(seconds) = options.grace_period_seconds {
        object.set(&["gracePeriodSeconds"], seconds);
    }
    let Preconditions { uid, resource_version } = &options.preconditions;
    for (field, text) in [("uid", uid), ("resourceVersion", resource_version)] {
        if let Some(text) = text {
            object.set(&["preconditions", field], text);
        }
    }
    if let Some(orphan) = options.orphan_dependents {
        object.set(&["orphanDependents"], orphan);
    }
    if let Some(propagation) = options.propagation {
        object.set(
            &["propagationPolicy"],
            match propagation {
                Propagation::Orphan => "Orphan",
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
            },
        );
    }
    object
}

fn dry_run(object: &mut Object, dry_run: bool) {
    if dry_run {
        object.set(&["dryRun"], ["All"]);
    }
}
