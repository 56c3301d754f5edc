//! A watch that outlives connections: it resumes after the last revision, and begins anew when that is too old.

use std::time::Duration;

use futures::stream::{self, Stream};
use tonic::{Code, Status, Streaming};

use super::Client;
use super::retry::{Retry, worth_another_try};
use crate::apiregistration::{EventType, WatchRequest, WatchResponse};

/// What a watch yields.
pub type Event = WatchResponse;

/// How patiently lost connections are made again; it never gives up.
const RECONNECT: Retry = Retry {
    attempts: u32::MAX,
    first_pause: Duration::from_millis(50),
    longest_pause: Duration::from_secs(5),
};

struct State<F> {
    client: Client,
    request: WatchRequest,
    on_retry: F,
    stream: Option<Streaming<WatchResponse>>,
    failures: u32,
}

/// Watches APIServices from `request.resource_version` on, for ever.
///
/// Bookmarks are asked for and swallowed. After an expired revision the current state comes again as ADDED events, so
/// the caller must treat ADDED as "is so now". Ends with an error only when another try would not help (refused, say).
pub fn watch_api_services(
    client: Client,
    request: WatchRequest,
) -> impl Stream<Item = Result<Event, Status>> {
    watch_api_services_on_retry(client, request, |_| {})
}

/// As [`watch_api_services`]; calls `on_retry` with why a connection was lost or could not be made, before it tries again.
pub fn watch_api_services_on_retry(
    client: Client,
    request: WatchRequest,
    on_retry: impl FnMut(&Status),
) -> impl Stream<Item = Result<Event, Status>> {
    let request = WatchRequest { allow_bookmarks: true, ..request };
    let state = State { client, request, on_retry, stream: None, failures: 0 };
    stream::unfold(Some(state), |state| async move {
        let mut state = state?;
        match state.next().await {
            Ok(event) => Some((Ok(event), Some(state))),
            Err(status) => Some((Err(status), None)),
        }
    })
}

impl<F: FnMut(&Status)> State<F> {
    async fn next(&mut self) -> Result<Event, Status> {
        loop {
            match self.step().await {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(status) => self.recover(status).await?,
            }
        }
    }

    /// One event, or nothing when the caller need not know.
    async fn step(&mut self) -> Result<Option<Event>, Status> {
        if self.stream.is_none() {
            let opened = self.client.api_services_watch().watch(self.request.clone()).await?;
            self.stream = Some(opened.into_inner());
        }
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let Some(event) = stream.message().await? else {
            self.stream = None;
            return Ok(None);
        };
        self.failures = 0;
        if event.r#type() == EventType::Error {
            return Err(Status::out_of_range(event.error));
        }
        if let Some(metadata) = event.object.as_ref().and_then(|o| o.metadata.as_ref()) {
            self.request.resource_version.clone_from(&metadata.resource_version);
        }
        Ok((event.r#type() != EventType::Bookmark).then_some(event))
    }

    async fn recover(&mut self, status: Status) -> Result<(), Status> {
        self.stream = None;
        self.failures = self.failures.saturating_add(1);
        if status.code() == Code::OutOfRange {
            self.request.resource_version.clear();
            return Ok(());
        }
        (self.on_retry)(&status);
        wait_for_another_try(status, self.failures).await
    }
}

/// Waits after so many failures in a row until a watch may be tried again.
///
/// # Errors
/// The status, where it was refused for good.
pub(super) async fn wait_for_another_try(status: Status, failures: u32) -> Result<(), Status> {
    let is_lost = matches!(status.code(), Code::Unknown | Code::Cancelled | Code::Internal);
    let asked = worth_another_try(&status).or_else(|| is_lost.then_some(Duration::ZERO)).ok_or(status)?;
    tokio::time::sleep(asked.max(RECONNECT.pause(failures))).await;
    Ok(())
}
