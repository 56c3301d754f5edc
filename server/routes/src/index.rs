//! The facts that routes are made of: those of objects, and what the local chain serves.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use portico_machinery::resolve::{Facts, Touched};

use crate::Installed;

/// Everything that the compiler reads. Changes to objects go through [`Facts`], to which it derefs.
#[derive(Debug, Default)]
pub struct Index {
    facts: Facts,
    installed: BTreeMap<Arc<str>, Installed>,
}

impl Index {
    /// The local chain begins or ceases to serve a group version, under the name that its APIService has.
    pub fn set_installed(&mut self, name: Arc<str>, installed: Option<Installed>, touched: &mut Touched) {
        match installed {
            Some(installed) => self.installed.insert(name.clone(), installed),
            None => self.installed.remove(&name),
        };
        touched.insert(name);
    }

    /// What the local chain serves under this APIService's name.
    #[must_use]
    pub fn installed(&self, name: &str) -> Option<&Installed> {
        self.installed.get(name)
    }

    /// Every name that may have a route, sorted.
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
