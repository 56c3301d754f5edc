//! Incompatible changes of an installed definition: its names, versions, served resources, and schemas.

use portico_schema::structural::Structural;

use super::finding::{Finding, FindingKind};
use super::proposed_definition::ProposedDefinition;
use crate::custom::definition_facts::{DefinitionFacts, DefinitionNames, DefinitionVersion};
use crate::served_resource::ServedResource;

/// Compares all served versions, in the order of the installed definition.
pub(super) fn compare(old: &ProposedDefinition, new: &ProposedDefinition) -> Vec<Finding> {
    let mut findings = removed_names(old.facts.names(), new.facts.names());
    findings.extend(storage_version_change(&old.facts, &new.facts));
    for old_version in old.facts.versions().iter().filter(|version| version.served) {
        let new_version = new.facts.versions().iter().find(|version| version.name == old_version.name);
        let version_finding = |text: &str| breaking_finding(&old_version.name, "", text.to_owned());
        match new_version {
            None => findings.push(version_finding("the version is removed: clients of this version get 404")),
            Some(new_version) if !new_version.served => {
                findings.push(version_finding(
                    "the version is no longer served: clients of this version get 404",
                ));
            }
            Some(new_version) => {
                findings.extend(removed_features(old_version, new_version));
                let pair = (old.versions.version(&old_version.name), new.versions.version(&new_version.name));
                if let (Some(old), Some(new)) = pair {
                    findings.extend(schema_changes(&old_version.name, old, new));
                }
            }
        }
    }
    findings
}

fn breaking_finding(version: &str, field: &str, text: String) -> Finding {
    Finding { version: version.to_owned(), ..Finding::new(FindingKind::Breaking, field, text) }
}

/// Removed names by which clients find the resource.
fn removed_names(old: &DefinitionNames, new: &DefinitionNames) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report =
        |field: &str, text: String| findings.push(breaking_finding("", &format!("spec.names.{field}"), text));
    // Both names have defaults.
    let singular = if new.singular.is_empty() { new.kind.to_lowercase() } else { new.singular.clone() };
    if old.singular != singular {
        report("singular", format!("{} is removed: kubectl finds the resource by {singular}", old.singular));
    }
    let list_kind =
        if new.list_kind.is_empty() { format!("{}List", new.kind) } else { new.list_kind.clone() };
    if old.list_kind != list_kind {
        report("listKind", format!("lists are of kind {list_kind}, no longer {}", old.list_kind));
    }
    for name in old.short_names.iter().filter(|name| !new.short_names.contains(name)) {
        report("shortNames", format!("{name} is removed: kubectl no longer finds the resource by this name"));
    }
    for category in old.categories.iter().filter(|category| !new.categories.contains(category)) {
        report(
            "categories",
            format!("{category} is removed: kubectl get {category} no longer lists the resource"),
        );
    }
    findings
}

fn storage_version_change(old: &DefinitionFacts, new: &DefinitionFacts) -> Vec<Finding> {
    let (Some(old_version), Some(new_version)) = (old.storage(), new.storage()) else { return Vec::new() };
    if old_version.name == new_version.name {
        return Vec::new();
    }
    let text = format!(
        "new writes are stored in version {}: objects stored in version {} stay in that version until they are written again (see StorageVersionMigration)",
        new_version.name, old_version.name
    );
    vec![breaking_finding(&new_version.name, "", text)]
}

/// Removed subresources, columns and selectable fields.
fn removed_features(old: &DefinitionVersion, new: &DefinitionVersion) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report = |text: String| findings.push(breaking_finding(&old.name, "", text));
    if old.subresources.status.is_some() && new.subresources.status.is_none() {
        report(
            "/status is removed: writes of the subresource get 404, and writes of the object change the status"
                .to_owned(),
        );
    }
    if old.subresources.status.is_none() && new.subresources.status.is_some() {
        report("/status is new: writes of the object no longer change the status".to_owned());
    }
    match (&old.subresources.scale, &new.subresources.scale) {
        (Some(_), None) => report("/scale is removed: autoscalers and kubectl scale get 404".to_owned()),
        (Some(old), Some(new)) if old != new => report("/scale reads other fields".to_owned()),
        _ => {}
    }
    for field in &old.selectable_fields {
        if !new.selectable_fields.iter().any(|new_item| new_item.json_path == field.json_path) {
            report(format!("{} is no longer selectable: lists with this selector get 400", field.json_path));
        }
    }
    for column in &old.additional_printer_columns {
        if !new.additional_printer_columns.iter().any(|new_item| new_item.name == column.name) {
            report(format!("the column {} is removed from tables", column.name));
        }
    }
    findings
}

fn schema_changes(version: &str, old: &ServedResource, new: &ServedResource) -> Vec<Finding> {
    let schema = |served_resource: &ServedResource| {
        served_resource.info.schema.custom().map(|custom| custom.schema().clone())
    };
    let (Some(old), Some(new)) = (schema(old), schema(new)) else { return Vec::new() };
    let changes = Structural::breaking_changes(&new, &old);
    changes.into_iter().map(|change| breaking_finding(version, change.path.as_str(), change.text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_names_are_reported() {
        let to_strings = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let old = DefinitionNames {
            kind: "CronTab".to_owned(),
            singular: "crontab".to_owned(),
            list_kind: "CronTabList".to_owned(),
            short_names: to_strings(&["ct", "cron"]),
            categories: to_strings(&["all"]),
            ..DefinitionNames::default()
        };
        let new = DefinitionNames {
            kind: "CronTab".to_owned(),
            short_names: to_strings(&["cron", "new"]),
            ..DefinitionNames::default()
        };
        let fields = |new: &DefinitionNames| {
            removed_names(&old, new).into_iter().map(|found| found.field).collect::<Vec<_>>()
        };
        assert_eq!(fields(&new), ["spec.names.shortNames", "spec.names.categories"]);
        assert_eq!(fields(&old), Vec::<String>::new());
        let renamed =
            DefinitionNames { singular: "tab".to_owned(), list_kind: "Tabs".to_owned(), ..old.clone() };
        assert_eq!(fields(&renamed), ["spec.names.singular", "spec.names.listKind"]);
    }
}
