//! Post-start and pre-shutdown hooks under upstream's names.
//!
//! A post-start hook is also the health check `poststarthook/<name>`, healthy once it has returned. Does not
//! depend on the work of a hook.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::health::{Check, Health, HealthError};
use crate::lifecycle::Signal;
use crate::tasks::TaskSet;

type HookFn = Box<dyn FnOnce(HookContext) -> BoxFuture<'static, Result<(), String>> + Send>;

/// Context of a post-start hook.
#[derive(Clone, Debug)]
pub struct HookContext {
    /// Cancelled when the process stops. A hook that waits must select on it.
    pub stop: CancellationToken,
    /// Task set for tasks that continue after the hook has returned.
    pub tasks: TaskSet,
}

/// Error of adding or running hooks.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HookError {
    /// The hook has an empty name.
    #[error("a hook has no name")]
    NoName,
    /// The name is already registered.
    #[error("hook {} is already registered", portico_gostd::strconv::quote(.0))]
    Duplicate(String),
    /// The hook was added after the hooks were started.
    #[error("cannot add hook {}: hooks have already been started", portico_gostd::strconv::quote(.0))]
    AlreadyStarted(String),
    /// The health check of the hook was rejected.
    #[error(transparent)]
    Health(#[from] HealthError),
    /// Pre-shutdown hooks returned errors.
    #[error("pre-shutdown hooks failed: {0}")]
    PreShutdown(String),
}

/// Hooks of one process. Clones share them.
#[derive(Clone)]
pub struct Hooks {
    inner: Arc<Inner>,
}

struct Inner {
    health: Health,
    state: Mutex<HooksState>,
}

#[derive(Default)]
struct HooksState {
    disabled: BTreeSet<String>,
    post_start: Vec<(String, HookFn, Signal)>,
    pre_shutdown: Vec<(String, HookFn)>,
    names: BTreeSet<String>,
    pre_shutdown_names: BTreeSet<String>,
    started: bool,
}

impl Hooks {
    /// Returns an empty set of hooks. Each post-start hook adds its check to all three endpoints of `health`, to
    /// `/livez` with the grace period.
    pub fn new(health: Health) -> Self {
        Self { inner: Arc::new(Inner { health, state: Mutex::default() }) }
    }

    /// Disables hooks by name: adding such a hook succeeds, but adds neither the hook nor its check.
    pub fn disable(&self, names: impl IntoIterator<Item = String>) {
        self.inner.state.lock().disabled.extend(names);
    }

    /// Adds a post-start hook. Hooks run in parallel once the listener is open; an error ends the process.
    pub fn add_post_start<F, Fut>(&self, name: &str, hook: F) -> Result<(), HookError>
    where
        F: FnOnce(HookContext) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        let mut state = self.inner.state.lock();
        if state.check_new_hook(name, false)? {
            return Ok(());
        }
        let done = Signal::new("PostStartHook");
        let finished = done.clone();
        let check = Check::new(format!("poststarthook/{name}"), move || {
            if finished.is_signaled() { Ok(()) } else { Err("not finished".to_owned()) }
        });
        self.inner.health.add_boot(check)?;
        state.names.insert(name.to_owned());
        let hook: HookFn = Box::new(move |context| Box::pin(hook(context)));
        state.post_start.push((name.to_owned(), hook, done));
        Ok(())
    }

    /// Adds a pre-shutdown hook, which runs during the shutdown delay, while requests are still served.
    pub fn add_pre_shutdown<F, Fut>(&self, name: &str, hook: F) -> Result<(), HookError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        let mut state = self.inner.state.lock();
        if state.check_new_hook(name, true)? {
            return Ok(());
        }
        state.pre_shutdown_names.insert(name.to_owned());
        let hook: HookFn = Box::new(move |_| Box::pin(hook()));
        state.pre_shutdown.push((name.to_owned(), hook));
        Ok(())
    }

    /// Starts all post-start hooks in parallel. Adding a hook afterwards is an error.
    pub fn run_post_start(&self, tasks: &TaskSet) {
        let hooks = {
            let mut state = self.inner.state.lock();
            state.started = true;
            std::mem::take(&mut state.post_start)
        };
        for (name, hook, done) in hooks {
            let context = HookContext { stop: tasks.token(), tasks: tasks.clone() };
            let set = tasks.clone();
            tasks.spawn(format!("poststarthook/{name}"), async move {
                let outcome = futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(hook(context)));
                match outcome.await {
                    Ok(Ok(())) => {
                        done.signal();
                    }
                    // A hook that returns because the process stops has not failed.
                    _ if set.token().is_cancelled() => {}
                    Ok(Err(error)) => set.fail(&format!("PostStartHook {name:?} failed"), &error),
                    Err(_) => set.fail(&format!("PostStartHook {name:?} failed"), "panicked"),
                }
            });
        }
    }

    /// Runs all pre-shutdown hooks one after another, and returns their errors as one.
    pub async fn run_pre_shutdown(&self, tasks: &TaskSet) -> Result<(), HookError> {
        let hooks = {
            let mut state = self.inner.state.lock();
            state.started = true;
            std::mem::take(&mut state.pre_shutdown)
        };
        let mut errors = Vec::new();
        for (name, hook) in hooks {
            let context = HookContext { stop: tasks.token(), tasks: tasks.clone() };
            if let Err(error) = hook(context).await {
                errors.push(format!("{name}: {error}"));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(HookError::PreShutdown(errors.join("; "))) }
    }

    /// Returns the names of the registered post-start hooks, sorted.
    pub fn post_start_names(&self) -> Vec<String> {
        self.inner.state.lock().names.iter().cloned().collect()
    }
}

impl HooksState {
    /// Validates a new hook. Returns `true` if it is disabled and must be skipped.
    fn check_new_hook(&self, name: &str, pre_shutdown: bool) -> Result<bool, HookError> {
        if name.is_empty() {
            return Err(HookError::NoName);
        }
        if self.disabled.contains(name) {
            return Ok(true);
        }
        if self.started {
            return Err(HookError::AlreadyStarted(name.to_owned()));
        }
        let names = if pre_shutdown { &self.pre_shutdown_names } else { &self.names };
        if names.contains(name) {
            return Err(HookError::Duplicate(name.to_owned()));
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::{HealthEndpoint, HealthQuery};
    use std::time::Duration;

    fn hooks() -> (Hooks, Health) {
        let health = Health::new(Duration::ZERO);
        (Hooks::new(health.clone()), health)
    }

    #[tokio::test]
    async fn a_hook_is_a_check_that_passes_once_it_has_returned() {
        let (hooks, health) = hooks();
        let (tx, rx) = tokio::sync::oneshot::channel::<()>();
        let name = "apiservice-registration-controller";
        hooks.add_post_start(name, |_| async { rx.await.map_err(|error| error.to_string()) }).unwrap();
        let check = "poststarthook/apiservice-registration-controller";
        let tasks = TaskSet::new();
        hooks.run_post_start(&tasks);
        for endpoint in HealthEndpoint::ALL {
            let single = health.single(endpoint, check).await.unwrap();
            assert_eq!((single.code, single.body.as_str()), (500, "internal server error: not finished\n"));
        }
        tx.send(()).unwrap();
        assert!(tasks.shutdown(Duration::from_secs(5)).await.is_empty());
        assert_eq!(health.evaluate(HealthEndpoint::Readyz, &HealthQuery::default()).await.code, 200);
    }

    #[tokio::test]
    async fn names_are_unique_and_hooks_come_before_the_start() {
        let (hooks, health) = hooks();
        let ok = |_| async { Ok(()) };
        hooks.disable(["off".to_owned()]);
        hooks.add_post_start("off", ok).unwrap();
        hooks.add_post_start("a", ok).unwrap();
        assert_eq!(hooks.add_post_start("a", ok), Err(HookError::Duplicate("a".into())));
        assert_eq!(hooks.add_post_start("", ok), Err(HookError::NoName));
        hooks.run_post_start(&TaskSet::new());
        assert_eq!(hooks.add_post_start("b", ok), Err(HookError::AlreadyStarted("b".into())));
        assert_eq!(health.paths(HealthEndpoint::Healthz), ["/healthz", "/healthz/poststarthook/a"]);
    }

    #[tokio::test]
    async fn a_failing_hook_fails_the_process() {
        let (hooks, _) = hooks();
        hooks.add_post_start("bad", |_| async { Err("no".to_owned()) }).unwrap();
        let tasks = TaskSet::new();
        hooks.run_post_start(&tasks);
        assert_eq!(tasks.failed().await.to_string(), "PostStartHook \"bad\" failed: no");
    }

    #[tokio::test]
    async fn every_pre_shutdown_hook_runs_and_errors_are_joined() {
        let (hooks, _) = hooks();
        hooks.add_pre_shutdown("one", || async { Err("x".to_owned()) }).unwrap();
        hooks.add_pre_shutdown("two", || async { Err("y".to_owned()) }).unwrap();
        let error = hooks.run_pre_shutdown(&TaskSet::new()).await.unwrap_err();
        assert_eq!(error.to_string(), "pre-shutdown hooks failed: one: x; two: y");
    }
}
