//! The campaign: random requests to this server and to a real kube-apiserver, whose responses must be equal.
//!
//! Requests contain recorded objects with random changes: typical errors (empty, too long, wrong type, limits
//! of numbers), values of the same field in other objects, and fields that the kind's schema has and the object does
//! not. Differences are reduced to few steps, which can be added to a recording. CONTRIBUTING.md describes how to
//! run it.

mod audit;
mod case;
mod compared_server;
mod corpus;
mod custom;
mod documents;
mod further;
mod mutate;
mod protobuf;
mod reference;
mod schemas;
mod wire;
mod words;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use portico_tests::Launch;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use crate::fixture::Fixture;
use crate::normalization;
use crate::step::Step;
use audit::AuditLog;
use case::{Case, CaseGenerator};
use compared_server::ComparedServer;
use corpus::Corpus;
use reference::Reference;
use schemas::Schemas;

/// Maximum number of similar differences that are reduced and saved.
const MAX_SIMILAR: usize = 1;
/// Number of cases for each one whose audit events are compared as well.
const CASES_PER_AUDIT: usize = 8;
/// Number of cases between two progress reports.
const CASES_PER_REPORT: usize = 250;

/// Settings of a campaign, from its environment.
struct Settings {
    requests: usize,
    seed: u64,
    /// True if documents and the tables of all recorded objects are compared first.
    sweeps: bool,
    /// File for the differences, as lines of a recording.
    out: Option<PathBuf>,
}

impl Settings {
    fn read() -> Self {
        let number = |name: &str| {
            let text = std::env::var(name).ok()?;
            Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
        };
        Self {
            requests: usize::try_from(number("PORTICO_CAMPAIGN_REQUESTS").unwrap_or(2_000)).unwrap(),
            seed: number("PORTICO_CAMPAIGN_SEED").unwrap_or(1),
            sweeps: number("PORTICO_CAMPAIGN_SWEEPS") != Some(0),
            out: std::env::var_os("PORTICO_CAMPAIGN_OUT").map(PathBuf::from),
        }
    }
}

/// Both servers, and counts of the requests.
struct Campaign<'a> {
    ours: ComparedServer<'a>,
    theirs: ComparedServer<'a>,
    /// Audit logs of both servers.
    trails: (AuditLog, AuditLog),
    requests: usize,
    /// Number of similar differences, by their description.
    similar: BTreeMap<String, usize>,
}

/// The first step with different responses.
struct Difference {
    at: usize,
    text: String,
}

impl Campaign<'_> {
    /// Sends a step to both servers.
    async fn send(&mut self, step: &Step, name: &str) -> (Value, Value) {
        self.requests += 1;
        tokio::join!(self.ours.response(step, name), self.theirs.response(step, name))
    }

    /// Plays a case under a unique name, and compares the responses.
    async fn compare(&mut self, case: &Case, name: &str) -> Option<Difference> {
        self.compare_steps(&case.steps(name), name).await
    }

    async fn compare_steps(&mut self, steps: &[Step], name: &str) -> Option<Difference> {
        let mut difference = None;
        for (at, step) in steps.iter().enumerate() {
            let (ours, theirs) = self.send(step, name).await;
            if difference.is_none() && ours != theirs {
                difference = Some(Difference { at, text: normalization::difference(&theirs, &ours) });
            }
        }
        difference
    }

    /// Plays a case that both servers audit, and also compares the audit events.
    async fn compare_audited(&mut self, case: &Case, name: &str) -> Option<Difference> {
        let mut steps = case.steps(name);
        let identifiers = audit::set_audit_ids(&mut steps, name);
        let found = self.compare_steps(&steps, name).await;
        let (ours, theirs) = &mut self.trails;
        let recorded = audit::difference(ours, theirs, &identifiers, name);
        // Different responses cause different events.
        if found.is_none()
            && let Some(text) = recorded
            && self.is_new(format!("audit {}", describe_audit(case, &text)))
        {
            note(&format!("audit of {}:\n{text}\n", case.about()));
        }
        found
    }

    /// Returns true if there were few similar differences before.
    fn is_new(&mut self, description: String) -> bool {
        let count = self.similar.entry(description).or_default();
        *count += 1;
        *count <= MAX_SIMILAR
    }

    /// Compares the documents that both servers serve.
    async fn read_documents(&mut self) {
        for step in documents::steps(&mut self.theirs).await {
            let (ours, theirs) = self.send(&step, "").await;
            let (ours, theirs) = (documents::comparable(ours), documents::comparable(theirs));
            if ours != theirs && self.is_new(step.target.clone() + step.accept.as_deref().unwrap_or_default())
            {
                let accept = step.accept.as_deref().unwrap_or_default();
                let text = normalization::difference(&theirs, &ours);
                note(&format!("{} {accept} {:?}:\n{text}\n", step.target, step.headers));
            }
        }
    }

    /// Reduces, reports and saves a case with a difference, unless there are similar ones.
    async fn save(&mut self, case: Case, found: Difference, name: &str, seed: u64, out: Option<&PathBuf>) {
        if !self.is_new(describe(&case, &found)) {
            return;
        }
        let (case, found) = self.shrink(case, found, name).await;
        report(&case, &found, seed);
        if let Some(out) = out {
            let steps = self.record(&case, found.at, &format!("{name}-kept")).await;
            append_steps(out, &steps);
        }
    }

    /// Removes the parts of a case that the difference does not need.
    async fn shrink(&mut self, mut case: Case, mut found: Difference, name: &str) -> (Case, Difference) {
        let mut tries = 0;
        'smaller: loop {
            for less in case.reduced() {
                tries += 1;
                if let Some(difference) = self.compare(&less, &format!("{name}-{tries}")).await {
                    (case, found) = (less, difference);
                    continue 'smaller;
                }
            }
            return (case, found);
        }
    }

    /// Returns the steps up to the one that differs, with the responses of kube-apiserver.
    async fn record(&mut self, case: &Case, at: usize, name: &str) -> Vec<Step> {
        let mut steps = case.steps(name);
        for step in &mut steps {
            step.answer = self.theirs.response(step, name).await;
        }
        steps.truncate(at + 1);
        steps
    }
}

/// Returns a description that similar differences share: the sentences of both messages without quoted text; without messages the
/// kind, the request and the first line.
fn describe(case: &Case, difference: &Difference) -> String {
    let message = |sign: &str| {
        let lines = difference.text.lines().map(str::trim_start);
        let line =
            lines.filter(|line| line.starts_with(sign)).find_map(|line| line.split("\"message\": ").nth(1));
        line.map(sentence)
    };
    if let (Some(theirs), Some(ours)) = (message("-"), message("+")) {
        return format!("{} {theirs} / {ours}", case.write_request());
    }
    let mut line = difference.text.lines().find(|line| line.contains('+')).unwrap_or_default().to_owned();
    if let Some(end) = line.find(':') {
        line.truncate(end);
    }
    format!("{} {} {line}", case.about(), difference.at)
}

/// Returns a description that similar differences of audit events share: the kind and the first line that differs.
fn describe_audit(case: &Case, text: &str) -> String {
    let mut line =
        text.lines().find(|line| line.trim_start().starts_with(['+', '-'])).unwrap_or_default().to_owned();
    if let Some(end) = line.find(':') {
        line.truncate(end);
    }
    format!("{} {line}", case.write_request())
}

/// Returns a message without text in quotes and brackets, and without names of fields.
fn sentence(message: &str) -> String {
    let mut quoted = false;
    let plain = message
        .replace("\\\"", "'")
        .chars()
        .filter(|c| {
            quoted ^= *c == '\'';
            !quoted && !c.is_ascii_digit()
        })
        .collect::<String>();
    let words = plain.split_whitespace().filter(|word| !word.contains(['.', '[', '{', ':']));
    words.take(24).collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a real kube-apiserver; CONTRIBUTING.md says how"]
async fn campaign() {
    let settings = Settings::read();
    let (launch, folder) = Launch::new().prepare_folder();
    let fixture = Fixture::at(&folder.join("fixture"));
    let flags = fixture.flags();
    let (their_trail_flags, their_trail) = AuditLog::create(&folder, "theirs");
    let (our_trail_flags, our_trail) = AuditLog::create(&folder, "ours");
    let (theirs, ours) = (flags.iter().chain(&their_trail_flags), flags.iter().chain(&our_trail_flags));
    let (theirs, ours): (Vec<&str>, Vec<&str>) =
        (theirs.map(String::as_str).collect(), ours.map(String::as_str).collect());
    let portico = launch.args(&ours).arg("--controllers=").start().await;
    let reference = Reference::start(&folder, &theirs).await;
    let mut theirs = ComparedServer::new(&fixture, reference.address, &reference.ca).await;
    let mut ours = ComparedServer::new(&fixture, portico.https(), portico.ca()).await;
    let (schemas, corpus) = (Schemas::read(&mut theirs).await, Corpus::read());
    for side in [&mut ours, &mut theirs] {
        side.prepare().await;
    }
    let trails = (our_trail, their_trail);
    let mut campaign = Campaign { ours, theirs, trails, requests: 0, similar: BTreeMap::new() };
    let out = settings.out.as_ref();
    let mut cases = 0;
    if settings.sweeps {
        campaign.read_documents().await;
        for base in corpus.bases.iter().flatten() {
            cases += 1;
            let (case, name) = (Case::of_table(base), format!("table{cases}s"));
            if let Some(found) = campaign.compare(&case, &name).await {
                campaign.save(case, found, &name, 0, out).await;
            }
        }
        note(&format!("{} requests for documents and tables", campaign.requests));
    }
    let mut random = StdRng::seed_from_u64(settings.seed);
    while campaign.requests < settings.requests {
        cases += 1;
        let seed = random.random();
        let case =
            CaseGenerator { corpus: &corpus, schemas: &schemas }.case(&mut StdRng::seed_from_u64(seed));
        let name = format!("case{cases}s");
        let found = if cases % CASES_PER_AUDIT == 0 {
            campaign.compare_audited(&case, &name).await
        } else {
            campaign.compare(&case, &name).await
        };
        if let Some(found) = found {
            campaign.save(case, found, &name, seed, out).await;
        }
        if cases % CASES_PER_REPORT == 0 {
            note(&format!("{} requests, {} unlike", campaign.requests, campaign.similar.len()));
        }
    }
    let alike = campaign.similar;
    let all: usize = alike.values().sum();
    note(&format!(
        "{} requests, {cases} cases, seed {}: {all} differ, {} unlike each other",
        campaign.requests,
        settings.seed,
        alike.len()
    ));
    assert!(alike.is_empty(), "the differences are printed above");
}

fn report(case: &Case, found: &Difference, seed: u64) {
    let steps = case.steps("NAME");
    let step = &steps[found.at];
    let body = step.body.as_ref().map(Value::to_string).unwrap_or_default();
    note(&format!(
        "{} (seed {seed}):\n  {} {}\n  {body:.2000}\n{}\n",
        case.about(),
        step.method,
        step.target,
        found.text
    ));
}

/// Prints progress.
fn note(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// Appends steps to a file in the format of a recording.
fn append_steps(out: &PathBuf, steps: &[Step]) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(out).unwrap();
    for step in steps {
        writeln!(file, "{}", serde_json::to_string(step).unwrap()).unwrap();
    }
}
