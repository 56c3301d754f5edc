//! Validation of `metadata`: names, labels, annotations, owners, finalizers, and fields that an update may not change.

use std::collections::HashSet;

use portico_kinds::{KindInfo, NameRule};
use portico_machinery::field::{self, ErrorType, Path};
use portico_machinery::gvk::GroupVersion;
use portico_machinery::object::cut;
use portico_machinery::status::MAX_FIELD_ERRORS;
use portico_machinery::{Cursor, Object, names};

use super::values;
use crate::Errors;

/// Maximum total bytes of the keys and values of all annotations.
const ANNOTATIONS_MAX: usize = 262_144;

/// Finalizers without a domain that upstream uses.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

const IMMUTABLE: &str = "field is immutable";

/// Rules for the metadata of a kind.
#[derive(Clone, Copy, Debug)]
pub struct MetaRules {
    name: NameRule,
    allows_any_finalizer: bool,
    namespaced: bool,
}

impl MetaRules {
    /// Returns the rules of a kind.
    pub fn from_kind(info: &KindInfo) -> Self {
        Self {
            name: info.name_rule,
            allows_any_finalizer: info.allow_unqualified_finalizers,
            namespaced: info.namespaced,
        }
    }

    /// Returns the rules of a resource embedded in another object: any path segment is a valid name.
    pub fn embedded(namespaced: bool) -> Self {
        Self { name: NameRule::PathSegment, allows_any_finalizer: true, namespaced }
    }

    fn name_diagnostics(self, name: &str) -> Vec<String> {
        match self.name {
            NameRule::Subdomain => names::dns1123_subdomain(name),
            NameRule::Label => values::label(name),
            NameRule::PathSegment => names::path_segment(name),
            NameRule::IpAddress => values::ip_name(name),
            NameRule::ConfigKey => values::config_key(name),
            NameRule::GroupAndResource => names::group_and_resource(name),
        }
    }

    /// Validates the prefix of a generated name. A trailing dash is allowed, because the generated part follows.
    fn prefix_diagnostics(self, prefix: &str) -> Vec<String> {
        self.name_diagnostics(&values::masked_prefix(prefix))
    }
}

/// Validates the metadata of an object on creation.
pub fn validate_create(object: &Object, rules: MetaRules, errors: &mut Errors) {
    let meta = object.metadata();
    let (generate, name) = (meta.field("generateName"), meta.field("name"));
    if !generate.str().is_empty() {
        errors.extend(rules.prefix_diagnostics(generate.str()).iter().map(|m| generate.invalid(m)));
    }
    if name.str().is_empty() {
        errors.push(name.required("name or generateName is required"));
    } else {
        errors.extend(rules.name_diagnostics(name.str()).iter().map(|m| name.invalid(m)));
    }
    validate_namespace(&meta.field("namespace"), rules.namespaced, errors);
    let generation = meta.field("generation");
    if generation.i64().is_some_and(|g| g < 0) {
        errors.push(generation.invalid("must be greater than or equal to 0"));
    }
    validate_maps_and_lists(&meta, rules, errors);
}

fn validate_namespace(namespace: &Cursor<'_>, namespaced: bool, errors: &mut Errors) {
    match (namespaced, namespace.str()) {
        (true, "") => errors.push(namespace.required("")),
        (true, text) => errors.extend(names::dns1123_label(text).iter().map(|m| namespace.invalid(m))),
        (false, "") => {}
        (false, _) => errors.push(namespace.forbidden("not allowed on this type")),
    }
}

fn validate_maps_and_lists(meta: &Cursor<'_>, rules: MetaRules, errors: &mut Errors) {
    validate_labels(&meta.field("labels"), errors);
    validate_annotations(&meta.field("annotations"), errors);
    validate_owners(&meta.field("ownerReferences"), errors);
    validate_finalizers(&meta.field("finalizers"), rules, errors);
}

/// Validates labels. All errors have the path of the map.
pub fn validate_labels(labels: &Cursor<'_>, errors: &mut Errors) {
    for (key, value) in labels.entries() {
        errors.extend(names::to_field_errors(&labels.path(), key, names::qualified_name(key)));
        errors.extend(names::to_field_errors(&labels.path(), value.str(), names::label_value(value.str())));
    }
}

/// Validates the keys of annotations and their total size.
pub fn validate_annotations(annotations: &Cursor<'_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in annotations.entries() {
        let diagnostics = names::qualified_name(&key.to_lowercase());
        errors.extend(names::to_field_errors(&annotations.path(), key, diagnostics));
        size += key.len() + value.str().len();
    }
    if size > ANNOTATIONS_MAX {
        errors.push(field::Error::too_long(&annotations.path(), ANNOTATIONS_MAX));
    }
}

fn has_version(api_version: &str) -> bool {
    api_version.parse::<GroupVersion>().is_ok_and(|parsed| !parsed.version.is_empty())
}

fn validate_owners(owners: &Cursor<'_>, errors: &mut Errors) {
    let path = owners.path();
    let (mut controller, mut printed): (Option<String>, Option<String>) = (None, None);
    for owner in owners.items() {
        let [version, kind, name, uid] = ["apiVersion", "kind", "name", "uid"].map(|f| owner.field(f).str());
        for (field, value, text) in [
            ("apiVersion", version, "version must not be empty"),
            ("kind", kind, "must not be empty"),
            ("name", name, "must not be empty"),
            ("uid", uid, "must not be empty"),
        ] {
            if value.is_empty() || (field == "apiVersion" && !has_version(value)) {
                errors.push(field::Error::invalid(&path.child(field), value, text));
            }
        }
        if version == "v1" && kind == "Event" {
            let text = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(field::Error::invalid_printed(&path, &format_owner(&owner), text));
        }
        if owner.field("controller").bool() {
            let current = format!("{kind}/{name}");
            match &controller {
                // Each error prints the whole list, so their number is limited.
                Some(_) if errors.len() >= MAX_FIELD_ERRORS => {}
                Some(first) => {
                    let text = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {current}"
                    );
                    let printed = printed.get_or_insert_with(|| format_owners(owners));
                    errors.push(field::Error::invalid_printed(&path, printed, &text));
                }
                None => controller = Some(current),
            }
        }
    }
}

/// Formats owners for error messages.
fn format_owners(owners: &Cursor<'_>) -> String {
    let owners: Vec<String> = owners.items().map(|owner| format_owner(&owner)).collect();
    cut(format!("[{}]", owners.join(",")))
}

/// Formats an owner as JSON, with the members in the order of upstream's struct.
fn format_owner(owner: &Cursor<'_>) -> String {
    const MEMBERS: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let members = MEMBERS.iter().map(|name| (name, owner.field(name))).filter(|(_, at)| at.is_present());
    let members: Vec<_> = members.map(|(name, at)| format!("{name:?}:{}", at.json())).collect();
    format!("{{{}}}", members.join(","))
}

fn validate_finalizers(finalizers: &Cursor<'_>, rules: MetaRules, errors: &mut Errors) {
    let path = finalizers.path();
    let (mut orphan, mut foreground) = (false, false);
    for finalizer in finalizers.items() {
        errors.extend(names::to_field_errors(&path, finalizer.str(), names::qualified_name(finalizer.str())));
        orphan |= finalizer.str() == "orphan";
        foreground |= finalizer.str() == "foregroundDeletion";
    }
    if orphan && foreground {
        errors.push(finalizers.invalid("finalizer orphan and foregroundDeletion cannot be both set"));
    }
    if !rules.allows_any_finalizer {
        validate_standard_finalizers(finalizers, true, errors);
    }
}

/// Requires finalizers that are standard or have a domain. Errors have the path of the item if `indexed`, else of the list.
pub fn validate_standard_finalizers(finalizers: &Cursor<'_>, indexed: bool, errors: &mut Errors) {
    const TEXT: &str = "name is neither a standard finalizer name nor is it fully qualified";
    for finalizer in finalizers.items() {
        let name = finalizer.str();
        if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            let path = if indexed { finalizer.path() } else { finalizers.path() };
            errors.push(field::Error::invalid(&path, name, TEXT));
        }
    }
}

/// Validates changed metadata as the strategies of built-in kinds do.
pub fn validate_update(new: &Object, old: &Object, rules: MetaRules, errors: &mut Errors) {
    validate_object_meta_update(new, old, errors);
    if !rules.allows_any_finalizer {
        validate_standard_finalizers(&new.metadata().field("finalizers"), true, errors);
    }
}

/// Validates changed metadata as upstream does for every kind before the validation of the kind itself, which calls
/// [`validate_object_meta_update`] again. An error may be reported up to three times.
pub fn validate_common_update(new: &Object, old: &Object, namespaced: bool, errors: &mut Errors) {
    validate_create(new, MetaRules::embedded(namespaced), errors);
    validate_object_meta_update(new, old, errors);
}

/// Validates changed metadata as the strategy of custom resources does (upstream's `ValidateObjectMetaUpdate`).
pub fn validate_object_meta_update(new: &Object, old: &Object, errors: &mut Errors) {
    validate_immutable_fields(new, old, errors);
    let meta = new.metadata();
    validate_labels(&meta.field("labels"), errors);
    validate_annotations(&meta.field("annotations"), errors);
    validate_owners(&meta.field("ownerReferences"), errors);
}

/// Validates that immutable fields are unchanged.
fn validate_immutable_fields(new: &Object, old: &Object, errors: &mut Errors) {
    let (new_meta, old_meta) = (new.metadata(), old.metadata());
    if old.deletion_timestamp().is_some() {
        validate_no_new_finalizers(new, old, errors);
    }
    for name in
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        let (new, old) = (new_meta.field(name), old_meta.field(name));
        if !new.same_as(&old) && (new.is_present() || old.is_present()) {
            let printed = if new.is_present() { new.printed() } else { "null".to_owned() };
            errors.push(field::Error::invalid_printed(&new.path(), &printed, IMMUTABLE));
        }
    }
}

fn validate_no_new_finalizers(new: &Object, old: &Object, errors: &mut Errors) {
    let had: HashSet<&str> = old.finalizers().into_iter().collect();
    let added: Vec<_> = new.finalizers().into_iter().filter(|f| !had.contains(f)).collect();
    if !added.is_empty() {
        let list: Vec<_> = added.iter().map(|f| format!("{f:?}")).collect();
        let body = format!(
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            list.join(", ")
        );
        errors.push(field::Error::new(ErrorType::Forbidden, &Path::from("metadata.finalizers"), body));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: MetaRules =
        MetaRules { name: NameRule::Subdomain, allows_any_finalizer: false, namespaced: true };

    #[test]
    fn an_owner_has_a_version() {
        let rows = [("v1", true), ("g/v1", true), ("g/", false), ("a/b/c", false), ("", false)];
        assert_eq!(rows.map(|(text, _)| has_version(text)), rows.map(|(_, is)| is));
    }

    fn create(json: &str) -> Vec<String> {
        let object = Object::from_json(json.as_bytes()).unwrap();
        let mut errors = Vec::new();
        validate_create(&object, RULES, &mut errors);
        errors.iter().map(|e| format!("{}: {}", e.path, e.body)).collect()
    }

    #[test]
    fn each_rule_of_metadata_reports_its_path_and_message() {
        let rows: &[(&str, &[&str])] = &[
            (r#"{"name":"a","namespace":"b"}"#, &[]),
            (r#"{"namespace":"b"}"#, &["metadata.name: Required value: name or generateName is required"]),
            (r#"{"name":"a"}"#, &["metadata.namespace: Required value"]),
            (r#"{"name":"ab","generateName":"a_-","namespace":"b"}"#, &[]),
            (
                r#"{"name":"a","namespace":"b","finalizers":["foo"]}"#,
                &[
                    "metadata.finalizers[0]: Invalid value: \"foo\": name is neither a standard finalizer name nor is it fu",
                ],
            ),
            (
                r#"{"name":"a","namespace":"b","finalizers":["orphan","foregroundDeletion"]}"#,
                &[
                    "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and ",
                ],
            ),
            (
                r#"{"name":"a","namespace":"b","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"1","controller":true},{"apiVersion":"v1","kind":"Pod","name":"b","uid":"","controller":true}]}"#,
                &[
                    "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
                    "metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"1\",",
                ],
            ),
        ];
        for (meta, want) in rows {
            let found = create(&format!(r#"{{"metadata":{meta}}}"#));
            assert_eq!(found.len(), want.len(), "{found:?}");
            for (found, want) in found.iter().zip(*want) {
                assert!(found.starts_with(want), "{found}\nis not\n{want}");
            }
        }
    }

    #[test]
    fn a_deleting_object_takes_no_new_finalizers() {
        let old = Object::from_json(
            br#"{"metadata":{"name":"a","namespace":"b","deletionTimestamp":"x","finalizers":["a/b"]}}"#,
        );
        let mut new = old.as_ref().unwrap().clone();
        new.set(&["metadata", "finalizers"], ["a/b", "ex.io/b"]);
        let mut errors = Vec::new();
        validate_update(&new, old.as_ref().unwrap(), RULES, &mut errors);
        assert_eq!(errors.len(), 1);
        assert!(
            errors[0].body.ends_with(r#"found new finalizers []string{"ex.io/b"}"#),
            "{}",
            errors[0].body
        );
    }
}
