//! Tests of the reconcile loops in paused time, with real queues, workers and writer; backends and registry are fakes.

use std::future::Future;
use std::time::Duration;

use portico_kit::metrics::Format;
use tokio::time::{Instant, sleep};

use super::*;

/// Response status of backends, by group; `None` never responds.
#[derive(Clone, Default)]
struct Backends {
    answers: Arc<Mutex<HashMap<String, Option<u16>>>>,
    probes: Arc<Mutex<HashMap<String, usize>>>,
}

impl Backends {
    fn set(&self, name: &str, answer: Option<u16>) {
        self.answers.lock().insert(name.to_owned(), answer);
    }

    fn probes(&self, name: &str) -> usize {
        self.probes.lock().get(name).copied().unwrap_or(0)
    }
}

impl Prober for Backends {
    async fn probe(&self, plan: &ProbePlan, _: usize) -> Result<(), ProbeFailure> {
        *self.probes.lock().entry(plan.name.to_string()).or_default() += 1;
        let answer = self.answers.lock().get(&*plan.name).copied().unwrap_or(Some(200));
        match answer {
            Some(200) => Ok(()),
            Some(code) => {
                Err(ProbeFailure { stage: ProbeStage::Status, timed_out: false, message: format!("{code}") })
            }
            None => {
                sleep(Duration::from_secs(5)).await;
                Err(ProbeFailure { stage: ProbeStage::Http, timed_out: true, message: "timeout".into() })
            }
        }
    }
}

struct Setup {
    registry: FakeRegistry,
    backends: Backends,
    controller: Availability<Backends>,
    metrics: MetricsRegistry,
    tasks: TaskSet,
}

fn setup() -> Setup {
    setup_in(FakeRegistry::new())
}

/// Creates a control service of this registry, with its own view of the backends.
fn setup_in(registry: FakeRegistry) -> Setup {
    let backends = Backends::default();
    let (metrics, tasks) = (MetricsRegistry::new(), TaskSet::new());
    let controller =
        Availability::new(&registry.informers, backends.clone(), ResolveMode::ClusterIp, &metrics);
    controller.run_local(&tasks);
    controller.run_remote(&tasks);
    controller.run_writer(registry.clone(), &tasks);
    Setup { registry, backends, controller, metrics, tasks }
}

impl Setup {
    /// Creates an APIService whose Service is an external name, so that only the probe decides.
    fn register(&self, group: &str) {
        self.register_with(group, "");
    }

    /// Points the Service of the APIService to another host.
    fn move_to(&self, group: &str, host: &str) {
        let external = format!(
            r#"{{"metadata":{{"namespace":"ns","name":"{group}"}},"spec":{{"type":"ExternalName","externalName":"{host}"}}}}"#
        );
        self.registry.put(FactSource::Services, object(&external));
    }

    /// Creates an APIService like `register`, with additional fields in its spec.
    fn register_with(&self, group: &str, more_fields: &str) {
        self.move_to(group, "x");
        let reference = format!(r#"{{"namespace":"ns","name":"{group}","port":443}}{more_fields}"#);
        self.registry.put(FactSource::ApiServices, api_service(group, &reference));
    }

    /// Advances the paused time until a condition is met; returns the elapsed time.
    async fn until(&self, condition: impl Fn(&Self) -> bool) -> Duration {
        let start = Instant::now();
        while !condition(self) {
            assert!(start.elapsed() < Duration::from_secs(120), "the condition was not met within 120 s");
            sleep(Duration::from_millis(1)).await;
        }
        start.elapsed()
    }

    /// Returns the observers of a backend; true if the observer reaches it.
    fn reached_by(&self, name: &str) -> Vec<(String, bool)> {
        let observations = self.controller.observations(name).into_iter();
        observations.map(|o| (o.observer, o.failed_at.is_none())).collect()
    }

    fn gauge(&self, name: &str) -> Option<String> {
        let line = format!("aggregator_unavailable_apiservice{{name=\"{name}\"}} ");
        let text = self.metrics.encode(Format::Text);
        text.lines().find_map(|l| l.strip_prefix(&line).map(str::to_owned))
    }
}

/// Runs a test and shuts down its tasks.
async fn run_test<F: Future<Output = ()>>(test: impl FnOnce(Arc<Setup>) -> F) {
    let setup = Arc::new(setup());
    test(setup.clone()).await;
    assert!(setup.tasks.shutdown(Duration::from_secs(30)).await.is_empty());
    assert_eq!(setup.tasks.panics(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reachable_backend_needs_one_write_and_one_probe_every_30_seconds() {
    run_test(|s| async move {
        s.register("g");
        let took = s.until(|s| s.registry.available("v1.g").0).await;
        assert!(took < Duration::from_millis(10), "{took:?}");
        assert_eq!(s.registry.available("v1.g").1, "Passed");
        sleep(Duration::from_secs(20)).await;
        assert_eq!(s.backends.probes("v1.g"), 1, "the status write of the controller triggers no probe");
        sleep(Duration::from_secs(12)).await;
        assert_eq!(s.backends.probes("v1.g"), 2);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(s.registry.writes("v1.g"), ["True Passed"]);
        assert_eq!(s.gauge("v1.g").as_deref(), Some("0"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_apiservice_triggers_a_probe_and_the_transition_is_counted() {
    run_test(|s| async move {
        s.register("g");
        s.until(|s| s.registry.available("v1.g").0).await;
        s.backends.set("v1.g", Some(403));
        let mut changed = StatusSink::get(&s.registry, "v1.g").await.unwrap();
        changed.set(&["metadata", "labels", "look"], "again");
        s.registry.put(FactSource::ApiServices, changed);
        s.until(|s| !s.registry.available("v1.g").0).await;
        assert_eq!(s.registry.writes("v1.g"), ["True Passed", "False FailedDiscoveryCheck"]);
        let counter =
            "aggregator_unavailable_apiservice_total{name=\"v1.g\",reason=\"FailedDiscoveryCheck\"} 1";
        assert!(s.metrics.encode(Format::Text).contains(counter));
        assert_eq!(s.gauge("v1.g").as_deref(), Some("1"));
        // The backend recovers without a change; an APIService that was never available would not be counted.
        s.backends.set("v1.g", Some(200));
        let took = s.until(|s| s.registry.available("v1.g").0).await;
        assert!(took <= PROBE_INTERVAL, "{took:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hanging_backend_is_false_within_six_seconds() {
    run_test(|s| async move {
        s.backends.set("v1.g", None);
        s.register("g");
        let took = s.until(|s| !s.registry.writes("v1.g").is_empty()).await;
        assert!(took <= Duration::from_millis(6_010), "{took:?}");
        assert_eq!(s.registry.available("v1.g").1, "FailedDiscoveryCheck");
        let observed = s.controller.observations("v1.g");
        assert_eq!(
            (observed[0].failed_at, observed[0].observer.as_str()),
            (Some(ProbeStage::Http), "control")
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dead_backends_do_not_delay_probes_of_other_backends() {
    run_test(|s| async move {
        for i in 0..100 {
            s.backends.set(&format!("v1.dead{i}"), None);
            s.register(&format!("dead{i}"));
        }
        s.until(|s| (0..100).all(|i| !s.registry.writes(&format!("v1.dead{i}")).is_empty())).await;
        // From now on they are probed with permits for slow backends only.
        sleep(Duration::from_secs(40)).await;
        s.register("live");
        let took = s.until(|s| s.registry.available("v1.live").0).await;
        assert!(took < Duration::from_millis(10), "{took:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_new_plan_cancels_the_old_probe() {
    run_test(|s| async move {
        s.backends.set("v1.g", None);
        s.register("g");
        s.until(|s| s.backends.probes("v1.g") > 0).await;
        s.backends.set("v1.g", Some(200));
        let other = r#"{"namespace":"ns","name":"g","port":8443}"#;
        s.registry.put(FactSource::ApiServices, api_service("g", other));
        let took = s.until(|s| s.registry.available("v1.g").0).await;
        assert!(took < Duration::from_millis(10), "{took:?}");
        sleep(Duration::from_secs(10)).await;
        assert_eq!(
            s.registry.writes("v1.g"),
            ["True Passed"],
            "the result of the cancelled probe is ignored"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn changes_of_services_and_slices_change_the_condition() {
    run_test(|s| async move {
        s.registry.put(FactSource::ApiServices, api_service("g", SERVICE));
        let expect_reason = |reason: &'static str| {
            let s = s.clone();
            async move {
                let took = s.until(|s| s.registry.available("v1.g").1 == reason).await;
                assert!(took < Duration::from_millis(10), "{reason} after {took:?}");
            }
        };
        expect_reason("ServiceNotFound").await;
        s.registry.put(
            FactSource::Services,
            service(r#""clusterIP":"10.0.0.9","ports":[{"name":"p","port":443}]"#),
        );
        expect_reason("EndpointsNotFound").await;
        s.registry
            .put(FactSource::EndpointSlices, slice(r#""ports":[{"name":"p","port":1}],"endpoints":[]"#));
        expect_reason("MissingEndpoints").await;
        let ready = r#""ports":[{"name":"p","port":1}],"endpoints":[{"addresses":["10.1.1.1"]}]"#;
        s.registry.put(FactSource::EndpointSlices, slice(ready));
        expect_reason("Passed").await;
        s.registry.remove(FactSource::Services, "ns", "svc");
        expect_reason("ServiceNotFound").await;
        s.registry.put(FactSource::ApiServices, api_service("g", ""));
        expect_reason("Local").await;
        assert_eq!(s.registry.writes("v1.g").len(), 6);
        s.registry.remove(FactSource::ApiServices, "", "v1.g");
        s.until(|s| s.gauge("v1.g").is_none()).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_service_event_causes_one_write_per_referring_apiservice() {
    run_test(|s| async move {
        s.registry.put(FactSource::ApiServices, api_service("g", SERVICE));
        s.registry.put(
            FactSource::ApiServices,
            api_service("other", r#"{"namespace":"ns","name":"x","port":443}"#),
        );
        s.until(|s| !s.registry.writes("v1.g").is_empty() && !s.registry.writes("v1.other").is_empty()).await;
        s.registry.put(FactSource::Services, service(r#""clusterIP":"10.0.0.9","ports":[{"port":443}]"#));
        sleep(Duration::from_secs(100)).await;
        assert_eq!(s.registry.writes("v1.g"), ["False ServiceNotFound", "False EndpointsNotFound"]);
        assert_eq!(s.registry.writes("v1.other"), ["False ServiceNotFound"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_checked_and_written_again() {
    run_test(|s| async move {
        s.registry.conflict(3);
        s.register("g");
        s.until(|s| s.registry.available("v1.g").0).await;
        assert_eq!(s.registry.writes("v1.g"), ["True Passed"]);
        assert_eq!(s.controller.pending_writes(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_backend_is_available_while_a_facade_reports_that_it_is_reached() {
    run_test(|s| async move {
        s.backends.set("v1.g", None);
        s.register("g");
        s.until(|s| s.registry.available("v1.g").1 == "FailedDiscoveryCheck").await;
        s.controller.on_facade_report("edge", "v1.g", None, "");
        s.until(|s| s.registry.available("v1.g").0).await;
        assert_eq!(s.reached_by("v1.g"), [("control".to_owned(), false), ("edge".to_owned(), true)]);
        s.controller.forget_facade("edge");
        let took = s.until(|s| !s.registry.available("v1.g").0).await;
        assert!(took < Duration::from_millis(10), "{took:?}");
        s.controller.on_facade_report("edge", "v1.g", None, "");
        s.until(|s| s.registry.available("v1.g").0).await;
        let took = s.until(|s| !s.registry.available("v1.g").0).await;
        assert!(took >= FACADE_REPORT_TTL && took <= FACADE_REPORT_TTL + PROBE_INTERVAL, "{took:?}");
        assert_eq!(s.reached_by("v1.g"), [("control".to_owned(), false)], "expired reports are not listed");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn facade_reports_with_other_trust_are_dropped() {
    run_test(|s| async move {
        s.backends.set("v1.g", None);
        s.register_with("g", r#","insecureSkipTLSVerify":true"#);
        s.until(|s| s.registry.available("v1.g").1 == "FailedDiscoveryCheck").await;
        s.controller.on_facade_report("edge", "v1.g", None, "");
        s.until(|s| s.registry.available("v1.g").0).await;
        s.register("g");
        let took = s.until(|s| !s.registry.available("v1.g").0).await;
        assert!(took < FACADE_REPORT_TTL / 4, "{took:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn removed_addresses_are_not_reported_as_unreached() {
    run_test(|s| async move {
        s.backends.set("v1.g", None);
        s.register("g");
        s.until(|s| s.registry.available("v1.g").1 == "FailedDiscoveryCheck").await;
        s.controller.on_facade_report("edge", "v1.g", Some(ProbeStage::Tls), "no TLS with 10.0.0.1:443");
        assert_eq!(s.reached_by("v1.g"), [("control".to_owned(), false), ("edge".to_owned(), false)]);
        s.move_to("g", "y");
        s.until(|s| s.reached_by("v1.g").len() == 1).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_a_facade_triggers_a_probe() {
    run_test(|s| async move {
        s.register("g");
        s.until(|s| s.registry.available("v1.g").0).await;
        s.backends.set("v1.g", Some(500));
        sleep(Duration::from_secs(2)).await;
        s.controller.on_facade_report("edge", "v1.g", Some(ProbeStage::Dial), "connection refused");
        let took = s.until(|s| !s.registry.available("v1.g").0).await;
        assert!(took < Duration::from_millis(10), "{took:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_written_slowly_then_at_full_speed_and_does_not_delay_urgent_verdicts() {
    run_test(|s| async move {
        for i in 0..3000 {
            s.registry.put(FactSource::ApiServices, api_service(&format!("g{i}"), SERVICE));
            if i % 100 == 0 {
                sleep(Duration::from_millis(12)).await;
            }
        }
        let total = |s: &Setup| s.registry.writes.lock().len();
        assert!(total(&s) < 1000, "{} verdicts were written during the burst", total(&s));
        s.register("live");
        let took = s.until(|s| s.registry.available("v1.live").0).await;
        assert!(took < Duration::from_millis(10) && total(&s) < 1000, "{took:?}");
        let took = s.until(|s| total(s) == 3001).await;
        assert!(took < Duration::from_secs(1), "{took:?}");
    })
    .await;
}

/// Exchanges reports between two control services of one store every second.
async fn exchange(a: &Setup, b: &Setup, seconds: usize) {
    let mut report_of_b = PeerReport::default();
    for _ in 0..seconds {
        let report_of_a = a.controller.exchange_reports("a", [("b".to_owned(), report_of_b)].into());
        report_of_b = b.controller.exchange_reports("b", [("a".to_owned(), report_of_a)].into());
        sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_one_of_two_control_services_reaches_is_available_and_seldom_written() {
    run_test(|a| async move {
        let b = setup_in(a.registry.clone());
        exchange(&a, &b, 1).await;
        b.backends.set("v1.g", Some(503));
        a.register("g");
        exchange(&a, &b, 300).await;
        assert!(a.registry.available("v1.g").0);
        let writes = a.registry.writes("v1.g").len();
        assert!(writes <= 3, "{writes} writes");

        a.backends.set("v1.g", Some(500));
        exchange(&a, &b, 300).await;
        let (available, _, message) = a.registry.available("v1.g");
        assert!(!available && message.ends_with("500"), "{message}");
        let more_writes = a.registry.writes("v1.g").len() - writes;
        assert!(
            more_writes <= 2,
            "{more_writes} writes, although each control service sees a different error"
        );

        b.backends.set("v1.g", Some(200));
        exchange(&a, &b, 60).await;
        assert!(a.registry.available("v1.g").0);
        assert!(a.registry.writes("v1.g").len() <= writes + more_writes + 1);
        // The other control service stops: its reports no longer apply.
        b.tasks.cancel();
        a.controller.exchange_reports("a", [].into());
        a.until(|a| !a.registry.available("v1.g").0).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_one_of_two_control_services_sees_is_confirmed_by_the_other_at_once() {
    run_test(|a| async move {
        let b = setup_in(a.registry.clone());
        a.register("g");
        exchange(&a, &b, 5).await;
        assert!(a.registry.available("v1.g").0);
        [&*a, &b].iter().for_each(|s| s.backends.set("v1.g", Some(503)));
        a.controller.on_facade_report("edge", "v1.g", Some(ProbeStage::Dial), "connection refused");
        exchange(&a, &b, 10).await;
        assert!(!a.registry.available("v1.g").0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_single_control_service_does_not_wait_for_objections() {
    run_test(|a| async move {
        let b = setup_in(a.registry.clone());
        a.register("g");
        exchange(&a, &b, 2).await;
        b.tasks.cancel();
        for _ in 0..6 {
            a.controller.exchange_reports("a", [].into());
            sleep(Duration::from_secs(1)).await;
        }
        a.backends.set("v1.g", Some(503));
        a.controller.on_facade_report("edge", "v1.g", Some(ProbeStage::Dial), "connection refused");
        let took = a.until(|a| !a.registry.available("v1.g").0).await;
        assert!(took < Duration::from_millis(10), "{took:?}");
    })
    .await;
}
