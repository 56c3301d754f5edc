//! Match conditions of authorization webhooks: expressions about a request that decide whether the webhook is called (upstream's
//! pkg/authorization/cel).

use std::sync::{Arc, LazyLock};

use portico_cel::decl::{DeclKind, Field, ListKind, escape};
use portico_cel::value::Map;
use portico_cel::{DEFAULT_COST_LIMIT, DeclType, Environment, Meter, Program, Type, Value};
use portico_machinery::{Attributes, Object, aggregate};

use super::review::ReviewSpec;
use crate::expressions;

/// Cost of the match conditions of one authorization webhook for one request.
///
/// Limit (Expressions, cost units): the condition fails.
const COST_BUDGET: u64 = 2_500_000;
/// Name of the variable.
const REQUEST: &str = "request";

/// Compiled match condition.
#[derive(Clone, Debug)]
pub struct MatchCondition {
    text: Box<str>,
    program: Program,
}

impl MatchCondition {
    /// Compiles a condition.
    ///
    /// # Errors
    /// Returns upstream's message about the invalid expression.
    pub fn compile(text: &str) -> Result<Self, String> {
        let language = Arc::clone(expressions::language());
        let environment =
            Environment::builder().language(language).variable(REQUEST, SPEC.ty.clone()).build();
        let program = environment.compile(text).map_err(|error| error.to_string())?;
        if *program.result_type() != Type::Bool {
            return Err(format!("must evaluate to bool but got {}", program.result_type()));
        }
        Ok(Self { text: text.into(), program: program.without_tree() })
    }
}

/// True if all conditions hold for the request. A condition that does not hold takes precedence over errors of others.
///
/// # Errors
/// Returns the errors of the conditions if they cannot be decided.
pub fn all_hold(conditions: &[MatchCondition], attributes: &Attributes) -> Result<bool, String> {
    if conditions.is_empty() {
        return Ok(true);
    }
    let request = request_object(attributes);
    let (mut failed, meter) = (Vec::new(), Meter::new(COST_BUDGET));
    for condition in conditions {
        let value = Value::Map(Map::Json { members: request.map(), of: DeclType::dynamic() });
        let limits = (meter.remaining().min(DEFAULT_COST_LIMIT), &meter);
        let (outcome, _) = condition.program.evaluate_metered(&[(REQUEST, value)], limits, &|| false);
        match outcome {
            Ok(Value::Bool(true)) => {}
            Ok(_) => return Ok(false),
            Err(error) => failed.push(format!(
                "cel evaluation error: expression '{}' resulted in error: {error}",
                condition.text
            )),
        }
    }
    if failed.is_empty() { Ok(true) } else { Err(aggregate(&failed)) }
}

/// Converts the request to an object with all string fields, also empty ones (`convertObjectToUnstructured`).
fn request_object(attributes: &Attributes) -> Object {
    let spec = ReviewSpec::from_attributes(attributes).to_json();
    // The encoded form is always a JSON object.
    let mut request = Object::from_json(spec.as_bytes()).unwrap_or_default();
    let r = &attributes.request;
    request.set(&["user"], &attributes.user.name);
    request.set(&["uid"], &attributes.user.uid);
    request.set(&["groups"], &attributes.user.groups);
    request.set(&["extra"], &attributes.user.extra);
    if r.is_resource_request {
        for (field, text) in [
            ("namespace", &r.namespace),
            ("verb", &r.verb),
            ("group", &r.api_group),
            ("version", &r.api_version),
            ("resource", &r.resource),
            ("subresource", &r.subresource),
            ("name", &r.name),
        ] {
            request.set(&["resourceAttributes", field], text);
        }
    } else {
        request.set(&["nonResourceAttributes", "path"], &r.path);
        request.set(&["nonResourceAttributes", "verb"], &r.verb);
    }
    request
}

/// Type of `kubernetes.SubjectAccessReviewSpec` (upstream's `buildRequestType`).
static SPEC: LazyLock<Arc<DeclType>> = LazyLock::new(|| {
    let texts = list(text());
    let requirement = object("SelectorRequirement", &["key", "operator"], vec![field("values", &texts)]);
    let selector =
        |name| object(name, &["rawSelector"], vec![field("requirements", &list(Arc::clone(&requirement)))]);
    let resource = object(
        "ResourceAttributes",
        &["namespace", "verb", "group", "version", "resource", "subresource", "name"],
        vec![
            field("fieldSelector", &selector("FieldSelectorAttributes")),
            field("labelSelector", &selector("LabelSelectorAttributes")),
        ],
    );
    let fields = vec![
        field("resourceAttributes", &resource),
        field("nonResourceAttributes", &object("NonResourceAttributes", &["path", "verb"], Vec::new())),
        field("groups", &texts),
        field("extra", &Arc::new(DeclType::map(Arc::clone(&texts), u64::MAX))),
    ];
    object("SubjectAccessReviewSpec", &["user", "uid"], fields)
});

fn text() -> Arc<DeclType> {
    Arc::new(DeclType::scalar(DeclKind::String, u64::MAX, 0))
}

fn list(of: Arc<DeclType>) -> Arc<DeclType> {
    Arc::new(DeclType::list(of, ListKind::Atomic, u64::MAX))
}

fn object(name: &str, texts: &[&str], mut fields: Vec<Field>) -> Arc<DeclType> {
    fields.extend(texts.iter().map(|name| field(name, &text())));
    Arc::new(DeclType::object(&format!("kubernetes.{name}"), fields, 0))
}

fn field(name: &str, of: &Arc<DeclType>) -> Field {
    let escaped = escape(name).unwrap_or_else(|| name.to_owned());
    Field { name: name.into(), escaped: escaped.into(), of: Arc::clone(of) }
}

#[cfg(test)]
mod tests {
    use portico_machinery::{GroupResource, UserInfo};

    use super::*;

    fn evaluate(texts: &[&str], attributes: &Attributes) -> Result<bool, String> {
        let conditions: Vec<_> = texts.iter().map(|text| MatchCondition::compile(text).unwrap()).collect();
        all_hold(&conditions, attributes)
    }

    #[test]
    fn conditions_see_the_request() {
        let pods = GroupResource::new("", "pods");
        let mut resource =
            Attributes::resource(UserInfo::new("alice", ["dev"]), "list", &pods, "kube-system", "");
        "spec.nodeName=a".clone_into(&mut Arc::make_mut(&mut resource.request).field_selector);
        let path = Attributes::path(UserInfo::new("alice", ["dev"]), "get", "/x");
        for (text, of_resource, of_path) in [
            ("has(request.resourceAttributes)", true, false),
            ("request.user == 'alice' && 'dev' in request.groups && request.uid == ''", true, true),
            ("!has(request.nonResourceAttributes) || request.nonResourceAttributes.path == '/x'", true, true),
            (
                "has(request.resourceAttributes) && request.resourceAttributes.namespace == 'kube-system'",
                true,
                false,
            ),
            ("has(request.resourceAttributes) && request.resourceAttributes.subresource == ''", true, false),
            (
                "has(request.resourceAttributes) && request.resourceAttributes.fieldSelector.requirements.exists(r, r.key == 'spec.nodeName' && r.operator == 'In' && r.values == ['a'])",
                true,
                false,
            ),
            ("!('k' in request.extra)", true, true),
        ] {
            assert_eq!(evaluate(&[text], &resource), Ok(of_resource), "{text}");
            assert_eq!(evaluate(&[text], &path), Ok(of_path), "{text}");
        }
        assert_eq!(all_hold(&[], &path), Ok(true));
    }

    #[test]
    fn a_false_condition_takes_precedence_over_errors() {
        let path = Attributes::path(UserInfo::new("alice", [""; 0]), "get", "/x");
        let fails = "request.resourceAttributes.namespace == 'n'";
        assert_eq!(evaluate(&[fails, "false"], &path), Ok(false));
        let error = evaluate(&["true", fails], &path).unwrap_err();
        let words = format!(
            "cel evaluation error: expression '{fails}' resulted in error: no such key: resourceAttributes"
        );
        assert_eq!(error, words);
    }

    #[test]
    fn compile_errors_have_upstreams_messages() {
        let refused = |text: &str| MatchCondition::compile(text).expect_err(text);
        assert_eq!(refused("'a'"), "must evaluate to bool but got string");
        assert!(
            refused("request.nobody")
                .starts_with("compilation failed: ERROR: <input>:1:8: undefined field 'nobody'")
        );
        assert!(refused("object.x").contains("undeclared reference to 'object'"));
    }
}
