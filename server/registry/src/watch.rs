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
use crate::forms::{CachedForm, FormKey, FormKind, Include, Renderer};
use crate::frame::{EventType, Frame};
use crate::list::Page;
use crate::objects::Objects;
use crate::options::ListOptions;
use crate::selection::Selection;
use crate::served_resource::ServedResource;

/// Annotation on the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Duration of a watch.
///
/// Limit (Storage and watches): the watch ends.
const MAX_WATCH_TIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Time between the last bookmark and the end of a watch, so that the next watch can resume at a recent revision.
const LAST_BOOKMARK_LEAD: Duration = Duration::from_secs(2);
/// Number of initial events, each of which may require decoding, after which the task yields.
const EVENTS_PER_TURN: usize = 16;

/// State of a running watch.
struct Watcher {
    objects: Arc<Objects>,
    served_resource: Arc<ServedResource>,
    form: Form,
    encoding: Encoding,
    include: Include,
    selection: Selection,
    /// Initial objects that are still to be sent.
    initial: VecDeque<Arc<Record>>,
    /// Revision of the bookmark after the initial objects.
    initial_end_revision: Option<i64>,
    subscription: Subscription,
    bookmarks: bool,
    /// True after the first event: only the first table contains columns.
    columns_sent: bool,
    ended: bool,
    deadline: Pin<Box<Sleep>>,
    bookmark: Pin<Box<Sleep>>,
}

/// Cause for which a watcher wakes up.
enum WakeCause {
    Event(std::result::Result<Arc<Event>, WatchError>),
    Bookmark,
    Deadline,
}

/// Initial state of a watch.
struct WatchStart {
    /// Initial objects, or the error that the watch reports by an event.
    initial: Result<VecDeque<Arc<Record>>>,
    initial_end_revision: Option<i64>,
    start_revision: i64,
}

impl Objects {
    pub(crate) async fn watch(
        self: &Arc<Self>,
        served_resource: &Arc<ServedResource>,
        namespace: &str,
        options: &ListOptions,
        choice: Choice,
        include: Include,
    ) -> Result<Watch> {
        served_resource.require_verb("watch")?;
        let selection = Selection::new(served_resource, &options.labels, &options.fields)?;
        let start = match self.start(served_resource, namespace, &selection, options).await {
            Ok(start) => start,
            // A watch that sends a list reports a revision that is too large by an event.
            Err(status)
                if status.reason() == Reason::Timeout && options.send_initial_events == Some(true) =>
            {
                return Ok(single_frame_watch(error_frame(&status, choice.encoding)));
            }
            Err(status) => return Err(status),
        };
        let initial = match start.initial {
            Ok(initial) => initial,
            Err(status) => return Ok(single_frame_watch(error_frame(&status, choice.encoding))),
        };
        if let Some(status) =
            served_resource.custom.as_ref().and_then(|custom| custom.watch_start_error(start.start_revision))
        {
            return Ok(single_frame_watch(error_frame(&status, choice.encoding)));
        }
        let mut scope = match namespace {
            ns if served_resource.info.namespaced && !ns.is_empty() => {
                Scope::namespace(&served_resource.storage, ns)
            }
            _ => Scope::all(&served_resource.storage),
        };
        scope.filter = selection.index_condition();
        let subscription = match self.store.watch(scope, start.start_revision) {
            Ok(subscription) => subscription,
            Err(error @ WatchError::Compacted { .. }) => {
                return Ok(single_frame_watch(error_frame(&too_old(&error), choice.encoding)));
            }
            Err(error) => return Err(Box::new(Status::unavailable(error.to_string()).with_retry_after(1))),
        };
        let deadline = Instant::now() + self.watch_time(options.timeout_seconds);
        let bookmark = next_bookmark(deadline, self.settings.bookmark_period);
        let watcher = Watcher {
            objects: self.clone(),
            served_resource: served_resource.clone(),
            form: choice.form,
            encoding: choice.encoding,
            include,
            selection,
            initial,
            initial_end_revision: start.initial_end_revision,
            subscription,
            bookmarks: options.allow_bookmarks,
            columns_sent: false,
            ended: false,
            deadline: Box::pin(tokio::time::sleep_until(deadline)),
            bookmark: Box::pin(tokio::time::sleep_until(bookmark)),
        };
        let initial = watcher.initial.len() + usize::from(watcher.initial_end_revision.is_some());
        let frames = Box::pin(stream::unfold(watcher, |mut w| async {
            let frame = w.next().await?;
            let has_more = !w.ended && w.subscription.is_within_revision();
            Some((WatchFrame { frame, has_more }, w))
        }));
        Ok(Watch { frames, initial, start_revision: start.start_revision })
    }

    /// Duration of a watch. Without a timeout of the client it is random between one and two times the minimum, so that watches
    /// end at different times.
    fn watch_time(&self, requested_seconds: u64) -> Duration {
        match requested_seconds {
            0 => self.settings.min_watch_timeout.mul_f64(rand::rng().random_range(1.0..2.0)),
            seconds => Duration::from_secs(seconds).min(MAX_WATCH_TIME),
        }
    }

    async fn start(
        &self,
        served_resource: &ServedResource,
        namespace: &str,
        selection: &Selection,
        options: &ListOptions,
    ) -> Result<WatchStart> {
        let version = options.resource_version.filter(|v| *v > 0);
        let initial = options.send_initial_events.unwrap_or(version.is_none());
        if let Some(from) = version.filter(|_| !initial) {
            return Ok(WatchStart {
                initial: Ok(VecDeque::new()),
                initial_end_revision: None,
                start_revision: from,
            });
        }
        let state = match options.resource_version {
            Some(version) => self.state_not_older_than(served_resource, version).await?,
            None => self.state(served_resource).await?,
        };
        if !initial {
            let start_revision = state.revision();
            return Ok(WatchStart {
                initial: Ok(VecDeque::new()),
                initial_end_revision: None,
                start_revision,
            });
        }
        let namespace = Some(namespace).filter(|n| served_resource.info.namespaced && !n.is_empty());
        let late = served_resource.selects_after_conversion(selection);
        let early = if late { Selection::default() } else { selection.clone() };
        let Page { records, revision, .. } =
            self.select_all(served_resource, namespace, early, state).await?;
        let mut shown = self.convert_all_for_request(served_resource, records).await;
        if let Ok(shown) = &mut shown
            && late
        {
            shown.retain(|record| selection.matches(record));
        }
        let has_end_bookmark = options.allow_bookmarks && options.send_initial_events == Some(true);
        Ok(WatchStart {
            initial: shown.map(VecDeque::from),
            initial_end_revision: has_end_bookmark.then_some(revision),
            start_revision: revision,
        })
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
            if self.initial.len().is_multiple_of(EVENTS_PER_TURN) {
                yield_now().await;
            }
            return Some(self.frame(EventType::Added, &record));
        }
        if let Some(revision) = self.initial_end_revision.take() {
            return Some(self.bookmark_frame(revision, true));
        }
        loop {
            match self.wait().await {
                WakeCause::Deadline => return None,
                WakeCause::Bookmark => {
                    let next = next_bookmark(self.deadline.deadline(), self.objects.settings.bookmark_period);
                    self.bookmark.as_mut().reset(next);
                    let revision = self.subscription.progress();
                    return Some(self.bookmark_frame(revision, false));
                }
                WakeCause::Event(Ok(event)) => {
                    match self
                        .objects
                        .convert_event_for_request(&self.served_resource, event, &self.selection)
                        .await
                    {
                        Ok(event) => {
                            if let Some((kind, content)) = visible_event(&self.selection, &event) {
                                return Some(self.event_frame(kind, content, &event));
                            }
                        }
                        Err(status) => return Some(self.fail(&status)),
                    }
                }
                WakeCause::Event(Err(error)) => return self.end(&error),
            }
        }
    }

    async fn wait(&mut self) -> WakeCause {
        if let Some(event) = self.subscription.try_next() {
            return WakeCause::Event(Ok(event));
        }
        tokio::select! {
            biased;
            event = self.subscription.next() => WakeCause::Event(event),
            () = self.bookmark.as_mut(), if self.bookmarks => WakeCause::Bookmark,
            () = self.deadline.as_mut() => WakeCause::Deadline,
            () = wait_superseded(&self.served_resource) => WakeCause::Deadline,
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
        let previous_state =
            Record { key: content.key.clone(), revision: event.revision(), value: content.value.clone() };
        let frame = frame(
            self.encoding,
            kind,
            previous_state.revision,
            &self.render(&previous_state, false, self.include),
        );
        Arc::new(frame)
    }

    /// Frame of a state, shared by all watchers of the same representation, except tables, whose ages depend on the time.
    fn frame(&mut self, kind: EventType, record: &Record) -> Arc<Frame> {
        let shape = match self.form {
            Form::Object => FormKind::ObjectFrame(kind, self.encoding),
            Form::Metadata(version) | Form::MetadataList(version) => {
                FormKind::MetadataFrame(kind, self.encoding, version)
            }
            Form::Table(_) => {
                let shown = self.render(record, true, self.include);
                return Arc::new(frame(self.encoding, kind, record.revision, &shown));
            }
        };
        let make =
            || Arc::new(frame(self.encoding, kind, record.revision, &self.renderer(true).object(record)));
        let key = FormKey::new(record, self.served_resource.id, shape);
        match self.objects.forms.get_or_make(key, || CachedForm::Frame(make())) {
            CachedForm::Frame(frame) => frame,
            CachedForm::Bytes(_) | CachedForm::Cells(_) | CachedForm::Record(_) => make(),
        }
    }

    fn renderer(&self, cached: bool) -> Renderer<'_> {
        Renderer {
            cache: cached.then_some(&self.objects.forms),
            served_resource: &self.served_resource,
            form: self.form,
            encoding: self.encoding,
            include: self.include,
            now: self.objects.request_time().now,
        }
    }

    fn render(&mut self, record: &Record, cached: bool, include: Include) -> Vec<u8> {
        let first = !std::mem::replace(&mut self.columns_sent, true);
        let renderer = Renderer { include, ..self.renderer(cached) };
        match self.form {
            Form::Table(_) => renderer.table_of_one(record, first),
            _ => renderer.object(record),
        }
    }

    fn bookmark_frame(&mut self, revision: i64, initial_end: bool) -> Arc<Frame> {
        let mut object = Object::new(&self.served_resource.info.gvk);
        object.set(&["metadata", "resourceVersion"], revision.to_string());
        if initial_end {
            object.set(&["metadata", "annotations", INITIAL_EVENTS_END], "true");
        }
        self.served_resource.info.schema.normalize(&mut object);
        let record = bookmark_record(&self.served_resource, &object);
        let shown = match (self.form, self.encoding) {
            (Form::Object, Encoding::Protobuf) => {
                self.served_resource.info.schema.to_enveloped_protobuf(&object)
            }
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
async fn wait_superseded(served_resource: &ServedResource) {
    match &served_resource.custom {
        Some(custom) => custom.superseded.signaled().await,
        None => std::future::pending().await,
    }
}

/// Bookmark as a record, so that it can be encoded in every representation; its JSON contains its revision.
fn bookmark_record(served_resource: &ServedResource, object: &Object) -> Record {
    let key = portico_store::Key::new(&served_resource.storage, "", "");
    let value = portico_store::Value::new(object.to_json(), portico_store::Indexed::default());
    Record { key, revision: 0, value }
}

/// Event type that a watcher with this selection receives, and the state to send; `None` if the event is not visible.
fn visible_event<'e>(selection: &Selection, event: &'e Event) -> Option<(EventType, &'e Arc<Record>)> {
    let deleted = event.event_type == portico_store::EventType::Deleted;
    if selection.matches_all() {
        let kind = match event.event_type {
            portico_store::EventType::Added => EventType::Added,
            portico_store::EventType::Modified => EventType::Modified,
            portico_store::EventType::Deleted => EventType::Deleted,
        };
        return Some((kind, &event.record));
    }
    // The fields of an unreadable state are unknown: only its name can be compared.
    let matched =
        |r: &Record| if r.value.is_unreadable() { selection.may_match(r) } else { selection.matches(r) };
    let before = event.previous.as_ref().filter(|r| matched(r));
    let after = !deleted && selection.matches(&event.record);
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
fn single_frame_watch(frame: Frame) -> Watch {
    Watch { frames: Box::pin(stream::iter([WatchFrame::from(frame)])), initial: 0, start_revision: 0 }
}

fn error_frame(status: &Status, encoding: Encoding) -> Frame {
    let shown = if encoding == Encoding::Protobuf { status.to_protobuf() } else { status.to_json() };
    frame(encoding, EventType::Error, 0, &shown)
}

/// Frame of an encoded object.
fn frame(encoding: Encoding, kind: EventType, revision: i64, object: &[u8]) -> Frame {
    match encoding {
        Encoding::Protobuf => Frame::protobuf(kind, revision, object),
        Encoding::Json | Encoding::Yaml => Frame::new(kind, revision, object),
    }
}
