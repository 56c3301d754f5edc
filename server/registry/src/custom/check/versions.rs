//! Incompatible changes of an installed definition: its names, versions, served resources, and schemas.

use portico_schema::structural::Structural;

use super::finding::{Finding, FindingKind};
use super::proposed::Proposed;
use crate::custom::facts::{Facts, Names, Version};
use crate::served::ServedResource;

/// Compares all served versions, in the order of the installed definition.
pub(super) fn compare(old: &Proposed, new: &Proposed) -> Vec<Finding> {
    let mut findings = names(old.facts.names(), new.facts.names());
    findings.extend(stored_versions(&old.facts, &new.facts));
    for before in old.facts.versions().iter().filter(|version| version.served) {
        let after = new.facts.versions().iter().find(|version| version.name == before.name);
        let of_version = |text: &str| found(&before.name, "", text.to_owned());
        match after {
            None => findings.push(of_version("the version is gone: clients of this version get 404")),
            Some(after) if !after.served => {
                findings.push(of_version("the version is no longer served: clients of this version get 404"));
            }
            Some(after) => {
                findings.extend(surface(before, after));
                let pair = (old.serving.version(&before.name), new.serving.version(&after.name));
                if let (Some(old), Some(new)) = pair {
                    findings.extend(schemas(&before.name, old, new));
                }
            }
        }
    }
    findings
}

fn found(version: &str, field: &str, text: String) -> Finding {
    Finding { version: version.to_owned(), ..Finding::of(FindingKind::Breaking, field, text) }
}

/// Removed names by which clients find the resource.
fn names(old: &Names, new: &Names) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report =
        |field: &str, text: String| findings.push(found("", &format!("spec.names.{field}"), text));
    // Both names have defaults.
    let singular = if new.singular.is_empty() { new.kind.to_lowercase() } else { new.singular.clone() };
    if old.singular != singular {
        report("singular", format!("{} is gone: kubectl finds the resource by {singular}", old.singular));
    }
    let list_kind =
        if new.list_kind.is_empty() { format!("{}List", new.kind) } else { new.list_kind.clone() };
    if old.list_kind != list_kind {
        report("listKind", format!("lists are of kind {list_kind}, no longer {}", old.list_kind));
    }
    for name in old.short_names.iter().filter(|name| !new.short_names.contains(name)) {
        report("shortNames", format!("{name} is gone: kubectl no longer finds the resource by this name"));
    }
    for category in old.categories.iter().filter(|category| !new.categories.contains(category)) {
        report(
            "categories",
            format!("{category} is gone: kubectl get {category} no longer lists the resource"),
        );
    }
    findings
}

fn stored_versions(old: &Facts, new: &Facts) -> Vec<Finding> {
    let (Some(before), Some(after)) = (old.storage(), new.storage()) else { return Vec::new() };
    if before.name == after.name {
        return Vec::new();
    }
    let text = format!(
        "objects are stored in {} from now on: objects in {} stay in that version until they are written again (see StorageVersionMigration)",
        after.name, before.name
    );
    vec![found(&after.name, "", text)]
}

/// Removed subresources, columns and selectable fields.
fn surface(before: &Version, after: &Version) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report = |text: String| findings.push(found(&before.name, "", text));
    if before.subresources.status.is_some() && after.subresources.status.is_none() {
        report(
            "/status is gone: writes of the subresource get 404, and writes of the object change the status"
                .to_owned(),
        );
    }
    if before.subresources.status.is_none() && after.subresources.status.is_some() {
        report("/status is new: writes of the object no longer change the status".to_owned());
    }
    match (&before.subresources.scale, &after.subresources.scale) {
        (Some(_), None) => report("/scale is gone: autoscalers and kubectl scale get 404".to_owned()),
        (Some(old), Some(new)) if old != new => report("/scale reads other fields".to_owned()),
        _ => {}
    }
    for field in &before.selectable_fields {
        if !after.selectable_fields.iter().any(|kept| kept.json_path == field.json_path) {
            report(format!("{} is no longer selectable: lists with this selector get 400", field.json_path));
        }
    }
    for column in &before.additional_printer_columns {
        if !after.additional_printer_columns.iter().any(|kept| kept.name == column.name) {
            report(format!("the column {} is gone from tables", column.name));
        }
    }
    findings
}

fn schemas(version: &str, old: &ServedResource, new: &ServedResource) -> Vec<Finding> {
    let schema = |served: &ServedResource| served.info.schema.custom().map(|custom| custom.schema().clone());
    let (Some(old), Some(new)) = (schema(old), schema(new)) else { return Vec::new() };
    let breaks = Structural::breaks(&new, &old);
    breaks.into_iter().map(|broken| found(version, broken.path.as_str(), broken.text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_gone_are_reported() {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let old = Names {
            kind: "CronTab".to_owned(),
            singular: "crontab".to_owned(),
            list_kind: "CronTabList".to_owned(),
            short_names: words(&["ct", "cron"]),
            categories: words(&["all"]),
            ..Names::default()
        };
        let new =
            Names { kind: "CronTab".to_owned(), short_names: words(&["cron", "new"]), ..Names::default() };
        let fields = |new: &Names| names(&old, new).into_iter().map(|found| found.field).collect::<Vec<_>>();
        assert_eq!(fields(&new), ["spec.names.shortNames", "spec.names.categories"]);
        assert_eq!(fields(&old), Vec::<String>::new());
        let renamed = Names { singular: "tab".to_owned(), list_kind: "Tabs".to_owned(), ..old.clone() };
        assert_eq!(fields(&renamed), ["spec.names.singular", "spec.names.listKind"]);
    }
}
