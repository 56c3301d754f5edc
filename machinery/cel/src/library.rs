//! Libraries: named lists of functions, and since which release of Kubernetes expressions may use them.
//!
//! Each file below is one library; this table is the only place that lists them.

mod standard;

use crate::{Function, Type};

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
    Vec::new()
}
