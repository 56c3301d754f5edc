//! Export of spans to a collector, by OTLP over gRPC (`tracing.NewProvider`).
//!
//! One thread sends spans in batches from a bounded queue. If the collector is not available, spans are lost but no request
//! is delayed.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter as Otlp, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanData, SpanExporter,
};
use prometheus_client::metrics::counter::Counter;

use super::TRACER;
use crate::metrics::{Desc, Registry};

/// Spans that wait for the collector.
///
/// Limit (Logs, traces and files): further spans are dropped and counted.
const QUEUE_SPANS: usize = 2_048;
/// Spans in one batch.
///
/// Limit (Logs, traces and files): the rest is sent in the next batch.
const BATCH_SPANS: usize = 512;
/// Maximum time that spans wait for a batch to fill.
const BATCH_DELAY: Duration = Duration::from_secs(5);
/// Time for the collector to accept a batch.
///
/// Limit (Logs, traces and files): the batch is dropped and counted.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time at shutdown to send queued spans.
///
/// Limit (Logs, traces and files): the rest is lost.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);
const SERVICE_NAME: &str = "apiserver";
/// Instrumentation scope: upstream's, so that queries written for kube-apiserver match.
const SCOPE: &str = "k8s.io/component-base/tracing";

/// Destination and sampling of spans.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanSettings {
    /// URL of the collector, http or unix.
    pub endpoint: String,
    /// Fraction of the traces beginning in this process that are sampled, from 0 to 1.
    pub sampling_ratio: f64,
}

/// Error of starting the exporter.
#[derive(Debug, thiserror::Error)]
#[error("cannot export spans: {0}")]
pub struct SpanExportError(#[from] ExporterBuildError);

/// Handle of a running exporter.
#[derive(Clone, Debug)]
pub struct SpanExport(SdkTracerProvider);

/// Starts the exporter. Must run inside a tokio runtime, which drives the connections to the collector.
///
/// # Errors
/// Returns [`SpanExportError`] if the endpoint is invalid.
pub fn start(settings: &SpanSettings, metrics: &Registry) -> Result<SpanExport, SpanExportError> {
    let otlp = Otlp::builder()
        .with_tonic()
        .with_endpoint(&settings.endpoint)
        .with_timeout(EXPORT_TIMEOUT)
        .build()?;
    let counter = |desc| metrics.counter(desc);
    let exporter = CountingExporter {
        otlp,
        exported: counter(Desc::counter(
            "portico_tracing_spans_exported_total",
            &[],
            "Spans exported to the collector",
        )),
        dropped: counter(Desc::counter(
            "portico_tracing_spans_dropped_total",
            &[],
            "Spans that could not be exported to the collector",
        )),
    };
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(QUEUE_SPANS)
        .with_max_export_batch_size(BATCH_SPANS)
        .with_scheduled_delay(BATCH_DELAY)
        .build();
    let instance =
        KeyValue::new("service.instance.id", format!("{SERVICE_NAME}-{:016x}", rand::random::<u64>()));
    let sampler = match settings.sampling_ratio {
        0.0 => Sampler::AlwaysOff,
        rate => Sampler::TraceIdRatioBased(rate),
    };
    let provider = SdkTracerProvider::builder()
        .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batches).build())
        .with_sampler(Sampler::ParentBased(Box::new(sampler)))
        .with_resource(Resource::builder().with_service_name(SERVICE_NAME).with_attribute(instance).build())
        .build();
    // A process has one tracer; later calls keep the first.
    TRACER.get_or_init(|| provider.tracer(SCOPE));
    Ok(SpanExport(provider))
}

impl SpanExport {
    /// Sends queued spans, for at most five seconds. Blocks the thread.
    pub fn finish(&self) {
        if let Err(error) = self.0.shutdown_with_timeout(FLUSH_TIMEOUT) {
            tracing::warn!(%error, "cannot export the last spans");
        }
    }
}

/// Exporter that counts exported and dropped spans, and logs the first failure after a success.
#[derive(Debug)]
struct CountingExporter {
    otlp: Otlp,
    exported: Counter,
    dropped: Counter,
}

impl SpanExporter for CountingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let sent = self.otlp.export(batch).await;
        match &sent {
            Ok(()) => self.exported.inc_by(spans),
            Err(error) => {
                tracing::debug!(%error, spans, "cannot export spans, dropping the batch");
                self.dropped.inc_by(spans)
            }
        };
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}
