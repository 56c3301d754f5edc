//! Libraries: named sets of functions, types and macros to add to an environment.
//!
//! All functions except those of [`authorization`](authorization()) are pure: calls with constant arguments are evaluated when an
//! expression is compiled.

#[cfg(feature = "kubernetes")]
pub mod authorization;
#[cfg(feature = "kubernetes")]
pub mod cidr;
mod comprehensions;
mod costs;
mod declaration;
#[cfg(feature = "kubernetes")]
pub mod format;
#[cfg(feature = "kubernetes")]
pub mod ip;
#[cfg(feature = "kubernetes")]
mod json_patch;
#[cfg(feature = "kubernetes")]
mod lists;
mod lists_ext;
mod optional;
#[cfg(feature = "kubernetes")]
pub mod quantity;
#[cfg(feature = "regex")]
mod regex;
#[cfg(feature = "kubernetes")]
pub mod semver;
mod sets;
mod standard;
pub(crate) mod strings;
#[cfg(feature = "kubernetes")]
pub mod url;

pub(crate) use costs::uncounted_cost;
pub use declaration::Library;

use crate::macros;

#[cfg(feature = "kubernetes")]
#[cfg(feature = "json")]
#[cfg(test)]
mod tests;

/// Returns the standard functions and macros: operators, comparisons, conversions, `size`, `all`, `map`.
#[must_use]
pub fn standard() -> Library {
    standard::library().pure().with_macros(&macros::STANDARD)
}

/// Returns `cel.bind(name, value, expression)`.
#[must_use]
pub fn bindings() -> Library {
    Library { name: "cel.lib.ext.cel.bindings", macros: vec![&macros::BIND], ..Library::default() }
}

/// Returns functions on strings: `charAt`, `indexOf`, `split`, `replace`.
#[must_use]
pub fn strings() -> Library {
    strings::base_functions().pure()
}

/// Returns `format` and `strings.quote`.
#[must_use]
pub fn string_formatting() -> Library {
    strings::later_functions().pure()
}

/// Returns functions on lists as sets: `sets.contains`, `sets.intersects`, `sets.equivalent`.
#[must_use]
pub fn sets() -> Library {
    sets::library().pure()
}

/// Returns optional values: `a.?b`, `optional.of`, `orValue`, `optMap`.
#[must_use]
pub fn optional() -> Library {
    optional::library().pure().with_macros(&macros::OPTIONALS)
}

/// Returns macros with two variables (index and item, key and value): `transformList`, `transformMap`.
#[must_use]
pub fn comprehensions() -> Library {
    comprehensions::library().pure().with_macros(&macros::TWO_VARIABLES)
}

/// Returns functions on lists: `slice`, `flatten`, `distinct`, `lists.range`, `reverse`, `sort`, `sortBy`.
#[must_use]
pub fn lists() -> Library {
    Library { macros: vec![&macros::SORT_BY], ..lists_ext::library().pure() }
}

/// Returns `find` and `findAll`.
#[cfg(feature = "regex")]
#[must_use]
pub fn regex() -> Library {
    regex::library().pure()
}

/// Returns Kubernetes' functions on lists: `isSorted`, `sum`, `min`, `max`, `indexOf`.
#[cfg(feature = "kubernetes")]
#[must_use]
pub fn kubernetes_lists() -> Library {
    lists::library().pure()
}

/// Returns resource quantities: `quantity('1Gi')`.
#[cfg(feature = "kubernetes")]
#[must_use]
pub fn quantity() -> Library {
    quantity::library().pure()
}

/// Returns IP addresses: `ip('10.0.0.1')`.
#[cfg(feature = "kubernetes")]
#[must_use]
pub fn ip() -> Library {
    ip::library().pure()
}

/// Returns IP networks: `cidr('10.0.0.0/8')`.
#[cfg(feature = "kubernetes")]
#[must_use]
pub fn cidr() -> Library {
    cidr::library().pure()
}

/// Returns URLs: `url('https://example.com')`.
#[cfg(feature = "kubernetes")]
#[must_use]
pub fn url() -> Library {
    url::library().pure()
}

/// Returns semantic versions: `semver('1.2.3')`.
#[cfg(feature = "kubernetes")]
#[must_use]
pub fn semver() -> Library {
    semver::library().pure()
}

/// Returns named formats: `format.dns1123Label().validate(text)`.
#[cfg(feature = "kubernetes")]
#[must_use]
pub fn format() -> Library {
    format::library().pure()
}

/// Returns checks by an authorizer: `authorizer.group('').resource('pods').check('list').allowed()`.
#[cfg(feature = "kubernetes")]
#[must_use]
pub fn authorization() -> Library {
    authorization::library()
}

/// Returns `jsonpatch.escapeKey`, which escapes keys for paths of JSON patches.
#[cfg(feature = "kubernetes")]
#[must_use]
pub fn json_patch() -> Library {
    json_patch::library().pure()
}

/// Returns all libraries of the enabled features, the standard functions first.
#[must_use]
pub fn all() -> Vec<Library> {
    let mut all = vec![standard()];
    #[cfg(feature = "kubernetes")]
    all.extend([url(), authorization()]);
    #[cfg(feature = "regex")]
    all.push(regex());
    #[cfg(feature = "kubernetes")]
    all.push(kubernetes_lists());
    all.extend([strings(), optional()]);
    #[cfg(feature = "kubernetes")]
    all.push(quantity());
    all.extend([string_formatting(), sets()]);
    #[cfg(feature = "kubernetes")]
    all.extend([ip(), cidr(), format()]);
    all.push(comprehensions());
    #[cfg(feature = "kubernetes")]
    all.extend([semver(), json_patch()]);
    all.extend([lists(), bindings()]);
    all
}

#[cfg(test)]
mod declarations {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_overload_is_declared_once() {
        let mut seen = HashSet::new();
        // Optional values declare the standard indices again, for other types.
        for function in all().into_iter().skip(1).flat_map(|library| library.functions) {
            for overload in function.overloads {
                assert!(!overload.receiver || !overload.parameters.is_empty(), "{}", overload.id);
                assert!(seen.insert(overload.id.clone()), "{}", overload.id);
            }
        }
    }

    #[cfg(feature = "kubernetes")]
    #[test]
    fn formats_are_returned_by_the_functions_of_their_names() {
        use crate::function::Call;
        use crate::value::{Value, equal};

        let call = |name: &str, arguments: &[Value<'static>]| {
            let functions = format().functions;
            let function = functions.into_iter().find(|function| function.name == name).unwrap();
            function.overloads[0].run.call(&Call::new(arguments, 0)).unwrap()
        };
        for name in ["dns1123Label", "qualifiedName", "labelValue", "uri", "uuid", "byte", "date", "datetime"]
        {
            let named = call("format.named", &[Value::text(name)]);
            let returned = Value::some(call(&format!("format.{name}"), &[]));
            assert!(equal(&named, &returned).unwrap(), "{name}");
        }
    }
}
