//! Watch: filtered events of one resource from a revision on, in one representation (upstream's
//! `Store.WatchPredicate` and watch handler).

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::stream;
use portico_machinery::accept::{Choice, Encoding, Form};
use portico_machinery::status::Reason;
use portico_machinery::{Object, Status};
use portico_store::{Event, Record, Scope, StoreError, Subscription, WatchError};
use rand::RngExt;
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep};

use crate::Result;
use crate::answer::{Watch, WatchFrame};
use crate::forms::{FormKey, Include, Made, Renderer, Shape};
use crate::frame::{EventType, Frame};
use crate::list::Page;
use crate::objects::Objects;
use crate::options::ListOptions;
use crate::selection::Selection;
use crate::served::ServedResource;

/// Annotation on the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Duration of a watch.
///
/// Limit (Storage and watches): the watch ends.
const MAX_WATCH_TIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Time between the last bookmark and the end of a watch, so that the next watch can resume at a recent revision.
const LAST_BOOKMARK_LEAD: Duration = Duration::from_secs(2);
/// Number of initial events, each of which may require decoding, after which the task yields.
const TURN: usize = 16;

/// State of a running watch.
struct Watcher {
    inner: Arc<Objects>,
    served: Arc<ServedResource>,
    form: Form,
    encoding: Encoding,
    include: Include,
    selection: Selection,
    /// Initial objects that are still to be sent.
    initial: VecDeque<Arc<Record>>,
    /// Revision of the bookmark after the initial objects.
    initial_end: Option<i64>,
    subscription: Subscription,
    bookmarks: bool,
    /// True after the first event: only the first table contains columns.
    begun: bool,
    ended: bool,
    deadline: Pin<Box<Sleep>>,
    bookmark: Pin<Box<Sleep>>,
}

/// Cause for which a watcher wakes up.
enum Woken {
    Event(std::result::Result<Arc<Event>, WatchError>),
    Bookmark,
    Deadline,
}

/// Initial state of a watch.
struct Start {
    /// Initial objects, or the error that the watch reports by an event.
    initial: Result<VecDeque<Arc<Record>>>,
    initial_end: Option<i64>,
    from: i64,
}

impl Objects {
    pub(crate) async fn watch(
        self: &Arc<Self>,
        served: &Arc<ServedResource>,
        namespace: &str,
        options: &ListOptions,
        wanted: Choice,
        include: Include,
    ) -> Result<Watch> {
        served.require("watch")?;
        let selection = Selection::new(served, &options.labels, &options.fields)?;
        let start = match self.start(served, namespace, &selection, options).await {
            Ok(start) => start,
            // A watch that sends a list reports a revision that is too large by an event.
            Err(status)
                if status.reason() == Reason::Timeout && options.send_initial_events == Some(true) =>
            {
                return Ok(only(error_frame(&status, wanted.encoding)));
            }
            Err(status) => return Err(status),
        };
        let initial = match start.initial {
            Ok(initial) => initial,
            Err(status) => return Ok(only(error_frame(&status, wanted.encoding))),
        };
        if let Some(status) = served.custom.as_ref().and_then(|custom| custom.too_early(start.from)) {
            return Ok(only(error_frame(&status, wanted.encoding)));
        }
        let mut scope = match namespace {
            ns if served.info.namespaced && !ns.is_empty() => Scope::namespace(&served.storage, ns),
            _ => Scope::all(&served.storage),
        };
        scope.only = selection.only();
        let subscription = match self.store.watch(scope, start.from) {
            Ok(subscription) => subscription,
            Err(error @ WatchError::Compacted { .. }) => {
                return Ok(only(error_frame(&too_old(&error), wanted.encoding)));
            }
            Err(error) => return Err(Box::new(Status::unavailable(error.to_string()).with_retry_after(1))),
        };
        let deadline = Instant::now() + self.watch_time(options.timeout_seconds);
        let bookmark = next_bookmark(deadline, self.settings.bookmark_period);
        let watcher = Watcher {
            inner: self.clone(),
            served: served.clone(),
            form: wanted.form,
            encoding: wanted.encoding,
            include,
            selection,
            initial,
            initial_end: start.initial_end,
            subscription,
            bookmarks: options.allow_bookmarks,
            begun: false,
            ended: false,
            deadline: Box::pin(tokio::time::sleep_until(deadline)),
            bookmark: Box::pin(tokio::time::sleep_until(bookmark)),
        };
        let initial = watcher.initial.len() + usize::from(watcher.initial_end.is_some());
        let frames = Box::pin(stream::unfold(watcher, |mut w| async {
            let frame = w.next().await?;
            let more = !w.ended && w.subscription.is_within_revision();
            Some((WatchFrame { frame, more }, w))
        }));
        Ok(Watch { frames, initial, from: start.from })
    }

    /// Duration of a watch. Without a timeout of the client it is random between one and two times the minimum, so that watches
    /// end at different times.
    fn watch_time(&self, wanted: u64) -> Duration {
        match wanted {
            0 => self.settings.min_watch_timeout.mul_f64(rand::rng().random_range(1.0..2.0)),
            seconds => Duration::from_secs(seconds).min(MAX_WATCH_TIME),
        }
    }

    async fn start(
        &self,
        served: &ServedResource,
        namespace: &str,
        selection: &Selection,
        options: &ListOptions,
    ) -> Result<Start> {
        let version = options.resource_version.filter(|v| *v > 0);
        let initial = options.send_initial_events.unwrap_or(version.is_none());
        if let Some(from) = version.filter(|_| !initial) {
            return Ok(Start { initial: Ok(VecDeque::new()), initial_end: None, from });
        }
        let state = match options.resource_version {
            Some(version) => self.not_older_than(served, version).await?,
            None => self.state(served).await?,
        };
        if !initial {
            let from = state.revision();
            return Ok(Start { initial: Ok(VecDeque::new()), initial_end: None, from });
        }
        let namespace = Some(namespace).filter(|n| served.info.namespaced && !n.is_empty());
        let late = served.selects_converted(selection);
        let early = if late { Selection::default() } else { selection.clone() };
        let Page { records, revision: from, .. } = self.select_all(served, namespace, early, state).await?;
        let mut shown = self.incoming_all(served, records).await;
        if let Ok(shown) = &mut shown
            && late
        {
            shown.retain(|record| selection.takes(record));
        }
        let marked = options.allow_bookmarks && options.send_initial_events == Some(true);
        Ok(Start { initial: shown.map(VecDeque::from), initial_end: marked.then_some(from), from })
    }
}

impl Watcher {
    async fn next(&mut self) -> Option<Arc<Frame>> {
        // Also while events are pending: slow clients get no additional time.
        let is_over = Instant::now() >= self.deadline.deadline() && !self.subscription.is_within_revision();
        if self.ended || is_over {
            return None;
        }
        if let Some(record) = self.initial.pop_front() {
            if self.initial.len().is_multiple_of(TURN) {
                yield_now().await;
            }
            return Some(self.frame(EventType::Added, &record));
        }
        if let Some(revision) = self.initial_end.take() {
            return Some(self.bookmark_frame(revision, true));
        }
        loop {
            match self.wait().await {
                Woken::Deadline => return None,
                Woken::Bookmark => {
                    let next = next_bookmark(self.deadline.deadline(), self.inner.settings.bookmark_period);
                    self.bookmark.as_mut().reset(next);
                    let revision = self.subscription.progress();
                    return Some(self.bookmark_frame(revision, false));
                }
                Woken::Event(Ok(event)) => {
                    match self.inner.incoming_event(&self.served, event, &self.selection).await {
                        Ok(event) => {
                            if let Some((kind, content)) = seen(&self.selection, &event) {
                                return Some(self.event_frame(kind, content, &event));
                            }
                        }
                        Err(status) => return Some(self.fail(&status)),
                    }
                }
                Woken::Event(Err(error)) => return self.end(&error),
            }
        }
    }

    async fn wait(&mut self) -> Woken {
        if let Some(event) = self.subscription.try_next() {
            return Woken::Event(Ok(event));
        }
        tokio::select! {
            biased;
            event = self.subscription.next() => Woken::Event(event),
            () = self.bookmark.as_mut(), if self.bookmarks => Woken::Bookmark,
            () = self.deadline.as_mut() => Woken::Deadline,
            () = over(&self.served) => Woken::Deadline,
        }
    }

    /// Ends a watch: without an event if it was too slow, with an error event if it cannot be resumed.
    fn end(&mut self, error: &WatchError) -> Option<Arc<Frame>> {
        self.ended = true;
        match error {
            WatchError::Lagged { .. } | WatchError::Closed => None,
            WatchError::Compacted { .. } => Some(self.fail(&too_old(error))),
            // 410 makes the client list again and continue after the unreadable event; other errors would make it resume before
            // the event.
            WatchError::Store(StoreError::Corrupt { .. }) => {
                Some(self.fail(&Status::expired(error.to_string())))
            }
            WatchError::Store(_) => Some(self.fail(&Status::internal(error))),
        }
    }

    /// Error frame, after which the watch ends.
    fn fail(&mut self, status: &Status) -> Arc<Frame> {
        self.ended = true;
        Arc::new(error_frame(status, self.encoding))
    }

    /// Frame of an event. If an object left the selection, the frame contains its previous state with the revision of the event.
    fn event_frame(&mut self, kind: EventType, content: &Arc<Record>, event: &Event) -> Arc<Frame> {
        if content.revision == event.revision() {
            return self.frame(kind, content);
        }
        let left =
            Record { key: content.key.clone(), revision: event.revision(), value: content.value.clone() };
        let frame = frame(self.encoding, kind, left.revision, &self.render(&left, false, self.include));
        Arc::new(frame)
    }

    /// Frame of a state, shared by all watchers of the same representation, except tables, whose ages depend on the time.
    fn frame(&mut self, kind: EventType, record: &Record) -> Arc<Frame> {
        let shape = match self.form {
            Form::Object => Shape::ObjectFrame(kind, self.encoding),
            Form::Metadata(version) | Form::MetadataList(version) => {
                Shape::MetadataFrame(kind, self.encoding, version)
            }
            Form::Table(_) => {
                let shown = self.render(record, true, self.include);
                return Arc::new(frame(self.encoding, kind, record.revision, &shown));
            }
        };
        let make =
            || Arc::new(frame(self.encoding, kind, record.revision, &self.renderer(true).object(record)));
        let key = FormKey::new(record, self.served.id, shape);
        match self.inner.forms.get_or_make(key, || Made::Frame(make())) {
            Made::Frame(frame) => frame,
            Made::Bytes(_) | Made::Cells(_) | Made::Record(_) => make(),
        }
    }

    fn renderer(&self, cached: bool) -> Renderer<'_> {
        Renderer {
            cache: cached.then_some(&self.inner.forms),
            served: &self.served,
            form: self.form,
            encoding: self.encoding,
            include: self.include,
            now: self.inner.moment().now,
        }
    }

    fn render(&mut self, record: &Record, cached: bool, include: Include) -> Vec<u8> {
        let first = !std::mem::replace(&mut self.begun, true);
        let renderer = Renderer { include, ..self.renderer(cached) };
        match self.form {
            Form::Table(_) => renderer.table_of_one(record, first),
            _ => renderer.object(record),
        }
    }

    fn bookmark_frame(&mut self, revision: i64, initial_end: bool) -> Arc<Frame> {
        let mut object = Object::new(&self.served.info.gvk);
        object.set(&["metadata", "resourceVersion"], revision.to_string());
        if initial_end {
            object.set(&["metadata", "annotations", INITIAL_EVENTS_END], "true");
        }
        self.served.info.schema.normalise(&mut object);
        let record = bookmark_record(&self.served, &object);
        let shown = match (self.form, self.encoding) {
            (Form::Object, Encoding::Protobuf) => self.served.info.schema.to_sealed_protobuf(&object),
            (Form::Object, _) => object.to_json(),
            _ => {
                // A row without its object would lose the annotation.
                let include = if initial_end { self.include.at_least_metadata() } else { self.include };
                self.render(&record, false, include)
            }
        };
        Arc::new(frame(self.encoding, EventType::Bookmark, revision, &shown))
    }
}

/// Time of the next bookmark: after a period, or shortly before the deadline.
fn next_bookmark(deadline: Instant, period: Duration) -> Instant {
    let now = Instant::now();
    let periodic = now + period;
    match deadline.checked_sub(LAST_BOOKMARK_LEAD) {
        Some(last) if last > now => periodic.min(last),
        _ => periodic,
    }
}

/// Waits until a newer state of the definition replaces a served custom resource.
async fn over(served: &ServedResource) {
    match &served.custom {
        Some(custom) => custom.over.signaled().await,
        None => std::future::pending().await,
    }
}

/// Bookmark as a record, so that it can be encoded in every representation; its JSON contains its revision.
fn bookmark_record(served: &ServedResource, object: &Object) -> Record {
    let key = portico_store::Key::new(&served.storage, "", "");
    let value = portico_store::Value::new(object.to_json(), portico_store::Indexed::default());
    Record { key, revision: 0, value }
}

/// Event type that a watcher with this selection receives, and the state to send; `None` if the event is not visible.
fn seen<'e>(selection: &Selection, event: &'e Event) -> Option<(EventType, &'e Arc<Record>)> {
    let deleted = event.event_type == portico_store::EventType::Deleted;
    if selection.is_everything() {
        let kind = match event.event_type {
            portico_store::EventType::Added => EventType::Added,
            portico_store::EventType::Modified => EventType::Modified,
            portico_store::EventType::Deleted => EventType::Deleted,
        };
        return Some((kind, &event.record));
    }
    // The fields of an unreadable state are unknown: only its name can be compared.
    let took = |r: &Record| if r.value.is_unreadable() { selection.may_take(r) } else { selection.takes(r) };
    let before = event.previous.as_ref().filter(|r| took(r));
    let after = !deleted && selection.takes(&event.record);
    match (before, after) {
        (None, true) => Some((EventType::Added, &event.record)),
        (Some(_), true) => Some((EventType::Modified, &event.record)),
        (Some(_), false) if deleted => Some((EventType::Deleted, &event.record)),
        (Some(previous), false) if previous.value.is_unreadable() => {
            Some((EventType::Deleted, &event.record))
        }
        (Some(previous), false) => Some((EventType::Deleted, previous)),
        (None, false) => None,
    }
}

fn too_old(error: &WatchError) -> Status {
    Status::expired(error.to_string())
}

/// Watch with a single frame.
fn only(frame: Frame) -> Watch {
    Watch { frames: Box::pin(stream::iter([WatchFrame::from(frame)])), initial: 0, from: 0 }
}

fn error_frame(status: &Status, encoding: Encoding) -> Frame {
    let shown = if encoding == Encoding::Protobuf { status.to_protobuf() } else { status.to_json() };
    frame(encoding, EventType::Error, 0, &shown)
}

/// Frame of an encoded object.
fn frame(encoding: Encoding, kind: EventType, revision: i64, shown: &[u8]) -> Frame {
    match encoding {
        Encoding::Protobuf => Frame::protobuf(kind, revision, shown),
        Encoding::Json | Encoding::Yaml => Frame::new(kind, revision, shown),
    }
}
