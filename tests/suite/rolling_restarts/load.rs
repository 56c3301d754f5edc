//! Clients that read, list, watch and write through facades, and record every deviation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request};
use http_body_util::Full;
use parking_lot::Mutex;
use portico_kit::lifecycle::Signal;
use portico_tests::http::{FullResponse, Http, JsonLines};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{BalancedClient, wait_until};
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior, interval};

const SELECTOR: &str = "labelSelector=load";
/// Name of the last object, which ends the watches.
const LAST: &str = "last";
/// Interval between two requests of one client.
const REQUEST_INTERVAL: Duration = Duration::from_millis(10);

/// Results of the clients.
pub(crate) struct Report {
    pub(crate) failures: Vec<String>,
    pub(crate) reads: u64,
    pub(crate) written: u64,
    /// Writes with a response of 429 or 503.
    refused: u64,
    /// Watches that ended, and were resumed after their last event.
    watches_ended: u64,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { failures, reads, written, refused, watches_ended } = self;
        let failed = failures.len();
        write!(
            f,
            "{reads} reads, {written} writes, {refused} asked for patience, {watches_ended} watches ended, {failed} failures"
        )
    }
}

/// Clients of a cluster, and their shared state.
pub(crate) struct Load {
    balanced: BalancedClient,
    /// Path of an aggregated API.
    proxied: String,
    stopped: Signal,
    facades_stay: AtomicBool,
    failures: Mutex<Vec<String>>,
    reads: AtomicU64,
    refused: AtomicU64,
    watches_ended: AtomicU64,
    /// Highest acknowledged revision.
    acknowledged: AtomicI64,
    /// Acknowledged writes by revision.
    written: Mutex<BTreeMap<i64, String>>,
}

impl Load {
    pub(crate) fn new(balanced: BalancedClient, proxied: String) -> Self {
        Self {
            balanced,
            proxied,
            stopped: Signal::new("LoadStopped"),
            facades_stay: AtomicBool::new(true),
            failures: Mutex::default(),
            reads: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            watches_ended: AtomicU64::new(0),
            acknowledged: AtomicI64::new(0),
            written: Mutex::default(),
        }
    }

    /// Permits the end of watches from now on, because facades are restarted.
    pub(crate) fn permit_watch_ends(&self) {
        self.facades_stay.store(false, Ordering::Relaxed);
    }

    /// Stops all clients.
    pub(crate) fn stop(&self) {
        self.stopped.signal();
    }

    /// Waits until further requests have succeeded.
    pub(crate) async fn wait_for_progress(&self) {
        let now = || (self.reads.load(Ordering::Relaxed), self.written.lock().len());
        let (reads, written) = now();
        wait_until("the load makes progress", async || now().0 >= reads + 20 && now().1 >= written + 5).await;
    }

    /// Runs all clients until they are stopped.
    pub(crate) async fn run(&self) -> Report {
        let watchers = futures::future::join_all((0..3).map(|_| self.watch()));
        let writers = async {
            self.write().await;
            self.write_until_acknowledged(LAST).await;
        };
        let pinned = self.balanced.clients().iter().enumerate().map(|(at, one)| self.read_any(at, one));
        let pinned = futures::future::join_all(pinned);
        let who_is_ready = self.balanced.check_readiness(&self.stopped);
        let clients = async {
            tokio::join!(watchers, writers, pinned, self.read_latest(), self.list(), self.read_proxied())
        };
        tokio::join!(clients, who_is_ready);
        Report {
            failures: std::mem::take(&mut self.failures.lock()),
            reads: self.reads.load(Ordering::Relaxed),
            written: self.written.lock().len() as u64,
            refused: self.refused.load(Ordering::Relaxed),
            watches_ended: self.watches_ended.load(Ordering::Relaxed),
        }
    }

    fn fail(&self, what: String) {
        self.failures.lock().push(what);
    }

    /// Waits for the next turn of a client; returns false at the end.
    async fn next_turn(&self, pace: &mut Interval) -> bool {
        pace.tick().await;
        !self.stopped.is_signaled()
    }

    /// Returns the JSON of a read, which must not fail.
    fn read(
        &self,
        what: &str,
        answer: Result<FullResponse, portico_tests::http::HttpError>,
    ) -> Option<Value> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        match answer {
            Ok(answer) if answer.status == 200 => return Some(answer.json()),
            Ok(answer) => self.fail(format!("{what}: {} {}", answer.status, answer.text())),
            Err(error) => self.fail(format!("{what}: {error}")),
        }
        None
    }

    /// Writes one object; returns true if the write was acknowledged.
    async fn write_one(&self, name: &str) -> bool {
        let object = json!({"kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": name, "labels": {"load": ""}}});
        match self.balanced.write(Method::POST, CONFIG_MAPS, &object).await {
            Ok(answer) if answer.status == 201 => {
                let revision = version(&answer.json());
                self.written.lock().insert(revision, name.to_owned());
                self.acknowledged.fetch_max(revision, Ordering::AcqRel);
                return true;
            }
            Ok(answer) if matches!(answer.status.as_u16(), 429 | 503) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
            Ok(answer) => self.fail(format!("write {name}: {} {}", answer.status, answer.text())),
            Err(error) => self.fail(format!("write {name}: {error}")),
        }
        false
    }

    async fn write(&self) {
        let mut pace = pace();
        for number in 0.. {
            if !self.next_turn(&mut pace).await {
                return;
            }
            self.write_one(&format!("object-{number}")).await;
        }
    }

    async fn write_until_acknowledged(&self, name: &str) {
        wait_until("the last object is written", async || self.write_one(name).await).await;
    }

    /// Reads an object by its name after its write was acknowledged: it must exist.
    async fn read_latest(&self) {
        let mut pace = pace();
        while self.next_turn(&mut pace).await {
            let newest = self.written.lock().last_key_value().map(|(_, name)| name.clone());
            if let Some(name) = newest {
                self.read("get", self.balanced.get(&format!("{CONFIG_MAPS}/{name}")).await);
            }
        }
    }

    /// Lists objects: the revision must not be older than acknowledged writes.
    async fn list(&self) {
        let mut pace = pace();
        while self.next_turn(&mut pace).await {
            let least = self.acknowledged.load(Ordering::Acquire);
            let answer = self.balanced.get(&format!("{CONFIG_MAPS}?{SELECTOR}")).await;
            let Some(list) = self.read("list", answer) else { continue };
            if version(&list) < least {
                self.fail(format!("a list shows {}, {least} was acknowledged before", version(&list)));
            }
        }
    }

    /// Lists objects at any revision through one facade: the revision must not decrease.
    async fn read_any(&self, index: usize, client: &Http) {
        let (mut pace, mut last) = (pace(), 0);
        while self.next_turn(&mut pace).await {
            if !self.balanced.is_ready(index) {
                // The facade will be another process.
                last = 0;
                continue;
            }
            let path = format!("{CONFIG_MAPS}?resourceVersion=0&{SELECTOR}");
            let request = Request::get(path).body(Full::default()).unwrap();
            let answer = client.fetch(request).await;
            let Some(list) = self.read("list at any revision", answer) else { continue };
            if version(&list) < last {
                self.fail(format!("a list shows {}, the one before showed {last}", version(&list)));
            }
            last = version(&list);
        }
    }

    /// Reads an object of another API server.
    async fn read_proxied(&self) {
        let mut pace = pace();
        while self.next_turn(&mut pace).await {
            self.read("proxied", self.balanced.get(&self.proxied).await);
            self.read("discovery", self.balanced.get("/apis").await);
        }
    }

    /// Watches from the start until the last object: each write arrives once, in order.
    async fn watch(&self) {
        let (mut last, mut seen, mut done) = (1, BTreeMap::new(), false);
        while !done {
            let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={last}&{SELECTOR}");
            let request = Request::get(path).body(Full::default()).unwrap();
            let answer = match self.balanced.send(request).await {
                Ok(answer) if answer.status() == 200 => answer,
                Ok(answer) => return self.fail(format!("watch: {}", answer.status())),
                Err(error) => return self.fail(format!("watch: {error}")),
            };
            let mut lines = JsonLines::new(answer.into_body());
            while !done && let Some(event) = lines.next().await {
                let (revision, name) = (version(&event["object"]), &event["object"]["metadata"]["name"]);
                if revision <= last || event["type"] != "ADDED" {
                    self.fail(format!("a watch shows {event} behind {last}"));
                }
                last = revision;
                seen.insert(revision, name.as_str().unwrap_or_default().to_owned());
                done = name == LAST;
            }
            if !done {
                self.watches_ended.fetch_add(1, Ordering::Relaxed);
                if self.facades_stay.load(Ordering::Relaxed) {
                    self.fail(format!("a watch ended behind {last} although its facade goes on"));
                }
            }
        }
        for (revision, name) in self.written.lock().iter() {
            if seen.get(revision) != Some(name) {
                self.fail(format!("a watch has not shown {name}, written at {revision}"));
            }
        }
    }
}

fn version(object: &Value) -> i64 {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse().unwrap_or_default()
}

fn pace() -> Interval {
    let mut pace = interval(REQUEST_INTERVAL);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pace
}
