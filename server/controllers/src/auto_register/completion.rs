//! `autoregister-completion`: every built-in APIService has been seen available once (upstream's check of the same name).

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use portico_kit::lifecycle::Signal;
use portico_machinery::resolve::{Facts, Touched};

/// The check. It never turns red again. Clones share it.
#[derive(Clone)]
pub struct Completion {
    missing: Arc<Mutex<BTreeSet<Arc<str>>>>,
    completed: Signal,
}

impl Completion {
    pub(super) fn new(required: impl IntoIterator<Item = Arc<str>>) -> Self {
        let missing: BTreeSet<Arc<str>> = required.into_iter().collect();
        let completed = Signal::new("AutoRegisterCompletion");
        if missing.is_empty() {
            completed.signal();
        }
        Self { missing: Arc::new(Mutex::new(missing)), completed }
    }

    pub(super) fn observe(&self, facts: &Facts, touched: &Touched) {
        if self.completed.is_signaled() {
            return;
        }
        let mut missing = self.missing.lock();
        missing.retain(|name| {
            !(touched.contains(name) && facts.api_service(name).is_some_and(|f| f.is_available()))
        });
        if missing.is_empty() {
            self.completed.signal();
        }
    }

    /// Given once the check is healthy.
    #[must_use]
    pub fn completed(&self) -> Signal {
        self.completed.clone()
    }

    /// For the health check of this name.
    ///
    /// # Errors
    /// The sorted names that have not been seen available yet.
    pub fn check(&self) -> Result<(), String> {
        if self.completed.is_signaled() {
            return Ok(());
        }
        let missing = self.missing.lock();
        let names: Vec<&str> = missing.iter().map(|name| &**name).collect();
        Err(format!("missing APIService: {names:?}"))
    }
}
