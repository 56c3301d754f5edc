//! Expressions of a policy checked against the types of the objects that it is about (upstream's `TypeChecker`). What is wrong is
//! a warning: which types there are when a policy is written need not be those that it meets.

use std::sync::Arc;

use portico_cel::decl::FieldTypes;
use portico_cel::library::authorization::AUTHORIZER;
use portico_cel::{CompileError, Environment, Meter, Type};
use portico_machinery::GroupVersionKind;

use crate::compiler::{VARIABLES, Variables};
use crate::declarations::{Release, with_request};

/// See the module.
pub struct TypeCheck {
    kinds: Vec<(GroupVersionKind, Environment)>,
}

impl TypeCheck {
    /// Against these kinds, in this order, with the types of their objects. `params`: nothing where there are no parameters, else
    /// their type as far as it is known. Variables are names and expressions.
    #[must_use]
    pub fn new(
        kinds: Vec<(GroupVersionKind, Type)>,
        params: Option<Option<Type>>,
        variables: &[(&str, &str)],
    ) -> Self {
        let params = params.map(|known| known.unwrap_or(Type::Dyn));
        let environment = |(kind, object)| (kind, environment(object, params.clone(), variables));
        Self { kinds: kinds.into_iter().map(environment).collect() }
    }

    /// What is wrong with an expression for some of the kinds; nothing when it fits all of them.
    #[must_use]
    pub fn warning(&self, expression: &str) -> Option<String> {
        let wrong = self.kinds.iter().filter_map(|(kind, environment)| {
            let GroupVersionKind { group, version, kind } = kind;
            let error = environment.compile_within(expression, &Meter::new(0)).err()?;
            Some(format!("{group}/{version}, Kind={kind}: {}\n", issues(&error)))
        });
        let wrong: Vec<String> = wrong.collect();
        (!wrong.is_empty()).then(|| wrong.join("\n"))
    }
}

/// What the checker says, without upstream's words around it that compiling adds.
fn issues(error: &CompileError) -> String {
    match error {
        CompileError::Compilation(diagnostics) => diagnostics.to_string(),
        CompileError::Instantiation(why) => why.clone(),
        other => other.to_string(),
    }
}

/// The authorizer's own check of the request is no variable here, as upstream has it.
fn environment(object: Type, params: Option<Type>, variables: &[(&str, &str)]) -> Environment {
    let mut builder = with_request(Environment::builder().language(Release::Stored.language()))
        .variable("object", object.clone())
        .variable("oldObject", object)
        .variable("authorizer", Type::opaque(AUTHORIZER));
    if let Some(params) = params {
        builder = builder.variable("params", params);
    }
    let known = Arc::new(Variables::default());
    let fields: Arc<dyn FieldTypes> = Arc::<Variables>::clone(&known);
    let environment = builder.variable("variables", Type::open_object(VARIABLES, fields)).build();
    for (name, text) in variables {
        let compiled = environment.compile_within(text, &Meter::new(0));
        known.declare(name, compiled.map_or(Type::Dyn, |program| program.result_type().clone()));
    }
    environment
}

#[cfg(test)]
mod tests {
    use portico_machinery::GroupVersion;

    use super::*;

    /// A type of one field.
    #[derive(Debug)]
    struct Replicas;

    impl FieldTypes for Replicas {
        fn field(&self, name: &str) -> Option<Type> {
            (name == "replicas").then_some(Type::Int)
        }
    }

    fn check(variables: &[(&str, &str)]) -> TypeCheck {
        let scaled = || Type::open_object("Scaled", Arc::new(Replicas));
        let kind = |group: &str, kind: &str| GroupVersion::new(group, "v1").kind(kind);
        let kinds = vec![(kind("", "Any"), Type::Dyn), (kind("apps", "Scaled"), scaled())];
        TypeCheck::new(kinds, Some(None), variables)
    }

    #[test]
    fn warnings_name_the_kinds_that_an_expression_does_not_fit() {
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
    fn variables_have_types_and_one_that_does_not_compile_may_be_anything() {
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
