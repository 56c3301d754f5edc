//! Validation of `podFailurePolicy` and `successPolicy`.

use std::collections::HashSet;

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::indexes;
use portico_validation::Errors;
use portico_validation::checks::{max_bytes, max_items, not_negative};

const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const SUCCEEDED_INDEXES_MAX: usize = 64 * 1024;

/// Validates the rules for failed pods.
pub(super) fn validate_failure(spec: &Cursor<'_>, errors: &mut Errors) {
    let rules = spec.field("podFailurePolicy").field("rules");
    max_items(&rules, RULES_MAX, errors);
    let pod = spec.field("template").field("spec");
    let containers: HashSet<&str> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| pod.field(list).items().map(|c| c.field("name").str()).collect::<Vec<_>>())
        .collect();
    let per_index = spec.field("backoffLimitPerIndex").is_present();
    for rule in rules.items() {
        validate_action(&rule.field("action"), per_index, errors);
        let (codes, conditions) = (rule.field("onExitCodes"), rule.field("onPodConditions"));
        if codes.is_present() {
            validate_exit_codes(&codes, &containers, errors);
        }
        validate_pod_conditions(&conditions, errors);
        let text = match (codes.is_present(), conditions.is_empty()) {
            (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        errors.push(rule.invalid_unprinted(text));
    }
}

fn validate_action(action: &Cursor<'_>, per_index: bool, errors: &mut Errors) {
    const KNOWN: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
    match action.str() {
        "" => errors.push(action.required(&format!("valid values: {}", go_list(&KNOWN)))),
        "FailIndex" if !per_index => {
            errors.push(action.invalid("requires the backoffLimitPerIndex to be set"));
        }
        value if KNOWN.contains(&value) => {}
        _ => errors.push(action.not_supported(&KNOWN)),
    }
}

fn validate_exit_codes(codes: &Cursor<'_>, containers: &HashSet<&str>, errors: &mut Errors) {
    const KNOWN: [&str; 2] = ["In", "NotIn"];
    let (operator, name, values) =
        (codes.field("operator"), codes.field("containerName"), codes.field("values"));
    match operator.str() {
        "" => errors.push(operator.required(&format!("valid values: {}", go_list(&KNOWN)))),
        value if KNOWN.contains(&value) => {}
        _ => errors.push(operator.not_supported(&KNOWN)),
    }
    if name.is_present() && !containers.contains(name.str()) {
        let text = "must be one of the container or initContainer names in the pod template";
        errors.push(name.invalid(text));
    }
    if values.is_empty() {
        let text = "at least one value is required";
        errors.push(Error::invalid_printed(&values.path(), "[]", text));
    }
    max_items(&values, EXIT_CODES_MAX, errors);
    let (mut seen, mut last, mut ordered) = (HashSet::new(), i64::MIN, true);
    for value in values.items() {
        let code = value.i64().unwrap_or(0);
        if code == 0 && operator.str() == "In" {
            errors.push(value.invalid("must not be 0 for the In operator"));
        }
        if !seen.insert(code) {
            errors.push(Error::duplicate(&value.path(), code));
        }
        ordered &= last <= code;
        last = code;
    }
    if !ordered {
        errors.push(values.invalid("must be ordered"));
    }
}

fn validate_pod_conditions(conditions: &Cursor<'_>, errors: &mut Errors) {
    max_items(conditions, RULES_MAX, errors);
    for condition in conditions.items() {
        let (kind, status) = (condition.field("type"), condition.field("status"));
        let diagnostics = portico_machinery::names::qualified_name(kind.str());
        errors.extend(portico_machinery::names::to_field_errors(&kind.path(), kind.str(), diagnostics));
        match status.str() {
            "True" | "False" | "Unknown" => {}
            "" => errors.push(status.required(&format!("valid values: {}", go_list(&STATUSES)))),
            _ => errors.push(status.not_supported(&STATUSES)),
        }
    }
}

/// Formats a list as Go prints quoted strings.
fn go_list(items: &[&str]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// Validates the rules for succeeded indexes.
pub(super) fn validate_success(spec: &Cursor<'_>, errors: &mut Errors) {
    let policy = spec.field("successPolicy");
    if !policy.is_present() {
        return;
    }
    if spec.field("completionMode").str() != "Indexed" {
        errors.push(policy.invalid("requires indexed completion mode"));
        return;
    }
    let rules = policy.field("rules");
    if rules.is_empty() {
        let text = "at least one rules must be specified when the successPolicy is specified";
        errors.push(rules.required(text));
    }
    max_items(&rules, RULES_MAX, errors);
    let completions = spec.field("completions").i64().unwrap_or(0);
    for rule in rules.items() {
        validate_success_rule(&rule, completions, errors);
    }
}

fn validate_success_rule(rule: &Cursor<'_>, completions: i64, errors: &mut Errors) {
    let (count, list) = (rule.field("succeededCount"), rule.field("succeededIndexes"));
    if !count.is_present() && !list.is_present() {
        errors.push(rule.required("at least one of succeededCount or succeededIndexes must be specified"));
    }
    let mut listed = 0;
    if list.is_present() {
        max_bytes(&list, SUCCEEDED_INDEXES_MAX, errors);
        match indexes::count(list.str(), completions) {
            Ok(count) => listed = count,
            Err(error) => errors.push(list.invalid(&format!("error parsing succeededIndexes: {error}"))),
        }
    }
    let Some(required_count) = count.i64() else { return };
    not_negative(&count, errors);
    if required_count > completions {
        errors.push(count.invalid(&format!(
            "must be less than or equal to {completions} (the number of specified completions)"
        )));
    }
    if list.is_present() && required_count > listed {
        errors.push(count.invalid(&format!(
            "must be less than or equal to {listed} (the number of indexes in the specified succeededIndexes field)"
        )));
    }
}
