//! CPU profile in pprof's protobuf format, recorded while the client waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use portico_gostd::url::first_value;
use pprof::protos::Message;

use crate::request::Response;
use crate::respond;

/// Samples per second, as upstream.
const FREQUENCY: i32 = 100;
/// Duration of a profile.
///
/// Limit (Serving, s): the profile ends.
const MAX_SECONDS: u64 = 300;

/// True while a profile is recorded. There is only one at a time, because the timer signal belongs to the process.
static IS_RECORDING: AtomicBool = AtomicBool::new(false);

struct RecordingGuard;

impl Drop for RecordingGuard {
    fn drop(&mut self) {
        IS_RECORDING.store(false, Ordering::Release);
    }
}

/// Serves a profile over the seconds that the query names.
pub(super) async fn profile(query: &str) -> Response {
    let seconds = first_value(query, "seconds").and_then(|s| s.parse().ok()).unwrap_or(30u64);
    if IS_RECORDING.swap(true, Ordering::AcqRel) {
        let message = "Could not enable CPU profiling: cpu profiling already in use";
        return respond::text(StatusCode::INTERNAL_SERVER_ERROR, message);
    }
    let _taking = RecordingGuard;
    match record(Duration::from_secs(seconds.clamp(1, MAX_SECONDS))).await {
        Ok(bytes) => respond::with_body(StatusCode::OK, "application/octet-stream", bytes),
        Err(error) => respond::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            &format!("Could not enable CPU profiling: {error}"),
        ),
    }
}

async fn record(time: Duration) -> Result<Vec<u8>, String> {
    let guard =
        pprof::ProfilerGuardBuilder::default().frequency(FREQUENCY).build().map_err(|e| e.to_string())?;
    tokio::time::sleep(time).await;
    let profile = guard.report().build().and_then(|report| report.pprof()).map_err(|e| e.to_string())?;
    profile.write_to_bytes().map_err(|e| e.to_string())
}
