//! `/debug/pprof/profile`: a CPU profile in pprof's protobuf, taken while the caller waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Response, StatusCode};
use portico_gostd::url::first_value;
use pprof::protos::Message;

use crate::body::Body;
use crate::context::RequestContext;
use crate::respond;

/// Samples per second, upstream's.
const FREQUENCY: i32 = 100;
/// Longest profile that is taken, in seconds.
const MAX_SECONDS: u64 = 300;

/// One profile at a time: the timer signal is the process's.
static TAKING: AtomicBool = AtomicBool::new(false);

struct Taking;

impl Drop for Taking {
    fn drop(&mut self) {
        TAKING.store(false, Ordering::Release);
    }
}

pub(super) async fn answer(x: &RequestContext) -> Option<Response<Body>> {
    match x.info.path.strip_prefix("/debug/pprof/")? {
        "" => Some(respond::whole(StatusCode::OK, "text/html; charset=utf-8", INDEX)),
        "profile" => Some(profile(x).await),
        _ => None,
    }
}

const INDEX: &str = "<html>\n<head><title>/debug/pprof/</title></head>\n<body>\n\
    <a href=\"profile?seconds=30\">profile</a>: CPU profile\n</body>\n</html>\n";

async fn profile(x: &RequestContext) -> Response<Body> {
    let seconds = first_value(x.query(), "seconds").and_then(|s| s.parse().ok()).unwrap_or(30u64);
    if TAKING.swap(true, Ordering::AcqRel) {
        let message = "Could not enable CPU profiling: cpu profiling already in use";
        return respond::text(StatusCode::INTERNAL_SERVER_ERROR, message);
    }
    let _taking = Taking;
    match take(Duration::from_secs(seconds.clamp(1, MAX_SECONDS))).await {
        Ok(bytes) => respond::whole(StatusCode::OK, "application/octet-stream", bytes),
        Err(error) => respond::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            &format!("Could not enable CPU profiling: {error}"),
        ),
    }
}

async fn take(time: Duration) -> Result<Vec<u8>, String> {
    let guard =
        pprof::ProfilerGuardBuilder::default().frequency(FREQUENCY).build().map_err(|e| e.to_string())?;
    tokio::time::sleep(time).await;
    let profile = guard.report().build().and_then(|report| report.pprof()).map_err(|e| e.to_string())?;
    profile.write_to_bytes().map_err(|e| e.to_string())
}
