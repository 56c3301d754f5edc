//! The handler chain: the one place that says in which order a request meets the filters (upstream's
//! DefaultBuildHandlerChain).

use crate::filters::audit_init::AuditInit;
use crate::filters::authentication::Authentication;
use crate::filters::authorization::Authorization;
use crate::filters::cache_control::CacheControl;
use crate::filters::cors::Cors;
use crate::filters::goaway::Goaway;
use crate::filters::hsts::Hsts;
use crate::filters::http_log::HttpLog;
use crate::filters::impersonation::Impersonation;
use crate::filters::max_in_flight::MaxInFlight;
use crate::filters::mux_complete::MuxComplete;
use crate::filters::panic_recovery::PanicRecovery;
use crate::filters::received_timestamp::ReceivedTimestamp;
use crate::filters::request_deadline::RequestDeadline;
use crate::filters::request_info::RequestInfoFilter;
use crate::filters::retry_after::RetryAfter;
use crate::filters::timeout::Timeout;
use crate::filters::wait_group::WaitGroupFilter;
use crate::filters::warning::WarningRecorder;
use crate::filters::watch_termination::WatchTermination;
use crate::filters::{Filtered, Handler};

/// The filters that need settings; the others are made in place.
pub struct Filters {
    /// All paths are known.
    pub mux_complete: MuxComplete,
    /// Log and metrics.
    pub http_log: HttpLog,
    /// `--shutdown-send-retry-after`
    pub retry_after: Option<RetryAfter>,
    /// `--strict-transport-security-directives`
    pub hsts: Option<Hsts>,
    /// `--goaway-chance`
    pub goaway: Option<Goaway>,
    /// `--shutdown-watch-termination-grace-period`
    pub watch_termination: Option<WatchTermination>,
    /// Short requests under way.
    pub wait_group: WaitGroupFilter,
    /// `--request-timeout`
    pub request_deadline: RequestDeadline,
    /// `--cors-allowed-origins`
    pub cors: Option<Cors>,
    /// Who asks.
    pub authentication: Authentication,
    /// Who they want to be.
    pub impersonation: Impersonation,
    /// `--max-requests-inflight`, `--max-mutating-requests-inflight`
    pub max_in_flight: MaxInFlight,
    /// What they may do.
    pub authorization: Authorization,
}

macro_rules! chain {
    ($inner:expr;) => { $inner };
    ($inner:expr; $filter:expr, $($rest:expr,)*) => {
        Filtered { filter: $filter, next: chain!($inner; $($rest,)*) }
    };
}

/// The chain before `director`; outermost first. Audit comes after authentication, storage-version preconditions
/// last, when they come.
pub fn build<H: Handler>(f: Filters, director: H) -> impl Handler {
    chain! { director;
        AuditInit,
        PanicRecovery,
        f.mux_complete,
        ReceivedTimestamp,
        RequestInfoFilter,
        f.http_log,
        f.retry_after,
        f.hsts,
        CacheControl,
        f.goaway,
        f.watch_termination,
        f.wait_group,
        f.request_deadline,
        Timeout,
        WarningRecorder,
        f.cors,
        f.authentication,
        f.impersonation,
        f.max_in_flight,
        f.authorization,
    }
}

#[cfg(test)]
mod tests;
