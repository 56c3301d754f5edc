//! Index of the compiler's inputs: facts of objects, and the group versions of the local chain.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use portico_machinery::resolve::{Facts, Touched};

use crate::Installed;

/// All inputs of the compiler. Dereferences to [`Facts`], through which objects are changed.
#[derive(Debug, Default)]
pub struct Index {
    facts: Facts,
    installed: BTreeMap<Arc<str>, Installed>,
}

impl Index {
    /// Sets or removes a group version of the local chain, under the name of its APIService.
    pub fn set_installed(&mut self, name: Arc<str>, installed: Option<Installed>, touched: &mut Touched) {
        match installed {
            Some(installed) => self.installed.insert(name.clone(), installed),
            None => self.installed.remove(&name),
        };
        touched.insert(name);
    }

    /// Group version of the local chain with this APIService name, if served.
    #[must_use]
    pub fn installed(&self, name: &str) -> Option<&Installed> {
        self.installed.get(name)
    }

    /// Names of all possible routes, sorted.
    #[must_use]
    pub fn names(&self) -> Touched {
        self.facts.api_services().map(|f| &f.name).chain(self.installed.keys()).cloned().collect()
    }
}

impl Deref for Index {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl DerefMut for Index {
    fn deref_mut(&mut self) -> &mut Facts {
        &mut self.facts
    }
}
