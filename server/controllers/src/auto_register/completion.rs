//! Check `autoregister-completion`: every built-in APIService has been available at least once, as in upstream's check.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use portico_kit::lifecycle::Signal;
use portico_machinery::resolve::{AffectedApiServices, RoutingFacts};

/// State of the check, which never becomes unhealthy again. Clones share the state.
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

    pub(super) fn observe(&self, facts: &RoutingFacts, touched: &AffectedApiServices) {
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

    /// Returns a signal that is set once the check is healthy.
    #[must_use]
    pub fn completed(&self) -> Signal {
        self.completed.clone()
    }

    /// Runs the health check `autoregister-completion`.
    ///
    /// # Errors
    /// Returns the sorted names of the APIServices that have not been available yet.
    pub fn check(&self) -> Result<(), String> {
        if self.completed.is_signaled() {
            return Ok(());
        }
        let missing = self.missing.lock();
        let names: Vec<&str> = missing.iter().map(|name| &**name).collect();
        Err(format!("missing APIService: {names:?}"))
    }
}
