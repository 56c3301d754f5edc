//! The campaign: random requests to this server and to a real kube-apiserver, whose answers must be the same.
//!
//! Requests are made of recorded objects: changed at random places, by rules of thumb (nothing, too much, the wrong type, the
//! edge of a number), by values that the same field has elsewhere, and by fields that the kind's schema has and the object has
//! not. What differs is made as small as it can be, and kept as steps that a recording can hold. CONTRIBUTING.md says how to
//! run it.

mod audit;
mod case;
mod corpus;
mod custom;
mod documents;
mod further;
mod mutate;
mod protobuf;
mod reference;
mod schemas;
mod side;
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
use crate::normalise;
use crate::step::Step;
use audit::Trail;
use case::{Case, Maker};
use corpus::Corpus;
use reference::Reference;
use schemas::Schemas;
use side::Side;

/// How many differences of one kind are made small and kept.
const KEPT_ALIKE: usize = 1;
/// Every so manieth case is looked up in the audit logs, too.
const RECORDED: usize = 8;
/// After so many cases the progress is reported.
const SAID: usize = 250;

/// The settings of a campaign, from its environment.
struct Settings {
    requests: usize,
    seed: u64,
    /// Whether the documents and the tables of all recorded objects are read first.
    sweeps: bool,
    /// Where what differs is written, as lines of a recording.
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

/// Both servers, and how much was asked of them.
struct Campaign<'a> {
    ours: Side<'a>,
    theirs: Side<'a>,
    /// Their audit logs.
    trails: (Trail, Trail),
    requests: usize,
    /// Differences that are alike, and how many there are.
    alike: BTreeMap<String, usize>,
}

/// The first step that is answered differently.
struct Difference {
    at: usize,
    text: String,
}

impl Campaign<'_> {
    /// Asks both.
    async fn ask(&mut self, step: &Step, name: &str) -> (Value, Value) {
        self.requests += 1;
        tokio::join!(self.ours.answer(step, name), self.theirs.answer(step, name))
    }

    /// Plays a case under a name of its own, and compares.
    async fn compare(&mut self, case: &Case, name: &str) -> Option<Difference> {
        self.compare_steps(&case.steps(name), name).await
    }

    async fn compare_steps(&mut self, steps: &[Step], name: &str) -> Option<Difference> {
        let mut difference = None;
        for (at, step) in steps.iter().enumerate() {
            let (ours, theirs) = self.ask(step, name).await;
            if difference.is_none() && ours != theirs {
                difference = Some(Difference { at, text: normalise::difference(&theirs, &ours) });
            }
        }
        difference
    }

    /// Plays a case that is recorded by both, and compares the records, too.
    async fn compare_recorded(&mut self, case: &Case, name: &str) -> Option<Difference> {
        let mut steps = case.steps(name);
        let identifiers = audit::identified(&mut steps, name);
        let found = self.compare_steps(&steps, name).await;
        let (ours, theirs) = &mut self.trails;
        let recorded = audit::difference(ours, theirs, &identifiers, name);
        // Who answers otherwise records something else.
        if found.is_none()
            && let Some(text) = recorded
            && self.is_new(format!("audit {}", audit_likeness(case, &text)))
        {
            note(&format!("audit of {}:\n{text}\n", case.about()));
        }
        found
    }

    /// Whether a difference is unlike all before it, or there are few like it.
    fn is_new(&mut self, likeness: String) -> bool {
        let count = self.alike.entry(likeness).or_default();
        *count += 1;
        *count <= KEPT_ALIKE
    }

    /// Compares what both say of themselves.
    async fn read_documents(&mut self) {
        for step in documents::steps(&mut self.theirs).await {
            let (ours, theirs) = self.ask(&step, "").await;
            let (ours, theirs) = (documents::compared(ours), documents::compared(theirs));
            if ours != theirs && self.is_new(step.target.clone() + step.accept.as_deref().unwrap_or_default())
            {
                let accept = step.accept.as_deref().unwrap_or_default();
                let text = normalise::difference(&theirs, &ours);
                note(&format!("{} {accept} {:?}:\n{text}\n", step.target, step.headers));
            }
        }
    }

    /// A case that is answered differently: made small, shown and kept, unless there are others like it.
    async fn keep(&mut self, case: Case, found: Difference, name: &str, seed: u64, out: Option<&PathBuf>) {
        if !self.is_new(likeness(&case, &found)) {
            return;
        }
        let (case, found) = self.shrink(case, found, name).await;
        report(&case, &found, seed);
        if let Some(out) = out {
            let steps = self.record(&case, found.at, &format!("{name}-kept")).await;
            keep(out, &steps);
        }
    }

    /// Leaves away what the difference does not need.
    async fn shrink(&mut self, mut case: Case, mut found: Difference, name: &str) -> (Case, Difference) {
        let mut tries = 0;
        'smaller: loop {
            for less in case.smaller() {
                tries += 1;
                if let Some(difference) = self.compare(&less, &format!("{name}-{tries}")).await {
                    (case, found) = (less, difference);
                    continue 'smaller;
                }
            }
            return (case, found);
        }
    }

    /// The steps up to the one that differs, with what kube-apiserver answers.
    async fn record(&mut self, case: &Case, at: usize, name: &str) -> Vec<Step> {
        let mut steps = case.steps(name);
        for step in &mut steps {
            step.answer = self.theirs.answer(step, name).await;
        }
        steps.truncate(at + 1);
        steps
    }
}

/// What differences that are alike share: the sentences of both messages without what they quote; without messages the kind,
/// the request and the first line.
fn likeness(case: &Case, difference: &Difference) -> String {
    let message = |sign: &str| {
        let lines = difference.text.lines().map(str::trim_start);
        let line =
            lines.filter(|line| line.starts_with(sign)).find_map(|line| line.split("\"message\": ").nth(1));
        line.map(sentence)
    };
    if let (Some(theirs), Some(ours)) = (message("-"), message("+")) {
        return format!("{} {theirs} / {ours}", case.way());
    }
    let mut line = difference.text.lines().find(|line| line.contains('+')).unwrap_or_default().to_owned();
    if let Some(end) = line.find(':') {
        line.truncate(end);
    }
    format!("{} {} {line}", case.about(), difference.at)
}

/// What differences of audit events share: the kind and the first line that differs.
fn audit_likeness(case: &Case, text: &str) -> String {
    let mut line =
        text.lines().find(|line| line.trim_start().starts_with(['+', '-'])).unwrap_or_default().to_owned();
    if let Some(end) = line.find(':') {
        line.truncate(end);
    }
    format!("{} {line}", case.way())
}

/// A message without what stands in quotes, in brackets, and without names of fields.
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
    let (launch, folder) = Launch::new().prepared();
    let fixture = Fixture::at(&folder.join("fixture"));
    let flags = fixture.flags();
    let (their_trail_flags, their_trail) = Trail::begin(&folder, "theirs");
    let (our_trail_flags, our_trail) = Trail::begin(&folder, "ours");
    let (theirs, ours) = (flags.iter().chain(&their_trail_flags), flags.iter().chain(&our_trail_flags));
    let (theirs, ours): (Vec<&str>, Vec<&str>) =
        (theirs.map(String::as_str).collect(), ours.map(String::as_str).collect());
    let portico = launch.args(&ours).arg("--controllers=").start().await;
    let reference = Reference::start(&folder, &theirs).await;
    let mut theirs = Side::new(&fixture, reference.address, &reference.ca).await;
    let mut ours = Side::new(&fixture, portico.https(), portico.ca()).await;
    let (schemas, corpus) = (Schemas::read(&mut theirs).await, Corpus::read());
    for side in [&mut ours, &mut theirs] {
        side.prepare().await;
    }
    let trails = (our_trail, their_trail);
    let mut campaign = Campaign { ours, theirs, trails, requests: 0, alike: BTreeMap::new() };
    let out = settings.out.as_ref();
    let mut cases = 0;
    if settings.sweeps {
        campaign.read_documents().await;
        for base in corpus.bases.iter().flatten() {
            cases += 1;
            let (case, name) = (Case::of_table(base), format!("table{cases}s"));
            if let Some(found) = campaign.compare(&case, &name).await {
                campaign.keep(case, found, &name, 0, out).await;
            }
        }
        note(&format!("{} requests for documents and tables", campaign.requests));
    }
    let mut random = StdRng::seed_from_u64(settings.seed);
    while campaign.requests < settings.requests {
        cases += 1;
        let seed = random.random();
        let case = Maker { corpus: &corpus, schemas: &schemas }.case(&mut StdRng::seed_from_u64(seed));
        let name = format!("case{cases}s");
        let found = if cases % RECORDED == 0 {
            campaign.compare_recorded(&case, &name).await
        } else {
            campaign.compare(&case, &name).await
        };
        if let Some(found) = found {
            campaign.keep(case, found, &name, seed, out).await;
        }
        if cases % SAID == 0 {
            note(&format!("{} requests, {} unlike", campaign.requests, campaign.alike.len()));
        }
    }
    let alike = campaign.alike;
    let all: usize = alike.values().sum();
    note(&format!(
        "{} requests, {cases} cases, seed {}: {all} differ, {} unlike each other",
        campaign.requests,
        settings.seed,
        alike.len()
    ));
    assert!(alike.is_empty(), "what differs is shown above");
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

/// Says something while the campaign goes on.
fn note(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// Adds steps to a file as a recording has them.
fn keep(out: &PathBuf, steps: &[Step]) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(out).unwrap();
    for step in steps {
        writeln!(file, "{}", serde_json::to_string(step).unwrap()).unwrap();
    }
}
