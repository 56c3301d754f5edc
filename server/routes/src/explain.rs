//! Explain: stages of the reachability of a group version, with their observers.
//!
//! Data of other modules (probes, reports of facades, acknowledged versions) is provided by [`ExplainSource`].

use portico_machinery::GroupVersion;
use portico_machinery::route::{Availability, Backend, ResolveError};
use portico_registry::{FailingWebhook, VersionStatus};

use crate::RouteIndex;
use crate::compiler::{CompiledRoute, Shadow};
use crate::table::Table;

/// Stage between a request and its backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Name: `manifest`, `registered`, `defined`, `resolved`, `policy`, `mirror`, `dial`, `tls`, `http`, `available`,
    /// `published`, `acknowledged` or `conversion`.
    pub stage: &'static str,
    /// True if the stage passed.
    pub ok: bool,
    /// Reason in one word, such as that of a condition; empty if there is none.
    pub reason: String,
    /// Human-readable message.
    pub message: String,
    /// Time since which the result is the same in RFC 3339, if known.
    pub since: String,
    /// Observers: `control`, or names of facades.
    pub observers: Vec<String>,
}

/// Stage of a connection to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReachStage {
    /// Dial, including name resolution.
    Dial,
    /// TLS handshake.
    Tls,
    /// HTTP response.
    Http,
}

impl ReachStage {
    const ALL: [Self; 3] = [Self::Dial, Self::Tls, Self::Http];

    fn name(self) -> &'static str {
        match self {
            Self::Dial => "dial",
            Self::Tls => "tls",
            Self::Http => "http",
        }
    }
}

/// Last observation of a backend by one observer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachObservation {
    /// Observer: `control`, or the name of a facade.
    pub observer: String,
    /// Stage of the failure; `None` if the backend responded.
    pub failed_at: Option<ReachStage>,
    /// Human-readable message.
    pub message: String,
    /// Time of the observation in RFC 3339.
    pub since: String,
}

/// Report of a facade about requests to the mirror of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorReport {
    /// Name of the facade.
    pub facade: String,
    /// Copies with a response.
    pub sent: u64,
    /// Copies that were not sent.
    pub dropped: u64,
    /// Copies without a response.
    pub failed: u64,
    /// Reason of the last failure.
    pub failure: String,
}

/// Acknowledgement of a facade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FacadeAck {
    /// Name of the facade.
    pub facade: String,
    /// Acknowledged version.
    pub revision: i64,
    /// Reason for which the facade refused this route, if it did.
    pub refused: Option<String>,
}

/// Source of an APIService in a manifests folder, and state of the folder's objects for the server behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// File and document; empty if the APIService is not from the folder.
    pub from: String,
    /// Reason for which the current manifest is not applied, if it is not.
    pub error: Option<String>,
    /// Description of the folder's objects that are not applied to the server, if any.
    pub objects: Option<String>,
}

/// Source of observations by other modules.
pub trait ExplainSource {
    /// Last observations of the backend of this APIService.
    fn observations(&self, name: &str) -> Vec<ReachObservation>;
    /// Acknowledgements of the connected facades for this APIService.
    fn acks(&self, name: &str) -> Vec<FacadeAck>;
    /// Reports of facades about the mirror of its backend.
    fn mirror_reports(&self, _: &str) -> Vec<MirrorReport> {
        Vec::new()
    }
    /// Statuses of this version in the definitions that have it; empty if there are none.
    fn definitions(&self, _: &GroupVersion) -> Vec<VersionStatus> {
        Vec::new()
    }
    /// Failures of the conversion webhooks of its custom resources; empty if there are none.
    fn failing_conversion_webhooks(&self, _: &GroupVersion) -> Vec<FailingWebhook> {
        Vec::new()
    }
    /// Manifest of the APIService and objects that wait for it; `None` if it is not from a folder.
    fn manifest(&self, _: &str) -> Option<Manifest> {
        None
    }
}

/// Source without observations.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoExplainSource;

impl ExplainSource for NoExplainSource {
    fn observations(&self, _: &str) -> Vec<ReachObservation> {
        Vec::new()
    }

    fn acks(&self, _: &str) -> Vec<FacadeAck> {
        Vec::new()
    }
}

/// Parses a path, `group/version`, or the name of an APIService.
#[must_use]
pub fn parse_group_version(query: &str) -> Option<GroupVersion> {
    let path_or_name = query.split(['?', '#']).next().unwrap_or_default();
    if let Some(path) = path_or_name.strip_prefix('/') {
        let mut segments = path.split('/');
        return match (segments.next(), segments.next(), segments.next()) {
            (Some("api"), version, _) => {
                Some(GroupVersion::new("", version.filter(|v| !v.is_empty()).unwrap_or("v1")))
            }
            (Some("apis"), Some(group), Some(version)) if !group.is_empty() && !version.is_empty() => {
                Some(GroupVersion::new(group, version))
            }
            _ => None,
        };
    }
    match path_or_name.split_once('/') {
        Some((group, version)) if !group.is_empty() && !version.is_empty() && !version.contains('/') => {
            Some(GroupVersion::new(group, version))
        }
        Some(_) => None,
        None if path_or_name == "v1" => Some(GroupVersion::new("", "v1")),
        None => path_or_name.split_once('.').map(|(version, group)| GroupVersion::new(group, version)),
    }
}

pub(crate) fn explain(
    index: &RouteIndex,
    table: &Table,
    query: &str,
    revision: i64,
    source: &dyn ExplainSource,
) -> Vec<Stage> {
    let Some(group_version) = parse_group_version(query) else {
        return vec![failed_stage(
            "registered",
            "NotAGroupVersion",
            format!("{query:?} is not a group version"),
        )];
    };
    let name = group_version.api_service_name();
    let compiled = table.get(&name);
    let definitions = source.definitions(&group_version);
    // A backend takes precedence over definitions.
    if !definitions.is_empty() && compiled.is_none_or(|compiled| compiled.route.backend.is_none()) {
        return definition_stages(
            compiled,
            &name,
            definitions,
            source.failing_conversion_webhooks(&group_version),
        );
    }
    let manifest = source.manifest(&name);
    let Some(compiled) = compiled else {
        let message =
            format!("APIService {name:?} does not exist, and this server does not serve {group_version}");
        let manifest_failure = manifest.and_then(|Manifest { from, error, .. }| {
            Some(failed_stage("manifest", "NotApplied", format!("{from}: {}", error?)))
        });
        return manifest_failure
            .into_iter()
            .chain([failed_stage("registered", "NotFound", message)])
            .collect();
    };
    let mut stages: Vec<Stage> = manifest.map(manifest_stage).into_iter().collect();
    stages.push(registered_stage(index, compiled));
    if let Some(backend) = &compiled.route.backend {
        stages.push(resolved_stage(backend));
        let policy = backend.policy.to_string();
        stages.extend((!policy.is_empty()).then(|| passed_stage("policy", "Configured", policy)));
        stages
            .extend(backend.policy.mirror.as_ref().and_then(|_| mirror_stage(source.mirror_reports(&name))));
        stages.extend(connection_stages(backend, &source.observations(&name)));
    }
    stages.push(available_stage(&compiled.route.available));
    stages.push(published_stage(compiled, revision));
    stages.push(acknowledged_stage(compiled, &source.acks(&name)));
    stages.extend(conversion_stages(source.failing_conversion_webhooks(&group_version)));
    stages
}

/// Stages of a group version that definitions serve. Facades query definitions on demand, so the route table
/// does not contain them.
fn definition_stages(
    compiled: Option<&CompiledRoute>,
    name: &str,
    definitions: Vec<VersionStatus>,
    failing_webhooks: Vec<FailingWebhook>,
) -> Vec<Stage> {
    let is_served = definitions.iter().any(|version| version.is_served);
    let mut stages = vec![match (compiled, is_served) {
        (Some(_), true) => {
            passed_stage("registered", "Registered", "served by this server for definitions".to_owned())
        }
        (None, true) => {
            let message = format!("served by this server; APIService {name:?} does not exist");
            passed_stage("registered", "Registered", message)
        }
        (_, false) => failed_stage(
            "registered",
            "NotServed",
            "no CustomResourceDefinition serves the group version".to_owned(),
        ),
    }];
    stages.extend(definitions.into_iter().map(definition_stage));
    stages.extend(compiled.filter(|_| is_served).map(|compiled| available_stage(&compiled.route.available)));
    stages.extend(conversion_stages(failing_webhooks));
    stages
}

fn definition_stage(version: VersionStatus) -> Stage {
    let VersionStatus { definition, is_served, reason, message, since } = version;
    let stage = passed_stage("defined", &reason, format!("{definition}: {message}"));
    Stage { ok: is_served, since, ..stage }
}

/// Stage of a manifest. Passes even if the current manifest is not applied, as the existing objects remain reachable.
fn manifest_stage(Manifest { from, error, objects }: Manifest) -> Stage {
    match (error, objects) {
        (Some(error), _) => passed_stage("manifest", "ChangeNotApplied", format!("{from}: {error}")),
        (None, Some(objects)) if from.is_empty() => passed_stage("manifest", "ObjectsNotApplied", objects),
        (None, Some(objects)) => passed_stage("manifest", "ObjectsNotApplied", format!("{from}; {objects}")),
        (None, None) => passed_stage("manifest", "Applied", from),
    }
}

fn registered_stage(index: &RouteIndex, compiled: &CompiledRoute) -> Stage {
    let name = &compiled.route.name;
    let message = match (index.api_service(name), &compiled.route.backend, compiled.shadow) {
        (_, _, Some(shadow)) => shadow.message().to_owned(),
        (None, ..) => format!("served by this server; APIService {name:?} does not exist"),
        (Some(_), None, _) => "served by this server".to_owned(),
        (Some(_), Some(backend), _) => {
            format!("proxied to service {}/{}", backend.service.namespace, backend.service.name)
        }
    };
    let hidden = matches!(compiled.shadow, Some(Shadow::ReservedGroup | Shadow::NotServed));
    let reason = if hidden { "Shadowed" } else { "Registered" };
    Stage { ok: !hidden, ..passed_stage("registered", reason, message) }
}

fn resolved_stage(backend: &Backend) -> Stage {
    match &backend.resolve_error {
        Some(ResolveError { reason, message }) => failed_stage("resolved", reason, message.clone()),
        None => {
            let targets: Vec<_> = backend.targets.iter().map(ToString::to_string).collect();
            passed_stage("resolved", "Resolved", targets.join(", "))
        }
    }
}

/// Stages of a connection; empty without an address, because earlier observations are of another address.
fn connection_stages(backend: &Backend, observations: &[ReachObservation]) -> Vec<Stage> {
    if backend.resolve_error.is_some() { Vec::new() } else { observed_stages(observations) }
}

/// Stages that any observer reached: the observers that passed a stage, or the failures if none passed. A backend that one
/// observer reaches counts as reached.
fn observed_stages(observations: &[ReachObservation]) -> Vec<Stage> {
    let mut stages = Vec::new();
    for stage in ReachStage::ALL {
        let (failures, rest): (Vec<_>, Vec<_>) =
            observations.iter().partition(|o| o.failed_at == Some(stage));
        let passed: Vec<_> = rest.into_iter().filter(|o| o.failed_at.is_none_or(|at| at > stage)).collect();
        let (ok, deciding) = if passed.is_empty() { (false, &failures) } else { (true, &passed) };
        let Some(last) = deciding.iter().max_by(|a, b| a.since.cmp(&b.since)) else { break };
        let mut messages: Vec<_> =
            failures.iter().map(|o| format!("{}: {}", o.observer, o.message)).collect();
        messages.dedup();
        stages.push(Stage {
            stage: stage.name(),
            ok,
            reason: if ok { "Passed" } else { "Failed" }.to_owned(),
            message: messages.join("; "),
            since: last.since.clone(),
            observers: deciding.iter().map(|o| o.observer.clone()).collect(),
        });
        if !ok {
            break;
        }
    }
    stages
}

/// Stage of a mirror. Always passes, because failures of a mirror do not affect requests.
fn mirror_stage(reports: Vec<MirrorReport>) -> Option<Stage> {
    let is_incomplete = reports.iter().any(|report| report.failed > 0 || report.dropped > 0);
    let describe = |MirrorReport { facade, sent, dropped, failed, failure }: &MirrorReport| {
        let reason = if failure.is_empty() { String::new() } else { format!(" ({failure})") };
        format!("{facade}: {sent} sent, {dropped} dropped, {failed} failed{reason}")
    };
    let message = reports.iter().map(describe).collect::<Vec<_>>().join("; ");
    let stage = passed_stage("mirror", if is_incomplete { "Incomplete" } else { "Sent" }, message);
    let observers = reports.into_iter().map(|report| report.facade).collect::<Vec<_>>();
    (!observers.is_empty()).then_some(Stage { observers, ..stage })
}

fn available_stage(available: &Availability) -> Stage {
    let reason = if available.reason.is_empty() { "Unknown" } else { &available.reason };
    let stage = passed_stage("available", reason, available.message.clone());
    Stage { ok: available.ok, since: available.since.clone(), ..stage }
}

fn published_stage(compiled: &CompiledRoute, revision: i64) -> Stage {
    let message = format!("at revision {}; the table is at {revision}", compiled.route.revision);
    if compiled.is_published() {
        passed_stage("published", "Published", message)
    } else {
        failed_stage("published", "NotPublished", "the APIService is shadowed".to_owned())
    }
}

fn acknowledged_stage(compiled: &CompiledRoute, acks: &[FacadeAck]) -> Stage {
    if acks.is_empty() {
        return passed_stage("acknowledged", "NotReported", "no facade has reported yet".to_owned());
    }
    let has_current = |ack: &&FacadeAck| ack.revision >= compiled.route.revision && ack.refused.is_none();
    let (acknowledged, pending): (Vec<_>, Vec<_>) = acks.iter().partition(has_current);
    let describe = |ack: &&FacadeAck| match &ack.refused {
        Some(reason) => format!("{} refused the route: {reason}", ack.facade),
        None => format!("{} is at revision {}", ack.facade, ack.revision),
    };
    let message = pending.iter().map(describe).collect::<Vec<_>>().join("; ");
    let reason = if pending.is_empty() { "Acknowledged" } else { "Pending" };
    let observers = acknowledged.iter().map(|ack| ack.facade.clone()).collect();
    Stage { ok: pending.is_empty(), observers, ..passed_stage("acknowledged", reason, message) }
}

/// One failed stage for each resource with a failing conversion webhook. Other resources of the version are served.
fn conversion_stages(failing_webhooks: Vec<FailingWebhook>) -> impl Iterator<Item = Stage> {
    failing_webhooks.into_iter().map(|failing| {
        let message = format!("{}: {}", failing.definition, failing.message);
        Stage { since: failing.since, ..failed_stage("conversion", "ConversionWebhookFailing", message) }
    })
}

fn passed_stage(stage: &'static str, reason: &str, message: String) -> Stage {
    let observers = vec!["control".to_owned()];
    Stage { stage, ok: true, reason: reason.to_owned(), message, since: String::new(), observers }
}

fn failed_stage(stage: &'static str, reason: &str, message: String) -> Stage {
    Stage { ok: false, ..passed_stage(stage, reason, message) }
}

#[cfg(test)]
mod tests;
