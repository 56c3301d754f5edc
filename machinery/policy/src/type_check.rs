//! Checks expressions of a policy against the types of the objects that the policy matches (upstream's `TypeChecker`). Errors are
//! only warnings, because types can change after the policy was written.

use std::sync::Arc;

use portico_cel::decl::FieldTypes;
use portico_cel::library::authorization::AUTHORIZER;
use portico_cel::{CompileError, Environment, Meter, Type};
use portico_machinery::GroupVersionKind;

use crate::compiler::{DeclaredVariables, VARIABLES};
use crate::declarations::{EnvironmentType, with_request};

/// Type checker for the expressions of a policy.
pub struct TypeChecker {
    kinds: Vec<(GroupVersionKind, Environment)>,
}

impl TypeChecker {
    /// Creates a checker for these kinds and the types of their objects, in order of the warnings. `params` is `None` if the
    /// policy has no parameters, and `Some(None)` if their type is unknown. `variables` contains names and expressions.
    #[must_use]
    pub fn new(
        kinds: Vec<(GroupVersionKind, Type)>,
        params: Option<Option<Type>>,
        variables: &[(&str, &str)],
    ) -> Self {
        let params = params.map(|ty| ty.unwrap_or(Type::Dyn));
        let environment = |(kind, object)| (kind, environment(object, params.clone(), variables));
        Self { kinds: kinds.into_iter().map(environment).collect() }
    }

    /// Returns the errors of an expression for each kind, or `None` if it is valid for all of them.
    #[must_use]
    pub fn warning(&self, expression: &str) -> Option<String> {
        let warnings = self.kinds.iter().filter_map(|(kind, environment)| {
            let GroupVersionKind { group, version, kind } = kind;
            let error = environment.compile_within(expression, &Meter::new(0)).err()?;
            Some(format!("{group}/{version}, Kind={kind}: {}\n", checker_message(&error)))
        });
        let warnings: Vec<String> = warnings.collect();
        (!warnings.is_empty()).then(|| warnings.join("\n"))
    }
}

/// Returns the message of the type checker, without the prefix that upstream adds to compilation errors.
fn checker_message(error: &CompileError) -> String {
    match error {
        CompileError::Compilation(diagnostics) => diagnostics.to_string(),
        CompileError::Instantiation(message) => message.clone(),
        other => other.to_string(),
    }
}

/// Creates the environment for one kind. As upstream, it has no variable `authorizer.requestResource`.
fn environment(object: Type, params: Option<Type>, variables: &[(&str, &str)]) -> Environment {
    let mut builder =
        with_request(Environment::builder().language(EnvironmentType::StoredExpressions.language()))
            .variable("object", object.clone())
            .variable("oldObject", object)
            .variable("authorizer", Type::opaque(AUTHORIZER));
    if let Some(params) = params {
        builder = builder.variable("params", params);
    }
    let declared = Arc::new(DeclaredVariables::default());
    let fields: Arc<dyn FieldTypes> = Arc::<DeclaredVariables>::clone(&declared);
    let environment = builder.variable("variables", Type::open_object(VARIABLES, fields)).build();
    for (name, text) in variables {
        let compiled = environment.compile_within(text, &Meter::new(0));
        declared.declare(name, compiled.map_or(Type::Dyn, |program| program.result_type().clone()));
    }
    environment
}

#[cfg(test)]
mod tests {
    use portico_machinery::GroupVersion;

    use super::*;

    /// Type with one field.
    #[derive(Debug)]
    struct Replicas;

    impl FieldTypes for Replicas {
        fn field(&self, name: &str) -> Option<Type> {
            (name == "replicas").then_some(Type::Int)
        }
    }

    fn check(variables: &[(&str, &str)]) -> TypeChecker {
        let scaled = || Type::open_object("Scaled", Arc::new(Replicas));
        let kind = |group: &str, kind: &str| GroupVersion::new(group, "v1").kind(kind);
        let kinds = vec![(kind("", "Any"), Type::Dyn), (kind("apps", "Scaled"), scaled())];
        TypeChecker::new(kinds, Some(None), variables)
    }

    #[test]
    fn warnings_name_the_kinds_for_which_an_expression_is_invalid() {
        let table = [
            ("object.replicas > 1 && params.any == 'x' && request.name == ''", None),
            ("object.replicas", None),
            (
                "object.replicas > '1'",
                Some(
                    "1:17: found no matching overload for '_>_' applied to '(int, string)'\n | object.replicas > '1'\n | ................^",
                ),
            ),
            (
                "oldObject.replica",
                Some("1:10: undefined field 'replica'\n | oldObject.replica\n | .........^"),
            ),
        ];
        for (expression, wrong) in table {
            let warning = wrong.map(|wrong| format!("apps/v1, Kind=Scaled: ERROR: <input>:{wrong}\n"));
            assert_eq!(check(&[]).warning(expression), warning, "{expression}");
        }
        let both = check(&[]).warning("nobody == 1").unwrap();
        assert!(
            both.starts_with("/v1, Kind=Any: ERROR: ") && both.contains("\n\napps/v1, Kind=Scaled: ERROR: "),
            "{both}"
        );
    }

    #[test]
    fn variables_have_types_and_invalid_variables_have_any_type() {
        let check = check(&[("text", "'a'"), ("broken", "object.nothing"), ("next", "variables.text + 'b'")]);
        assert_eq!(check.warning("variables.next == 'ab'"), None);
        assert!(
            check.warning("variables.next == 1").is_some_and(|warning| warning.contains("(string, int)"))
        );
        let broken = check.warning("variables.broken == 1");
        assert_eq!(broken, None, "{broken:?}");
        assert!(check.warning("variables.nobody").is_some());
    }
}
