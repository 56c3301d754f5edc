//! The campaign: random requests to this server and to a real kube-apiserver, whose answers must be the same.
//!
//! Requests are made of recorded objects: changed at random places, by rules of thumb (nothing, too much, the wrong type, the
//! edge of a number), by values that the same field has elsewhere, and by fields that the kind's schema has and the object has
//! not. What differs is made as small as it can be, and kept as steps that a recording can hold. CONTRIBUTING.md says how to
//! run it.

mod case;
mod corpus;
mod custom;
mod further;
mod mutate;
mod reference;
mod schemas;
mod side;
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
use case::{Case, Maker};
use corpus::Corpus;
use reference::Reference;
use schemas::Schemas;
use side::Side;

/// How many differences of one kind are made small and kept.
const KEPT_ALIKE: usize = 1;

/// What a campaign is told by its environment.
struct Settings {
    requests: usize,
    seed: u64,
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
            out: std::env::var_os("PORTICO_CAMPAIGN_OUT").map(PathBuf::from),
        }
    }
}

/// Both servers, and how much was asked of them.
struct Campaign<'a> {
    ours: Side<'a>,
    theirs: Side<'a>,
    requests: usize,
}

/// The first step that is answered differently.
struct Difference {
    at: usize,
    text: String,
}

impl Campaign<'_> {
    /// Plays a case under a name of its own, and compares.
    async fn compare(&mut self, case: &Case, name: &str) -> Option<Difference> {
        let mut difference = None;
        for (at, step) in case.steps(name).iter().enumerate() {
            self.requests += 1;
            let (ours, theirs) = tokio::join!(self.ours.answer(step, name), self.theirs.answer(step, name));
            if difference.is_none() && ours != theirs {
                difference = Some(Difference { at, text: normalise::difference(&theirs, &ours) });
            }
        }
        difference
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
    let said = |sign: &str| {
        let lines = difference.text.lines().map(str::trim_start);
        let line =
            lines.filter(|line| line.starts_with(sign)).find_map(|line| line.split("\"message\": ").nth(1));
        line.map(sentence)
    };
    if let (Some(theirs), Some(ours)) = (said("-"), said("+")) {
        return format!("{} {theirs} / {ours}", case.way());
    }
    let mut line = difference.text.lines().find(|line| line.contains('+')).unwrap_or_default().to_owned();
    if let Some(end) = line.find(':') {
        line.truncate(end);
    }
    format!("{} {} {line}", case.about(), difference.at)
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
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let portico = launch.args(&flags).arg("--controllers=").start().await;
    let reference = Reference::start(&folder, &flags).await;
    let mut theirs = Side::new(&fixture, reference.address, &reference.ca).await;
    let mut ours = Side::new(&fixture, portico.https(), portico.ca()).await;
    let (schemas, corpus) = (Schemas::read(&mut theirs).await, Corpus::read());
    for side in [&mut ours, &mut theirs] {
        side.prepare().await;
    }
    let mut campaign = Campaign { ours, theirs, requests: 0 };
    let mut random = StdRng::seed_from_u64(settings.seed);
    let (mut alike, mut cases): (BTreeMap<String, usize>, usize) = (BTreeMap::new(), 0);
    while campaign.requests < settings.requests {
        cases += 1;
        let seed = random.random();
        let case = Maker { corpus: &corpus, schemas: &schemas }.case(&mut StdRng::seed_from_u64(seed));
        let name = format!("case{cases}s");
        let Some(found) = campaign.compare(&case, &name).await else { continue };
        let count = alike.entry(likeness(&case, &found)).or_default();
        *count += 1;
        if *count > KEPT_ALIKE {
            continue;
        }
        let (case, found) = campaign.shrink(case, found, &name).await;
        report(&case, &found, seed);
        if let Some(out) = &settings.out {
            let steps = campaign.record(&case, found.at, &format!("{name}-kept")).await;
            keep(out, &steps);
        }
    }
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
