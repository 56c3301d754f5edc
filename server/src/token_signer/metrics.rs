//! Metrics of an external signer, with upstream's names.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portico_kit::metrics::{Desc, FloatGauge, HistogramVec, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::error::SignerError;

const SECONDS: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

type CodeLabel = [(&'static str, &'static str); 1];
type CallLabels = [(&'static str, String); 2];
type NoLabels = [(&'static str, &'static str); 0];

/// Metrics of an external signer. Cheap to clone.
#[derive(Clone)]
pub(super) struct SignerMetrics {
    fetched: Family<NoLabels, FloatGauge>,
    data: Family<NoLabels, FloatGauge>,
    fetches: Family<CodeLabel, Counter>,
    signed: Family<CodeLabel, Counter>,
    seconds: HistogramVec<CallLabels>,
}

impl SignerMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            fetched: registry.float_gauge_vec(Desc::gauge(
                "apiserver_externaljwt_fetch_keys_success_timestamp",
                &[],
                "[ALPHA] Unix Timestamp in seconds of the last successful FetchKeys request",
            )),
            data: registry.float_gauge_vec(Desc::gauge(
                "apiserver_externaljwt_fetch_keys_data_timestamp",
                &[],
                "[ALPHA] Unix Timestamp in seconds of the last successful FetchKeys \
                 data_timestamp value returned by the external signer",
            )),
            fetches: registry.counter_vec(Desc::counter(
                "apiserver_externaljwt_fetch_keys_request_total",
                &["code"],
                "[ALPHA] Total attempts at syncing supported JWKs",
            )),
            signed: registry.counter_vec(Desc::counter(
                "apiserver_externaljwt_sign_request_total",
                &["code"],
                "[ALPHA] Total attempts at signing JWT",
            )),
            seconds: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_externaljwt_request_duration_seconds",
                    &["code", "method"],
                    "[ALPHA] Request duration and time for calls to external-jwt-signer",
                ),
                SECONDS,
            ),
        }
    }

    /// Records a fetch of keys: the time at which the keys were current (Unix seconds), or the error.
    pub(super) fn record_fetch(&self, fetched: Result<f64, &SignerError>) {
        self.fetches.get_or_create(&[("code", code(fetched.err()))]).inc();
        if let Ok(data) = fetched {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.fetched.get_or_create(&[]).set(now.as_secs_f64());
            self.data.get_or_create(&[]).set(data);
        }
    }

    /// Counts a request to sign a token.
    pub(super) fn record_signature(&self, error: Option<&SignerError>) {
        self.signed.get_or_create(&[("code", code(error))]).inc();
    }

    /// Records the duration of a call.
    pub(super) fn observe_call(&self, method: &str, error: Option<&SignerError>, duration: Duration) {
        let labels =
            [("method", format!("/v1.ExternalJWTSigner/{method}")), ("code", code(error).to_owned())];
        self.seconds.get_or_create(&labels).observe(duration.as_secs_f64());
    }
}

fn code(error: Option<&SignerError>) -> &'static str {
    error.map_or("OK", |error| error.code.unwrap_or("unknown-non-grpc"))
}
