//! Explain: stages of the reachability of a group version, with their observers.
//!
//! Data of other modules (probes, reports of facades, acknowledged versions) is provided by [`ExplainSource`].

use portico_machinery::GroupVersion;
use portico_machinery::route::{Availability, Backend, ResolveError};
use portico_registry::{FailingWebhook, VersionStatus};

use crate::Index;
use crate::compiler::{Compiled, Shadow};
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
    pub seen_by: Vec<String>,
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
pub struct Reached {
    /// Observer: `control`, or the name of a facade.
    pub seen_by: String,
    /// Stage of the failure; `None` if the backend responded.
    pub failed_at: Option<ReachStage>,
    /// Human-readable message.
    pub message: String,
    /// Time of the observation in RFC 3339.
    pub since: String,
}

/// Report of a facade about requests to the mirror of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
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
pub struct Ack {
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
pub trait Evidence {
    /// Last observations of the backend of this APIService.
    fn reached(&self, name: &str) -> Vec<Reached>;
    /// Acknowledgements of the connected facades for this APIService.
    fn acks(&self, name: &str) -> Vec<Ack>;
    /// Reports of facades about the mirror of its backend.
    fn mirrored(&self, _: &str) -> Vec<Mirrored> {
        Vec::new()
    }
    /// Statuses of this version in the definitions that have it; empty if there are none.
    fn definitions(&self, _: &GroupVersion) -> Vec<VersionStatus> {
        Vec::new()
    }
    /// Failures of the conversion webhooks of its custom resources; empty if there are none.
    fn conversions(&self, _: &GroupVersion) -> Vec<FailingWebhook> {
        Vec::new()
    }
    /// Manifest of the APIService and objects that wait for it; `None` if it is not from a folder.
    fn manifest(&self, _: &str) -> Option<Manifest> {
        None
    }
}

/// Source without observations.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvidence;

impl Evidence for NoEvidence {
    fn reached(&self, _: &str) -> Vec<Reached> {
        Vec::new()
    }

    fn acks(&self, _: &str) -> Vec<Ack> {
        Vec::new()
    }
}

/// Parses a path, `group/version`, or the name of an APIService.
#[must_use]
pub fn group_version_of(asked: &str) -> Option<GroupVersion> {
    let asked = asked.split(['?', '#']).next().unwrap_or_default();
    if let Some(path) = asked.strip_prefix('/') {
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
    match asked.split_once('/') {
        Some((group, version)) if !group.is_empty() && !version.is_empty() && !version.contains('/') => {
            Some(GroupVersion::new(group, version))
        }
        Some(_) => None,
        None if asked == "v1" => Some(GroupVersion::new("", "v1")),
        None => asked.split_once('.').map(|(version, group)| GroupVersion::new(group, version)),
    }
}

pub(crate) fn explain(
    index: &Index,
    table: &Table,
    asked: &str,
    revision: i64,
    evidence: &dyn Evidence,
) -> Vec<Stage> {
    let Some(group_version) = group_version_of(asked) else {
        return vec![failed("registered", "NotAGroupVersion", format!("{asked:?} is not a group version"))];
    };
    let name = group_version.api_service_name();
    let compiled = table.get(&name);
    let definitions = evidence.definitions(&group_version);
    // A backend takes precedence over definitions.
    if !definitions.is_empty() && compiled.is_none_or(|compiled| compiled.route.backend.is_none()) {
        return by_definition(compiled, &name, definitions, evidence.conversions(&group_version));
    }
    let manifest = evidence.manifest(&name);
    let Some(compiled) = compiled else {
        let message =
            format!("APIService {name:?} does not exist, and this server does not serve {group_version}");
        let unapplied = manifest.and_then(|Manifest { from, error, .. }| {
            Some(failed("manifest", "NotApplied", format!("{from}: {}", error?)))
        });
        return unapplied.into_iter().chain([failed("registered", "NotFound", message)]).collect();
    };
    let mut stages: Vec<Stage> = manifest.map(from_folder).into_iter().collect();
    stages.push(registered(index, compiled));
    if let Some(backend) = &compiled.route.backend {
        stages.push(resolved(backend));
        let policy = backend.policy.to_string();
        stages.extend((!policy.is_empty()).then(|| passed("policy", "Configured", policy)));
        stages.extend(backend.policy.mirror.as_ref().and_then(|_| mirrored(evidence.mirrored(&name))));
        stages.extend(connected(backend, &evidence.reached(&name)));
    }
    stages.push(available(&compiled.route.available));
    stages.push(published(compiled, revision));
    stages.push(acknowledged(compiled, &evidence.acks(&name)));
    stages.extend(conversions(evidence.conversions(&group_version)));
    stages
}

/// Stages of a group version that definitions serve. Facades query definitions on demand, so the route table
/// does not contain them.
fn by_definition(
    compiled: Option<&Compiled>,
    name: &str,
    definitions: Vec<VersionStatus>,
    failing_webhooks: Vec<FailingWebhook>,
) -> Vec<Stage> {
    let served = definitions.iter().any(|version| version.serves);
    let mut stages = vec![match (compiled, served) {
        (Some(_), true) => {
            passed("registered", "Registered", "served by this server for definitions".to_owned())
        }
        (None, true) => {
            let message = format!("served by this server; APIService {name:?} does not exist");
            passed("registered", "Registered", message)
        }
        (_, false) => failed(
            "registered",
            "NotServed",
            "no CustomResourceDefinition serves the group version".to_owned(),
        ),
    }];
    stages.extend(definitions.into_iter().map(defined));
    stages.extend(compiled.filter(|_| served).map(|compiled| available(&compiled.route.available)));
    stages.extend(conversions(failing_webhooks));
    stages
}

fn defined(version: VersionStatus) -> Stage {
    let VersionStatus { definition, serves, reason, message, since } = version;
    let stage = passed("defined", &reason, format!("{definition}: {message}"));
    Stage { ok: serves, since, ..stage }
}

/// Stage of a manifest. Passes even if the current manifest is not applied, as the existing objects remain reachable.
fn from_folder(Manifest { from, error, objects }: Manifest) -> Stage {
    match (error, objects) {
        (Some(error), _) => passed("manifest", "ChangeNotApplied", format!("{from}: {error}")),
        (None, Some(objects)) if from.is_empty() => passed("manifest", "ObjectsNotApplied", objects),
        (None, Some(objects)) => passed("manifest", "ObjectsNotApplied", format!("{from}; {objects}")),
        (None, None) => passed("manifest", "Applied", from),
    }
}

fn registered(index: &Index, compiled: &Compiled) -> Stage {
    let name = &compiled.route.name;
    let message = match (index.api_service(name), &compiled.route.backend, compiled.shadow) {
        (_, _, Some(shadow)) => shadow.message().to_owned(),
        (None, ..) => format!("served by this server; APIService {name:?} does not exist"),
        (Some(_), None, _) => "served by this server".to_owned(),
        (Some(_), Some(backend), _) => {
            format!("proxied to service {}/{}", backend.service.namespace, backend.service.name)
        }
    };
    let hidden = matches!(compiled.shadow, Some(Shadow::ReservedGroup | Shadow::NothingServes));
    let reason = if hidden { "Shadowed" } else { "Registered" };
    Stage { ok: !hidden, ..passed("registered", reason, message) }
}

fn resolved(backend: &Backend) -> Stage {
    match &backend.resolve_error {
        Some(ResolveError { reason, message }) => failed("resolved", reason, message.clone()),
        None => {
            let targets: Vec<_> = backend.targets.iter().map(ToString::to_string).collect();
            passed("resolved", "Resolved", targets.join(", "))
        }
    }
}

/// Stages of a connection; empty without an address, because earlier observations are of another address.
fn connected(backend: &Backend, observations: &[Reached]) -> Vec<Stage> {
    if backend.resolve_error.is_some() { Vec::new() } else { reached(observations) }
}

/// Stages that any observer reached: the observers that passed a stage, or the failures if none passed. A backend that one
/// observer reaches counts as reached.
fn reached(observations: &[Reached]) -> Vec<Stage> {
    let mut stages = Vec::new();
    for stage in ReachStage::ALL {
        let (failures, rest): (Vec<_>, Vec<_>) =
            observations.iter().partition(|o| o.failed_at == Some(stage));
        let passed: Vec<_> = rest.into_iter().filter(|o| o.failed_at.is_none_or(|at| at > stage)).collect();
        let (ok, deciding) = if passed.is_empty() { (false, &failures) } else { (true, &passed) };
        let Some(last) = deciding.iter().max_by(|a, b| a.since.cmp(&b.since)) else { break };
        let mut messages: Vec<_> = failures.iter().map(|o| format!("{}: {}", o.seen_by, o.message)).collect();
        messages.dedup();
        stages.push(Stage {
            stage: stage.name(),
            ok,
            reason: if ok { "Passed" } else { "Failed" }.to_owned(),
            message: messages.join("; "),
            since: last.since.clone(),
            seen_by: deciding.iter().map(|o| o.seen_by.clone()).collect(),
        });
        if !ok {
            break;
        }
    }
    stages
}

/// Stage of a mirror. Always passes, because failures of a mirror do not affect requests.
fn mirrored(seen: Vec<Mirrored>) -> Option<Stage> {
    let fails = seen.iter().any(|one| one.failed > 0 || one.dropped > 0);
    let words = |Mirrored { facade, sent, dropped, failed, failure }: &Mirrored| {
        let why = if failure.is_empty() { String::new() } else { format!(" ({failure})") };
        format!("{facade}: {sent} sent, {dropped} dropped, {failed} failed{why}")
    };
    let message = seen.iter().map(words).collect::<Vec<_>>().join("; ");
    let stage = passed("mirror", if fails { "Incomplete" } else { "Sent" }, message);
    let seen_by = seen.into_iter().map(|one| one.facade).collect::<Vec<_>>();
    (!seen_by.is_empty()).then_some(Stage { seen_by, ..stage })
}

fn available(available: &Availability) -> Stage {
    let reason = if available.reason.is_empty() { "Unknown" } else { &available.reason };
    let stage = passed("available", reason, available.message.clone());
    Stage { ok: available.ok, since: available.since.clone(), ..stage }
}

fn published(compiled: &Compiled, revision: i64) -> Stage {
    let message = format!("at revision {}; the table is at {revision}", compiled.route.revision);
    if compiled.is_published() {
        passed("published", "Published", message)
    } else {
        failed("published", "NotPublished", "the APIService is shadowed".to_owned())
    }
}

fn acknowledged(compiled: &Compiled, acks: &[Ack]) -> Stage {
    if acks.is_empty() {
        return passed("acknowledged", "NotReported", "no facade has reported yet".to_owned());
    }
    let has = |ack: &&Ack| ack.revision >= compiled.route.revision && ack.refused.is_none();
    let (done, others): (Vec<_>, Vec<_>) = acks.iter().partition(has);
    let reported = |ack: &&Ack| match &ack.refused {
        Some(why) => format!("{} refused the route: {why}", ack.facade),
        None => format!("{} is at revision {}", ack.facade, ack.revision),
    };
    let message = others.iter().map(reported).collect::<Vec<_>>().join("; ");
    let reason = if others.is_empty() { "Acknowledged" } else { "Pending" };
    let seen_by = done.iter().map(|ack| ack.facade.clone()).collect();
    Stage { ok: others.is_empty(), seen_by, ..passed("acknowledged", reason, message) }
}

/// One failed stage for each resource with a failing conversion webhook. Other resources of the version are served.
fn conversions(failing_webhooks: Vec<FailingWebhook>) -> impl Iterator<Item = Stage> {
    failing_webhooks.into_iter().map(|failing| {
        let message = format!("{}: {}", failing.definition, failing.message);
        Stage { since: failing.since, ..failed("conversion", "ConversionWebhookFailing", message) }
    })
}

fn passed(stage: &'static str, reason: &str, message: String) -> Stage {
    let seen_by = vec!["control".to_owned()];
    Stage { stage, ok: true, reason: reason.to_owned(), message, since: String::new(), seen_by }
}

fn failed(stage: &'static str, reason: &str, message: String) -> Stage {
    Stage { ok: false, ..passed(stage, reason, message) }
}

#[cfg(test)]
mod tests;
