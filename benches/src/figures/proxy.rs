//! Proxied GETs of 1 KiB over TLS on both sides, compared with an equally configured nginx, and with the backend without a proxy.

use std::time::Duration;

use http::Method;

use super::objects::MAX_BASELINE_RATIO;
use crate::backend::Backend;
use crate::certificates::BACKEND_NAME;
use crate::https::Endpoint;
use crate::kube::{Kube, SKIP_REASON};
use crate::load::{Load, get};
use crate::nginx::Nginx;
use crate::portico::Portico;
use crate::process::{Process, wait_until};
use crate::registrations::{self, Registration, create, wait_available};
use crate::report::{Goal, Report, note};
use crate::statistics::{median, median_of, median_ratio};
use crate::{BenchContext, Failure};

const NAME: &str = "proxy";
/// Connections of the loads.
pub(crate) const CLIENTS: usize = 32;
const OF_NGINX: f64 = 0.9;
const P99_OF_NGINX: f64 = 1.25;
const ADDED_MICROS: f64 = 40.0;
const OF_KUBE: f64 = 6.0;

/// A compared target of requests, and its measurements by round.
struct Contender<'a> {
    name: &'static str,
    endpoint: Endpoint,
    process: Option<&'a Process>,
    loads: Vec<Load>,
    single_loads: Vec<Load>,
    /// Processor time per request of `loads` in microseconds.
    cost: Vec<f64>,
}

impl<'a> Contender<'a> {
    fn new(name: &'static str, endpoint: Endpoint, process: Option<&'a Process>) -> Self {
        Self { name, endpoint, process, loads: Vec::new(), single_loads: Vec::new(), cost: Vec::new() }
    }

    fn processor_time(&self) -> Result<Duration, Failure> {
        self.process.map_or(Ok(Duration::ZERO), Process::processor_time)
    }

    fn per_second(&self) -> f64 {
        median_of(&self.loads, |load| load.per_second)
    }

    fn p99(&self) -> f64 {
        median_of(&self.loads, Load::p99)
    }

    fn single_p50(&self) -> f64 {
        median_of(&self.single_loads, Load::p50)
    }
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let backend = Backend::start(setting.certificates.backend_tls(&[])?).await?;
    let portico = Portico::start(setting).await?;
    let registration = register(setting, &portico, &backend).await?;
    let baseline = Portico::baseline(setting).await?;
    if let Some(baseline) = &baseline {
        register(setting, baseline, &backend).await?;
    }
    let nginx = Nginx::start(setting, backend.address).await?;
    let kube = start_kube(setting, &backend).await?;

    let mut all = vec![Contender::new("portico", portico.endpoint(setting)?, Some(&portico.process))];
    if let Some(baseline) = &baseline {
        all.push(Contender::new("baseline", baseline.endpoint(setting)?, Some(&baseline.process)));
    }
    match &nginx {
        Some(nginx) => all.push(Contender::new("nginx", nginx.endpoint(setting)?, Some(&nginx.process))),
        None => report.skip("nginx", "not on the PATH"),
    }
    match &kube {
        Some(kube) => all.push(Contender::new("kube-apiserver", kube.endpoint(setting)?, Some(&kube.server))),
        None => report.skip("proxying of kube-apiserver", SKIP_REASON),
    }
    let tls = direct_client_tls(setting)?;
    all.push(Contender::new(
        "no proxy",
        Endpoint { address: backend.address, name: BACKEND_NAME, tls },
        None,
    ));

    rounds(setting, &registration.path(), &mut all).await?;
    report_contenders(report, &all);
    report.add(NAME, "portico, resident after the load", portico.process.resident()?, "MiB", Goal::None);
    Ok(())
}

/// Registers the backend and waits until requests reach it.
pub(crate) async fn register(
    setting: &BenchContext,
    portico: &Portico,
    backend: &Backend,
) -> Result<Registration, Failure> {
    let control = portico.control()?;
    let ca = setting.certificates.ca_pem();
    let registration = Registration::for_url("bench.example.com".to_owned(), backend.url(), ca);
    create(std::slice::from_ref(&control), 1, vec![registration.clone()]).await?;
    wait_available(&control, 1).await?;
    Ok(registration)
}

/// Returns TLS settings for direct requests. The backend requires a certificate of the authority; the admin's is one.
fn direct_client_tls(setting: &BenchContext) -> Result<std::sync::Arc<rustls::ClientConfig>, Failure> {
    setting.certificates.client_tls()
}

/// Starts kube-apiserver with the same backend registered.
pub(super) async fn start_kube(setting: &BenchContext, backend: &Backend) -> Result<Option<Kube>, Failure> {
    let Some(kube) = Kube::start(setting).await? else { return Ok(None) };
    let mut client = kube.endpoint(setting)?.client().await?;
    kube.create_service(&mut client, backend.address).await?;
    let body =
        registrations::json("bench.example.com", setting.certificates.ca_pem(), backend.address.port(), None);
    client.send_ok(Method::POST, "/apis/apiregistration.k8s.io/v1/apiservices", body).await?;
    wait_until("kube-apiserver proxies requests to the backend", async || {
        Ok(client.get("/apis/bench.example.com/v1").await?.is_success().then_some(()))
    })
    .await?;
    Ok(Some(kube))
}

async fn rounds(setting: &BenchContext, path: &str, all: &mut [Contender<'_>]) -> Result<(), Failure> {
    let time = Duration::from_secs(setting.options.seconds);
    for round in 1..=setting.options.rounds {
        for contender in all.iter_mut() {
            let before = contender.processor_time()?;
            let many =
                get(&contender.endpoint, path, CLIENTS, time).await?.require_success(contender.name)?;
            let cost = (contender.processor_time()? - before).as_secs_f64() * 1e6 / many.response_count();
            let one = get(&contender.endpoint, path, 1, time / 2).await?.require_success(contender.name)?;
            note(&format!(
                "round {round}: {:<14} {:>8.0}/s p50 {:>6.0} us p99 {:>6.0} us, {cost:>4.1} us each; one client p50 {:>5.0} us",
                contender.name,
                many.per_second,
                many.p50(),
                many.p99(),
                one.p50()
            ));
            contender.loads.push(many);
            contender.single_loads.push(one);
            contender.cost.push(cost);
        }
    }
    Ok(())
}

fn report_contenders(report: &mut Report, all: &[Contender<'_>]) {
    for contender in all {
        let name = contender.name;
        report.add(NAME, format!("{name}, 32 clients"), contender.per_second(), "/s", Goal::None);
        report.add(
            NAME,
            format!("{name}, 32 clients, p50"),
            median_of(&contender.loads, Load::p50),
            "us",
            Goal::None,
        );
        report.add(NAME, format!("{name}, 32 clients, p99"), contender.p99(), "us", Goal::None);
        report.add(NAME, format!("{name}, one client, p50"), contender.single_p50(), "us", Goal::None);
    }
    for contender in all.iter().filter(|contender| contender.process.is_some()) {
        let what = format!("{}, processor time of a request", contender.name);
        report.add(NAME, what, median(&contender.cost), "us", Goal::None);
    }
    let find = |name: &str| all.iter().find(|contender| contender.name == name);
    let (Some(portico), Some(direct)) = (find("portico"), find("no proxy")) else { return };
    if let Some(nginx) = find("nginx") {
        let ratio = median_ratio(&portico.loads, &nginx.loads, |load| load.per_second);
        report.add(NAME, "requests per second, of nginx's", ratio, "x", Goal::AtLeast(OF_NGINX));
        let ratio = median_ratio(&portico.loads, &nginx.loads, Load::p99);
        report.add(NAME, "p99, of nginx's", ratio, "x", Goal::AtMost(P99_OF_NGINX));
        let (added, allowed) =
            (portico.single_p50(), nginx.single_p50() - direct.single_p50() + ADDED_MICROS);
        let goal = Goal::AtMost(allowed);
        report.add(
            NAME,
            "latency added at one client (nginx's + 40)",
            added - direct.single_p50(),
            "us",
            goal,
        );
    }
    if let Some(baseline) = find("baseline") {
        let (now, before) = (median(&portico.cost), median(&baseline.cost));
        let goal = Goal::AtMost(MAX_BASELINE_RATIO);
        report.add(NAME, "processor time of a request, of the baseline's", now / before, "x", goal);
    }
    if let Some(kube) = find("kube-apiserver") {
        let ratio = median_ratio(&portico.loads, &kube.loads, |load| load.per_second);
        report.add(NAME, "requests per second, of kube-apiserver's", ratio, "x", Goal::AtLeast(OF_KUBE));
    }
}
