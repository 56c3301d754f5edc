//! Cost of the handler chain for a GET: a cached token, RBAC over thousands of bindings, priority and fairness, and an audit
//! event of level Metadata in a file, compared with the same server without them, and with kube-apiserver. Also measures the
//! parts that can be called separately: a decision by RBAC, and a lookup of a cached token.

mod parts;

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{Method, Request};
use http_body_util::Full;
use serde::Deserialize;

use crate::certificates::trust_all_tls;
use crate::https::Endpoint;
use crate::kube::{Kube, SKIP_REASON};
use crate::load::{Load, drive};
use crate::portico::Portico;
use crate::process::Process;
use crate::report::{Goal, Report, note};
use crate::statistics::{median, median_of};
use crate::{BenchContext, Failure};

const NAME: &str = "chain";
/// Maximum time that the chain may add to a GET, in microseconds.
const MAX_ADDED: f64 = 40.0;
pub(super) const BINDINGS: usize = 2_000;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";
const ALLOW_ALL: &str = "AlwaysAllow";
const WITHOUT: &[&str] = &["--enable-priority-and-fairness=false"];

/// Two servers of one kind: without the chain, and with it.
struct Contender<'a> {
    name: &'static str,
    servers: [(&'a Process, Endpoint, Request<Full<Bytes>>); 2],
    loads: [Vec<Load>; 2],
    spent: [Vec<f64>; 2],
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    parts::measure(report).await?;
    let (policy, log) = audit_flags(setting)?;
    let plain = Portico::with(setting, &["--authorization-mode", ALLOW_ALL, WITHOUT[0]]).await?;
    let whole = Portico::with(setting, &[&policy, &log]).await?;
    let servers = [(&plain.process, plain.endpoint(setting)?), (&whole.process, whole.endpoint(setting)?)];
    let mut all = vec![Contender::prepare("portico", servers).await?];
    let (policy, log) = audit_flags(setting)?;
    let kubes = (
        Kube::with(setting, ALLOW_ALL, WITHOUT).await?,
        Kube::with(setting, "RBAC", &[&policy, &log]).await?,
    );
    match &kubes {
        (Some(plain), Some(whole)) => {
            let servers =
                [(&plain.server, plain.endpoint(setting)?), (&whole.server, whole.endpoint(setting)?)];
            all.push(Contender::prepare("kube-apiserver", servers).await?);
        }
        _ => report.skip("the same on kube-apiserver", SKIP_REASON),
    }
    for round in 1..=setting.options.rounds {
        for contender in &mut all {
            contender.round(Duration::from_secs(setting.options.seconds), round).await?;
        }
    }
    all.iter().for_each(|contender| contender.add_to(report));
    Ok(())
}

/// Writes an audit policy to a new folder; returns the flags for the policy and the log.
fn audit_flags(setting: &BenchContext) -> Result<(String, String), Failure> {
    let folder = setting.new_folder("audit-")?;
    let policy = folder.join("policy.yaml");
    std::fs::write(&policy, POLICY)?;
    let log = folder.join("audit.log");
    Ok((format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", log.display())))
}

impl<'a> Contender<'a> {
    /// Creates a service account with permission to read, among thousands of other bindings.
    async fn prepare(name: &'static str, servers: [(&'a Process, Endpoint); 2]) -> Result<Self, Failure> {
        let [plain, whole] = servers;
        let servers = [prepare_server(plain).await?, prepare_server(whole).await?];
        Ok(Self { name, servers, loads: Default::default(), spent: Default::default() })
    }

    async fn round(&mut self, time: Duration, round: usize) -> Result<(), Failure> {
        for ((process, endpoint, request), (loads, spent)) in
            self.servers.iter().zip(self.loads.iter_mut().zip(&mut self.spent))
        {
            let (before, request) = (process.processor_time()?, request.clone());
            let load = drive(endpoint, 1, time, move |_, _| Ok(request.clone()))
                .await?
                .require_success(self.name)?;
            spent.push((process.processor_time()? - before).as_secs_f64() * 1e6 / load.response_count());
            loads.push(load);
        }
        let [plain, whole] = &self.loads;
        let last = |loads: &[Load]| loads.last().map_or(0.0, Load::p50);
        note(&format!(
            "round {round}: {:<15} {:>5.0} us plain, {:>5.0} us with the chain",
            self.name,
            last(plain),
            last(whole)
        ));
        Ok(())
    }

    fn add_to(&self, report: &mut Report) {
        let goal = if self.name == "portico" { Goal::AtMost(MAX_ADDED) } else { Goal::None };
        let [plain, whole] = &self.loads;
        let (before, after) = (median_of(plain, Load::p50), median_of(whole, Load::p50));
        report.add(NAME, format!("{}: a GET without the chain, p50", self.name), before, "us", Goal::None);
        report.add(NAME, format!("{}: the chain adds at p50", self.name), after - before, "us", goal);
        let [before, after] = [&self.spent[0], &self.spent[1]].map(|spent| median(spent));
        report.add(
            NAME,
            format!("{}: processor time without the chain", self.name),
            before,
            "us",
            Goal::None,
        );
        report.add(
            NAME,
            format!("{}: the chain adds in processor time", self.name),
            after - before,
            "us",
            Goal::None,
        );
    }
}

/// Creates the bindings; returns the server and a GET of a service account that one of them allows.
async fn prepare_server(
    (process, endpoint): (&Process, Endpoint),
) -> Result<(&Process, Endpoint, Request<Full<Bytes>>), Failure> {
    let mut client = endpoint.client().await?;
    let role = r#"{"metadata":{"name":"chain"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["configmaps"]}]}"#;
    client.send_ok(Method::POST, &format!("{RBAC}/clusterroles"), role.to_owned()).await?;
    // A kube-apiserver without controllers creates neither in a namespace.
    let named = r#"{"metadata":{"name":"chain"}}"#;
    client.send_ok(Method::POST, MAPS, named.to_owned()).await?;
    client.send_ok(Method::POST, ACCOUNTS, named.to_owned()).await?;
    for at in 0..BINDINGS {
        let subject = if at == BINDINGS / 2 {
            r#"{"kind":"ServiceAccount","namespace":"default","name":"chain"}"#.to_owned()
        } else {
            format!(r#"{{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"user-{at}"}}"#)
        };
        let binding = format!(
            r#"{{"metadata":{{"name":"chain-{at}"}},"subjects":[{subject}],"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"chain"}}}}"#
        );
        client.send_ok(Method::POST, &format!("{RBAC}/clusterrolebindings"), binding).await?;
    }
    let (status, body) =
        client.send(Method::POST, &format!("{ACCOUNTS}/chain/token"), r#"{"spec":{}}"#).await?;
    if !status.is_success() {
        return Err(format!("no token: {status}").into());
    }
    let issued: Issued = serde_json::from_slice(&body)?;
    // Without the administrator's certificate, which would take precedence.
    let endpoint = Endpoint { tls: trust_all_tls(), ..endpoint };
    let mut request = endpoint.get(&format!("{MAPS}/chain"))?;
    let bearer = HeaderValue::from_str(&format!("Bearer {}", issued.status.token))?;
    request.headers_mut().insert(AUTHORIZATION, bearer);
    Ok((process, endpoint, request))
}

#[derive(Deserialize)]
struct Issued {
    status: IssuedStatus,
}

#[derive(Deserialize)]
struct IssuedStatus {
    token: String,
}
