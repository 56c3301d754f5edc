//! ResourceQuota: resources, scopes and usage.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use portico_machinery::field::{Error, Path};
use portico_machinery::table::Cell;
use portico_machinery::{Bounded, Cursor, Object};

use portico_registry::{DecodeStrategy, RequestTime, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::checks;
use portico_validation::pod_spec::{is_integer_resource, resource_name, round_to_milli};

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];
const COMPUTE: [&str; 7] =
    ["pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
/// Resource names without a domain that quotas support (`standardQuotaResources`).
const STANDARD: [&str; 19] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];

pub(crate) struct ResourceQuota;

impl DecodeStrategy for ResourceQuota {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        round_to_milli(object, &["spec", "hard"]);
        for list in ["hard", "used"] {
            round_to_milli(object, &["status", list]);
        }
    }
}

impl Strategy for ResourceQuota {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        validate_amounts(&spec.field("hard"), errors);
        validate_scopes(&spec, errors);
        validate_scope_selector(&spec, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
        let scopes = |object: &Object| -> BTreeSet<String> {
            object.at(&["spec", "scopes"]).items().map(|scope| scope.str().to_owned()).collect()
        };
        if scopes(new) != scopes(old) {
            let at = new.at(&["spec", "scopes"]);
            let printed = if at.is_present() { at.printed() } else { "null".to_owned() };
            errors.push(Error::invalid_printed(&at.path(), &printed, checks::IMMUTABLE));
        }
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        if old.is_some() {
            return Vec::new();
        }
        let hard = new.at(&["spec", "hard"]);
        let mut warnings = Vec::new();
        for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
            let (request, limit) = (format!("requests.{name}"), format!("limits.{name}"));
            let Some(most) = hard.field(&limit).quantity() else { continue };
            for key in [name, &request] {
                if let Some(limit) = hard.field(key).quantity().filter(|limit| *limit > most) {
                    warnings.push(format!(
                        "ResourceQuota {request} ({limit}) should be less than {limit} ({most})"
                    ));
                }
            }
        }
        warnings
    }
}

impl SubresourceStrategy for ResourceQuota {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        for list in ["hard", "used"] {
            validate_amounts(&new.at(&["status", list]), errors);
        }
    }
}

impl TableStrategy for ResourceQuota {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        let (hard, used) = (object.at(&["status", "hard"]), object.at(&["status", "used"]));
        let mut texts: Vec<String> = hard
            .entries()
            .filter(|(name, _)| {
                (name.split('.').next() == Some("limits")) == (function == "resourcequota-limit")
            })
            .map(|(name, most)| format!("{name}: {}/{}", used.entry_str(name).unwrap_or("0"), most.str()))
            .collect();
        texts.sort_unstable();
        Cell::text(texts.join(", "))
    }
}

/// Validates the names and amounts of limited resources.
fn validate_amounts(list: &Cursor<'_>, errors: &mut Errors) {
    for (name, value) in list.entries() {
        let path = value.path();
        let by_count = name.starts_with("count/");
        resource_name(name, &path, errors);
        if !name.contains('/') && !STANDARD.contains(&name) && !is_huge_pages(name) {
            errors.push(Error::invalid(&path, name, "must be a standard resource for quota"));
        }
        let amount = value.quantity().unwrap_or_default();
        if amount.is_negative() {
            errors.push(Error::invalid(&path, amount.to_string(), checks::NOT_NEGATIVE));
        }
        if (by_count || is_integer_resource(name)) && !amount.is_whole() {
            errors.push(Error::invalid(&path, amount.to_string(), "must be an integer"));
        }
    }
}

/// True if the resource is huge pages, or requests of huge pages.
fn is_huge_pages(name: &str) -> bool {
    name.strip_prefix("requests.").unwrap_or(name).starts_with("hugepages-")
}

fn validate_scopes(spec: &Cursor<'_>, errors: &mut Errors) {
    let list = spec.field("scopes");
    let printed = OnceCell::new();
    // Each error prints the whole list, and every combination of a scope and a resource can be invalid.
    let invalid =
        |text| Error::invalid_printed(&list.path(), printed.get_or_init(|| printed_list(&list)), text);
    let mut found = Bounded::field_errors();
    let limited = standard_resources(spec);
    for scope in list.items() {
        if !SCOPES.contains(&scope.str()) {
            found.push_with(|| invalid("unsupported scope"));
        }
        for _ in limited.iter().filter(|resource| !scope_supports(scope.str(), resource)) {
            found.push_with(|| invalid(NOT_OF_RESOURCE));
        }
    }
    let scopes: Vec<&str> = list.items().map(|scope| scope.str()).collect();
    for _ in conflicts(&scopes) {
        found.push_with(|| invalid(CONFLICTING));
    }
    errors.extend(found.into_items());
}

/// Returns the limited resources that quotas support without a domain. Only those can conflict with a scope.
fn standard_resources<'a>(spec: &Cursor<'a>) -> Vec<&'a str> {
    let names = spec.field("hard").entries().map(|(resource, _)| resource);
    names.filter(|name| STANDARD.contains(name) || is_huge_pages(name)).collect()
}

/// Returns pairs of requested scopes that exclude each other.
fn conflicts(scopes: &[&str]) -> impl Iterator<Item = [&'static str; 2]> {
    [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]]
        .into_iter()
        .filter(|pair| pair.iter().all(|scope| scopes.contains(scope)))
}

/// Formats a list as Go prints it: `null` if it is empty.
fn printed_list(list: &Cursor<'_>) -> String {
    if list.is_empty() { "null".to_owned() } else { list.printed() }
}

fn scope_supports(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        scope if SCOPES.contains(&scope) => COMPUTE.contains(&resource),
        _ => true,
    }
}

/// Validates the scope selector. Errors have the path of the list, without an index.
fn validate_scope_selector(spec: &Cursor<'_>, errors: &mut Errors) {
    let list = spec.field("scopeSelector").field("matchExpressions");
    let (path, printed) = (list.path(), OnceCell::new());
    let (mut scopes, mut found) = (Vec::new(), Bounded::field_errors());
    let limited = standard_resources(spec);
    for expression in list.items() {
        let [scope, operator] = ["scopeName", "operator"].map(|field| expression.field(field));
        if !SCOPES.contains(&scope.str()) {
            found.push_with(|| Error::invalid(&path.child("scopeName"), scope.str(), "unsupported scope"));
        }
        for _ in limited.iter().filter(|resource| !scope_supports(scope.str(), resource)) {
            let selector = printed.get_or_init(|| printed_selector(&list));
            found.push_with(|| Error::invalid_printed(&path, selector, NOT_OF_RESOURCE));
        }
        let by_value = matches!(scope.str(), "PriorityClass" | "VolumeAttributesClass");
        if !by_value && SCOPES.contains(&scope.str()) && operator.str() != "Exists" {
            found.push_with(|| Error::invalid(&path.child("operator"), operator.str(), EXISTS_ONLY));
        }
        if let Some(error) = scope_values(&path, &operator, &expression.field("values")) {
            found.push_with(|| error);
        }
        scopes.push(scope.str());
    }
    for _ in conflicts(&scopes) {
        found.push_with(|| Error::invalid_printed(&path, &printed_list(&spec.field("scopes")), CONFLICTING));
    }
    errors.extend(found.into_items());
}

/// Returns the error of the operator of an expression, or of the number of its values.
fn scope_values(path: &Path, operator: &Cursor<'_>, values: &Cursor<'_>) -> Option<Error> {
    match operator.str() {
        "In" | "NotIn" if values.is_empty() => {
            let text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            Some(Error::required(&path.child("values"), text))
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            Some(Error::invalid_printed(&path.child("values"), &values.printed(), text))
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => None,
        other => Some(Error::invalid(&path.child("operator"), other, "not a valid selector operator")),
    }
}

/// Formats the selector as Go prints the struct.
fn printed_selector(list: &Cursor<'_>) -> String {
    let expression = |at: Cursor<'_>| {
        let text = |field: &str| match at.field(field).opt_str() {
            Some(_) => at.field(field).printed(),
            None => "\"\"".to_owned(),
        };
        let values = printed_list(&at.field("values"));
        format!(
            "{{\"ScopeName\":{},\"Operator\":{},\"Values\":{values}}}",
            text("scopeName"),
            text("operator")
        )
    };
    let expressions: Vec<String> = list.items().map(expression).collect();
    format!("{{\"MatchExpressions\":[{}]}}", expressions.join(","))
}

const NOT_OF_RESOURCE: &str = "unsupported scope applied to resource";
const CONFLICTING: &str = "conflicting scopes";
const EXISTS_ONLY: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
