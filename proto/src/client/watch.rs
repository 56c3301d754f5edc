//! Watch of APIServices that resumes after lost connections.

use std::time::Duration;

use futures::stream::{self, Stream};
use tonic::{Code, Status, Streaming};

use super::Client;
use super::retry::{Retry, retry_delay};
use crate::apiregistration::{EventType, WatchRequest, WatchResponse};

/// Event of a watch.
pub type Event = WatchResponse;

/// Backoff for reconnecting, without a limit of attempts.
const RECONNECT: Retry = Retry {
    attempts: u32::MAX,
    first_pause: Duration::from_millis(50),
    longest_pause: Duration::from_secs(5),
};

struct WatchState<F> {
    client: Client,
    request: WatchRequest,
    on_retry: F,
    stream: Option<Streaming<WatchResponse>>,
    failures: u32,
}

/// Watches APIServices after `request.resource_version`. The stream does not end by itself.
///
/// If the revision expires, the current objects are sent again as ADDED events, so treat ADDED as "created or changed". The
/// stream ends with an error that retrying does not resolve, such as `PERMISSION_DENIED`.
pub fn watch_api_services(
    client: Client,
    request: WatchRequest,
) -> impl Stream<Item = Result<Event, Status>> {
    watch_api_services_on_retry(client, request, |_| {})
}

/// Watches like [`watch_api_services`], and calls `on_retry` with the error before each reconnection.
pub fn watch_api_services_on_retry(
    client: Client,
    request: WatchRequest,
    on_retry: impl FnMut(&Status),
) -> impl Stream<Item = Result<Event, Status>> {
    let request = WatchRequest { allow_bookmarks: true, ..request };
    let state = WatchState { client, request, on_retry, stream: None, failures: 0 };
    stream::unfold(Some(state), |state| async move {
        let mut state = state?;
        match state.next().await {
            Ok(event) => Some((Ok(event), Some(state))),
            Err(status) => Some((Err(status), None)),
        }
    })
}

impl<F: FnMut(&Status)> WatchState<F> {
    async fn next(&mut self) -> Result<Event, Status> {
        loop {
            match self.step().await {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(status) => self.recover(status).await?,
            }
        }
    }

    /// Returns an event, or `None` for messages that are not passed to the caller.
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
        wait_before_retry(status, self.failures).await
    }
}

/// Waits before a watch is retried, depending on the number of consecutive failures.
///
/// # Errors
/// The status, if retrying does not resolve it.
pub(super) async fn wait_before_retry(status: Status, failures: u32) -> Result<(), Status> {
    let is_lost = matches!(status.code(), Code::Unknown | Code::Cancelled | Code::Internal);
    let requested = retry_delay(&status).or_else(|| is_lost.then_some(Duration::ZERO)).ok_or(status)?;
    tokio::time::sleep(requested.max(RECONNECT.delay(failures))).await;
    Ok(())
}
