//! Why a group version is reachable or not: one stage after another, each with who saw it.
//!
//! What other modules know (probes, facades' experience, acknowledged versions) comes in through [`Evidence`].

use portico_machinery::GroupVersion;
use portico_machinery::route::{Availability, Backend, ResolveError};
use portico_registry::{FailingWebhook, VersionStatus};

use crate::Index;
use crate::compiler::{Compiled, Shadow};
use crate::table::Table;

/// One stage on the way to a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// `manifest`, `registered`, `defined`, `resolved`, `policy`, `mirror`, `dial`, `tls`, `http`, `available`, `published`, `acknowledged`,
    /// `conversion`.
    pub stage: &'static str,
    /// Whether it holds.
    pub ok: bool,
    /// A condition's reason or another single word; empty when there is none.
    pub reason: String,
    /// For people.
    pub message: String,
    /// RFC 3339 time since when, when that is known.
    pub since: String,
    /// Who reports it: `control`, or facades by name.
    pub seen_by: Vec<String>,
}

/// How far somebody got with a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReachStage {
    /// No connection, the name's resolution included.
    Dial,
    /// No TLS.
    Tls,
    /// TLS, but no acceptable answer.
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

/// One observer's last experience of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// `control`, or the facade's name.
    pub seen_by: String,
    /// Where it failed; nothing when it answered.
    pub failed_at: Option<ReachStage>,
    /// For people.
    pub message: String,
    /// RFC 3339 time of the observation.
    pub since: String,
}

/// What a facade has sent to the mirror of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// The facade's name.
    pub facade: String,
    /// Copies that were answered.
    pub sent: u64,
    /// Copies that were not sent.
    pub dropped: u64,
    /// Copies that got no answer.
    pub failed: u64,
    /// Why the last one got none.
    pub failure: String,
}

/// How far a facade is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The facade's name.
    pub facade: String,
    /// The version that it has acknowledged.
    pub revision: i64,
    /// Why it refused this route, if it did.
    pub refused: Option<String>,
}

/// The manifest of a folder that an APIService comes from, and what the folder has for the server behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// File and document; empty where it comes from nowhere in the folder.
    pub from: String,
    /// Why it is not applied as it is now.
    pub error: Option<String>,
    /// What is not applied of the objects that its server keeps.
    pub objects: Option<String>,
}

/// What other modules know.
pub trait Evidence {
    /// Who reached the backend of this APIService last, and how.
    fn reached(&self, name: &str) -> Vec<Reached>;
    /// How far each connected facade is, as to this APIService.
    fn acks(&self, name: &str) -> Vec<Ack>;
    /// What facades have sent to the mirror of its backend.
    fn mirrored(&self, _: &str) -> Vec<Mirrored> {
        Vec::new()
    }
    /// The statuses of this version in the definitions that have it; nothing where there are none.
    fn definitions(&self, _: &GroupVersion) -> Vec<VersionStatus> {
        Vec::new()
    }
    /// What is wrong with the conversion webhooks of its custom resources; nothing where there are none.
    fn conversions(&self, _: &GroupVersion) -> Vec<FailingWebhook> {
        Vec::new()
    }
    /// Which manifest of a folder the APIService comes from, and what of the folder waits for it; nothing for others.
    fn manifest(&self, _: &str) -> Option<Manifest> {
        None
    }
}

/// Nobody knows anything.
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

/// The group version that a path, `group/version`, or an APIService's name is about.
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
    // A backend that is registered stands before them.
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

/// What definitions serve: facades ask for it when it is wanted, so that it is in no table.
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

/// What is there is reachable, whatever becomes of a later change of its manifest.
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

/// For each stage that somebody reached: who got past it, or, when nobody did, why. A backend that one observer
/// reaches is reached.
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

/// Requests reach the API whatever becomes of their copies.
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

/// One stage for each resource that a broken webhook keeps from being converted; the others of its version are served.
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
