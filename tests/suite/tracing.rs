//! Traces of requests, as an OTLP collector receives them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request};
use http_body_util::Full;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use portico_kit::tasks::TaskSet;
use portico_tests::http::{FullResponse, Http};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Backend, Launch, eventually};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;

use crate::proxying::register;
use crate::webhooks::setup::{Setup, VALIDATING};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// All received spans.
#[derive(Clone, Default)]
struct Collector {
    tasks: TaskSet,
    spans: Arc<std::sync::Mutex<Vec<Span>>>,
    services: Arc<AtomicUsize>,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, tonic::Status> {
        for resource in request.into_inner().resource_spans {
            let attributes = resource.resource.unwrap_or_default().attributes;
            let named = attributes.iter().filter(|a| a.key == "service.name").count();
            self.services.fetch_add(named, Ordering::Relaxed);
            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            self.spans.lock().unwrap().extend(spans);
        }
        Ok(tonic::Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    async fn start() -> (Self, SocketAddr) {
        let (collector, listener) = (Self::default(), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap();
        let server =
            tonic::transport::Server::builder().add_service(TraceServiceServer::new(collector.clone()));
        let serving = server.serve_with_incoming(TcpListenerStream::new(listener));
        collector.tasks.spawn_until_cancelled("collector", async move { serving.await.unwrap() });
        (collector, address)
    }

    /// Returns the spans of a trace.
    fn of(&self, trace: &str) -> Vec<Span> {
        let spans = self.spans.lock().unwrap();
        spans.iter().filter(|span| hex(&span.trace_id) == trace).cloned().collect()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn named<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(found.len(), 1, "{name} among {names:?}");
    found[0]
}

/// Returns a launch that sends a share of its traces to a collector.
fn tracing(launch: Launch, collector: SocketAddr, per_million: u32) -> Launch {
    let (launch, folder) = launch.prepare_folder();
    let file = folder.join("tracing.yaml");
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: {collector}\n\
         samplingRatePerMillion: {per_million}\n"
    );
    std::fs::write(&file, text).unwrap();
    launch.args(&["--tracing-config-file", file.to_str().unwrap()])
}

async fn send(client: &Http, method: Method, path: &str, body: &str) -> FullResponse {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.header("traceparent", format!("00-{TRACE}-{PARENT}-01"));
    client.fetch(request.body(Full::from(body.to_owned())).unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_write_is_one_trace_from_the_caller_through_the_facade_to_the_transaction() {
    let (collector, address) = Collector::start().await;
    let mut server = tracing(Launch::server(), address, 0).start().await;
    let mut facade = tracing(Launch::facade(&server), address, 0).start().await;
    let map = json!({"metadata": {"name": "m"}}).to_string();
    let created = send(&facade.admin(), Method::POST, CONFIG_MAPS, &map).await;
    assert_eq!(created.status, 201, "{}", created.text());
    // Queued spans are sent before the processes end.
    assert!(facade.stop().await.success());
    assert!(server.stop().await.success());
    let spans = collector.of(TRACE);
    let request = named(&spans, "POST /api/v1/namespaces/{:namespace}/configmaps");
    assert_eq!(hex(&request.parent_span_id), PARENT);
    for (child, parent) in [
        ("authentication", "POST /api/v1/namespaces/{:namespace}/configmaps"),
        ("authorization", "POST /api/v1/namespaces/{:namespace}/configmaps"),
        ("portico.objects.v1.Objects/Do", "POST /api/v1/namespaces/{:namespace}/configmaps"),
        ("Create", "portico.objects.v1.Objects/Do"),
        ("Commit transaction", "Create"),
    ] {
        assert_eq!(named(&spans, child).parent_span_id, named(&spans, parent).span_id, "{child}");
    }
    let create = named(&spans, "Create");
    assert!(create.attributes.iter().any(|attribute| attribute.key == "resource"), "{create:?}");
    assert!(collector.services.load(Ordering::Relaxed) >= 2);
    // Requests without a sampled trace are not recorded.
    assert_eq!(collector.spans.lock().unwrap().len(), spans.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_privileged_callers_continue_their_trace() {
    let (collector, address) = Collector::start().await;
    let mut portico = tracing(Launch::new(), address, 1_000_000).start().await;
    let refused = send(&portico.anonymous().as_user("alice"), Method::GET, CONFIG_MAPS, "").await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(portico.stop().await.success());
    assert!(collector.of(TRACE).is_empty());
    let spans = collector.spans.lock().unwrap().clone();
    let linked: Vec<_> = spans.iter().filter(|span| !span.links.is_empty()).collect();
    assert_eq!(linked.len(), 1, "{linked:?}");
    assert_eq!(
        (&*linked[0].name, hex(&linked[0].links[0].trace_id)),
        ("GET /api/v1/namespaces/{:namespace}/configmaps", TRACE.to_owned())
    );
    assert!(linked[0].parent_span_id.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn backends_receive_the_parent_span() {
    let (collector, address) = Collector::start().await;
    let backend = Backend::start("traced.example.com").await;
    let mut portico = tracing(Launch::new(), address, 0).start().await;
    register(&portico, &backend).await;
    let answer = send(&portico.admin(), Method::GET, &backend.path("/namespaces/x/flunders"), "").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let parents = backend.last_request().all("traceparent");
    assert!(portico.stop().await.success());
    let span = hex(&named(&collector.of(TRACE), "HTTP request to a backend").span_id);
    assert_eq!(parents, [format!("00-{TRACE}-{span}-01")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_collector_loses_only_spans() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let mut portico = tracing(Launch::new(), address, 1_000_000).start().await;
    let created = send(&portico.admin(), Method::POST, CONFIG_MAPS, r#"{"metadata":{"name":"m"}}"#).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let dropped = "portico_tracing_spans_dropped_total";
    eventually("lost spans are counted", || async {
        let text = portico.admin().get("/metrics").await.text();
        let line = text.lines().find(|line| line.starts_with(&format!("{dropped} "))).map(str::to_owned);
        if line.as_deref().is_some_and(|line| !line.ends_with(" 0")) { Ok(()) } else { Err(line) }
    })
    .await;
    assert!(portico.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_receive_the_parent_span() {
    let (collector, address) = Collector::start().await;
    let mut setup = Setup::launch(tracing(Launch::new(), address, 0)).await;
    setup.configure_one(VALIDATING, "allow", json!({})).await;
    let map = json!({"metadata": {"name": "m"}}).to_string();
    assert_eq!(send(&setup.admin, Method::POST, CONFIG_MAPS, &map).await.status, 201);
    let parents: Vec<_> = setup.hooks.requests().iter().flat_map(|seen| seen.all("traceparent")).collect();
    assert!(setup.portico.stop().await.success());
    let spans = collector.of(TRACE);
    let call = named(&spans, "Call validating webhook");
    assert_eq!(call.parent_span_id, named(&spans, "Create").span_id);
    assert_eq!(parents, [format!("00-{TRACE}-{}-01", hex(&call.span_id))]);
}
