//! A flood of slow requests by one user over 64 connections, and its effect on another user of the same priority level, also on
//! kube-apiserver; and the cost of queueing for a request that does not wait.
//!
//! The backend responds after 40 to 60 ms, so that seats, not processors, are the bottleneck.

use std::time::Duration;

use http::{HeaderValue, Method, Request};

use super::proxy::{register, start_kube};
use crate::backend::{Backend, SLOW};
use crate::https::Endpoint;
use crate::kube::SKIP_REASON;
use crate::load::{Load, drive, get};
use crate::portico::Portico;
use crate::process::Process;
use crate::report::{Goal, Report, note};
use crate::statistics::{median, median_of, median_ratio};
use crate::{BenchContext, Failure};

const NAME: &str = "fairness";
/// Connections of the flood.
const CLIENTS: usize = 64;
/// Connections of the other user.
const FEW: usize = 4;
/// Maximum p99 of the other user during the flood, relative to that without a flood.
const P99_OF_ALONE: f64 = 1.2;
/// Maximum cost of the queues per request, in microseconds of processor time.
const OVERHEAD: f64 = 2.0;
const FLOOD: &str = "flood";
const OTHER: &str = "other";
const GROUP: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const NOT_QUEUED: &str = "--enable-priority-and-fairness=false";

/// A server, and the loads of the other user, by round.
struct Contender<'a> {
    name: &'static str,
    endpoint: Endpoint,
    process: &'a Process,
    alone: Vec<Load>,
    flooded: Vec<Load>,
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let backend = Backend::start(setting.certificates.backend_tls(&[])?).await?;
    let portico = Portico::start(setting).await?;
    let path = format!("{}{SLOW}", register(setting, &portico, &backend).await?.path());
    let kube = start_kube(setting, &backend).await?;
    let mut all = vec![Contender::new("portico", portico.endpoint(setting)?, &portico.process)];
    match &kube {
        Some(kube) => all.push(Contender::new("kube-apiserver", kube.endpoint(setting)?, &kube.server)),
        None => report.skip("the same on kube-apiserver", SKIP_REASON),
    }
    for contender in &all {
        prepare(&contender.endpoint).await?;
    }
    for round in 1..=setting.options.rounds {
        for contender in &mut all {
            contender.round(setting, &path, round).await?;
        }
    }
    for contender in &all {
        contender.add_to(report);
    }
    overhead(setting, &portico, report).await
}

impl<'a> Contender<'a> {
    fn new(name: &'static str, endpoint: Endpoint, process: &'a Process) -> Self {
        Self { name, endpoint, process, alone: Vec::new(), flooded: Vec::new() }
    }

    async fn round(&mut self, setting: &BenchContext, path: &str, round: usize) -> Result<(), Failure> {
        let time = Duration::from_secs(setting.options.seconds);
        let alone = as_user(&self.endpoint, path, OTHER, FEW, time).await?.require_success(self.name)?;
        let before = self.process.processor_time()?;
        // The flood starts earlier and ends later than the other user's load.
        let flood = as_user(&self.endpoint, path, FLOOD, CLIENTS, time + Duration::from_secs(1));
        let (flood, flooded) = tokio::join!(flood, as_user(&self.endpoint, path, OTHER, FEW, time));
        let (flood, flooded) = (flood?, flooded?.require_success(self.name)?);
        let spent = (self.process.processor_time()? - before).as_secs_f64();
        note(&format!(
            "round {round}: {:<15} alone p99 {:>6.0} us, flooded p99 {:>6.0} us; flood {:>5.0}/s, {} rejected, processor {spent:.2} s",
            self.name,
            alone.p99(),
            flooded.p99(),
            flood.per_second,
            flood.errors,
        ));
        self.alone.push(alone);
        self.flooded.push(flooded);
        Ok(())
    }

    fn add_to(&self, report: &mut Report) {
        let goal = if self.name == "portico" { Goal::AtMost(P99_OF_ALONE) } else { Goal::None };
        report.add(
            NAME,
            format!("{}, p99 alone", self.name),
            median_of(&self.alone, Load::p99),
            "us",
            Goal::None,
        );
        let flooded = median_of(&self.flooded, Load::p99);
        report.add(NAME, format!("{}, p99 during a flood", self.name), flooded, "us", Goal::None);
        let ratio = median_ratio(&self.flooded, &self.alone, Load::p99);
        report.add(NAME, format!("{}, p99 during a flood, of p99 alone", self.name), ratio, "x", goal);
    }
}

/// Sends GETs as a user that the admin impersonates.
async fn as_user(
    endpoint: &Endpoint,
    path: &str,
    user: &'static str,
    connections: usize,
    time: Duration,
) -> Result<Load, Failure> {
    let mut request: Request<_> = endpoint.get(path)?;
    request.headers_mut().insert("impersonate-user", HeaderValue::from_static(user));
    drive(endpoint, connections, time, move |_, _| Ok(request.clone())).await
}

/// Creates a priority level of about 20 seats whose queues hold the flood, for both users, and
/// permission to read from the backend.
async fn prepare(endpoint: &Endpoint) -> Result<(), Failure> {
    let mut client = endpoint.client().await?;
    let queuing = r#"{"queues":64,"handSize":6,"queueLengthLimit":50}"#;
    let level = format!(
        r#"{{"metadata":{{"name":"fairness"}},"spec":{{"type":"Limited","limited":{{"nominalConcurrencyShares":8,
        "borrowingLimitPercent":0,"limitResponse":{{"type":"Queue","queuing":{queuing}}}}}}}}}"#
    );
    client.send_ok(Method::POST, &format!("{GROUP}/prioritylevelconfigurations"), level).await?;
    let subject = |user| format!(r#"{{"kind":"User","user":{{"name":"{user}"}}}}"#);
    let subjects = format!("{},{}", subject(FLOOD), subject(OTHER));
    let schema = format!(
        r#"{{"metadata":{{"name":"fairness"}},"spec":{{"priorityLevelConfiguration":{{"name":"fairness"}},
        "matchingPrecedence":50,"distinguisherMethod":{{"type":"ByUser"}},"rules":[{{"subjects":[{subjects}],
        "resourceRules":[{{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"namespaces":["*"],"clusterScope":true}}]}}]}}}}"#
    );
    client.send_ok(Method::POST, &format!("{GROUP}/flowschemas"), schema).await?;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = r#"{"metadata":{"name":"fairness"},"rules":[{"verbs":["get","list"],"apiGroups":["bench.example.com"],"resources":["*"]}]}"#;
    client.send_ok(Method::POST, &format!("{rbac}/clusterroles"), role.to_owned()).await?;
    let subject =
        |user| format!(r#"{{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"{user}"}}"#);
    let binding = format!(
        r#"{{"metadata":{{"name":"fairness"}},"subjects":[{},{}],
        "roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"fairness"}}}}"#,
        subject(FLOOD),
        subject(OTHER)
    );
    client.send_ok(Method::POST, &format!("{rbac}/clusterrolebindings"), binding).await?;
    Ok(())
}

/// Measures the processor time of a request that does not wait, alternating between servers with and without queues.
async fn overhead(setting: &BenchContext, queued: &Portico, report: &mut Report) -> Result<(), Failure> {
    let plain = Portico::with(setting, &[NOT_QUEUED]).await?;
    let time = Duration::from_secs(setting.options.seconds);
    let (mut costs, path) = ([Vec::new(), Vec::new()], "/api/v1/namespaces/default");
    for _ in 0..setting.options.rounds {
        for (costs, portico) in costs.iter_mut().zip([queued, &plain]) {
            let before = portico.process.processor_time()?;
            let load =
                get(&portico.endpoint(setting)?, path, CLIENTS / 2, time).await?.require_success(NAME)?;
            costs.push(
                (portico.process.processor_time()? - before).as_secs_f64() * 1e6 / load.response_count(),
            );
        }
    }
    let [with, without] = costs.map(|costs| median(&costs));
    report.add(NAME, "processor time of a GET, without queues", without, "us", Goal::None);
    report.add(NAME, "processor time that queues add to a GET", with - without, "us", Goal::AtMost(OVERHEAD));
    Ok(())
}
