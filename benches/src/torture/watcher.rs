//! A watcher: lists, watches from the list's revision, resumes from the last revision when its connection is lost, and lists
//! again when the server reports that the revision is too old.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::BodyExt;
use portico_kit::tasks::TaskSet;
use serde::Deserialize;

use super::client::Recorder;
use super::object::{self, COLLECTION, Object};
use super::transport::RESPONSE_TIMEOUT;
use super::watch_record::{Event, Kind, Segment, Selection, WatcherRecord};
use crate::Failure;
use crate::https::Endpoint;

/// Pause before a lost watch is resumed.
const RESUME_PAUSE: Duration = Duration::from_millis(50);

/// A watcher of one selection.
pub(crate) struct Watcher {
    pub(crate) selection: Selection,
    /// Delay after each chunk, until the watcher has to catch up.
    pub(crate) read_delay: Duration,
    /// Number of events after which the watcher closes its connection; 0 for never.
    pub(crate) cut_every: u64,
    pub(crate) endpoint: Endpoint,
    pub(crate) recorder: Arc<Recorder>,
    /// Revision at which the watcher may end.
    pub(crate) until: Arc<AtomicU64>,
}

/// Reason for the end of a watch.
enum End {
    /// The connection was lost; the watch resumes from the last revision.
    Lost,
    /// The revision is not in the history any more.
    Expired,
    /// All events were received.
    Done,
}

impl Watcher {
    /// Watches until all events were received, or forever.
    pub(crate) async fn run(self, record: Arc<parking_lot::Mutex<WatcherRecord>>) {
        let mut listed = false;
        loop {
            let ended = if listed { self.watch(&record).await } else { self.list(&record).await };
            match ended {
                Ok(End::Done) => return,
                Ok(End::Expired) => listed = false,
                Ok(End::Lost) if !listed => listed = true,
                // Connections are lost for many reasons in a torture run.
                Ok(End::Lost) | Err(_) => {
                    record.lock().resumed += u64::from(listed);
                    tokio::time::sleep(RESUME_PAUSE).await;
                }
            }
        }
    }

    fn query(&self) -> String {
        match &self.selection {
            Selection::All => String::new(),
            Selection::Group(group) => format!("&labelSelector=group%3D{group}"),
            Selection::Name(name) => format!("&fieldSelector=metadata.name%3D{name}"),
        }
    }

    async fn list(&self, record: &parking_lot::Mutex<WatcherRecord>) -> Result<End, Failure> {
        let listing = async {
            let mut client = self.endpoint.client().await?;
            let path = format!("{COLLECTION}?{}", self.query().trim_start_matches('&'));
            client.send(http::Method::GET, &path, "").await
        };
        let (status, body) = tokio::time::timeout(RESPONSE_TIMEOUT, listing).await??;
        if !status.is_success() {
            return Err(format!("list: {status}").into());
        }
        let list = object::list(&body)?;
        let reached = list.revision;
        record.lock().segments.push(Segment { list, events: Vec::new(), reached });
        Ok(End::Lost)
    }

    async fn watch(&self, record: &parking_lot::Mutex<WatcherRecord>) -> Result<End, Failure> {
        let from = record.lock().segments.last().map_or(0, |segment| segment.reached);
        if self.done(from) {
            return Ok(End::Done);
        }
        let path = format!(
            "{COLLECTION}?watch=true&allowWatchBookmarks=true&resourceVersion={from}{}",
            self.query()
        );
        let tasks = TaskSet::new();
        let opening = async {
            let (mut sender, connection) = self.endpoint.open().await?;
            tasks.spawn_until_cancelled("watch-connection", async move {
                // The body reports the end of the connection.
                let _ = connection.await;
            });
            sender.ready().await?;
            Ok::<_, Failure>(sender.send_request(self.endpoint.get(&path)?).await?)
        };
        let answer = tokio::time::timeout(RESPONSE_TIMEOUT, opening).await??;
        if answer.status() == http::StatusCode::GONE {
            return Ok(End::Expired);
        }
        if !answer.status().is_success() {
            return Err(format!("watch: {}", answer.status()).into());
        }
        let ended = self.read(answer.into_body(), record).await;
        tasks.cancel();
        ended
    }

    async fn read(
        &self,
        mut body: hyper::body::Incoming,
        record: &parking_lot::Mutex<WatcherRecord>,
    ) -> Result<End, Failure> {
        let (mut text, mut events) = (Vec::new(), 0);
        let mut look = tokio::time::interval(Duration::from_millis(200));
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                _ = look.tick() => {
                    let reached = record.lock().segments.last().map_or(0, |segment| segment.reached);
                    if self.done(reached) {
                        return Ok(End::Done);
                    }
                    continue;
                }
            };
            let Some(frame) = frame else { return Ok(End::Lost) };
            let Ok(data) = frame?.into_data() else { continue };
            text.extend_from_slice(&data);
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                if !self.event(&line, record)? {
                    return Ok(End::Expired);
                }
                events += 1;
                if events == self.cut_every {
                    return Ok(End::Lost);
                }
            }
            // A watcher that has to catch up does not wait: it may be minutes behind.
            if !self.read_delay.is_zero() && self.until.load(Ordering::Relaxed) == 0 {
                tokio::time::sleep(self.read_delay).await;
            }
        }
    }

    /// Records an event; returns false if the watch cannot continue.
    fn event(&self, line: &[u8], record: &parking_lot::Mutex<WatcherRecord>) -> Result<bool, Failure> {
        #[derive(Deserialize)]
        struct Line<'a> {
            r#type: &'a str,
            #[serde(borrow)]
            object: &'a serde_json::value::RawValue,
        }
        let line: Line<'_> = serde_json::from_slice(line)?;
        let kind = match line.r#type {
            "ADDED" => Kind::Added,
            "MODIFIED" => Kind::Modified,
            "DELETED" => Kind::Deleted,
            "BOOKMARK" => {
                let revision = serde_json::from_str::<Object>(line.object.get())?.revision()?;
                let mut record = record.lock();
                if let Some(segment) = record.segments.last_mut() {
                    segment.reached = segment.reached.max(revision);
                }
                return Ok(true);
            }
            _ => {
                #[derive(Deserialize)]
                struct Status {
                    code: u16,
                }
                let status: Status = serde_json::from_str(line.object.get())?;
                if status.code == 410 {
                    return Ok(false);
                }
                return Err(format!("watch: {}", line.object.get()).into());
            }
        };
        let Some((object, state)) = serde_json::from_str::<Object>(line.object.get())?.state()? else {
            return Ok(true);
        };
        let mut record = record.lock();
        if let Some(segment) = record.segments.last_mut() {
            segment.reached = segment.reached.max(state.revision);
            segment.events.push(Event { at: self.recorder.now(), kind, object, state });
        }
        Ok(true)
    }

    fn done(&self, reached: u64) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        until != 0 && reached >= until
    }
}
