//! Status 409 for an apply that conflicts with fields of other managers, with a cause for each field.

use portico_machinery::Status;
use portico_machinery::object::cut;
use portico_machinery::status::{Cause, Details, MAX_CAUSES_BYTES, MAX_FIELD_ERRORS, Reason};
use portico_schema::apply::Conflicts;
use portico_schema::fields::print_path;
use portico_schema::managed::{Manager, Operation};

/// Status 409 with upstream's message: managers in order, each with its fields. Long lists of fields are truncated.
pub(super) fn status(conflicts: &Conflicts<Manager>) -> Status {
    let (mut causes, mut lines, mut count, mut bytes) = (Vec::new(), Vec::new(), 0, 0);
    for (manager, set) in &conflicts.0 {
        let manager = cut(manager_text(manager));
        if bytes < MAX_CAUSES_BYTES {
            lines.push(format!("conflicts with {manager}:"));
        }
        set.visit(&mut |path| {
            count += 1;
            if count > MAX_FIELD_ERRORS || bytes >= MAX_CAUSES_BYTES {
                return;
            }
            let field = cut(print_path(path));
            bytes += manager.len() + 2 * field.len();
            lines.push(format!("- {field}"));
            causes.push(Cause {
                reason: "FieldManagerConflict".to_owned(),
                message: format!("conflict with {manager}"),
                field,
            });
        });
    }
    let message = match causes.as_slice() {
        [one] => format!("Apply failed with 1 conflict: {}: {}", one.message, one.field),
        _ => format!("Apply failed with {count} conflicts: {}", lines.join("\n")),
    };
    Status::failure(Reason::Conflict, message).with_details(Details { causes, ..Details::default() })
}

fn manager_text(manager: &Manager) -> String {
    let Manager { name, operation, version, subresource } = manager;
    let mut text = format!("{name:?}");
    if !subresource.is_empty() {
        text.push_str(&format!(" with subresource {subresource:?}"));
    }
    if *operation == Operation::Update {
        text.push_str(&format!(" using {version}"));
    }
    text
}
