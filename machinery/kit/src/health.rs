//! Named health checks in three sets, one per endpoint, and upstream's text output.
//!
//! Rendering is pure: a status code and a body. Does not depend on HTTP nor on the purpose of a check.

mod check;
mod endpoint;
mod render;

pub use check::{Check, CheckResult};
pub use endpoint::{HealthEndpoint, RemoteCheck};
pub use render::{Evaluation, HealthQuery, HealthResponse};

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::lifecycle::Signal;
use crate::metrics::{Desc, Registry};

/// Error of adding a check.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HealthError {
    /// The name is not unique within an endpoint.
    #[error("check {} is already registered for {endpoint}", portico_gostd::strconv::quote(name))]
    Duplicate {
        /// Name of the check.
        name: String,
        /// Name of the endpoint without slash.
        endpoint: &'static str,
    },
    /// The endpoints are already installed: the set of own checks is then fixed (upstream's rule).
    #[error(
        "cannot add check {}: the health endpoints are already installed",
        portico_gostd::strconv::quote(.0)
    )]
    Installed(String),
}

/// Health of one process. Clones share it.
#[derive(Clone)]
pub struct Health {
    inner: Arc<Inner>,
}

struct Inner {
    grace: Duration,
    sets: RwLock<CheckSets>,
    ready: RwLock<Option<Signal>>,
    sli: RwLock<Option<Sli>>,
}

#[derive(Default)]
struct CheckSets {
    local: [Vec<Check>; 3],
    remote: Vec<RemoteCheck>,
    installed: bool,
}

type Labels<const N: usize> = [(&'static str, String); N];

struct Sli {
    current: Family<Labels<2>, Gauge>,
    total: Family<Labels<3>, Counter>,
}

impl Health {
    /// Returns a health without checks. `livez_grace` is `--livez-grace-period`: for this time after their registration,
    /// boot checks pass on `/livez`.
    pub fn new(livez_grace: Duration) -> Self {
        let inner = Inner {
            grace: livez_grace,
            sets: RwLock::default(),
            ready: RwLock::new(None),
            sli: RwLock::new(None),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Sets the signal (HasBeenReady) that is sent at the first success of `/readyz`.
    pub fn on_ready(&self, signal: Signal) {
        *self.inner.ready.write() = Some(signal);
    }

    /// Registers the metrics `kubernetes_healthcheck` and `kubernetes_healthchecks_total`, which count results.
    pub fn register_metrics(&self, registry: &Registry) {
        let current = registry.gauge_vec(Desc::gauge(
            "kubernetes_healthcheck",
            &["name", "type"],
            "[STABLE] This metric records the result of a single healthcheck.",
        ));
        let total = registry.counter_vec(Desc::counter(
            "kubernetes_healthchecks_total",
            &["name", "status", "type"],
            "[STABLE] This metric records the results of all healthcheck.",
        ));
        *self.inner.sli.write() = Some(Sli { current, total });
    }

    /// Adds a check to the named endpoints.
    pub fn add(&self, endpoints: &[HealthEndpoint], check: Check) -> Result<(), HealthError> {
        let mut sets = self.inner.sets.write();
        if sets.installed {
            return Err(HealthError::Installed(check.name().to_owned()));
        }
        for endpoint in endpoints {
            if sets.local[*endpoint as usize].iter().any(|other| other.name() == check.name()) {
                let name = check.name().to_owned();
                return Err(HealthError::Duplicate { name, endpoint: endpoint.name() });
            }
        }
        for endpoint in endpoints {
            sets.local[*endpoint as usize].push(check.clone());
        }
        Ok(())
    }

    /// Adds a check of the boot sequence to `/healthz` and `/readyz`, and to `/livez` with the grace period.
    pub fn add_boot(&self, check: Check) -> Result<(), HealthError> {
        self.add(&[HealthEndpoint::Healthz, HealthEndpoint::Readyz], check.clone())?;
        self.add(&[HealthEndpoint::Livez], check.passing_until(Instant::now() + self.inner.grace))
    }

    /// Closes the sets of own checks. Remote checks can still be added and removed.
    pub fn install(&self) {
        self.inner.sets.write().installed = true;
    }

    /// Replaces all remote checks.
    pub fn replace_remote(&self, checks: Vec<RemoteCheck>) {
        self.inner.sets.write().remote = checks;
    }

    /// Adds or replaces one remote check, by name.
    pub fn set_remote(&self, check: RemoteCheck) {
        let remote = &mut self.inner.sets.write().remote;
        match remote.iter_mut().find(|other| other.name == check.name) {
            Some(other) => *other = check,
            None => remote.push(check),
        }
    }

    /// Removes a remote check.
    pub fn remove_remote(&self, name: &str) {
        self.inner.sets.write().remote.retain(|check| check.name != name);
    }

    /// Returns the paths of this endpoint: its root, then one path per check, in order.
    pub fn paths(&self, endpoint: HealthEndpoint) -> Vec<String> {
        let root = format!("/{}", endpoint.name());
        let checks = self.snapshot(endpoint);
        let names = checks.iter().map(|check| format!("{root}/{}", check.name()));
        std::iter::once(root.clone()).chain(names).collect()
    }

    /// Runs every check of the endpoint that is not excluded and renders the response. Failures are
    /// logged with their reasons.
    pub async fn evaluate(&self, endpoint: HealthEndpoint, query: &HealthQuery) -> HealthResponse {
        let evaluation = self.run(endpoint, query).await;
        for checked in &evaluation.results {
            if let Some(error) = &checked.failure {
                tracing::info!(
                    endpoint = endpoint.name(),
                    check = checked.name,
                    error,
                    "health check failed"
                );
            }
        }
        if let Some(signal) = self.inner.ready.read().as_ref()
            && endpoint == HealthEndpoint::Readyz
            && evaluation.has_passed()
        {
            signal.signal();
        }
        evaluation.render(query.verbose)
    }

    /// Runs every check of the endpoint that is not excluded, concurrently, without logging.
    pub async fn run(&self, endpoint: HealthEndpoint, query: &HealthQuery) -> Evaluation {
        let checks = self.snapshot(endpoint);
        let runs = checks.iter().map(|check| async {
            match query.excludes(check) {
                Some(by) => CheckResult::new_excluded(check, by),
                None => {
                    let failure = check.run().await.err();
                    let warning = if failure.is_none() { check.warning() } else { None };
                    CheckResult { name: check.name().to_owned(), excluded: None, failure, warning }
                }
            }
        });
        let results = futures::future::join_all(runs).await;
        for checked in &results {
            self.count_result(endpoint, checked);
        }
        Evaluation { endpoint, unknown_excludes: query.unknown_excludes(&checks), results }
    }

    /// Runs one check for `/<endpoint>/<name>` and renders it with its reason. `None` if the check does not exist (404).
    pub async fn single(&self, endpoint: HealthEndpoint, name: &str) -> Option<HealthResponse> {
        let check = self.snapshot(endpoint).into_iter().find(|check| check.name() == name)?;
        Some(render::render_single(check.run().await, check.warning()))
    }

    fn snapshot(&self, endpoint: HealthEndpoint) -> Vec<Check> {
        let sets = self.inner.sets.read();
        let local = &sets.local[endpoint as usize];
        let shadowed = |name: &str| local.iter().any(|check| check.name() == name);
        let remote = sets.remote.iter().filter(|check| check.endpoints.contains(&endpoint));
        let remote = remote.filter(|check| !shadowed(&check.name)).map(Check::from_remote);
        // The own check `shutdown`, which is last upstream, stays last.
        let last = local.len() - usize::from(local.last().is_some_and(|check| check.name() == "shutdown"));
        local[..last].iter().cloned().chain(remote).chain(local[last..].iter().cloned()).collect()
    }

    fn count_result(&self, endpoint: HealthEndpoint, checked: &CheckResult) {
        let guard = self.inner.sli.read();
        let (Some(sli), None) = (guard.as_ref(), &checked.excluded) else { return };
        let passed = checked.failure.is_none();
        let (name, kind) = (checked.name.clone(), endpoint.name().to_owned());
        let status = if passed { "success" } else { "error" }.to_owned();
        sli.current.get_or_create(&[("name", name.clone()), ("type", kind.clone())]).set(passed.into());
        sli.total.get_or_create(&[("name", name), ("type", kind), ("status", status)]).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::Lifecycle;

    fn failing(name: &str) -> Check {
        Check::new(name.to_owned(), || Err("it hurts".to_owned()))
    }

    fn passing(name: &str) -> Check {
        Check::new(name.to_owned(), || Ok(()))
    }

    #[tokio::test]
    async fn the_first_success_of_readyz_is_signaled_and_livez_is_not() {
        let health = Health::new(Duration::ZERO);
        let life = Lifecycle::new();
        health.on_ready(life.has_been_ready.clone());
        health.add(&HealthEndpoint::ALL, passing("ping")).unwrap();
        health.evaluate(HealthEndpoint::Livez, &HealthQuery::default()).await;
        assert!(!life.has_been_ready.is_signaled());
        let rendered = health.evaluate(HealthEndpoint::Readyz, &HealthQuery::default()).await;
        assert_eq!((rendered.code, rendered.body.as_str()), (200, "ok"));
        assert!(life.has_been_ready.is_signaled());
    }

    #[tokio::test]
    async fn a_boot_check_fails_livez_only_after_the_grace() {
        let health = Health::new(Duration::from_secs(3600));
        health.add_boot(failing("slow")).unwrap();
        let all = HealthQuery::default();
        assert_eq!(health.evaluate(HealthEndpoint::Livez, &all).await.code, 200);
        assert_eq!(health.evaluate(HealthEndpoint::Healthz, &all).await.code, 500);
        assert_eq!(health.evaluate(HealthEndpoint::Readyz, &all).await.code, 500);
        let strict = Health::new(Duration::ZERO);
        strict.add_boot(failing("slow")).unwrap();
        assert_eq!(strict.evaluate(HealthEndpoint::Livez, &all).await.code, 500);
    }

    #[tokio::test]
    async fn adding_twice_or_after_the_installation_is_an_error() {
        let health = Health::new(Duration::ZERO);
        health.add(&[HealthEndpoint::Livez], passing("ping")).unwrap();
        let twice = health.add(&HealthEndpoint::ALL, passing("ping"));
        assert_eq!(twice, Err(HealthError::Duplicate { name: "ping".into(), endpoint: "livez" }));
        health.install();
        let late = health.add(&HealthEndpoint::ALL, passing("late"));
        assert_eq!(late, Err(HealthError::Installed("late".into())));
    }

    #[tokio::test]
    async fn remote_checks_come_change_and_go_before_the_shutdown_check() {
        let health = Health::new(Duration::ZERO);
        health.add(&[HealthEndpoint::Readyz], passing("ping")).unwrap();
        health.add(&[HealthEndpoint::Readyz], passing("shutdown")).unwrap();
        health.install();
        let remote = |failure: Option<&str>| RemoteCheck {
            name: "etcd".into(),
            endpoints: vec![HealthEndpoint::Readyz],
            failure: failure.map(str::to_owned),
            warning: failure.is_none().then(|| "nearly full".to_owned()),
        };
        health.set_remote(remote(Some("disk full")));
        assert_eq!(
            health.paths(HealthEndpoint::Readyz),
            ["/readyz", "/readyz/ping", "/readyz/etcd", "/readyz/shutdown"]
        );
        let single = health.single(HealthEndpoint::Readyz, "etcd").await.unwrap();
        assert_eq!(single.body, "internal server error: disk full\n");
        health.set_remote(remote(None));
        assert_eq!(health.evaluate(HealthEndpoint::Readyz, &HealthQuery::default()).await.code, 200);
        let verbose = HealthQuery { verbose: true, ..HealthQuery::default() };
        let body = health.evaluate(HealthEndpoint::Readyz, &verbose).await.body;
        assert!(body.contains("[+]etcd ok, with a warning: see /readyz/etcd\n"), "{body}");
        assert_eq!(health.single(HealthEndpoint::Readyz, "etcd").await.unwrap().body, "ok: nearly full\n");
        health.remove_remote("etcd");
        assert!(health.single(HealthEndpoint::Readyz, "etcd").await.is_none());
    }

    #[tokio::test]
    async fn results_are_counted_by_name_and_endpoint() {
        let health = Health::new(Duration::ZERO);
        let registry = Registry::new();
        health.register_metrics(&registry);
        health.add(&[HealthEndpoint::Healthz], failing("log")).unwrap();
        health.evaluate(HealthEndpoint::Healthz, &HealthQuery::default()).await;
        let text = registry.encode(crate::metrics::Format::Text);
        assert!(text.contains("kubernetes_healthcheck{name=\"log\",type=\"healthz\"} 0"), "{text}");
        let total = "kubernetes_healthchecks_total{name=\"log\",type=\"healthz\",status=\"error\"} 1";
        assert!(text.contains(total), "{text}");
    }
}
