//! CEL expressions that select devices, compiled with the environment of the scheduler.

use std::sync::{Arc, LazyLock};

use portico_cel::decl::{DeclKind, Field, escape};
use portico_cel::kubernetes::NEW_EXPRESSIONS;
use portico_cel::library::quantity;
use portico_cel::{
    AstNode, CompileError, DeclType, Environment, Language, PatternCache, SizeEstimate, SizeEstimator, Type,
};
use portico_machinery::Cursor;
use portico_machinery::field::Error;

use portico_validation::Errors;

/// Variable of the expressions.
const DEVICE: &str = "device";
/// Maximum estimated cost of an expression.
const COST_MAX: u64 = 1_000_000;
/// Maximum length of the names of drivers and domains.
const DOMAIN_MAX: u64 = 63;
/// Maximum length of attribute names without their domain.
const ID_MAX: u64 = 32;
/// Maximum number of attributes, and of capacities, of a device.
const MEMBERS_MAX: u64 = 32;
/// Maximum length of an attribute value.
const VALUE_MAX: u64 = 64;

const MIB: usize = 1024 * 1024;

static DEVICE_TYPE: LazyLock<DeclType> = LazyLock::new(device_type);
static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let patterns = PatternCache::with_limits(4 * MIB, 8 * MIB);
    let language = Language::with_bindings(NEW_EXPRESSIONS).with_pattern_cache(patterns);
    Environment::builder().language(language).variable(DEVICE, DEVICE_TYPE.ty.clone()).build()
});

/// Compiles an expression and adds the error, if any.
pub(super) fn compile(at: &Cursor<'_>, errors: &mut Errors) {
    match ENVIRONMENT.compile(at.str()) {
        Err(error @ CompileError::Compilation(_)) => errors.push(at.invalid(&error.to_string())),
        Err(error) => errors.push(Error::internal(&at.path(), &error.to_string())),
        Ok(program) if !matches!(program.result_type(), Type::Bool | Type::Any) => {
            let found = program.result_type();
            let text = format!("must evaluate to bool or the unknown type, not {found}");
            errors.push(at.invalid(&text));
        }
        Ok(program) if program.estimate(&DeviceSizes).max > COST_MAX => {
            errors.push(Error::forbidden(&at.path(), "too complex, exceeds cost limit"));
        }
        Ok(_) => {}
    }
}

/// Returns the type of a device.
fn device_type() -> DeclType {
    let text = |max_length| DeclType::scalar(DeclKind::String, max_length, 2);
    let attribute = DeclType { ty: Type::Any, ..DeclType::scalar(DeclKind::Dyn, VALUE_MAX, 1) };
    let quantity = DeclType { ty: Type::object(quantity::TYPE), ..DeclType::scalar(DeclKind::Dyn, 0, 8) };
    let members = |value_type: DeclType| {
        let domain = DeclType::map(Arc::new(value_type), MEMBERS_MAX);
        DeclType::map(Arc::new(domain), MEMBERS_MAX)
    };
    let fields = [
        ("driver", text(DOMAIN_MAX)),
        ("attributes", members(attribute)),
        ("capacity", members(quantity)),
        ("allowMultipleAllocations", DeclType::scalar(DeclKind::Bool, 1, 4)),
    ];
    let field = |(name, value_type): (&str, DeclType)| Field {
        name: Arc::from(name),
        escaped: Arc::from(escape(name).unwrap_or_default()),
        of: Arc::new(value_type),
    };
    DeclType::object("kubernetes.DRADevice", fields.into_iter().map(field).collect(), 0)
}

/// Size estimates of the values of a device.
struct DeviceSizes;

impl SizeEstimator for DeviceSizes {
    fn size(&self, node: AstNode<'_>) -> Option<SizeEstimate> {
        let (root, steps) = node.path.split_first()?;
        let mut at = (**root == *DEVICE).then_some(&*DEVICE_TYPE)?;
        for (depth, step) in steps.iter().enumerate() {
            at = match (&**step, &at.kind) {
                ("@keys", DeclKind::Map { .. }) => {
                    // The keys are domains at the first level and attribute names at the second.
                    let max_length = if depth == 1 { DOMAIN_MAX } else { ID_MAX };
                    return Some(SizeEstimate::new(0, max_length));
                }
                ("@items" | "@values", DeclKind::Map { values }) => values,
                (name, DeclKind::Object(object)) => &object.field(name)?.of,
                // All attributes have the same size limit.
                (_, DeclKind::Map { values }) if matches!(values.kind, DeclKind::Dyn) => values,
                _ => return None,
            };
        }
        Some(SizeEstimate::new(0, at.max_elements))
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::Object;

    use super::*;

    #[test]
    fn selectors_are_compiled_with_the_device_type() {
        let rows = [
            ("device.driver == 'x' && device.allowMultipleAllocations", ""),
            ("device.attributes['a'].b", ""),
            ("cel.bind(d, device.attributes['a'], d.a && d.b)", ""),
            ("device.capacity['a'].b.compareTo(quantity('1Gi')) >= 0", ""),
            ("device.", "compilation failed: ERROR: <input>:1:8: "),
            ("device.nope", "compilation failed: ERROR: <input>:1:7: undefined field 'nope'"),
            (
                "device.attributes['a'].b.exists(x, x == 1)",
                "expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)",
            ),
            ("dyn(true)", "must evaluate to bool or the unknown type, not dyn"),
            ("1 + 1", "must evaluate to bool or the unknown type, not int"),
        ];
        for (text, expected) in rows {
            let mut object = Object::default();
            object.set(&["expression"], text);
            let mut errors = Errors::new();
            compile(&object.at(&["expression"]), &mut errors);
            let reported = errors.iter().map(ToString::to_string).collect::<String>();
            assert_eq!(expected.is_empty(), reported.is_empty(), "{text}: {reported}");
            assert!(reported.contains(expected), "{text}: {reported}");
        }
    }
}
