//! Reads a policy file. Unknown fields are ignored with a warning; invalid values are errors.
//!
//! Upstream: `LoadPolicyFromBytes`, which decodes strictly first, and leniently if the only strict errors are unknown fields.

use portico_machinery::{aggregate, field};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::document::{PolicyFile, ResourcesFile, RuleFile, UnknownFields};
use super::rules::{GroupResources, Policy, Rule};
use super::validation;
use crate::API_VERSION;
use crate::level::{Level, Stage};

/// The only kind accepted as a policy.
const KIND: &str = "Policy";
/// Other kinds of the same group.
const OTHER_KINDS: [&str; 3] = ["Event", "EventList", "PolicyList"];

/// Error of a policy file that is refused.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// Invalid YAML, or a value that does not match the type of its field.
    #[error("failed decoding: {0}")]
    Decoding(String),
    /// The file has no `apiVersion` or no `kind`.
    #[error("unknown group version field audit.k8s.io/__internal, Kind=Policy in policy")]
    Untyped,
    /// The file contains values that are not allowed.
    #[error("{}", aggregate(.0.iter().map(format_error)))]
    Invalid(Vec<field::Error>),
    /// The policy has no rules.
    #[error("loaded illegal policy with 0 rules")]
    Empty,
}

fn format_error(error: &field::Error) -> String {
    format!("{}: {}", error.path, error.body)
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// [`PolicyError`], with upstream's message.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        parse(text)
    }
}

fn parse(text: &str) -> Result<Policy, PolicyError> {
    if text.trim().is_empty() {
        return Err(PolicyError::Untyped);
    }
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    let file: PolicyFile = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| PolicyError::Decoding(first_line(&error.to_string())))?;
    check_kind(&file)?;
    let errors = validation::errors(&file);
    if !errors.is_empty() {
        return Err(PolicyError::Invalid(errors));
    }
    if file.rules.is_empty() {
        return Err(PolicyError::Empty);
    }
    let warnings = unknown_fields(&file);
    Ok(Policy {
        omit_stages: parse_stages(&file.omit_stages),
        omit_managed_fields: file.omit_managed_fields,
        rules: file.rules.into_iter().map(convert_rule).collect(),
        warnings,
    })
}

/// Returns the first line of an error: the following lines quote the surrounding text.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn check_kind(file: &PolicyFile) -> Result<(), PolicyError> {
    let PolicyFile { api_version, kind, .. } = file;
    let refuse = |words: String| Err(PolicyError::Decoding(words));
    match (api_version.as_str(), kind.as_str()) {
        ("", _) | (_, "") => Err(PolicyError::Untyped),
        (API_VERSION, KIND) => Ok(()),
        (API_VERSION, other) if OTHER_KINDS.contains(&other) => {
            refuse(format!("converting (v1.{other}) to (audit.Policy): unknown conversion"))
        }
        _ => refuse(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )),
    }
}

fn unknown_fields(file: &PolicyFile) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |path: String, unknown: &UnknownFields| {
        found.extend(unknown.keys().map(|name| format!("unknown field \"{path}{name}\"")));
    };
    add(String::new(), &file.unknown);
    for (i, rule) in file.rules.iter().enumerate() {
        add(format!("rules[{i}]."), &rule.unknown);
        for (j, resources) in rule.resources.iter().enumerate() {
            add(format!("rules[{i}].resources[{j}]."), &resources.unknown);
        }
    }
    found
}

fn parse_stages(names: &[String]) -> crate::Stages {
    names.iter().filter_map(|name| Stage::parse(name)).collect()
}

fn convert_rule(file: RuleFile) -> Rule {
    Rule {
        level: Level::parse(&file.level).unwrap_or_default(),
        omit_stages: parse_stages(&file.omit_stages),
        users: file.users,
        user_groups: file.user_groups,
        verbs: file.verbs,
        resources: file.resources.into_iter().map(convert_group_resources).collect(),
        namespaces: file.namespaces,
        non_resource_urls: file.non_resource_urls,
        omit_managed_fields: file.omit_managed_fields,
    }
}

fn convert_group_resources(file: ResourcesFile) -> GroupResources {
    GroupResources { group: file.group, resources: file.resources, resource_names: file.resource_names }
}
