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
                Err(ProbeFailure { stage: ProbeStage::Http, timed_out: true, message: "silent".into() })
            }
        }
    }
}

struct Setup {
    world: World,
    backends: Backends,
    controller: Availability<Backends>,
    metrics: MetricsRegistry,
    tasks: TaskSet,
}

fn setup() -> Setup {
    setup_in(World::new())
}

/// Creates a control service of this registry, with its own view of the backends.
fn setup_in(world: World) -> Setup {
    let backends = Backends::default();
    let (metrics, tasks) = (MetricsRegistry::new(), TaskSet::new());
    let controller = Availability::new(&world.informers, backends.clone(), Mode::ClusterIp, &metrics);
    controller.run_local(&tasks);
    controller.run_remote(&tasks);
    controller.run_writer(world.clone(), &tasks);
    Setup { world, backends, controller, metrics, tasks }
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
        self.world.put(Watched::Services, object(&external));
    }

    /// Creates an APIService like `register`, with additional fields in its spec.
    fn register_with(&self, group: &str, further: &str) {
        self.move_to(group, "x");
        let reference = format!(r#"{{"namespace":"ns","name":"{group}","port":443}}{further}"#);
        self.world.put(Watched::ApiServices, api_service(group, &reference));
    }

    /// Advances the paused time until a condition is met; returns the elapsed time.
    async fn until(&self, what: impl Fn(&Self) -> bool) -> Duration {
        let start = Instant::now();
        while !what(self) {
            assert!(start.elapsed() < Duration::from_secs(120), "it never came to be");
            sleep(Duration::from_millis(1)).await;
        }
        start.elapsed()
    }

    /// Returns the observers of a backend; true if the observer reaches it.
    fn reached_by(&self, name: &str) -> Vec<(String, bool)> {
        let seen = self.controller.observations(name).into_iter();
        seen.map(|o| (o.seen_by, o.failed_at.is_none())).collect()
    }

    fn gauge(&self, name: &str) -> Option<String> {
        let line = format!("aggregator_unavailable_apiservice{{name=\"{name}\"}} ");
        let text = self.metrics.encode(Format::Text);
        text.lines().find_map(|l| l.strip_prefix(&line).map(str::to_owned))
    }
}

/// Runs a test and shuts down its tasks.
async fn with<F: Future<Output = ()>>(test: impl FnOnce(Arc<Setup>) -> F) {
    let setup = Arc::new(setup());
    test(setup.clone()).await;
    assert!(setup.tasks.shutdown(Duration::from_secs(30)).await.is_empty());
    assert_eq!(setup.tasks.panics(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_good_backend_costs_one_probe_one_write_and_one_look_every_half_minute() {
    with(|s| async move {
        s.register("g");
        let took = s.until(|s| s.world.available("v1.g").0).await;
        assert!(took < Duration::from_millis(10), "{took:?}");
        assert_eq!(s.world.available("v1.g").1, "Passed");
        sleep(Duration::from_secs(20)).await;
        assert_eq!(s.backends.probes("v1.g"), 1, "its own status write is no reason to look again");
        sleep(Duration::from_secs(12)).await;
        assert_eq!(s.backends.probes("v1.g"), 2);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(s.world.writes("v1.g"), ["True Passed"]);
        assert_eq!(s.gauge("v1.g").as_deref(), Some("0"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_touch_makes_it_look_again_and_the_counter_counts_the_fall() {
    with(|s| async move {
        s.register("g");
        s.until(|s| s.world.available("v1.g").0).await;
        s.backends.set("v1.g", Some(403));
        let mut touched = Sink::get(&s.world, "v1.g").await.unwrap();
        touched.set(&["metadata", "labels", "look"], "again");
        s.world.put(Watched::ApiServices, touched);
        s.until(|s| !s.world.available("v1.g").0).await;
        assert_eq!(s.world.writes("v1.g"), ["True Passed", "False FailedDiscoveryCheck"]);
        let counter =
            "aggregator_unavailable_apiservice_total{name=\"v1.g\",reason=\"FailedDiscoveryCheck\"} 1";
        assert!(s.metrics.encode(Format::Text).contains(counter));
        assert_eq!(s.gauge("v1.g").as_deref(), Some("1"));
        // The backend recovers without a change; an APIService that was never available would not be counted.
        s.backends.set("v1.g", Some(200));
        let took = s.until(|s| s.world.available("v1.g").0).await;
        assert!(took <= PERIOD, "{took:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hanging_backend_is_false_within_six_seconds() {
    with(|s| async move {
        s.backends.set("v1.g", None);
        s.register("g");
        let took = s.until(|s| !s.world.writes("v1.g").is_empty()).await;
        assert!(took <= Duration::from_millis(6_010), "{took:?}");
        assert_eq!(s.world.available("v1.g").1, "FailedDiscoveryCheck");
        let observed = s.controller.observations("v1.g");
        assert_eq!(
            (observed[0].failed_at, observed[0].seen_by.as_str()),
            (Some(ProbeStage::Http), "control")
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn any_number_of_dead_backends_delays_nobody_elses_probe() {
    with(|s| async move {
        for i in 0..100 {
            s.backends.set(&format!("v1.dead{i}"), None);
            s.register(&format!("dead{i}"));
        }
        s.until(|s| (0..100).all(|i| !s.world.writes(&format!("v1.dead{i}")).is_empty())).await;
        // From now on they are probed with permits for slow backends only.
        sleep(Duration::from_secs(40)).await;
        s.register("live");
        let took = s.until(|s| s.world.available("v1.live").0).await;
        assert!(took < Duration::from_millis(10), "{took:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_new_plan_calls_the_old_probe_off() {
    with(|s| async move {
        s.backends.set("v1.g", None);
        s.register("g");
        s.until(|s| s.backends.probes("v1.g") > 0).await;
        s.backends.set("v1.g", Some(200));
        let other = r#"{"namespace":"ns","name":"g","port":8443}"#;
        s.world.put(Watched::ApiServices, api_service("g", other));
        let took = s.until(|s| s.world.available("v1.g").0).await;
        assert!(took < Duration::from_millis(10), "{took:?}");
        sleep(Duration::from_secs(10)).await;
        assert_eq!(s.world.writes("v1.g"), ["True Passed"], "the hanging probe's end means nothing");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn services_and_slices_are_checked_as_they_come_and_go() {
    with(|s| async move {
        s.world.put(Watched::ApiServices, api_service("g", SERVICE));
        let soon = |reason: &'static str| {
            let s = s.clone();
            async move {
                let took = s.until(|s| s.world.available("v1.g").1 == reason).await;
                assert!(took < Duration::from_millis(10), "{reason} after {took:?}");
            }
        };
        soon("ServiceNotFound").await;
        s.world
            .put(Watched::Services, service(r#""clusterIP":"10.0.0.9","ports":[{"name":"p","port":443}]"#));
        soon("EndpointsNotFound").await;
        s.world.put(Watched::EndpointSlices, slice(r#""ports":[{"name":"p","port":1}],"endpoints":[]"#));
        soon("MissingEndpoints").await;
        let ready = r#""ports":[{"name":"p","port":1}],"endpoints":[{"addresses":["10.1.1.1"]}]"#;
        s.world.put(Watched::EndpointSlices, slice(ready));
        soon("Passed").await;
        s.world.remove(Watched::Services, "ns", "svc");
        soon("ServiceNotFound").await;
        s.world.put(Watched::ApiServices, api_service("g", ""));
        soon("Local").await;
        assert_eq!(s.world.writes("v1.g").len(), 6);
        s.world.remove(Watched::ApiServices, "", "v1.g");
        s.until(|s| s.gauge("v1.g").is_none()).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_service_event_with_one_referrer_makes_exactly_one_write() {
    with(|s| async move {
        s.world.put(Watched::ApiServices, api_service("g", SERVICE));
        s.world
            .put(Watched::ApiServices, api_service("other", r#"{"namespace":"ns","name":"x","port":443}"#));
        s.until(|s| !s.world.writes("v1.g").is_empty() && !s.world.writes("v1.other").is_empty()).await;
        s.world.put(Watched::Services, service(r#""clusterIP":"10.0.0.9","ports":[{"port":443}]"#));
        sleep(Duration::from_secs(100)).await;
        assert_eq!(s.world.writes("v1.g"), ["False ServiceNotFound", "False EndpointsNotFound"]);
        assert_eq!(s.world.writes("v1.other"), ["False ServiceNotFound"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_checked_and_written_again() {
    with(|s| async move {
        s.world.conflict(3);
        s.register("g");
        s.until(|s| s.world.available("v1.g").0).await;
        assert_eq!(s.world.writes("v1.g"), ["True Passed"]);
        assert_eq!(s.controller.unwritten(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_a_facade_reaches_is_available_as_long_as_it_reports_so() {
    with(|s| async move {
        s.backends.set("v1.g", None);
        s.register("g");
        s.until(|s| s.world.available("v1.g").1 == "FailedDiscoveryCheck").await;
        s.controller.hint("edge", "v1.g", None, "");
        s.until(|s| s.world.available("v1.g").0).await;
        assert_eq!(s.reached_by("v1.g"), [("control".to_owned(), false), ("edge".to_owned(), true)]);
        s.controller.forget_facade("edge");
        let took = s.until(|s| !s.world.available("v1.g").0).await;
        assert!(took < Duration::from_millis(10), "{took:?}");
        s.controller.hint("edge", "v1.g", None, "");
        s.until(|s| s.world.available("v1.g").0).await;
        let took = s.until(|s| !s.world.available("v1.g").0).await;
        assert!(took >= HINT_AGE && took <= HINT_AGE + PERIOD, "{took:?}");
        assert_eq!(
            s.reached_by("v1.g"),
            [("control".to_owned(), false)],
            "what is too old is not shown either"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_a_facade_reached_with_other_trust_counts_no_more() {
    with(|s| async move {
        s.backends.set("v1.g", None);
        s.register_with("g", r#","insecureSkipTLSVerify":true"#);
        s.until(|s| s.world.available("v1.g").1 == "FailedDiscoveryCheck").await;
        s.controller.hint("edge", "v1.g", None, "");
        s.until(|s| s.world.available("v1.g").0).await;
        s.register("g");
        let took = s.until(|s| !s.world.available("v1.g").0).await;
        assert!(took < HINT_AGE / 4, "{took:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn addresses_that_are_gone_are_not_shown_as_not_reached() {
    with(|s| async move {
        s.backends.set("v1.g", None);
        s.register("g");
        s.until(|s| s.world.available("v1.g").1 == "FailedDiscoveryCheck").await;
        s.controller.hint("edge", "v1.g", Some(ProbeStage::Tls), "no TLS with 10.0.0.1:443");
        assert_eq!(s.reached_by("v1.g"), [("control".to_owned(), false), ("edge".to_owned(), false)]);
        s.move_to("g", "y");
        s.until(|s| s.reached_by("v1.g").len() == 1).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_facade_that_fails_makes_us_look_at_once() {
    with(|s| async move {
        s.register("g");
        s.until(|s| s.world.available("v1.g").0).await;
        s.backends.set("v1.g", Some(500));
        sleep(Duration::from_secs(2)).await;
        s.controller.hint("edge", "v1.g", Some(ProbeStage::Dial), "connection refused");
        let took = s.until(|s| !s.world.available("v1.g").0).await;
        assert!(took < Duration::from_millis(10), "{took:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_written_slowly_and_then_all_at_once_and_delays_nothing_urgent() {
    with(|s| async move {
        for i in 0..3000 {
            s.world.put(Watched::ApiServices, api_service(&format!("g{i}"), SERVICE));
            if i % 100 == 0 {
                sleep(Duration::from_millis(12)).await;
            }
        }
        let total = |s: &Setup| s.world.writes.lock().len();
        assert!(total(&s) < 1000, "{} were written during the flood", total(&s));
        s.register("live");
        let took = s.until(|s| s.world.available("v1.live").0).await;
        assert!(took < Duration::from_millis(10) && total(&s) < 1000, "{took:?}");
        let took = s.until(|s| total(s) == 3001).await;
        assert!(took < Duration::from_secs(1), "{took:?}");
    })
    .await;
}

/// Exchanges reports between two control services of one store every second.
async fn exchange(a: &Setup, b: &Setup, seconds: usize) {
    let mut of_b = PeerReport::default();
    for _ in 0..seconds {
        let of_a = a.controller.exchange("a", [("b".to_owned(), of_b)].into());
        of_b = b.controller.exchange("b", [("a".to_owned(), of_a)].into());
        sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_one_of_two_control_services_reaches_is_available_and_seldom_written() {
    with(|a| async move {
        let b = setup_in(a.world.clone());
        exchange(&a, &b, 1).await;
        b.backends.set("v1.g", Some(503));
        a.register("g");
        exchange(&a, &b, 300).await;
        assert!(a.world.available("v1.g").0);
        let writes = a.world.writes("v1.g").len();
        assert!(writes <= 3, "{writes} writes");

        a.backends.set("v1.g", Some(500));
        exchange(&a, &b, 300).await;
        let (available, _, message) = a.world.available("v1.g");
        assert!(!available && message.ends_with("500"), "{message}");
        let more = a.world.writes("v1.g").len() - writes;
        assert!(more <= 2, "{more} writes: each sees another error");

        b.backends.set("v1.g", Some(200));
        exchange(&a, &b, 60).await;
        assert!(a.world.available("v1.g").0);
        assert!(a.world.writes("v1.g").len() <= writes + more + 1);
        // The other control service stops: its reports no longer apply.
        b.tasks.cancel();
        a.controller.exchange("a", [].into());
        a.until(|a| !a.world.available("v1.g").0).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_one_of_two_control_services_sees_is_confirmed_by_the_other_at_once() {
    with(|a| async move {
        let b = setup_in(a.world.clone());
        a.register("g");
        exchange(&a, &b, 5).await;
        assert!(a.world.available("v1.g").0);
        [&*a, &b].iter().for_each(|s| s.backends.set("v1.g", Some(503)));
        a.controller.hint("edge", "v1.g", Some(ProbeStage::Dial), "connection refused");
        exchange(&a, &b, 10).await;
        assert!(!a.world.available("v1.g").0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_control_service_that_is_left_alone_waits_for_no_objections() {
    with(|a| async move {
        let b = setup_in(a.world.clone());
        a.register("g");
        exchange(&a, &b, 2).await;
        b.tasks.cancel();
        for _ in 0..6 {
            a.controller.exchange("a", [].into());
            sleep(Duration::from_secs(1)).await;
        }
        a.backends.set("v1.g", Some(503));
        a.controller.hint("edge", "v1.g", Some(ProbeStage::Dial), "connection refused");
        let took = a.until(|a| !a.world.available("v1.g").0).await;
        assert!(took < Duration::from_millis(10), "{took:?}");
    })
    .await;
}
