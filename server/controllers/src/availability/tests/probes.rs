//! Probes against real TLS backends on port 0.

use std::net::SocketAddr;
use std::time::Duration;

use portico_kit::dial::{Connector, ConnectorOptions};
use portico_kit::fetch::Fetcher;
use portico_kit::pki::{Authority, CertProfile};
use portico_kit::tls::{CertPair, ServerTls, ServerTlsOptions};
use portico_machinery::resolve::Bundle;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const NAME: &str = "svc.ns.svc";

fn pair(authority: &Authority, name: &str) -> CertPair {
    authority
        .issue(&CertProfile::server("backend", &[name.to_owned()], HOUR))
        .unwrap()
        .cert_pair("backend")
        .unwrap()
}

/// Backend that sends these bytes as the response to every request, or no response if they are empty. Records the heads of
/// the requests.
struct Backend {
    addr: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
    tasks: TaskSet,
}

impl Backend {
    async fn start(pair: CertPair, answer: &'static str) -> Self {
        let acceptor = ServerTls::new(pair, &[], &ServerTlsOptions::default()).unwrap().acceptor();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, tasks) = (listener.local_addr().unwrap(), TaskSet::new());
        let (heads, connections): (Arc<Mutex<Vec<String>>>, Arc<Mutex<usize>>) = Default::default();
        let backend =
            Self { addr, heads: heads.clone(), connections: connections.clone(), tasks: tasks.clone() };
        let set = tasks.clone();
        tasks.spawn_until_cancelled("backend", async move {
            while let Ok((stream, _)) = listener.accept().await {
                *connections.lock() += 1;
                let (acceptor, heads) = (acceptor.clone(), heads.clone());
                set.spawn_until_cancelled("backend-connection", async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut head = Vec::new();
                    while let Ok(byte) = stream.read_u8().await {
                        head.push(byte);
                        if head.ends_with(b"\r\n\r\n") {
                            heads
                                .lock()
                                .push(String::from_utf8(std::mem::take(&mut head)).unwrap().to_lowercase());
                            if answer.is_empty() {
                                std::future::pending::<()>().await;
                            }
                            if stream.write_all(answer.as_bytes()).await.is_err()
                                || stream.flush().await.is_err()
                            {
                                return;
                            }
                        }
                    }
                });
            }
        });
        backend
    }

    fn plan(&self, authority: &Authority) -> ProbePlan {
        let target = Target { host: self.addr.ip().to_string(), port: self.addr.port() };
        let bundle = Arc::new(Bundle::new(authority.cert_pem().as_bytes().to_vec()));
        let display_address = self.addr.to_string();
        ProbePlan {
            targets: vec![target],
            bundle: Some(bundle),
            display_address,
            server_name: NAME.into(),
            ..plan()
        }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

fn prober(timeout: Duration) -> HttpProber {
    let fetcher = Fetcher::new(Connector::new(ConnectorOptions::default()), TaskSet::new());
    HttpProber::new(fetcher, ProbeSettings { timeout, ..ProbeSettings::default() }, None)
}

async fn reported(backend: &Backend, plan: &ProbePlan, timeout: Duration) -> (ProbeStage, bool, String) {
    let failure = prober(timeout).probe(plan, 0).await.unwrap_err();
    (failure.stage, failure.timed_out, failure.message.replace(&backend.addr.to_string(), "ADDR"))
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

#[tokio::test]
async fn a_probe_carries_the_aggregators_identity_over_a_pooled_connection() {
    let authority = Authority::create("ca").unwrap();
    let backend = Backend::start(pair(&authority, NAME), OK).await;
    let (plan, prober) = (backend.plan(&authority), prober(HOUR));
    run_attempts(&prober, &plan).await.unwrap();
    run_attempts(&prober, &plan).await.unwrap();
    assert_eq!(*backend.connections.lock(), 1);
    let head = backend.heads.lock()[0].clone();
    assert!(head.starts_with("get /apis/g/v1 http/1.1\r\n"), "{head}");
    assert!(head.contains("x-remote-user: system:kube-aggregator\r\n"), "{head}");
    assert!(head.contains("x-remote-group: system:masters\r\n"), "{head}");
    assert!(!head.contains("x-remote-uid"), "{head}");
    prober.probe(&ProbePlan { as_masters: false, ..plan }, 0).await.unwrap();
    assert!(!backend.heads.lock()[2].contains("x-remote-group"));
}

#[tokio::test]
async fn anything_but_2xx_fails_and_redirects_are_not_followed() {
    let authority = Authority::create("ca").unwrap();
    let rows = [
        ("HTTP/1.1 403 Forbidden\r\ncontent-length: 6\r\n\r\nsecret", "403"),
        ("HTTP/1.1 302 Found\r\nlocation: /apis/g/v1/x\r\ncontent-length: 0\r\n\r\n", "302"),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", "304"),
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "404"),
        ("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", "500"),
    ];
    for (answer, code) in rows {
        let backend = Backend::start(pair(&authority, NAME), answer).await;
        let reported = reported(&backend, &backend.plan(&authority), HOUR).await;
        let want = format!("bad status from https://ADDR/apis/g/v1: {code}");
        assert_eq!(reported, (ProbeStage::Status, false, want));
        assert_eq!(backend.heads.lock().len(), 1);
    }
}

#[tokio::test]
async fn certificate_errors_name_the_certificate() {
    let (authority, stranger) = (Authority::create("ca").unwrap(), Authority::create("stranger").unwrap());
    let backend = Backend::start(pair(&authority, "other.name"), OK).await;
    let (stage, _, message) = reported(&backend, &backend.plan(&authority), HOUR).await;
    assert_eq!(stage, ProbeStage::Tls);
    assert!(message.contains("other.name") && message.contains(NAME), "{message}");
    let (stage, _, message) = reported(&backend, &backend.plan(&stranger), HOUR).await;
    assert_eq!(stage, ProbeStage::Tls);
    assert!(message.contains("unknown authority"), "{message}");
    let (stage, _, _) =
        reported(&backend, &ProbePlan { bundle: None, ..backend.plan(&authority) }, HOUR).await;
    assert_eq!(stage, ProbeStage::Tls, "the system roots do not contain a private CA");
    let bad = Arc::new(Bundle::new(b"no PEM".to_vec()));
    let (stage, _, message) =
        reported(&backend, &ProbePlan { bundle: Some(bad), ..backend.plan(&authority) }, HOUR).await;
    assert_eq!(stage, ProbeStage::Tls);
    assert!(message.contains("spec.caBundle"), "{message}");
    let insecure = ProbePlan { insecure: true, ..backend.plan(&stranger) };
    prober(HOUR).probe(&insecure, 0).await.unwrap();
}

#[tokio::test]
async fn a_dead_backend_is_refused_and_a_hanging_one_times_out() {
    let authority = Authority::create("ca").unwrap();
    let hanging = Backend::start(pair(&authority, NAME), "").await;
    let (stage, timed_out, _) =
        reported(&hanging, &hanging.plan(&authority), Duration::from_millis(300)).await;
    assert_eq!((stage, timed_out), (ProbeStage::Http, true));

    let dead = Backend::start(pair(&authority, NAME), OK).await;
    dead.tasks.shutdown(HOUR).await;
    let (stage, timed_out, message) = reported(&dead, &dead.plan(&authority), HOUR).await;
    assert_eq!((stage, timed_out), (ProbeStage::Dial, false));
    assert!(message.starts_with("cannot connect to ADDR: "), "{message}");
}

#[tokio::test]
async fn one_live_target_of_two_is_enough_and_messages_do_not_name_the_target() {
    let authority = Authority::create("ca").unwrap();
    let live = Backend::start(pair(&authority, NAME), OK).await;
    let dead_port = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let dead = Target { host: "127.0.0.1".into(), port: dead_port };
    let mut plan = live.plan(&authority);
    plan.targets.insert(0, dead.clone());
    plan.display_address = "svc.ns.svc:443".into();
    let prober = prober(HOUR);
    run_attempts(&prober, &plan).await.unwrap();
    plan.targets[1] = Target { host: "127.0.0.2".into(), port: dead_port };
    let failure = run_attempts(&prober, &plan).await.unwrap_err();
    assert!(failure.message.starts_with("cannot connect to svc.ns.svc:443: "), "{}", failure.message);
}

#[tokio::test]
async fn api_services_with_the_same_backend_share_its_pooled_connection() {
    let authority = Authority::create("ca").unwrap();
    let backend = Backend::start(pair(&authority, NAME), OK).await;
    let (plan, prober) = (backend.plan(&authority), prober(HOUR));
    let other = ProbePlan { name: "v1.other".into(), ..plan.clone() };
    let insecure = ProbePlan { insecure: true, ..plan.clone() };
    for plan in [&plan, &other, &plan, &insecure, &other] {
        prober.probe(plan, 0).await.unwrap();
    }
    assert_eq!(*backend.connections.lock(), 2, "plans with different trust settings share no connection");
    prober.set_client_cert(None);
    prober.probe(&plan, 0).await.unwrap();
    assert_eq!(*backend.connections.lock(), 3, "a new client certificate requires a new connection");
}
