//! Authorization checks: `authorizer.group('apps').resource('deployments').check('update').allowed()`.
//!
//! The checks are answered by an [`Authorizer`], which the caller passes as the value of a variable of type [`AUTHORIZER`].

mod values;

pub use values::{AUTHORIZER, Authorizer, Decision, Question, RESOURCE_CHECK, authorizer, resource_check};

use super::costs;
use super::declaration::Library;
use crate::function::{CallEstimate, CallSizes, Function, Implementation, Overload};
use crate::size::{CostEstimate, LIST_CREATE, STRING_TRAVERSAL, STRUCT_CREATE, SizeEstimate};
use crate::types::Type;
use crate::value::Value;

use values::{DECISION, GROUP_CHECK, PATH_CHECK};

/// Cost of a check. Few checks fit into the budget of one expression.
const CHECK: u64 = 350_000;
/// Requirements of a selector per character, for estimates.
const REQUIREMENTS_PER_CHARACTER: f64 = 0.5;
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
const PER_REQUIREMENT: f64 = (LIST_CREATE + STRUCT_CREATE) as f64;

pub(super) fn library() -> Library {
    let resource = |name, id, run| member(name, id, RESOURCE_CHECK, 1, Type::opaque(RESOURCE_CHECK), run);
    let selector = |name, id, run| {
        let overload = overload(id, RESOURCE_CHECK, 1, Type::opaque(RESOURCE_CHECK), run);
        Function::new(name, vec![overload.costs_by_name(selector_estimate, selector_cost)])
    };
    let decision = |name, id, result, run| member(name, id, DECISION, 0, result, run);
    let check = |id, of, run| {
        overload(id, of, 1, Type::opaque(DECISION), run).costs_by_name(check_estimate, check_cost).external()
    };
    let of_authorizer =
        |name, id, texts, result, run| member(name, id, AUTHORIZER, texts, Type::opaque(result), run);
    Library {
        name: "kubernetes.authorization",
        functions: vec![
            of_authorizer("path", "authorizer_path", 1, PATH_CHECK, values::path),
            of_authorizer("group", "authorizer_group", 1, GROUP_CHECK, values::group),
            of_authorizer(
                "serviceAccount",
                "authorizer_serviceaccount",
                2,
                AUTHORIZER,
                values::service_account,
            ),
            member(
                "resource",
                "groupcheck_resource",
                GROUP_CHECK,
                1,
                Type::opaque(RESOURCE_CHECK),
                values::resource,
            ),
            resource("subresource", "resourcecheck_subresource", values::subresource),
            resource("namespace", "resourcecheck_namespace", values::namespace),
            resource("name", "resourcecheck_name", values::name),
            selector("fieldSelector", "authorizer_fieldselector", values::field_selector),
            selector("labelSelector", "authorizer_labelselector", values::label_selector),
            Function::new(
                "check",
                vec![
                    check("pathcheck_check", PATH_CHECK, values::check_path),
                    check("resourcecheck_check", RESOURCE_CHECK, values::check_resource),
                ],
            ),
            decision("errored", "decision_errored", Type::Bool, values::errored),
            decision("error", "decision_error", Type::String, values::error),
            decision("allowed", "decision_allowed", Type::Bool, values::allowed),
            decision("reason", "decision_reason", Type::String, values::reason),
        ],
        ..Library::default()
    }
}

/// Returns a member function with one overload that costs one unit and takes a number of strings.
fn member(
    name: &'static str,
    id: &'static str,
    of: &str,
    texts: usize,
    result: Type,
    run: Implementation,
) -> Function {
    let overload = overload(id, of, texts, result, run);
    Function::new(name, vec![overload.costs_by_name(costs::unit_estimate, costs::unit)])
}

fn overload(id: &'static str, of: &str, texts: usize, result: Type, run: Implementation) -> Overload {
    let mut parameters = vec![Type::opaque(of)];
    parameters.resize(texts + 1, Type::String);
    Overload::member(id, parameters, result, run)
}

#[expect(clippy::unnecessary_wraps, reason = "an EstimateFn")]
fn check_estimate(_: &dyn CallSizes) -> Option<CallEstimate> {
    Some(CallEstimate::cost(CostEstimate::fixed(CHECK)))
}

fn check_cost(_: &[Value<'_>], _: &Value<'_>) -> u64 {
    CHECK
}

fn selector_estimate(call: &dyn CallSizes) -> Option<CallEstimate> {
    (call.arguments() == 1).then(|| CallEstimate::cost(selector_range(call.argument(0))))
}

fn selector_cost(arguments: &[Value<'_>], _: &Value<'_>) -> u64 {
    selector_range(SizeEstimate::fixed(costs::size(arguments, 1))).max
}

/// Cost of parsing a selector into requirements.
fn selector_range(length: SizeEstimate) -> CostEstimate {
    let requirements = length.times_factor(REQUIREMENTS_PER_CHARACTER);
    let requirements = SizeEstimate::new(requirements.min, requirements.max).times_factor(PER_REQUIREMENT);
    CostEstimate::fixed(LIST_CREATE).plus(length.times_factor(STRING_TRAVERSAL)).plus(requirements)
}
