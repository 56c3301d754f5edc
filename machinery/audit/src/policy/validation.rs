//! Validation of policies (upstream's `ValidatePolicy`).

use portico_gostd::apimachinery::validation::dns1123_subdomain;
use portico_machinery::field::{Error, Path};

use super::document::{PolicyFile, ResourcesFile, RuleFile};
use crate::level::{Level, Stage};

pub(super) fn errors(file: &PolicyFile) -> Vec<Error> {
    let mut errors = Vec::new();
    omit_stages(&file.omit_stages, &Path::new("omitStages"), &mut errors);
    for (i, rule) in file.rules.iter().enumerate() {
        rule_errors(rule, &Path::new("rules").index(i), &mut errors);
    }
    errors
}

fn rule_errors(rule: &RuleFile, path: &Path, errors: &mut Vec<Error>) {
    level(&rule.level, &path.child("level"), errors);
    let urls = path.child("nonResourceURLs");
    non_resource_urls(&rule.non_resource_urls, &urls, errors);
    for resources in &rule.resources {
        group_resources(resources, &path.child("resources"), errors);
    }
    omit_stages(&rule.omit_stages, &path.child("omitStages"), errors);
    if !rule.non_resource_urls.is_empty() && (!rule.resources.is_empty() || !rule.namespaces.is_empty()) {
        let words = "rules cannot apply to both regular resources and non-resource URLs";
        errors.push(Error::invalid_printed(&urls, &format_list(&rule.non_resource_urls), words));
    }
}

fn level(name: &str, path: &Path, errors: &mut Vec<Error>) {
    if name.is_empty() {
        errors.push(Error::required(path, ""));
    } else if Level::parse(name).is_none() {
        errors.push(Error::not_supported(path, name, &Level::ALL.map(Level::as_str)));
    }
}

fn non_resource_urls(urls: &[String], path: &Path, errors: &mut Vec<Error>) {
    for (i, url) in urls.iter().enumerate().filter(|(_, url)| *url != "*") {
        if !url.starts_with('/') {
            let words = "non-resource URL rules must begin with a '/' character";
            errors.push(Error::invalid(&path.index(i), url, words));
        }
        if url.bytes().rev().skip(1).any(|byte| byte == b'*') {
            let words = "non-resource URL wildcards '*' must be the final character of the rule";
            errors.push(Error::invalid(&path.index(i), url, words));
        }
    }
}

fn group_resources(file: &ResourcesFile, path: &Path, errors: &mut Vec<Error>) {
    if !file.group.is_empty() && file.group != "*" {
        let messages = dns1123_subdomain(&file.group);
        if !messages.is_empty() {
            errors.push(Error::invalid(&path.child("group"), &file.group, &messages.join(",")));
        }
    }
    if !file.resource_names.is_empty() && file.resources.is_empty() {
        let words = "using resourceNames requires at least one resource";
        errors.push(Error::invalid_printed(
            &path.child("resourceNames"),
            &format_list(&file.resource_names),
            words,
        ));
    }
}

fn omit_stages(stages: &[String], path: &Path, errors: &mut Vec<Error>) {
    for (i, stage) in stages.iter().enumerate().filter(|(_, stage)| Stage::parse(stage).is_none()) {
        let words = format!("allowed stages are {}", Stage::ALL.map(Stage::as_str).join(","));
        errors.push(Error::invalid(&path.index(i), stage, &words));
    }
}

/// Formats a list as JSON, as upstream prints it.
fn format_list(list: &[String]) -> String {
    let items: Vec<String> = list.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", items.join(","))
}
