//! Libraries: named lists of functions, and since which release of Kubernetes expressions may use them.
//!
//! Each file below is one library; this table is the only place that lists them.

mod authorization;
pub mod cidr;
mod comprehensions;
mod costs;
pub mod format;
pub mod ip;
mod lists;
mod lists_ext;
mod optional;
pub mod quantity;
mod regex;
pub mod semver;
mod sets;
mod standard;
pub(crate) mod strings;
pub mod url;

use crate::{Function, Type};

#[cfg(test)]
mod tests;

pub use standard::{library as standard, print_double};

/// A library.
#[derive(Clone, Debug)]
pub struct Library {
    /// Its name.
    pub name: &'static str,
    /// The minor release of Kubernetes 1.x that brought it (0: always there).
    pub since: u16,
    /// The minor release that took it away, or replaced it.
    pub until: Option<u16>,
    /// Its functions.
    pub functions: Vec<Function>,
    /// Names of types that expressions may say: `net.IP`.
    pub types: Vec<(&'static str, Type)>,
}

impl Library {
    /// Whether kube-apiserver 1.`minor` offers it.
    #[must_use]
    pub fn offered(&self, minor: u16) -> bool {
        self.since <= minor && self.until.is_none_or(|until| minor < until)
    }
}

/// All libraries besides the language's own functions.
#[must_use]
pub fn libraries() -> Vec<Library> {
    vec![
        url::library(),
        authorization::library(),
        regex::library(),
        lists::library(),
        strings::first(),
        optional::library(),
        quantity::library(),
        strings::second(),
        sets::library(),
        ip::library(),
        cidr::library(),
        format::library(),
        comprehensions::library(),
        semver::library(),
        lists_ext::library(),
    ]
}

#[cfg(test)]
mod table {
    use std::collections::HashSet;

    use super::*;
    use crate::environment::{NEW_EXPRESSIONS, STORED_EXPRESSIONS};
    use crate::{Call, Value};

    #[test]
    fn each_overload_is_declared_once() {
        let mut seen = HashSet::new();
        let overloads = libraries().into_iter().flat_map(|library| library.functions);
        for overload in overloads.flat_map(|function| function.overloads) {
            assert!(seen.insert(overload.id), "{}", overload.id);
            assert!(!overload.receiver || !overload.parameters.is_empty(), "{}", overload.id);
        }
    }

    #[test]
    fn everything_is_known_to_new_and_to_stored_texts() {
        assert!(
            libraries()
                .iter()
                .all(|library| library.offered(NEW_EXPRESSIONS) && library.offered(STORED_EXPRESSIONS))
        );
    }

    #[test]
    fn formats_are_returned_by_the_functions_of_their_names() {
        let call = |name: &str, arguments: &[Value<'static>]| {
            let functions = libraries().into_iter().flat_map(|library| library.functions);
            let function = functions.into_iter().find(|function| function.name == name).unwrap();
            (function.overloads[0].run)(&Call { arguments, budget: 0, pattern: None }).unwrap()
        };
        for name in ["dns1123Label", "qualifiedName", "labelValue", "uri", "uuid", "byte", "date", "datetime"]
        {
            let named = call("format.named", &[Value::text(name)]);
            let returned = Value::some(call(&format!("format.{name}"), &[]));
            assert!(crate::value::equal(&named, &returned).unwrap(), "{name}");
        }
    }
}
