//! One health check: a name and a function that returns an error if the check fails.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;

use super::endpoint::RemoteCheck;

type Warning = Arc<dyn Fn() -> Option<String> + Send + Sync>;
type Run = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Named check. Cheap to clone.
#[derive(Clone)]
pub struct Check {
    name: Arc<str>,
    group: Option<Arc<str>>,
    kind: CheckKind,
    not_before: Option<Instant>,
    warning: Option<Warning>,
}

#[derive(Clone)]
enum CheckKind {
    Immediate(Arc<dyn Fn() -> Result<(), String> + Send + Sync>),
    Asynchronous(Run),
}

impl Check {
    /// Returns a check that does not wait.
    pub fn new(
        name: impl Into<String>,
        run: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self::with_kind(name.into(), CheckKind::Immediate(Arc::new(run)))
    }

    /// Returns a check that may wait. The function must limit its duration.
    pub fn new_async<F, Fut>(name: impl Into<String>, run: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self::with_kind(name.into(), CheckKind::Asynchronous(Arc::new(move || Box::pin(run()))))
    }

    /// Returns the check `ping`, which always passes.
    pub fn ping() -> Self {
        Self::new("ping", || Ok(()))
    }

    /// Puts the check into a group, which `?exclude=<group>` excludes as a whole.
    pub fn in_group(mut self, group: &str) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Sets a function that returns a warning for a check that passes.
    pub fn with_warning(mut self, warning: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        self.warning = Some(Arc::new(warning));
        self
    }

    /// Returns the warning for a check that passes, if any.
    pub fn warning(&self) -> Option<String> {
        self.warning.as_ref().and_then(|warning| warning())
    }

    /// Returns the name, as in `/readyz/<name>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the group, if any.
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// Runs the check.
    pub async fn run(&self) -> Result<(), String> {
        if self.not_before.is_some_and(|instant| Instant::now() < instant) {
            return Ok(());
        }
        match &self.kind {
            CheckKind::Immediate(run) => run(),
            CheckKind::Asynchronous(run) => run().await,
        }
    }

    /// Returns a check that passes without being run until `instant`.
    pub(super) fn passing_until(mut self, instant: Instant) -> Self {
        self.not_before = Some(instant);
        self
    }

    pub(super) fn from_remote(remote: &RemoteCheck) -> Self {
        let (failure, warning) = (remote.failure.clone(), remote.warning.clone());
        Self::new(remote.name.clone(), move || failure.clone().map_or(Ok(()), Err))
            .with_warning(move || warning.clone())
    }

    fn with_kind(name: String, kind: CheckKind) -> Self {
        Self { name: name.into(), group: None, kind, not_before: None, warning: None }
    }
}

/// Result of one check in one evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    /// Name of the check.
    pub name: String,
    /// Exclusion that matched, so that the check was not run: an empty string for its name, otherwise its group.
    pub excluded: Option<String>,
    /// Reason of the failure, if it failed.
    pub failure: Option<String>,
    /// Warning of a check that passed, if any.
    pub warning: Option<String>,
}

impl CheckResult {
    pub(super) fn new_excluded(check: &Check, exclude: &str) -> Self {
        let group = if exclude == check.name() { "" } else { exclude };
        Self { name: check.name().to_owned(), excluded: Some(group.to_owned()), failure: None, warning: None }
    }
}
